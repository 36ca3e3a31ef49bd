//! No operator allocates per record: counted by the allocator itself, in all modules, over the steady state.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll::prelude::*;
use plimsoll::testing::Driver;
use plimsoll_alloc::testing::allocations;
use std::hint::black_box;

plimsoll::install_allocator!();

const WARM_UP: i64 = 10_000;
const RECORDS: i64 = 200_000;
const LINE: &[u8] = b"  The quick brown fox jumps over the lazy dog ";

/// Allocating calls over so many records of a topology that reads "in", after a warm-up, and the records it wrote.
fn calls(records: i64, topology: &Topology) -> (u64, u64) {
    assert!(plimsoll_alloc::is_installed(), "the gate counts nothing without the allocator");
    let driver = Driver::options().commit_each(false).keep_outputs(false).build(topology).unwrap();
    let pipe = |n: i64| {
        let key = [b'a' + (n % 17) as u8; 3];
        driver.pipe("in", Some(&key), Some(LINE), n).unwrap();
    };
    (0..WARM_UP).for_each(pipe);
    let before = driver.records_written();
    let ((), seen) = allocations(|| (WARM_UP..WARM_UP + records).for_each(pipe));
    (seen.calls(), driver.records_written() - before)
}

/// That the topology allocates nothing and wrote something.
fn allocates_nothing(build: impl FnOnce(&StreamsBuilder, KStream<Utf8, Utf8>)) {
    let builder = StreamsBuilder::new();
    build(&builder, builder.stream("in", Consumed::with(Utf8, Utf8)));
    let (calls, written) = calls(RECORDS, &builder.build().unwrap());
    assert_eq!(calls, 0, "allocating calls over {RECORDS} records");
    assert!(written >= RECORDS as u64, "{written} records written");
}

#[test]
fn a_pass_through_of_bytes_allocates_nothing_over_a_million_records() {
    let builder = StreamsBuilder::new();
    builder.stream("in", Consumed::with(Bytes, Bytes)).to("out");
    assert_eq!(calls(1_000_000, &builder.build().unwrap()), (0, 1_000_000));
}

#[test]
fn word_count_allocates_nothing_over_a_million_words() {
    let builder = StreamsBuilder::new();
    builder
        .stream("in", Consumed::values(Utf8))
        .flat_map_values(Utf8, |line, out| line.split_whitespace().for_each(|word| out.push(word)))
        .group_by(Utf8, |_, word| word)
        .count(Materialized::named("counts"))
        .to_stream()
        .to("word-counts");
    let (calls, repartitioned) = calls(120_000, &builder.build().unwrap());
    assert_eq!((calls, repartitioned), (0, 9 * 120_000));
}

#[test]
fn filter_allocates_nothing() {
    allocates_nothing(|_, s| s.filter(|_, v| !v.is_empty()).filter_not(|_, v| v.starts_with('x')).to("out"));
}

#[test]
fn map_values_allocates_nothing() {
    allocates_nothing(|_, s| {
        let trimmed = s.map_values(Utf8, str::trim).map_values_with_key(Utf8, |k, v| if k == "x" { k } else { v });
        trimmed.map_values_in(Utf8, |v, pen| pen.write(format_args!("{v}!"))).to("exclaimed");
        trimmed.try_map_values(I64, |v| Ok(i64::try_from(v.len())?)).to("out");
    });
}

#[test]
fn keys_and_pairs_allocate_nothing() {
    allocates_nothing(|_, s| {
        s.select_key(Utf8, |_, v| &v[2..5]).map(I64, Utf8, |k, v| (k.len() as i64, v)).to("out");
        s.flat_map(Utf8, Utf8, |k, v, out| v.split(' ').for_each(|w| out.push(w, k))).to("pairs");
    });
}

#[test]
fn branches_and_merges_allocate_nothing() {
    allocates_nothing(|_, s| {
        let (low, high) = s.branch(|k, _| k < "h");
        low.peek(|k, _| {
            black_box(k);
        })
        .merge(&high)
        .to("out");
        high.for_each(|k, _| {
            black_box(k);
        });
    });
}

#[test]
fn a_repartition_allocates_nothing() {
    allocates_nothing(|_, s| s.repartition(Repartitioned::with_partitions(3)).to("out"));
}

#[test]
fn tables_on_hits_allocate_nothing_cached_or_not() {
    for caching in [true, false] {
        allocates_nothing(|_, s| {
            let grouped = s.group_by_key();
            let how = |name: &str| Materialized::named(name).caching(caching);
            let latest = grouped.reduce(how("latest"), |latest, v| {
                latest.clear();
                latest.push_str(v);
            });
            let longest = grouped.aggregate(Utf8, how("longest"), String::new, |_, v, longest| {
                if v.len() > longest.len() {
                    longest.clear();
                    longest.push_str(v);
                }
            });
            grouped.count(how("counts")).to_stream().to("counts");
            latest.to_stream().to("latest");
            longest.to_stream().to("longest");
            s.to("out");
        });
    }
}

#[test]
fn a_node_that_allocates_is_detected() {
    let builder = StreamsBuilder::new();
    let allocating = builder.stream("in", Consumed::with(Utf8, Utf8)).peek(|_, _| {
        black_box(Box::new(1u64));
    });
    allocating.to("out");
    let (calls, _) = calls(1000, &builder.build().unwrap());
    assert_eq!(calls, 1000);
}

