//! Stores as processors use them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use std::time::Duration;

type Words = KeyValueStore<Utf8, Utf8>;

/// Does what the record's value says to the store, and forwards what it finds as text.
struct Shell {
    store: Words,
}

impl Processor for Shell {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Utf8;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        let words: Vec<&str> = record.value.split(' ').collect();
        let store = cx.store(&self.store)?;
        let key = record.key;
        let found = match words.as_slice() {
            ["get"] => store.get(key)?.unwrap_or_else(|| "none".to_owned()),
            ["put", value] => store.put(key, value).map(|()| String::new())?,
            ["absent", value] => format!("{:?}", store.put_if_absent(key, value)?),
            ["all", rest @ ..] => {
                store.put_all(rest.iter().map(|word| (*word, *word)))?;
                String::new()
            }
            ["delete"] => format!("{:?}", store.delete(key)?),
            ["count"] => store.approximate_num_entries()?.to_string(),
            ["time"] => format!("{:?}", store.get_with_timestamp(key)?),
            ["range", from, to] => return self.tell(cx, record, |s| s.range(Some(from), Some(to))),
            ["from", from] => return self.tell(cx, record, |s| s.range(Some(from), None)),
            ["reverse", from, to] => return self.tell(cx, record, |s| s.reverse_range(Some(from), Some(to))),
            ["prefix", prefix] => return self.tell(cx, record, |s| Ok(s.prefix_scan(prefix.as_bytes()))),
            ["everything"] => return self.tell(cx, record, |s| Ok(s.all())),
            ["backwards"] => return self.tell(cx, record, |s| Ok(s.reverse_all())),
            _ => return Err(ProcessorError::new("what?")),
        };
        if found.is_empty() { Ok(()) } else { cx.forward(record.with_value(found.as_str())) }
    }
}

