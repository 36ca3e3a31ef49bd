//! Processors and their timers, as Kafka Streams runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Forwards ("stream" or "wall", number of the call) at the time of each call.
struct Ticker {
    every: Duration,
    by: PunctuationType,
    calls: i64,
    /// Cancels itself with this call.
    last: i64,
    timer: Rc<RefCell<Option<Timer>>>,
}

fn ticker(by: PunctuationType, ms: u64, last: i64) -> impl Fn() -> Ticker + Send + Sync + 'static {
    move || Ticker { every: Duration::from_millis(ms), by, calls: 0, last, timer: Rc::default() }
}

impl Processor for Ticker {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = I64;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        let timer = cx.schedule(self.every, self.by, |me, cx, now| {
            assert_eq!(cx.metadata(), None, "no record causes a punctuation");
            me.calls += 1;
            if me.calls == me.last {
                me.timer.borrow().as_ref().unwrap().cancel();
            }
            cx.forward(Record::new("tick", me.calls, now))
        })?;
        *self.timer.borrow_mut() = Some(timer);
        Ok(())
    }

    fn process<'a>(&mut self, _: &mut Context<'_, 'a, Self>, _: Record<'a, Utf8, Utf8>) -> Processed {
        Ok(())
    }
}

fn ticking(by: PunctuationType, ms: u64, last: i64) -> Driver {
    let builder = StreamsBuilder::new();
    builder.stream("in", Consumed::with(Utf8, Utf8)).process(Utf8, I64, ticker(by, ms, last)).to("out");
    Driver::options().wall_ms(1_000).build(&builder.build().unwrap()).unwrap()
}

/// (call, timestamp) of all that was forwarded since the last look.
fn ticks(driver: &Driver) -> Vec<(i64, i64)> {
    let out = driver.output("out", Utf8, I64);
    std::iter::from_fn(|| out.read().unwrap()).map(|record| (record.value, record.timestamp)).collect()
}

/// Kafka's `StreamTaskTest.shouldPunctuateOnceStreamTimeAfterGap` and `shouldRespectPunctuateCancellationStreamTime`.
#[test]
fn stream_time_calls_with_the_first_record_and_leaves_missed_intervals_out() {
    let driver = ticking(PunctuationType::StreamTime, 20, 4);
    let input = driver.input("in", Utf8, Utf8);
    let mut seen = Vec::new();
    for at in [20, 142, 155, 159, 160, 161, 182, 183, 200] {
        input.pipe_at("k", "v", at).unwrap();
        seen.extend(ticks(&driver));
    }
    // 155 and 159 are below 160; the fourth call cancels.
    assert_eq!(seen, [(1, 20), (2, 142), (3, 160), (4, 182)]);
    driver.advance_wall_clock(Duration::from_secs(60)).unwrap();
    assert_eq!(ticks(&driver), []);
}

#[test]
fn a_late_record_calls_nothing() {
    let driver = ticking(PunctuationType::StreamTime, 10, 0);
    let input = driver.input("in", Utf8, Utf8);
    input.pipe_at("k", "v", 100).unwrap();
    input.pipe_at("k", "v", 5).unwrap();
    assert_eq!(ticks(&driver), [(1, 100)]);
    input.pipe_at("k", "v", 110).unwrap();
    assert_eq!(ticks(&driver), [(2, 110)]);
}

/// Kafka's `StreamTaskTest.shouldPunctuateSystemTimeWhenIntervalElapsed` and `shouldPunctuateOnceSystemTimeAfterGap`.
#[test]
fn the_wall_clock_calls_after_one_interval_and_once_after_a_gap() {
    let driver = ticking(PunctuationType::WallClock, 10, 0);
    let mut seen = Vec::new();
    for by in [9, 1, 9, 1, 100, 3, 7, 1] {
        driver.advance_wall_clock(Duration::from_millis(by)).unwrap();
        seen.extend(ticks(&driver));
    }
    // Due at 1010, 1020 and, after the gap at 1120, at 1130.
    assert_eq!(seen, [(1, 1_010), (2, 1_020), (3, 1_120), (4, 1_130)]);
    driver.input("in", Utf8, Utf8).pipe_at("k", "v", 1 << 40).unwrap();
    assert_eq!(ticks(&driver), [], "stream time does not move the wall clock");
}

type Log = Arc<Mutex<Vec<String>>>;

struct Observer(Log);

impl Observer {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl Processor for Observer {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Utf8;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        self.note(format!("init {} at {}, stream time {}", cx.task_id(), cx.wall_time(), cx.stream_time()));
        Ok(())
    }

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        let from = cx.metadata().expect("a record is at work");
        let headers: Vec<String> =
            record.headers.iter().map(|(key, value)| format!("{}={value:?}", String::from_utf8_lossy(key))).collect();
        self.note(format!(
            "{}={} at {} of {}-{}@{}, stream time {}, {headers:?}",
            record.key,
            record.value,
            record.timestamp,
            from.topic,
            from.partition,
            from.offset,
            cx.stream_time()
        ));
        if record.value == "bad" {
            return Err(ProcessorError::new("a bad value"));
        }
        let mut made = HeadersBuf::new();
        made.extend(record.headers).push("seen", Some(b"1"));
        let value = record.value.to_uppercase();
        cx.forward(record.with_value(value.as_str()).with_timestamp(record.timestamp + 1).with_headers(made.headers()))
    }

    fn close(&mut self) {
        self.note("close".to_owned());
    }
}

