//! Every kind of listener of a real broker, by every mechanism, rightly and wrongly.
use super::offered::ask_offered;
use super::{LinkFault, MetadataClient, MetadataSettings, Reach, SharedMetadata};
use crate::base::token::OauthToken;
use crate::net::{Interest, Link, NetError, Peer, PollSet, SaslFault, Security, TlsFault, TokenCallback, TokenNews};
use crate::support::certs::Authority;
use crate::support::secured::{Listener, PASSWORD, SESSION_MS, Secured, USER, secured, unsigned_token};
use crate::wire::message::{API_VERSIONS_FALLBACK, ApiKey, ApiVersionsRequest, RequestHeader};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(20);
const MECHANISMS: [&str; 3] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];

fn settings(list: &[(&str, &str)]) -> Security {
    let list: Vec<_> = list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Security::new(&list, None).unwrap()
}

fn ask(bootstrap: &str, security: &Security) -> Result<(), LinkFault> {
    ask_offered(&[bootstrap.to_owned()], security, "test", PATIENCE).map(|_| ())
}

fn password(kafka: &Secured, protocol: &str, mechanism: &str, password: &str) -> Security {
    let pem = kafka.authority.pem();
    let mut list = vec![
        ("security.protocol", protocol),
        ("sasl.mechanism", mechanism),
        ("sasl.username", USER),
        ("sasl.password", password),
    ];
    if protocol == "sasl_ssl" {
        list.push(("ssl.ca.pem", &pem));
    }
    settings(&list)
}

fn token(seconds: i64) -> Security {
    token_by(&[("security.protocol", "sasl_plaintext")], seconds)
}

fn token_by(list: &[(&str, &str)], seconds: i64) -> Security {
    let list = [list, &[("sasl.mechanism", "OAUTHBEARER")]].concat();
    let list: Vec<_> = list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let callback: Arc<TokenCallback> = Arc::new(move || {
        let (token, _) = unsigned_token(USER, seconds);
        // We are told another end than the broker, so that it sees an expired one.
        Ok(OauthToken::new(token, SystemTime::now() + Duration::from_secs(300)))
    });
    Security::new(&list, Some(callback)).unwrap()
}

fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

#[test]
fn every_mechanism_opens_the_listeners_with_and_without_tls() {
    let Some(kafka) = secured() else { return };
    for (protocol, listener) in [("sasl_plaintext", Listener::SaslPlaintext), ("sasl_ssl", Listener::SaslSsl)] {
        for mechanism in MECHANISMS {
            let security = password(kafka, protocol, mechanism, PASSWORD);
            assert_eq!(ask(&kafka.bootstrap(listener), &security), Ok(()), "{protocol} {mechanism}");
        }
    }
    let security = token(300);
    assert_eq!(security.refresh_token(wall_ms()), TokenNews::New);
    assert_eq!(ask(&kafka.bootstrap(Listener::SaslPlaintext), &security), Ok(()));
}

#[test]
fn tls_opens_the_listeners_that_ask_for_it_and_for_a_certificate() {
    let Some(kafka) = secured() else { return };
    let pem = kafka.authority.pem();
    let server_only = settings(&[("security.protocol", "ssl"), ("ssl.ca.pem", &pem)]);
    assert_eq!(ask(&kafka.bootstrap(Listener::Ssl), &server_only), Ok(()));
    let client = kafka.authority.identity("client");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).display().to_string()
    };
    let (ca, certificate, key) =
        (file("ca.pem", &pem), file("client.pem", &client.certificate), file("client.key", &client.key));
    let mutual = settings(&[
        ("security.protocol", "ssl"),
        ("ssl.ca.location", &ca),
        ("ssl.certificate.location", &certificate),
        ("ssl.key.location", &key),
    ]);
    assert_eq!(ask(&kafka.bootstrap(Listener::Mutual), &mutual), Ok(()));
    let error = ask(&kafka.bootstrap(Listener::Mutual), &server_only).unwrap_err();
    let certificate = [TlsFault::CertificateRequired, TlsFault::CertificateRefused];
    assert!(certificate.iter().any(|fault| error == LinkFault::Net((*fault).into())), "{error}");
}