impl Shell {
    /// Forwards the rows while they are read.
    fn tell(
        &self,
        cx: &mut Context<'_, '_, Self>,
        record: Record<'_, Utf8, Utf8>,
        rows: impl FnOnce(KeyValueView<'_, Utf8, Utf8>) -> Result<Rows<Utf8, Utf8>, ProcessorError>,
    ) -> Processed {
        let mut rows = rows(cx.store(&self.store)?)?;
        while let Some((key, value)) = rows.next(cx)? {
            cx.forward(Record::new(key, value, record.timestamp))?;
        }
        Ok(())
    }
}

fn shell(store: impl Fn() -> StoreBuilder<Utf8, Utf8, Words>) -> Driver {
    let builder = StreamsBuilder::new();
    let store = builder.add_state_store(store());
    let how = Processing::new().stores(&[&store]);
    builder
        .stream("in", Consumed::with(Utf8, Utf8))
        .process_with(Utf8, Utf8, move || Shell { store: store.clone() }, how)
        .to("out");
    Driver::new(&builder.build().unwrap()).unwrap()
}

fn say(driver: &Driver, key: &str, what: &str, at: i64) -> Vec<String> {
    driver.input("in", Utf8, Utf8).pipe_at(key, what, at).unwrap();
    let out = driver.output("out", Utf8, Utf8).read_pairs().unwrap();
    out.into_iter().map(|(key, value)| if key == value { key } else { format!("{key}={value}") }).collect()
}

#[test]
fn a_key_value_store_does_what_kafka_streams_does() {
    for caching in [false, true] {
        let driver = shell(|| Stores::key_value("words", Utf8, Utf8).caching(caching));
        assert_eq!(say(&driver, "k", "get", 0), ["k=none"]);
        say(&driver, "k", "put 1", 1);
        assert_eq!(say(&driver, "k", "get", 2), ["k=1"]);
        assert_eq!(say(&driver, "k", "absent 2", 3), ["k=Some(\"1\")"]);
        assert_eq!(say(&driver, "n", "absent 2", 3), ["n=None"]);
        assert_eq!(say(&driver, "k", "delete", 4), ["k=Some(\"1\")"]);
        assert_eq!(say(&driver, "k", "delete", 4), ["k=None"]);
        assert_eq!(say(&driver, "n", "get", 5), ["n=2"]);
        say(&driver, "", "all a b ba bb c", 6);
        assert_eq!(say(&driver, "", "range b bb", 7), ["b", "ba", "bb"]);
        assert_eq!(say(&driver, "", "reverse b bb", 7), ["bb", "ba", "b"]);
        assert_eq!(say(&driver, "", "range c a", 7), [""; 0]);
        assert_eq!(say(&driver, "", "from bb", 7), ["bb", "c", "n=2"]);
        assert_eq!(say(&driver, "", "prefix b", 7), ["b", "ba", "bb"]);
        assert_eq!(say(&driver, "", "everything", 7), ["a", "b", "ba", "bb", "c", "n=2"]);
        assert_eq!(say(&driver, "", "backwards", 7), ["n=2", "c", "bb", "ba", "b", "a"]);
        assert_eq!(say(&driver, "", "count", 7), ["=6"]);
        assert_eq!(say(&driver, "n", "time", 7), ["n=Some((\"2\", -1))"], "no timestamps in this one");
    }
}

#[test]
fn each_put_is_logged_with_the_time_of_the_record_at_work_or_the_value() {
    let driver = shell(|| Stores::key_value("words", Utf8, Utf8));
    say(&driver, "k", "put 1", 10);
    say(&driver, "k", "put 2", 7);
    say(&driver, "k", "delete", 8);
    let log: Vec<(Option<Vec<u8>>, i64)> = std::iter::from_fn(|| driver.read_raw("driver-words-changelog"))
        .map(|record| (record.value, record.timestamp))
        .collect();
    assert_eq!(log, [(Some(b"1".to_vec()), 10), (Some(b"2".to_vec()), 7), (None, 8)]);

    let driver = shell(|| Stores::timestamped_key_value("words", Utf8, Utf8));
    say(&driver, "k", "put 1", 10);
    assert_eq!(say(&driver, "k", "time", 20), ["k=Some((\"1\", 10))"]);

    let driver = shell(|| Stores::key_value("words", Utf8, Utf8).logging(false));
    say(&driver, "k", "put 1", 10);
    assert!(driver.read_raw("driver-words-changelog").is_none());
}

/// While it goes through the store, deletes what it sees, changes what comes and puts something new behind.
struct Sweep {
    store: Words,
    reverse: bool,
}

impl Processor for Sweep {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = Utf8;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        if record.value != "sweep" {
            return cx.store(&self.store)?.put(record.key, record.value);
        }
        let mut rows = match (cx.store(&self.store)?, self.reverse) {
            (store, true) => store.reverse_all(),
            (store, false) => store.all(),
        };
        while let Some((key, value)) = rows.next(cx)? {
            let store = cx.store(&self.store)?;
            store.delete(key)?;
            store.put("k150", "changed")?;
            store.delete("k151")?;
            store.put("k152x", "new")?;
            cx.forward(Record::new(key, value, record.timestamp))?;
        }
        Ok(())
    }
}

#[test]
fn an_iterator_sees_what_was_there_when_it_began() {
    for reverse in [false, true] {
        let builder = StreamsBuilder::new();
        let store = builder.add_state_store(Stores::key_value("words", Utf8, Utf8));
        let how = Processing::new().stores(&[&store]);
        builder
            .stream("in", Consumed::with(Utf8, Utf8))
            .process_with(Utf8, Utf8, move || Sweep { store: store.clone(), reverse }, how)
            .to("out");
        let driver = Driver::new(&builder.build().unwrap()).unwrap();
        let input = driver.input("in", Utf8, Utf8);
        let mut expected: Vec<(String, String)> = (0..300).map(|n| (format!("k{n:03}"), format!("v{n}"))).collect();
        for (key, value) in &expected {
            input.pipe(key, value).unwrap();
        }
        input.pipe("", "sweep").unwrap();
        if reverse {
            expected.reverse();
        }
        assert_eq!(driver.output("out", Utf8, Utf8).read_pairs().unwrap(), expected);
        let left: Vec<String> =
            driver.store("words", Utf8, Bytes).unwrap().rows().unwrap().into_iter().map(|row| row.key).collect();
        // The new one is not seen by the iterator, so it stays; the changed one was put again after it was deleted.
        assert_eq!(left, ["k150", "k152x"], "reverse: {reverse}");
    }
}

