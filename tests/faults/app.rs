//! The application that runs in a process of its own, and what its values make it do.
use crate::process::{Kind, MARK, Spec};
use plimsoll::prelude::*;
use plimsoll::{DeserializationResponse, Failure, FailureResponse, UndecodableRecord};
use std::fmt::Display;
use std::io::{BufRead as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether blocked values may go on.
static RELEASED: AtomicBool = AtomicBool::new(false);
/// Whether something panicked already.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// One line for the test, in one piece.
fn say(what: impl Display) {
    let _ = std::io::stderr().write_all(format!("{MARK}{what}\n").as_bytes());
}

/// Runs until standard input ends. Commands: `close MS`, `release`, `failure`, `waiting`, `dropped`.
pub(crate) fn run(spec: &Spec) {
    let app = match start(spec) {
        Ok(app) => app,
        Err(why) => return say(format_args!("refused {why}")),
    };
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("close", ms) => match app.close(Duration::from_millis(ms.parse().unwrap())) {
                Ok(()) => say("closed ok"),
                Err(why) => say(format_args!("closed {why}")),
            },
            ("release", _) => RELEASED.store(true, Ordering::Release),
            ("failure", _) => say(format_args!("failure {}", app.failure().map_or("none".into(), |f| f.to_string()))),
            ("waiting", _) => say(format_args!("waiting {}", app.waiting_for().unwrap_or_default())),
            ("dropped", _) => say(format_args!("dropped {}", app.stats().records_dropped)),
            other => panic!("{other:?}"),
        }
    }
    std::process::exit(0);
}

fn start(spec: &Spec) -> Result<App, Box<dyn std::error::Error>> {
    let mut builder = App::builder(&spec.application, &spec.bootstrap)
        .memory(spec.line.parse()?)
        .state_dir(&spec.state_dir)
        .on_state(|new, old| say(format_args!("state {new} from {old}")));
    for (key, value) in &spec.configs {
        builder = builder.config(key, value);
    }
    let (replace, skip) = (spec.replace, spec.skip);
    let app = builder
        .on_failure(move |failure: &Failure| {
            say(format_args!("failed {}", failure.error));
            if replace { FailureResponse::ReplaceThread } else { FailureResponse::ShutdownClient }
        })
        .on_undecodable(move |record: &UndecodableRecord| {
            say(format_args!("undecodable {record}"));
            if skip { DeserializationResponse::Continue } else { DeserializationResponse::Fail }
        })
        .start(topology(spec)?)?;
    Ok(app)
}

fn topology(spec: &Spec) -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    let input = builder.stream(&spec.input, Consumed::with(Utf8, Utf8));
    match &spec.kind {
        Kind::Pass => input.map_values(Text, act).to(&spec.output),
        Kind::Merge(other) => {
            let other = builder.stream(other, Consumed::with(Utf8, Utf8));
            input.merge(&other).map_values(Text, act).to(&spec.output);
        }
        Kind::Count => {
            let counts = input.map_values(Text, act).group_by_key().count(Materialized::named("counts"));
            counts.to_stream().to(&spec.output);
        }
        Kind::CountValues => {
            let counts = input.group_by(Utf8, |_, value| value).count(Materialized::named("counts"));
            counts.to_stream().to(&spec.output);
        }
    }
    builder.build()
}

fn block() {
    say("blocked");
    while !RELEASED.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a value makes the user's code do: `panic`, `panic-once`, `block` until it is released, `block-panic-once`,
/// `grow N` to a text of N bytes; all others go through.
pub(crate) fn act(value: &str) -> String {
    match value.split_once(' ').unwrap_or((value, "")) {
        ("panic", _) => panic!("told to"),
        ("panic-once", _) if !PANICKED.swap(true, Ordering::AcqRel) => panic!("told to, once"),
        ("block", _) => {
            block();
            value.to_owned()
        }
        ("block-panic-once", _) if !PANICKED.swap(true, Ordering::AcqRel) => {
            block();
            panic!("told to, late")
        }
        ("grow", bytes) => "x".repeat(bytes.parse().unwrap()),
        _ => value.to_owned(),
    }
}
