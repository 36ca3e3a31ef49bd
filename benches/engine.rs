//! What the parts of the hot path cost: allocator, overlay, codecs, the step. `make bench ARGS=overlay` runs a part.
//!
//! Few samples, for a figure in seconds; for the allocator's cost against plain jemalloc see `make alloc-bench`.
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll::Module;
use plimsoll::prelude::*;
use plimsoll::testing::bench::{Counts, Step};
use std::hint::black_box;
use std::time::Duration;

plimsoll::install_allocator!();

/// Room for every key that a bench has.
const AMPLE: usize = 64 << 20;
/// A count fits the processor's caches with the first and not with the second number of keys.
const KEYS: [usize; 2] = [1_000, 100_000];

/// Keys as the peer bench has them: `user-` and eight digits, behind the partition where a store asks.
fn keys(count: usize, prefix: &[u8]) -> Vec<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(42);
    let mut keys: Vec<_> = (0..count).map(|number| [prefix, format!("user-{number:08}").as_bytes()].concat()).collect();
    random.shuffle(&mut keys);
    keys
}

fn allocator(c: &mut Criterion) {
    let mut group = c.benchmark_group("allocator");
    let home = plimsoll_alloc::bind_home(Module::Engine);
    assert_eq!(home, Ok(()));
    for size in [64, 1_024] {
        let pair = move || drop(black_box(Vec::<u8>::with_capacity(black_box(size))));
        group.bench_function(format!("home pair of {size}"), |b| b.iter(pair));
        group.bench_function(format!("tagged pair of {size}"), |b| {
            let _scope = plimsoll_alloc::scope(Module::Cache);
            b.iter(pair);
        });
    }
}

fn overlay(c: &mut Criterion) {
    let mut group = c.benchmark_group("overlay");
    group.throughput(Throughput::Elements(1));
    for count in KEYS {
        let keys = keys(count, &[0, 0, 0, 0]);
        group.bench_function(format!("hit among {count}"), |b| {
            let mut counts = Counts::new(AMPLE);
            for key in &keys {
                counts.add(key);
            }
            let mut next = keys.iter().cycle();
            b.iter(|| next.next().map(|key| counts.add(key)));
            assert_eq!(counts.entries(), count);
        });
        group.bench_function(format!("miss and eviction, {count} keys in room for half"), |b| {
            let mut all = Counts::new(AMPLE);
            for key in &keys {
                all.add(key);
            }
            let mut counts = Counts::new(all.bytes() / 2);
            let mut next = keys.iter().cycle();
            b.iter(|| next.next().map(|key| counts.add_clean(key)));
            assert!(counts.entries() < count);
        });
    }
}

fn codec(c: &mut Criterion) {
    let mut group = c.benchmark_group("codec");
    let mut out = Scratch::with_limit(1 << 10);
    let text = "user-00012345, who was seen on Tuesday";
    let number = 1_234_567_890_i64.to_be_bytes();
    group.bench_function("utf-8 decode", |b| b.iter(|| black_box(Utf8.decode(black_box(text.as_bytes())))));
    group.bench_function("utf-8 encode", |b| {
        b.iter(|| {
            out.clear();
            Utf8.encode(black_box(text), &mut out);
            out.len()
        });
    });
    group.bench_function("i64 decode", |b| b.iter(|| black_box(I64.decode(black_box(&number)))));
    group.bench_function("i64 encode", |b| {
        b.iter(|| {
            out.clear();
            I64.encode(black_box(1_234_567_890), &mut out);
            out.len()
        });
    });
}

/// A source, five nodes without state and a sink.
fn five_nodes() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    builder
        .stream("input", Consumed::with(Utf8, Utf8))
        .filter(|_, value| !value.is_empty())
        .map_values(Utf8, |value| value.trim_start())
        .filter(|key, _| key.starts_with("user-"))
        .map_values(Utf8, |value| &value[..8])
        .filter(|_, value| value.len() == 8)
        .to("output");
    builder.build()
}

fn count() -> Result<Topology, BuildError> {
    let builder = StreamsBuilder::new();
    let records = builder.stream("input", Consumed::with(Utf8, Bytes));
    records.group_by_key().count(Materialized::named("counts")).to_stream().to("output");
    builder.build()
}

fn step(c: &mut Criterion) {
    let mut group = c.benchmark_group("step");
    group.throughput(Throughput::Elements(1));
    let value = [b'v'; 100];
    let step = |topology: Result<Topology, BuildError>| topology.ok().and_then(|made| Step::new(&made, AMPLE));
    group.bench_function("source, five nodes, sink", |b| {
        let Some(mut step) = step(five_nodes()) else { return };
        b.iter(|| assert!(step.feed(b"user-00012345", &value)));
        assert!(step.drain() > 0);
    });
    for count_of in KEYS {
        let keys = keys(count_of, b"");
        group.bench_function(format!("count on hits among {count_of} keys"), |b| {
            let Some(mut step) = step(count()) else { return };
            keys.iter().for_each(|key| assert!(step.feed(key, &value)));
            let mut next = keys.iter().cycle();
            b.iter(|| next.next().map(|key| step.feed(key, &value)));
            // A record to the changelog and one to the sink for each key, whatever was counted.
            assert_eq!(step.drain(), 2 * count_of as u64);
        });
    }
}

criterion_group! {
    name = engine;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .without_plots();
    targets = allocator, overlay, codec, step
}
criterion_main!(engine);