#[test]
fn a_stores_entry_weighs_what_the_allocator_gave_for_it() {
    let builder = StreamsBuilder::new();
    let texts = builder.stream("in", Consumed::with(Utf8, Utf8)).group_by_key();
    texts.reduce(Materialized::named("texts"), |text, more| text.push_str(more)).to_stream().to("out");
    let driver = Driver::options().commit_each(false).build(&builder.build().unwrap()).unwrap();
    let input = driver.input("in", Utf8, Utf8);
    input.pipe("a", "short").unwrap();
    let before = driver.overlay_bytes();
    input.pipe("b", &"x".repeat(28_000)).unwrap();
    assert_eq!(driver.overlay_bytes() - before, 28_672, "seven pages");
    input.pipe("b", &"x".repeat(28_000)).unwrap();
    assert_eq!(driver.overlay_bytes() - before, 57_344, "grown by the closure to twice that");
}

/// Counts its records by key and forwards the number with a header; looks at the store by every way that copies
/// nothing.
struct Counting {
    counts: KeyValueStore<Utf8, I64>,
    longest: KeyValueStore<Utf8, Utf8>,
    headers: HeadersBuf,
}

impl Processor for Counting {
    type KIn = Utf8;
    type VIn = Utf8;
    type KOut = Utf8;
    type VOut = I64;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        cx.schedule(std::time::Duration::from_millis(3), PunctuationType::StreamTime, |_, cx, now| {
            cx.forward(Record::new("tick", now, now))
        })?;
        Ok(())
    }

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
        let counts = cx.store(&self.counts)?;
        let count = counts.get(record.key)?.unwrap_or(0) + 1;
        counts.put(record.key, count)?;
        let longest = cx.store(&self.longest)?;
        if longest.with(record.key, |value| value.is_none_or(|value| value.len() <= record.value.len()))? {
            longest.put(record.key, record.value)?;
        }
        self.headers.clear();
        self.headers.extend(record.headers).push("counted", Some(b"1"));
        cx.forward(record.with_value(count).with_headers(self.headers.headers()))
    }
}

#[test]
fn processors_with_stores_timers_and_headers_allocate_nothing() {
    for caching in [true, false] {
        allocates_nothing(|builder, s| {
            let counts = builder.add_state_store(Stores::key_value("counts", Utf8, I64).caching(caching));
            let longest =
                builder.add_state_store(Stores::timestamped_key_value("longest", Utf8, Utf8).caching(caching));
            let how = Processing::new().stores(&[&counts, &longest]);
            let counting = move || {
                let headers = HeadersBuf::new();
                Counting { counts: counts.clone(), longest: longest.clone(), headers }
            };
            s.process_with(Utf8, I64, counting, how).to("out");
        });
    }
}

/// Keeps the key.
struct Trim;

impl FixedKeyProcessor for Trim {
    type Key = Utf8;
    type VIn = Utf8;
    type VOut = Utf8;

    fn process<'a>(
        &mut self,
        cx: &mut FixedKeyContext<'_, '_, 'a, Self>,
        record: FixedKeyRecord<'a, Utf8, Utf8>,
    ) -> Processed {
        cx.forward(record.with_value(record.value().trim()))
    }
}

#[test]
fn a_fixed_key_processor_allocates_nothing() {
    allocates_nothing(|_, s| s.process_values(Utf8, || Trim).to("out"));
}

fn minutes(minutes: u64) -> std::time::Duration {
    std::time::Duration::from_secs(60 * minutes)
}

#[test]
fn tables_and_their_joins_allocate_nothing() {
    for caching in [true, false] {
        allocates_nothing(|_, s| {
            let how = |name: &str| Materialized::named(name).caching(caching);
            let latest = s.to_table(how("latest"));
            let long = latest.filter_with(how("long"), |_, v| v.len() > 3);
            let joined = latest.left_join_with(&long, I64, how("joined"), |v, long| {
                v.len() as i64 + long.map_or(0, |long| long.len() as i64)
            });
            joined.map_values(I64, |n| n + 1).to_stream().to("joined");
            s.join_table(&latest, Utf8, |_, v| v).to("out");
        });
    }
}

#[test]
fn a_table_grouped_by_another_key_allocates_nothing() {
    allocates_nothing(|_, s| {
        let latest = s.to_table(Materialized::named("latest"));
        latest.group_by(Utf8, Utf8, |k, v| (&k[..1], v)).count(Materialized::named("counts")).to_stream().to("counts");
        s.to("out");
    });
}

#[test]
fn windows_on_hits_allocate_nothing() {
    allocates_nothing(|_, s| {
        let grouped = s.group_by_key();
        let hour = TimeWindows::of_size_and_grace(minutes(60), minutes(1));
        grouped.windowed_by(hour).count(Materialized::named("tumbling")).to_stream().to("tumbling");
        let hopping = TimeWindows::of_size_and_grace(minutes(60), minutes(1)).advance_by(minutes(20));
        grouped.windowed_by(hopping).count(Materialized::named("hopping")).to_stream().to("hopping");
        s.to("out");
    });
}
