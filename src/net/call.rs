//! A request and its answer, waited for: for cold paths on threads that may block.
//!
//! Owns: one [`Link`] with a poll set of its own, and the answer's buffer.
//! Bound: an answer longer than the given limit is a typed error; a call ends after its time-out.
//! Called by: the metadata client (control thread), offset look-ups at assignment; never by a stream thread's turn.
use super::{ConnState, Interest, Link, NetError, Peer, PollSet};
use std::time::{Duration, Instant};

/// A connection for one request at a time.
#[derive(Debug)]
pub(crate) struct BlockingCall {
    link: Link,
    polls: PollSet,
    answer: Vec<u8>,
    limit: usize,
}

impl BlockingCall {
    /// Connects, within `timeout`. Requests may have up to `request_bytes`, answers up to `limit` bytes; the answer's
    /// buffer grows to what is needed up to there.
    pub(crate) fn connect(
        peer: &Peer<'_>,
        request_bytes: usize,
        limit: usize,
        timeout: Duration,
    ) -> Result<Self, NetError> {
        let mut link = Link::new(request_bytes);
        link.connect(peer)?;
        let mut call = Self { link, polls: PollSet::new()?, answer: Vec::new(), limit };
        let end = Instant::now() + timeout;
        while call.link.state() == ConnState::Connecting {
            call.turn(end, timeout)?;
        }
        Ok(call)
    }

    /// Sends one request and answers its response, from the correlation id on. `write` puts the whole request into the
    /// buffer, its length in front included, with the correlation id it is given.
    pub(crate) fn call<E: From<NetError>>(
        &mut self,
        timeout: Duration,
        write: impl FnOnce(i32, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<&[u8], E> {
        let end = Instant::now() + timeout;
        let correlation = self.link.begin()?;
        let stage = self.link.stage().ok_or(NetError::NotConnected)?;
        let have = stage.capacity();
        write(correlation, stage)?;
        if stage.len() > have {
            let needed = stage.len();
            self.link.close();
            return Err(NetError::StageFull { needed, have }.into());
        }
        self.link.flush()?;
        loop {
            self.turn(end, timeout)?;
            let Some(len) = self.link.frame_len()? else { continue };
            if len > self.limit {
                self.link.close();
                return Err(NetError::ResponseTooLarge { needed: len, have: self.limit }.into());
            }
            self.answer.resize(len, 0);
            if self.link.read_frame(&mut self.answer)?.is_some() {
                return Ok(&self.answer);
            }
        }
    }

    fn turn(&mut self, end: Instant, timeout: Duration) -> Result<(), NetError> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            self.link.close();
            return Err(NetError::TimedOut { ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX) });
        }
        self.polls.clear();
        self.link.register(&mut self.polls, Interest { read: true, write: false })?;
        self.polls.wait(Some(left))?;
        self.link.advance(&self.polls)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::plain;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    fn request(correlation: i32, into: &mut Vec<u8>) -> Result<(), NetError> {
        into.extend_from_slice(&[0, 0, 0, 4]);
        into.extend_from_slice(&correlation.to_be_bytes());
        Ok(())
    }

    #[test]
    fn calls_are_answered_in_turn_and_silence_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            for _ in 0..2 {
                let mut got = [0; 8];
                peer.read_exact(&mut got).unwrap();
                peer.write_all(&[0, 0, 0, 6, got[4], got[5], got[6], got[7], b'o', b'k']).unwrap();
            }
            peer.read_exact(&mut [0; 8]).unwrap();
            peer
        });
        let second = Duration::from_secs(5);
        let mut call = BlockingCall::connect(&plain(addr), 64, 1_024, second).unwrap();
        assert_eq!(call.call(second, request), Ok(&b"\0\0\0\x01ok"[..]));
        assert_eq!(call.call(second, request), Ok(&b"\0\0\0\x02ok"[..]));
        assert_eq!(call.call(Duration::from_millis(30), request), Err(NetError::TimedOut { ms: 30 }));
        server.join().unwrap();
    }

    #[test]
    fn an_answer_over_the_limit_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            peer.read_exact(&mut [0; 8]).unwrap();
            peer.write_all(&[0, 0, 1, 0]).unwrap();
            peer
        });
        let mut call = BlockingCall::connect(&plain(addr), 64, 100, Duration::from_secs(5)).unwrap();
        let answer = call.call(Duration::from_secs(5), request);
        assert_eq!(answer, Err(NetError::ResponseTooLarge { needed: 256, have: 100 }));
        server.join().unwrap();
    }
}
