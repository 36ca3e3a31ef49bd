//! A connection as Kafka's protocol uses it: requests with correlation ids out, frames with a length in front in.
//!
//! Owns: one [`Conn`], the list of requests that wait for an answer, and a staging buffer for one small request.
//! Invariant: the four bytes of length are read first, alone; only then does the caller choose a buffer for the rest,
//! or none yet, and then the frame waits in the socket. Answers come in the order of the requests; anything else ends
//! the connection.
//! Bound: [`MAX_OUTSTANDING`] requests; the staging buffer's fixed capacity; no allocation but that of the connection
//! itself.
//! Called by: the fetcher, the producer's sender and [`BlockingCall`](super::BlockingCall).
use super::{Conn, ConnState, Interest, NetError, PollSet, Ready, Token};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::net::SocketAddr;

/// Most requests without an answer on one connection.
pub(crate) const MAX_OUTSTANDING: usize = 8;
/// Bytes of a correlation id, with which every response begins.
pub(crate) const RESPONSE_HEADER_BYTES: usize = 4;

#[derive(Debug, Clone, Copy)]
enum Incoming {
    /// Some bytes of the length.
    Length { bytes: [u8; 4], have: usize },
    /// The length is known, `have` bytes of the frame are in the caller's buffer.
    Frame { len: usize, have: usize },
}

const NOTHING: Incoming = Incoming::Length { bytes: [0; 4], have: 0 };

/// A connection to a broker with its framing. It can be connected again and again.
#[derive(Debug)]
pub(crate) struct Link {
    conn: Option<Conn>,
    token: Option<Token>,
    correlation: i32,
    outstanding: VecDeque<i32>,
    incoming: Incoming,
    stage: Vec<u8>,
    sent: usize,
}

impl Link {
    /// A link that is not connected, with room to stage a request of up to `stage_bytes`.
    pub(crate) fn new(stage_bytes: usize) -> Self {
        Self {
            conn: None,
            token: None,
            correlation: 0,
            outstanding: VecDeque::with_capacity(MAX_OUTSTANDING),
            incoming: NOTHING,
            stage: Vec::with_capacity(stage_bytes),
            sent: 0,
        }
    }

    /// Drops the present connection and everything half sent or half received, and starts a new attempt. Correlation
    /// ids run on.
    pub(crate) fn connect(&mut self, addr: SocketAddr) -> Result<(), NetError> {
        self.close();
        self.conn = Some(Conn::connect(addr)?);
        Ok(())
    }

    /// Ends the connection and forgets the requests on their way.
    pub(crate) fn close(&mut self) {
        self.conn = None;
        self.token = None;
        self.outstanding.clear();
        self.incoming = NOTHING;
        self.stage.clear();
        self.sent = 0;
    }

    /// How far the connection is.
    pub(crate) fn state(&self) -> ConnState {
        self.conn.as_ref().map_or(ConnState::Closed, Conn::state)
    }

    /// Requests that wait for their answers.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Enters the link into this turn's poll set. It waits for room to write while staged bytes are left or
    /// `interest.write`, for bytes to read if `interest.read`, and for the connection while that is being made.
    pub(crate) fn register(&mut self, polls: &mut PollSet, interest: Interest) -> Result<(), NetError> {
        self.token = None;
        if let Some(conn) = &self.conn {
            let write = interest.write || self.sent < self.stage.len();
            self.token = Some(conn.register(polls, Interest { read: interest.read, write })?);
        }
        Ok(())
    }

