use super::*;
use crate::net::{Conn, ConnState, Interest, Peer, PollSet, Security};
use crate::support::certs::{Authority, Identity};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Server = StreamOwned<ServerConnection, TcpStream>;

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// Accepts one connection and serves it.
fn serve(
    identity: &Identity,
    clients: Option<&Authority>,
    serve: impl FnOnce(Server) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let builder = match clients {
        None => builder.unwrap().with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(der(&authority.pem())).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.unwrap().with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).unwrap();
    let config = Arc::new(builder.with_single_cert(vec![der(&identity.certificate)], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let socket = listener.accept().unwrap().0;
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        serve(StreamOwned::new(ServerConnection::new(config).unwrap(), socket));
    });
    (addr, thread)
}

/// Security of a client with these settings.
fn ssl(settings: &[(&str, &str)]) -> Security {
    let mut all = vec![("security.protocol".to_owned(), "ssl".to_owned())];
    all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Security::new(&all, None).unwrap()
}

fn turn(conn: &Conn, polls: &mut PollSet, interest: Interest) {
    polls.clear();
    conn.register(polls, interest).unwrap();
    polls.wait(Some(Duration::from_secs(10))).unwrap();
}

fn connect(addr: SocketAddr, host: &str, security: &Security) -> Result<(Conn, PollSet), NetError> {
    let mut polls = PollSet::new().unwrap();
    let mut conn = Conn::connect(&Peer { addr, host, security })?;
    let end = Instant::now() + Duration::from_secs(20);
    while conn.state() == ConnState::Connecting {
        assert!(Instant::now() < end, "the handshake hangs");
        turn(&conn, &mut polls, Interest::default());
        conn.finish()?;
    }
    Ok((conn, polls))
}

/// Reads so many bytes, or until the connection ends.
fn read(conn: &mut Conn, polls: &mut PollSet, into: &mut [u8]) -> Result<(), NetError> {
    let mut have = 0;
    while have < into.len() {
        match conn.read(&mut into[have..])? {
            0 => turn(conn, polls, Interest { read: true, write: false }),
            n => have += n,
        }
    }
    Ok(())
}

fn refused(identity: &Identity, host: &str, security: &Security) -> NetError {
    let (addr, server) = serve(identity, None, |mut server| {
        let _ = server.read(&mut [0; 8]);
    });
    let error = connect(addr, host, security).map(|_| ()).unwrap_err();
    server.join().unwrap();
    error
}

#[test]
fn bytes_go_both_ways_in_pieces_of_any_size_and_stay_under_the_bound() {
    const BYTES: usize = 1 << 20;
    let authority = Authority::new("tests");
    let (addr, server) = serve(&authority.identity("localhost"), None, |mut server| {
        let mut got = vec![0; BYTES];
        server.read_exact(&mut got).unwrap();
        server.write_all(&got).unwrap();
        server.flush().unwrap();
    });
    let security = ssl(&[("ssl.ca.pem", &authority.pem())]);
    let sent: Vec<u8> = (0..BYTES).map(|at| (at * 31 % 251) as u8).collect();
    let (mut conn, mut polls) = connect(addr, "localhost", &security).unwrap();
    let mut at = 0;
    while at < BYTES {
        let (first, rest) = sent[at..].split_at((BYTES - at).min(7));
        match conn.write(&[IoSlice::new(first), IoSlice::new(rest)]).unwrap() {
            0 => turn(&conn, &mut polls, Interest { read: false, write: true }),
            n => at += n,
        }
    }
    let mut got = vec![0; BYTES];
    // The four bytes of a length first, as frames are read: what is decrypted beyond them must not be waited for.
    while conn.flush().is_ok() && conn.read(&mut got[..4]).unwrap() == 0 {
        turn(&conn, &mut polls, Interest { read: true, write: false });
    }
    turn(&conn, &mut polls, Interest { read: true, write: false });
    read(&mut conn, &mut polls, &mut got[4..]).unwrap();
    assert!(got == sent, "other bytes came back");
    server.join().unwrap();
    assert_eq!(read(&mut conn, &mut polls, &mut [0]), Err(NetError::Closed));
}

#[test]
fn each_wrong_certificate_has_its_error() {
    let (authority, stranger) = (Authority::new("tests"), Authority::new("stranger"));
    let security = ssl(&[("ssl.ca.pem", &authority.pem())]);
    let good = authority.identity("localhost");
    assert_eq!(refused(&stranger.identity("localhost"), "localhost", &security), TlsFault::UnknownIssuer.into());
    assert_eq!(refused(&good, "other.example", &security), TlsFault::WrongHost.into());
    assert_eq!(refused(&good, "127.0.0.1", &security), TlsFault::WrongHost.into());
    assert_eq!(refused(&authority.expired("localhost"), "localhost", &security), TlsFault::Expired.into());
}

