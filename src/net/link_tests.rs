use super::*;
use crate::net::plain;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn linked() -> (Link, TcpStream, PollSet) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut link = Link::new(64);
    link.connect(&plain(listener.local_addr().unwrap())).unwrap();
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
    link.connect(&plain(listener.local_addr().unwrap())).unwrap();
    turn(&mut link, &mut polls).unwrap();
    let mut peer = listener.accept().unwrap().0;
    assert_eq!((link.outstanding(), link.begin()), (0, Ok(2)));
    peer.write_all(b"\0\0\0\x04\0\0\0\x02").unwrap();
    assert_eq!(until_frame(&mut link, &mut polls, &mut [0; 4]), Ok(4));
}