    /// After the wait: what is ready. Ends a connection attempt and sends staged bytes. An error has closed the link.
    pub(crate) fn advance(&mut self, polls: &PollSet) -> Result<Ready, NetError> {
        let ready = self.token.map_or(Ready::default(), |token| polls.ready(token));
        let outcome = self.advance_by(ready);
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    fn advance_by(&mut self, ready: Ready) -> Result<Ready, NetError> {
        let Some(conn) = &mut self.conn else { return Ok(Ready::default()) };
        if conn.state() == ConnState::Connecting {
            if !ready.writable {
                return Ok(Ready::default());
            }
            conn.finish()?;
        }
        if ready.writable {
            self.flush()?;
        }
        Ok(ready)
    }

    /// Notes a new request and answers its correlation id. The request must then leave whole, through the staging
    /// buffer or by [`Self::write`].
    pub(crate) fn begin(&mut self) -> Result<i32, NetError> {
        if self.outstanding.len() >= MAX_OUTSTANDING {
            return Err(NetError::Outstanding { limit: MAX_OUTSTANDING });
        }
        self.correlation = self.correlation.wrapping_add(1) & i32::MAX;
        self.outstanding.push_back(self.correlation);
        Ok(self.correlation)
    }

    /// Makes room to stage requests of up to `bytes`, if no request is waiting. Allocates when that is more than
    /// before.
    pub(crate) fn reserve_stage(&mut self, bytes: usize) {
        if let Some(stage) = self.stage() {
            stage.reserve_exact(bytes);
        }
    }

    /// The staging buffer, empty, if no request is waiting in it. Fill it with a whole request (its length in front
    /// included) and call [`Self::flush`]; its capacity must not be exceeded.
    pub(crate) fn stage(&mut self) -> Option<&mut Vec<u8>> {
        (self.sent >= self.stage.len()).then(|| {
            self.stage.clear();
            self.sent = 0;
            &mut self.stage
        })
    }

    /// Sends staged bytes as far as there is room; what is left leaves by [`Self::advance`].
    pub(crate) fn flush(&mut self) -> Result<(), NetError> {
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        while self.sent < self.stage.len() && conn.state() == ConnState::Ready {
            match conn.write(&[IoSlice::new(&self.stage[self.sent..])])? {
                0 => break,
                n => self.sent += n,
            }
        }
        Ok(())
    }

    /// Writes bytes of a request that the caller keeps, as far as there is room now. 0 while staged bytes are in front.
    pub(crate) fn write(&mut self, from: &[IoSlice<'_>]) -> Result<usize, NetError> {
        self.flush()?;
        if self.sent < self.stage.len() {
            return Ok(0);
        }
        self.conn.as_mut().ok_or(NetError::NotConnected)?.write(from)
    }

    /// Length of the frame that is arriving, in bytes without the four of the length itself, once that is known.
    pub(crate) fn frame_len(&mut self) -> Result<Option<usize>, NetError> {
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        while let Incoming::Length { bytes, have } = &mut self.incoming {
            match conn.read(&mut bytes[*have..])? {
                0 => return Ok(None),
                n => *have += n,
            }
            if *have == bytes.len() {
                let len = i32::from_be_bytes(*bytes);
                let frame = usize::try_from(len).ok().filter(|len| *len >= RESPONSE_HEADER_BYTES);
                self.incoming = Incoming::Frame { len: frame.ok_or(NetError::FrameLength { len })?, have: 0 };
            }
        }
        match self.incoming {
            Incoming::Frame { len, .. } => Ok(Some(len)),
            Incoming::Length { .. } => Ok(None),
        }
    }

    /// Reads on into the buffer chosen for the arriving frame (the same one in every call for a frame, at least as
    /// long as the frame). When the frame is whole, checks that it answers the oldest request and returns its length;
    /// the answer begins with the correlation id.
    pub(crate) fn read_frame(&mut self, into: &mut [u8]) -> Result<Option<usize>, NetError> {
        let Some(len) = self.frame_len()? else { return Ok(None) };
        let room = into.len();
        let into = into.get_mut(..len).ok_or(NetError::ResponseTooLarge { needed: len, have: room })?;
        let conn = self.conn.as_mut().ok_or(NetError::NotConnected)?;
        let Incoming::Frame { have, .. } = &mut self.incoming else { return Ok(None) };
        while *have < len {
            match conn.read(&mut into[*have..])? {
                0 => return Ok(None),
                n => *have += n,
            }
        }
        self.incoming = NOTHING;
        let expected = self.outstanding.pop_front().unwrap_or(-1);
        match into.first_chunk::<RESPONSE_HEADER_BYTES>().map(|b| i32::from_be_bytes(*b)) {
            Some(got) if got == expected => Ok(Some(len)),
            got => Err(NetError::Correlation { expected, got: got.unwrap_or(-1) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    fn linked() -> (Link, TcpStream, PollSet) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut link = Link::new(64);
        link.connect(listener.local_addr().unwrap()).unwrap();
        let mut polls = PollSet::new().unwrap();
        turn(&mut link, &mut polls).unwrap();
        assert_eq!(link.state(), ConnState::Ready);
        let peer = listener.accept().unwrap().0;
        peer.set_nodelay(true).unwrap();
        (link, peer, polls)
    }

    fn turn(link: &mut Link, polls: &mut PollSet) -> Result<Ready, NetError> {
        polls.clear();
        link.register(polls, Interest { read: true, write: false })?;
        polls.wait(Some(Duration::from_secs(5)))?;
        link.advance(polls)
    }

    fn until_frame(link: &mut Link, polls: &mut PollSet, buf: &mut [u8]) -> Result<usize, NetError> {
        loop {
            turn(link, polls)?;
            if let Some(len) = link.read_frame(buf)? {
                return Ok(len);
            }
        }
    }

    #[test]
    fn a_frame_arrives_byte_by_byte_and_its_length_is_known_before_a_buffer_is_needed() {
        let (mut link, mut peer, mut polls) = linked();
        assert_eq!(link.begin(), Ok(1));
        let writer = std::thread::spawn(move || {
            for byte in [0, 0, 0, 7, 0, 0, 0, 1, b'a', b'b', b'c'] {
                peer.write_all(&[byte]).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            peer
        });
        while link.frame_len().unwrap().is_none() {
            turn(&mut link, &mut polls).unwrap();
        }
        assert_eq!(link.frame_len(), Ok(Some(7)));
        let mut buf = [0; 16];
        assert_eq!(until_frame(&mut link, &mut polls, &mut buf), Ok(7));
        assert_eq!(&buf[..7], b"\0\0\0\x01abc");
        assert_eq!(link.outstanding(), 0);
        writer.join().unwrap();
    }

    #[test]
    fn two_frames_in_one_segment_are_two_frames() {
        let (mut link, mut peer, mut polls) = linked();
        assert_eq!((link.begin(), link.begin()), (Ok(1), Ok(2)));
        peer.write_all(b"\0\0\0\x05\0\0\0\x01x\0\0\0\x06\0\0\0\x02yz").unwrap();
        let mut buf = [0; 6];
        assert_eq!(until_frame(&mut link, &mut polls, &mut buf), Ok(5));
        assert_eq!(link.read_frame(&mut buf), Ok(Some(6)));
        assert_eq!(&buf, b"\0\0\0\x02yz");
        assert_eq!(link.read_frame(&mut buf), Ok(None));
    }

    #[test]
    fn a_staged_request_leaves_whole_and_before_what_follows() {
        let (mut link, mut peer, _polls) = linked();
        link.stage().unwrap().extend_from_slice(b"first");
        assert!(link.stage().is_none(), "taken until it has left");
        assert_eq!(link.write(&[IoSlice::new(b" second")]), Ok(7));
        assert!(link.stage().is_some());
        let mut got = [0; 12];
        peer.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"first second");
    }

    #[test]
    fn wrong_lengths_wrong_answers_and_too_many_requests_are_typed_errors() {
        let (mut link, mut peer, mut polls) = linked();
        peer.write_all(b"HTTP/1.1").unwrap();
        let mut buf = [0; 16];
        let error = until_frame(&mut link, &mut polls, &mut buf);
        assert_eq!(error, Err(NetError::ResponseTooLarge { needed: 0x4854_5450, have: 16 }));
        let (mut link, mut peer, mut polls) = linked();
        peer.write_all(&[0xff; 8]).unwrap();
        assert_eq!(until_frame(&mut link, &mut polls, &mut buf), Err(NetError::FrameLength { len: -1 }));
        let (mut link, mut peer, mut polls) = linked();
        link.begin().unwrap();
        peer.write_all(b"\0\0\0\x04\0\0\0\x09").unwrap();
        let error = until_frame(&mut link, &mut polls, &mut buf);
        assert_eq!(error, Err(NetError::Correlation { expected: 1, got: 9 }));
        let (mut link, _peer, _polls) = linked();
        for _ in 0..MAX_OUTSTANDING {
            link.begin().unwrap();
        }
        assert_eq!(link.begin(), Err(NetError::Outstanding { limit: 8 }));
    }

    #[test]
    fn a_new_connection_starts_clean_with_new_ids() {
        let (mut link, mut peer, mut polls) = linked();
        link.begin().unwrap();
        peer.write_all(b"\0\0\0\x09\0").unwrap();
        turn(&mut link, &mut polls).unwrap();
        assert_eq!(link.frame_len(), Ok(Some(9)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        link.connect(listener.local_addr().unwrap()).unwrap();
        turn(&mut link, &mut polls).unwrap();
        let mut peer = listener.accept().unwrap().0;
        assert_eq!((link.outstanding(), link.begin()), (0, Ok(2)));
        peer.write_all(b"\0\0\0\x04\0\0\0\x02").unwrap();
        assert_eq!(until_frame(&mut link, &mut polls, &mut [0; 4]), Ok(4));
    }
}
