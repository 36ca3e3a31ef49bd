//! Committed counters against the kernel's page tables; the RSS identity; what reading them costs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod common;

use common::{FOREIGN, exclusive, settled_committed};
use plimsoll_alloc::{
    Module, bind_home, committed, committed_all, live_all, owner_of, purge, resident_scan, rss_identity, scope,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

plimsoll_alloc::install!();

const MIB: u64 = 1 << 20;

/// A block of C's malloc, touched to the end of its size class.
struct Block(*mut u8);

impl Block {
    fn new(size: usize) -> Self {
        // SAFETY: a block may be written to its usable size.
        unsafe {
            let at = black_box(libc::malloc(size)).cast::<u8>();
            std::ptr::write_bytes(at, 1, libc::malloc_usable_size(at.cast()));
            Self(at)
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: a live block, freed once.
        unsafe { libc::free(self.0.cast()) };
    }
}

/// Allocates `bytes` in blocks of many sizes and touches every page of them.
fn fill(module: Module, bytes: usize) -> Vec<Block> {
    let _scope = scope(module);
    let (mut blocks, mut total, mut size) = (Vec::new(), 0, 7usize);
    while total < bytes {
        size = (size * 73 + 11) % 30_000 + 16;
        blocks.push(Block::new(size));
        total += size;
    }
    blocks
}

/// Never below what is resident in the window; above it by at most 1 % or 2 MiB.
fn agrees(module: Module) {
    let counter = committed(module);
    let resident = resident_scan().unwrap().modules[module.index()];
    assert!(counter >= resident, "{module}: counter {counter} below resident {resident}");
    let slack = (resident / 100).max(2 * MIB);
    assert!(counter - resident <= slack, "{module}: counter {counter}, resident {resident}");
}

#[test]
fn committed_agrees_with_the_page_tables() {
    let _turn = exclusive();
    for module in FOREIGN {
        let mut blocks = fill(module, 48 << 20);
        assert!(committed(module) >= 48 * MIB);
        agrees(module);
        let mut keep = 0;
        blocks.retain(|_| {
            keep += 1;
            keep % 3 == 0
        });
        purge(module);
        agrees(module);
        blocks.extend(fill(module, 24 << 20));
        agrees(module);
        drop(blocks);
        purge(module);
        agrees(module);
    }
}

/// App's counter includes the oldest extents outside its window, at their full size.
#[test]
fn app_agrees_too() {
    let _turn = exclusive();
    let blocks = fill(Module::App, 96 << 20);
    let resident = resident_scan().unwrap().modules[Module::App.index()];
    let counter = committed(Module::App);
    println!("counter {counter}, resident {resident}");
    assert!(resident >= 95 * MIB && counter >= resident, "counter {counter}, resident {resident}");
    assert!(counter - resident <= 2 * MIB + resident / 100 + 2 * MIB, "counter {counter}, resident {resident}");
    drop(blocks);
}

#[test]
fn untouched_memory_is_committed_and_not_resident() {
    let _turn = exclusive();
    let module = Module::Batch;
    let (committed_before, resident_before) = (committed(module), resident_scan().unwrap().modules[module.index()]);
    let block = {
        let _scope = scope(module);
        Vec::<u8>::with_capacity(64 << 20)
    };
    let untouched = (committed(module) - committed_before) as i64
        - (resident_scan().unwrap().modules[module.index()] as i64 - resident_before as i64);
    println!("untouched {untouched}");
    assert!((64 * MIB as i64 - (1 << 16)..66 * MIB as i64).contains(&untouched), "{untouched}");
    drop(block);
}

#[test]
fn the_page_cache_is_not_counted() {
    let _turn = exclusive();
    let path = std::env::temp_dir().join(format!("plimsoll-alloc-figures-{}", std::process::id()));
    std::fs::write(&path, vec![7u8; 32 << 20]).unwrap();
    let before = settled_committed();
    let resident = resident_scan().unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mut sum = 0u64;
    // SAFETY: a shared read-only mapping of a file of this length that nobody changes, read inside its bounds.
    unsafe {
        use std::os::fd::AsRawFd;
        let at = libc::mmap(std::ptr::null_mut(), 32 << 20, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(at, libc::MAP_FAILED);
        let mapped = rss_identity().unwrap();
        for page in 0..8192usize {
            sum += u64::from(at.byte_add(page * 4096).cast::<u8>().read());
        }
        let touched = rss_identity().unwrap();
        assert!(touched.file - mapped.file >= 31 * MIB, "the file's pages are resident, as file pages");
        assert!(touched.anonymous.abs_diff(mapped.anonymous) < MIB);
        libc::munmap(at, 32 << 20);
    }
    std::fs::remove_file(&path).unwrap();
    assert_eq!(sum, 7 * 8192);
    assert_eq!(settled_committed()[1..], before[1..]);
    assert!(settled_committed()[0].abs_diff(before[0]) < MIB);
    assert_eq!(resident_scan().unwrap().modules[1..], resident.modules[1..]);
}

/// A burst comes and goes: purged, the module is back within 2 MiB.
#[test]
fn a_burst_freed_and_purged_leaves_nothing() {
    let _turn = exclusive();
    for module in FOREIGN {
        purge(module);
        let (counter, resident) = (committed(module), resident_scan().unwrap().modules[module.index()]);
        drop(fill(module, 64 << 20));
        // The background thread may be purging just these pages: then ours returns at once, and the pages go with its.
        let start = Instant::now();
        let (counter_after, resident_after) = loop {
            purge(module);
            let after = (committed(module), resident_scan().unwrap().modules[module.index()]);
            if after.0 <= counter + 2 * MIB || start.elapsed() > Duration::from_secs(10) {
                break after;
            }
        };
        assert!(counter_after <= counter + 2 * MIB, "{module}: committed {counter} then {counter_after}");
        assert!(resident_after <= resident + 2 * MIB, "{module}: resident {resident} then {resident_after}");
    }
}

/// Without a purge the background thread gives pages back, though the module is idle.
#[test]
fn a_burst_freed_decays_while_its_module_is_idle() {
    let _turn = exclusive();
    let module = Module::Restore;
    purge(module);
    let before = committed(module);
    drop(fill(module, 64 << 20));
    let start = Instant::now();
    while committed(module) > before + 2 * MIB {
        assert!(start.elapsed() < Duration::from_secs(20), "still {} bytes", committed(module) - before);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn live_bytes_are_what_was_asked_for_in_size_classes() {
    let _turn = exclusive();
    let module = Module::Producer;
    let before = live_all()[module.index()];
    let blocks: Vec<Box<[u8; 4096]>> = {
        let _scope = scope(module);
        (0..1000).map(|_| Box::new([0u8; 4096])).collect()
    };
    let grown = live_all()[module.index()] - before;
    // The boxes and the vector that holds them, and at most a cache full of further blocks.
    assert!((1000 * 4096..1000 * 4096 + (256 << 10)).contains(&grown), "{grown}");
    drop(blocks);
}

/// Windows + allocator + stacks + data = anonymous memory, within 1 %, in a process with a bit of everything.
#[test]
fn the_rss_identity_closes() {
    let _turn = exclusive();
    let blocks: Vec<_> = Module::ALL.into_iter().map(|module| fill(module, 4 << 20)).collect();
    let barrier = std::sync::Barrier::new(5);
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                bind_home(Module::Engine).unwrap();
                black_box([1u8; 300 << 10]);
                barrier.wait();
                barrier.wait();
            });
        }
        barrier.wait();
        let rss = rss_identity().unwrap();
        println!("{rss:?} unexplained {}", rss.unexplained());
        assert!(rss.tracked() >= 9 * 4 * MIB && rss.stacks >= 1200 << 10);
        assert!(rss.unexplained().unsigned_abs() * 100 <= rss.anonymous, "unexplained {}", rss.unexplained());
        let scanned: u64 = resident_scan().unwrap().modules.iter().sum();
        assert!(scanned.abs_diff(rss.tracked()) < 256 << 10);
        barrier.wait();
    });
    drop(blocks);
}

/// What the host maps by itself belongs to no module, and shows.
#[test]
fn memory_mapped_by_the_host_is_unexplained() {
    let _turn = exclusive();
    let before = rss_identity().unwrap();
    // SAFETY: a mapping of our own, written inside its bounds, unmapped at the end.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), 8 << 20, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        std::ptr::write_bytes(at.cast::<u8>(), 1, 8 << 20);
        let grown = rss_identity().unwrap().unexplained() - before.unexplained();
        assert!(grown.abs_diff(8 * MIB as i64) < 512 << 10, "{grown}");
        libc::munmap(at, 8 << 20);
    }
}

/// Reading all counters: less than a microsecond (best of 100 batches), also while every module's arena is busy.
#[test]
fn reading_all_counters_costs_less_than_a_microsecond() {
    let _turn = exclusive();
    let mut best = Duration::MAX;
    for _ in 0..100 {
        let start = Instant::now();
        for _ in 0..1000 {
            black_box(committed_all());
        }
        best = best.min(start.elapsed() / 1000);
    }
    assert!(best < Duration::from_micros(1), "{best:?}");
    assert_eq!(owner_of(&raw const best), None, "the stack has no owner");
}