#[test]
fn each_wrong_setting_has_its_error() {
    let Some(kafka) = secured() else { return };
    let fault = |bootstrap: &str, security: &Security| match ask(bootstrap, security).unwrap_err() {
        LinkFault::Net(error) => error,
        LinkFault::Wire(error) => panic!("{error}"),
    };
    let sasl = kafka.bootstrap(Listener::SaslPlaintext);
    for (mechanism, asked) in MECHANISMS.iter().zip(crate::net::Mechanism::ALL) {
        let wrong = password(kafka, "sasl_plaintext", mechanism, "not-the-password");
        let error = fault(&sasl, &wrong);
        assert_eq!(error, SaslFault::Refused { mechanism: asked }.into());
        assert!(!format!("{error} {error:?} {wrong:?}").contains("not-the-password"));
    }
    let expired = token(-100);
    assert_eq!(expired.refresh_token(wall_ms()), TokenNews::New);
    assert_eq!(fault(&sasl, &expired), SaslFault::TokenRefused.into());
    assert_eq!(fault(&sasl, &token(300)), SaslFault::NoToken.into());

    let pem = kafka.authority.pem();
    let not_taken = token_by(&[("security.protocol", "sasl_ssl"), ("ssl.ca.pem", &pem)], 300);
    assert_eq!(not_taken.refresh_token(wall_ms()), TokenNews::New);
    assert_eq!(
        fault(&kafka.bootstrap(Listener::SaslSsl), &not_taken).to_string(),
        "SASL: the listener does not take OAUTHBEARER but PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; change sasl.mechanism \
         or the broker's sasl.enabled.mechanisms"
    );
    let stranger = Authority::new("stranger").pem();
    let good = settings(&[("security.protocol", "ssl"), ("ssl.ca.pem", &pem)]);
    let wrong_ca = settings(&[("security.protocol", "ssl"), ("ssl.ca.pem", &stranger)]);
    assert_eq!(fault(&kafka.bootstrap(Listener::Ssl), &wrong_ca), TlsFault::UnknownIssuer.into());
    assert_eq!(fault(&kafka.by_address(Listener::Ssl), &good), TlsFault::WrongHost.into());
    // Listeners of another kind than the settings say.
    assert_eq!(fault(kafka.cluster.bootstrap(), &good), TlsFault::ClosedInHandshake.into());
    let plain = Security::default();
    assert_eq!(fault(&kafka.bootstrap(Listener::Ssl), &plain), NetError::SpeaksTls);
    let login = password(kafka, "sasl_plaintext", "PLAIN", PASSWORD);
    assert_eq!(fault(kafka.cluster.bootstrap(), &login), SaslFault::NoSasl.into());
}

/// Runs a metadata client for so long, and answers what was last said of the cluster.
fn reach(bootstrap: &str, security: &Security, time: Duration) -> Reach {
    let shared = SharedMetadata::secured(security.clone());
    let mut client = MetadataClient::new(MetadataSettings::new("test", bootstrap), shared.clone());
    let (mut polls, start) = (PollSet::new().unwrap(), Instant::now());
    let now = || start.elapsed().as_millis() as i64;
    while start.elapsed() < time && shared.version() == 0 {
        polls.clear();
        let until = client.prepare(&mut polls, now());
        polls.wait_until(now(), until.min(now() + 50)).unwrap();
        client.process(&polls, now());
    }
    shared.reach()
}

#[test]
fn plaintext_at_a_sasl_listener_is_told_and_a_refusal_is_no_storm() {
    let Some(kafka) = secured() else { return };
    let sasl = kafka.bootstrap(Listener::SaslPlaintext);
    let Reach::Unreachable { last, .. } = reach(&sasl, &Security::default(), Duration::from_secs(2)) else {
        panic!("a listener that asks for a login was passed without one")
    };
    assert_eq!(last, LinkFault::Net(NetError::ClosedEarly));
    let wrong = password(kafka, "sasl_plaintext", "SCRAM-SHA-256", "not-the-password");
    let Reach::Unreachable { attempts, last } = reach(&sasl, &wrong, Duration::from_secs(5)) else { panic!("passed") };
    assert!((2..=4).contains(&attempts), "{attempts} attempts in five seconds");
    assert!(last.is_refusal(), "{last}");
    let right = password(kafka, "sasl_plaintext", "SCRAM-SHA-256", PASSWORD);
    assert_eq!(reach(&sasl, &right, PATIENCE), Reach::Reachable);
}

#[test]
fn a_session_is_renewed_on_its_connection_before_it_ends() {
    let Some(kafka) = secured() else { return };
    let security = password(kafka, "sasl_plaintext", "PLAIN", PASSWORD);
    let addr = kafka.bootstrap(Listener::SaslPlaintext).to_socket_addrs().unwrap().next().unwrap();
    let mut link = Link::new(256);
    link.connect(&Peer { addr, host: "localhost", security: &security }).unwrap();
    let (mut polls, start) = (PollSet::new().unwrap(), Instant::now());
    let (mut answers, mut held, mut answer) = (0, 0, [0; 4_096]);
    let mut waiting = false;
    while start.elapsed() < Duration::from_millis(3 * SESSION_MS) {
        let now = start.elapsed().as_millis() as i64;
        if !waiting && link.state() == crate::net::ConnState::Ready {
            if link.may_send(now).unwrap() {
                let correlation_id = link.begin().unwrap();
                let api = ApiKey::ApiVersions;
                let header = RequestHeader { api, version: API_VERSIONS_FALLBACK, correlation_id, client_id: "t" };
                let request = ApiVersionsRequest { software_name: "t", software_version: "1" };
                request.write(link.stage().unwrap(), &header).unwrap();
                link.flush().unwrap();
                waiting = true;
            } else {
                held += 1;
            }
        }
        polls.clear();
        link.register(&mut polls, Interest { read: true, write: false }).unwrap();
        polls.wait(Some(Duration::from_millis(20))).unwrap();
        link.advance(&polls).unwrap();
        if waiting && link.read_frame(&mut answer).unwrap().is_some() {
            (waiting, answers) = (false, answers + 1);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert!(answers > 100, "{answers} answers");
    assert!(held >= 3, "the session of {SESSION_MS} ms was never renewed ({held})");
}