/// Forwards what a window store and a session store hold.
struct Spans {
    windows: WindowStore<Utf8, I64>,
    sessions: SessionStore<Utf8, I64>,
}

impl Processor for Spans {
    type KIn = Utf8;
    type VIn = I64;
    type KOut = Utf8;
    type VOut = Utf8;

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, I64>) -> Processed {
        let at = record.timestamp;
        if record.value > 0 {
            cx.store(&self.windows)?.put(record.key, record.value, at)?;
            return cx.store(&self.sessions)?.put(record.key, at, at + 5, record.value);
        }
        let mut told = String::new();
        {
            let windows = cx.store(&self.windows)?;
            told += &format!("{:?} ", windows.fetch(record.key, 100_000)?);
            let mut rows = windows.fetch_range(record.key, 0, at)?;
            while let Some((key, start, value)) = rows.next() {
                told += &format!("{key}@{start}={value} ");
            }
            let mut rows = windows.backward_fetch(record.key, 0, at)?;
            while let Some((_, start, _)) = rows.next() {
                told += &format!("<{start} ");
            }
            let mut rows = windows.all()?;
            while let Some((key, start, _)) = rows.next() {
                told += &format!("[{key}@{start}] ");
            }
            let sessions = cx.store(&self.sessions)?;
            let mut rows = sessions.find_sessions(record.key, 100_005, 160_000)?;
            while let Some((key, start, end, value)) = rows.next_span() {
                told += &format!("{key}@{start}-{end}={value} ");
            }
            sessions.remove(record.key, 100_000, 100_005)?;
            told += &format!("{:?}", sessions.fetch_session(record.key, 100_000, 100_005)?);
        }
        cx.forward(record.with_value(told.as_str()))
    }
}

#[test]
fn windows_and_sessions_are_found_by_key_and_time_within_the_retention() {
    let builder = StreamsBuilder::new();
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let windows = builder.add_state_store(Stores::window("windows", minutes(5), Utf8, I64));
    let sessions = builder.add_state_store(Stores::session("sessions", minutes(5), Utf8, I64));
    let how = Processing::new().stores(&[&windows, &sessions]);
    builder
        .stream("in", Consumed::with(Utf8, I64))
        .process_with(Utf8, Utf8, move || Spans { windows: windows.clone(), sessions: sessions.clone() }, how)
        .to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let input = driver.input("in", Utf8, I64);
    for (key, value, at) in [("a", 1, 100_000), ("a", 2, 160_000), ("ab", 3, 160_000), ("a", 4, 399_999)] {
        input.pipe_at(key, value, at).unwrap();
    }
    input.pipe_at("a", 0, 399_999).unwrap();
    let told = driver.output("out", Utf8, Utf8).read_pairs().unwrap();
    let windows = "Some(1) a@100000=1 a@160000=2 a@399999=4 <399999 <160000 <100000 ";
    let all = "[a@100000] [a@160000] [ab@160000] [a@399999] ";
    let sessions = "a@100000-100005=1 a@160000-160005=2 None";
    assert_eq!(told, [("a".to_owned(), format!("{windows}{all}{sessions}"))]);
    // One minute on, the first is older than five minutes.
    input.pipe_at("b", 9, 400_001).unwrap();
    input.pipe_at("a", 0, 400_001).unwrap();
    let told = driver.output("out", Utf8, Utf8).read_pairs().unwrap();
    assert!(told[0].1.starts_with("None a@160000=2 a@399999=4 "), "{told:?}");
}

#[test]
fn a_store_that_is_not_connected_is_refused() {
    let builder = StreamsBuilder::new();
    let store = builder.add_state_store(Stores::key_value("words", Utf8, Utf8));
    builder
        .stream("in", Consumed::with(Utf8, Utf8))
        .process(Utf8, Utf8, move || Shell { store: store.clone() })
        .to("out");
    let driver = Driver::new(&builder.build().unwrap()).unwrap();
    let failed = driver.input("in", Utf8, Utf8).pipe("k", "get").unwrap_err();
    assert!(failed.to_string().contains("not connected to this store"), "{failed}");
}
