//! What a user of the allocator calls: pairs at home and in a scope, the scope itself, counters, weights.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use plimsoll_alloc::{Module, bind_home, committed_all, scope, thread_allocated_bytes};
use std::hint::black_box;

plimsoll_alloc::install!();

fn allocator(c: &mut Criterion) {
    let bound = bind_home(Module::Engine).is_ok();
    let mut group = c.benchmark_group("allocator");
    for size in [16usize, 128, 1024] {
        group.bench_with_input(BenchmarkId::new("home_pair", size), &size, |b, &size| {
            b.iter(|| black_box(Vec::<u8>::with_capacity(black_box(size))));
        });
        group.bench_with_input(BenchmarkId::new("tagged_pair", size), &size, |b, &size| {
            let _store = scope(Module::Store);
            b.iter(|| black_box(Vec::<u8>::with_capacity(black_box(size))));
        });
    }
    group.bench_function("scope", |b| b.iter(|| drop(black_box(scope(Module::Cache)))));
    group.bench_function("committed_all", |b| b.iter(committed_all));
    group.bench_function("thread_allocated_bytes", |b| b.iter(thread_allocated_bytes));
    group.finish();
    assert!(bound);
}

criterion_group!(benches, allocator);
criterion_main!(benches);
