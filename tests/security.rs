//! Whole applications behind TLS and SASL: both planes by one set of settings, against a real Apache Kafka.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]
mod support;

use plimsoll::prelude::*;
use plimsoll::{MemoryReport, Module, OauthToken, RowId, StartError};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use support::load::{self, Load, Order};
use support::oracle::{self, Rec};
use support::secured::{Listener, PASSWORD, Secured, USER, secured, unsigned_token};

plimsoll::install_allocator!();

const PATIENCE: Duration = Duration::from_secs(60);
const LOAD: Load = Load { partitions: 4, keys: 1_000, records: 50_000, order: Order::InTurn };

/// One application a process: the tests take turns.
static TURNS: Mutex<()> = Mutex::new(());

fn copy(from: &str, to: &str) -> Topology {
    let builder = StreamsBuilder::new();
    builder.stream(from, Consumed::with(Bytes, Bytes)).to(to);
    builder.build().unwrap()
}

fn topics(kafka: &Secured, name: &str) -> (String, String) {
    let (from, to) = (kafka.cluster.unique(&format!("{name}-in")), kafka.cluster.unique(&format!("{name}-out")));
    for topic in [&from, &to] {
        oracle::create_topic(kafka.cluster.bootstrap(), topic, LOAD.partitions, &[]);
    }
    (from, to)
}

fn builder(name: &str, bootstrap: &str, settings: &[(&str, &str)]) -> plimsoll::AppBuilder<plimsoll::WithLine> {
    let app =
        App::builder(name, bootstrap).memory(Memory::total(128 * MIB)).commit_interval(Duration::from_millis(500));
    settings.iter().fold(app, |app, (key, value)| app.config(*key, *value))
}

fn await_records(kafka: &Secured, app: &App, topic: &str, records: u64) {
    let deadline = Instant::now() + PATIENCE;
    let written =
        || -> i64 { (0..LOAD.partitions).map(|at| oracle::watermarks(kafka.cluster.bootstrap(), topic, at).1).sum() };
    while written() < records as i64 {
        assert!(!app.state().is_final(), "{:?}", app.failure());
        assert!(Instant::now() < deadline, "{:?} {:?}", app.stats(), app.waiting_for());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn pass_through_over_sasl_ssl_with_scram_copies_everything_under_its_rows() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kafka) = secured() else { return };
    let (from, to) = topics(kafka, "scram");
    load::write(kafka.cluster.bootstrap(), &from, LOAD, 0);
    let pem = kafka.authority.pem();
    let settings = [
        ("security.protocol", "sasl_ssl"),
        ("ssl.ca.pem", pem.as_str()),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("sasl.username", USER),
        ("sasl.password", PASSWORD),
    ];
    let app = builder("scram", &kafka.bootstrap(Listener::SaslSsl), &settings).start(copy(&from, &to)).unwrap();
    await_records(kafka, &app, &to, LOAD.records);
    let plan = app.plan().unwrap();
    let connections = plan.row(RowId::Connections).unwrap().bytes;
    assert_eq!(connections, 3 * 2 * (16 + 96) * 1_024, "(1 thread + 2) x 1 broker x 2 connections");
    let mut memory = MemoryReport::default();
    app.memory(&mut memory);
    let engine = memory.module(Module::Engine);
    println!("engine: {} of {} bytes", engine.committed_peak, engine.row);
    assert!(engine.committed_peak <= engine.row, "{engine:?}");
    app.close(Duration::from_secs(30)).unwrap();
    let by_key = |topic: &str| {
        let mut all: Vec<_> = oracle::read_all(kafka.cluster.bootstrap(), topic);
        all.sort_by(|a, b| (&a.key, &a.value).cmp(&(&b.key, &b.value)));
        all.into_iter().map(|record| (record.key, record.value)).collect::<Vec<_>>()
    };
    assert!(by_key(&from) == by_key(&to), "what was written is not what was read");
}