#[test]
fn a_processor_sees_place_times_and_headers_and_sets_those_of_what_it_forwards() {
    let log = Log::default();
    let builder = StreamsBuilder::new();
    let supplied = Arc::clone(&log);
    builder
        .stream("in", Consumed::with(Utf8, Utf8))
        .process(Utf8, Utf8, move || Observer(Arc::clone(&supplied)))
        .to("out");
    let driver = Driver::options().wall_ms(77).build(&builder.build().unwrap()).unwrap();
    driver.input("in", Utf8, Utf8).pipe_at("k", "a", 10).unwrap();
    driver.pipe_with_headers("in", Some(b"k"), Some(b"b"), 5, &[("h", b"x")]).unwrap();
    let first = driver.read_raw("out").unwrap();
    assert_eq!((first.value.as_deref(), first.timestamp), (Some(&b"A"[..]), 11));
    assert_eq!(first.headers, [("seen".to_owned(), Some(b"1".to_vec()))]);
    let second = driver.read_raw("out").unwrap();
    assert_eq!((second.value.as_deref(), second.timestamp), (Some(&b"B"[..]), 6));
    assert_eq!(second.headers, [("h".to_owned(), Some(b"x".to_vec())), ("seen".to_owned(), Some(b"1".to_vec()))]);
    let failed = driver.pipe("in", Some(b"k"), Some(b"bad"), 20).unwrap_err();
    assert!(failed.to_string().contains("a bad value"), "{failed}");
    drop(driver);
    assert_eq!(
        *log.lock().unwrap(),
        [
            "init 0_0 at 77, stream time -1",
            "k=a at 10 of in-0@0, stream time 10, []",
            "k=b at 5 of in-0@1, stream time 10, [\"h=Some([120])\"]",
            "k=bad at 20 of in-0@2, stream time 20, []",
            "close",
        ]
    );
}

/// Forwards to one child by the value's text.
struct Router;

impl Processor for Router {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Utf8;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        // The answer is lost on purpose: the task fails all the same when a child does.
        if record.value == "all" {
            return cx.forward(record);
        }
        cx.forward_to(record.value, record)
    }
}

#[test]
fn a_record_goes_to_the_child_that_is_named() {
    let builder = StreamsBuilder::new();
    let routed = builder.stream("in", Consumed::with(Utf8, Utf8)).process(Utf8, Utf8, || Router);
    routed.to_with("x", Produced::named("left"));
    routed.to_with("y", Produced::named("right"));
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let input = driver.input("in", Utf8, Utf8);
    input.pipe("k", "right").unwrap();
    input.pipe("k", "all").unwrap();
    let pair = |value: &str| ("k".to_owned(), value.to_owned());
    assert_eq!(driver.output("x", Utf8, Utf8).read_pairs().unwrap(), [pair("all")]);
    assert_eq!(driver.output("y", Utf8, Utf8).read_pairs().unwrap(), [pair("right"), pair("all")]);
    let failed = input.pipe("k", "nowhere").unwrap_err();
    assert!(failed.to_string().contains("no downstream node \"nowhere\""), "{failed}");
}

struct Careless;

impl Processor for Careless {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Utf8;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        let _ = cx.forward(record);
        Ok(())
    }
}

#[test]
fn a_failure_below_is_not_lost_by_a_careless_processor() {
    let builder = StreamsBuilder::new();
    builder
        .stream("in", Consumed::with(Utf8, Utf8))
        .process(Utf8, Utf8, || Careless)
        .try_map_values(I64, |text| Ok(text.parse()?))
        .to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let failed = driver.input("in", Utf8, Utf8).pipe("k", "no number").unwrap_err();
    assert!(failed.to_string().contains("invalid digit"), "{failed}");
}

#[test]
fn names_and_repartitions_are_kafka_streams() {
    let builder = StreamsBuilder::new();
    let stream = builder.stream("in", Consumed::with(Utf8, Utf8));
    stream
        .process_with(Utf8, Utf8, || Careless, Processing::named("first"))
        .process(Utf8, Utf8, || Careless)
        .group_by_key()
        .count(Materialized::named("counts"));
    // A given name uses up no number.
    assert_eq!(
        builder.build().unwrap().describe(),
        "Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> first
    Processor: first (stores: [])
      --> KSTREAM-PROCESSOR-0000000001
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-PROCESSOR-0000000001 (stores: [])
      --> counts-repartition-filter
      <-- first
    Processor: counts-repartition-filter (stores: [])
      --> counts-repartition-sink
      <-- KSTREAM-PROCESSOR-0000000001
    Sink: counts-repartition-sink (topic: counts-repartition)
      <-- counts-repartition-filter

  Sub-topology: 1
    Source: counts-repartition-source (topics: [counts-repartition])
      --> KSTREAM-AGGREGATE-0000000002
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> none
      <-- counts-repartition-source

"
    );
}