#[test]
fn verification_is_as_lenient_as_asked_and_no_more() {
    let (authority, stranger) = (Authority::new("tests"), Authority::new("stranger"));
    let accepts = |identity: &Identity, security: &Security| {
        let (addr, server) = serve(identity, None, |mut server| {
            let _ = server.read(&mut [0; 8]);
        });
        let outcome = connect(addr, "other.example", security).map(|_| ());
        server.join().unwrap();
        outcome
    };
    let pem = authority.pem();
    let any_host = ssl(&[("ssl.ca.pem", &pem), ("ssl.endpoint.identification.algorithm", "none")]);
    assert_eq!(accepts(&authority.identity("localhost"), &any_host), Ok(()));
    let unknown: NetError = TlsFault::UnknownIssuer.into();
    assert_eq!(accepts(&stranger.identity("localhost"), &any_host), Err(unknown));
    let nothing = ssl(&[("enable.ssl.certificate.verification", "false")]);
    assert_eq!(accepts(&stranger.identity("localhost"), &nothing), Ok(()));
}

#[test]
fn a_client_certificate_is_shown_when_it_is_asked_for() {
    let authority = Authority::new("tests");
    let (broker, client) = (authority.identity("localhost"), authority.identity("client"));
    let talk = |mut server: Server| {
        let mut got = [0; 2];
        if server.read_exact(&mut got).is_ok() {
            server.write_all(b"ok").unwrap();
        }
    };
    let ask = |security: &Security| {
        let (addr, server) = serve(&broker, Some(&authority), talk);
        let outcome = connect(addr, "localhost", security).and_then(|(mut conn, mut polls)| {
            conn.write(&[IoSlice::new(b"hi")])?;
            read(&mut conn, &mut polls, &mut [0; 2])
        });
        server.join().unwrap();
        outcome
    };
    let pem = authority.pem();
    let with = ssl(&[("ssl.ca.pem", &pem), ("ssl.certificate.pem", &client.certificate), ("ssl.key.pem", &client.key)]);
    assert_eq!(ask(&with), Ok(()));
    let required: NetError = TlsFault::CertificateRequired.into();
    assert_eq!(ask(&ssl(&[("ssl.ca.pem", &pem)])), Err(required));
    let stranger = Authority::new("stranger").identity("client");
    let foreign =
        ssl(&[("ssl.ca.pem", &pem), ("ssl.certificate.pem", &stranger.certificate), ("ssl.key.pem", &stranger.key)]);
    let refused: NetError = TlsFault::CertificateRefused.into();
    assert_eq!(ask(&foreign), Err(refused));
}

#[test]
fn a_port_without_tls_is_told_from_one_that_closes() {
    let security = ssl(&[("enable.ssl.certificate.verification", "false")]);
    for (says, fault) in [(&b"SSH-2.0-OpenSSH_9.2\r\n"[..], TlsFault::NotTls), (b"", TlsFault::ClosedInHandshake)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let mut peer = listener.accept().unwrap().0;
            let _ = peer.read(&mut [0; 4_096]);
            peer.write_all(says).unwrap();
        });
        let error = connect(addr, "localhost", &security).map(|_| ()).unwrap_err();
        assert_eq!(error, fault.into());
        server.join().unwrap();
    }
}

#[test]
fn certificates_and_keys_that_cannot_be_read_are_told_without_quoting_them() {
    let authority = Authority::new("tests");
    let client = authority.identity("client");
    let refused = |settings: &[(&str, &str)]| {
        let mut all = vec![("security.protocol".to_owned(), "ssl".to_owned())];
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        Security::new(&all, None).map(|_| ()).unwrap_err().to_string()
    };
    let pem = authority.pem();
    let missing = refused(&[("ssl.ca.location", "/no/such/ca.pem")]);
    assert!(missing.starts_with("ssl.ca.location: /no/such/ca.pem"), "{missing}");
    assert!(refused(&[("ssl.ca.location", "/tmp")]).contains("is not a file"));
    assert!(refused(&[("ssl.ca.pem", "nothing")]).contains("there is no certificate"));
    let damaged = client.key.replacen("-----END", "hush?hush\n-----END", 1);
    let certificate = ("ssl.certificate.pem", client.certificate.as_str());
    let text = refused(&[("ssl.ca.pem", &pem), certificate, ("ssl.key.pem", &damaged)]);
    assert!(text.contains("ssl.key.pem") && !text.contains("hush"), "{text}");
    let encrypted = client.key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let text = refused(&[("ssl.ca.pem", &pem), certificate, ("ssl.key.pem", &encrypted)]);
    assert!(text.contains("openssl pkey"), "{text}");
    let other = authority.identity("other").key;
    let text = refused(&[("ssl.ca.pem", &pem), certificate, ("ssl.key.pem", &other)]);
    assert!(text.contains("does not belong"), "{text}");
    let body: String = client.key.lines().nth(1).unwrap().to_owned();
    assert!(!format!("{:?}", ssl(&[("ssl.ca.pem", &pem), certificate, ("ssl.key.pem", &client.key)])).contains(&body));
}