#[test]
fn tokens_serve_both_planes_and_are_renewed() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kafka) = secured() else { return };
    let (from, to) = topics(kafka, "oauth");
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let settings = [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "OAUTHBEARER")];
    let app = builder("oauth", &kafka.bootstrap(Listener::SaslPlaintext), &settings)
        .oauth_token(move || {
            if counted.fetch_add(1, Ordering::Relaxed) == 0 {
                return Err("the provider is not up yet".into());
            }
            let (token, expires_at) = unsigned_token(USER, 5);
            Ok(OauthToken::new(token, expires_at).principal(USER))
        })
        .start(copy(&from, &to))
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    oracle::produce(kafka.cluster.bootstrap(), &from, &[Rec::new(0, 1, "a", "1")], &[]);
    await_records(kafka, &app, &to, 1);
    let before = calls.load(Ordering::Relaxed);
    while calls.load(Ordering::Relaxed) < before + 2 {
        assert!(Instant::now() < deadline, "tokens are not renewed: {calls:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    oracle::produce(kafka.cluster.bootstrap(), &from, &[Rec::new(1, 2, "b", "2")], &[]);
    await_records(kafka, &app, &to, 2);
    app.close(Duration::from_secs(30)).unwrap();
}

/// Forwards connections to `to` and counts them.
fn counter(to: String) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let bootstrap = format!("localhost:{}", listener.local_addr().unwrap().port());
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            counted.fetch_add(1, Ordering::Relaxed);
            let broker = TcpStream::connect(&to).unwrap();
            for (mut from, mut to) in [(client.try_clone().unwrap(), broker.try_clone().unwrap()), (broker, client)] {
                std::thread::spawn(move || {
                    let mut bytes = [0; 4_096];
                    while let Ok(n @ 1..) = from.read(&mut bytes) {
                        if to.write_all(&bytes[..n]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(std::net::Shutdown::Both);
                });
            }
        }
    });
    (bootstrap, count)
}

#[test]
fn a_wrong_password_is_told_is_no_storm_and_appears_nowhere() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(kafka) = secured() else { return };
    let (from, to) = topics(kafka, "wrong");
    let (bootstrap, connections) = counter(kafka.bootstrap(Listener::SaslPlaintext));
    let settings = [
        ("security.protocol", "sasl_plaintext"),
        ("sasl.mechanism", "SCRAM-SHA-256"),
        ("sasl.username", USER),
        ("sasl.password", "not-the-password"),
    ];
    let app = builder("wrong", &bootstrap, &settings).start(copy(&from, &to)).unwrap();
    let deadline = Instant::now() + Duration::from_secs(8);
    let mut told = String::new();
    while Instant::now() < deadline {
        told = app.waiting_for().unwrap_or(told);
        assert!(!told.contains("not-the-password"), "{told}");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(told.contains("refuses the login by SCRAM-SHA-256") && told.contains("sasl.password"), "{told}");
    let attempts = connections.load(Ordering::Relaxed);
    assert!((2..=6).contains(&attempts), "{attempts} connections in eight seconds");
    assert!(!format!("{:?} {:?}", app.failure(), app.plan()).contains("not-the-password"));
    app.close(Duration::from_secs(30)).unwrap();
}

#[test]
fn settings_that_cannot_be_are_refused_at_start() {
    let _turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = |settings: &[(&str, &str)]| match builder("refused", "localhost:1", settings).start(copy("a", "b")) {
        Err(StartError::Security { reason }) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("started"),
    };
    let gssapi = refused(&[("security.protocol", "sasl_ssl"), ("sasl.mechanism", "GSSAPI")]);
    assert!(gssapi.contains("not supported on the data path"), "{gssapi}");
    let key = refused(&[("security.protocol", "ssl"), ("ssl.key.password", "hush-hush")]);
    assert!(key.contains("openssl pkey") && !key.contains("hush"), "{key}");
    let file = refused(&[("security.protocol", "ssl"), ("ssl.ca.location", "/no/such/file")]);
    assert!(file.contains("ssl.ca.location") && file.contains("/no/such/file"), "{file}");
}
