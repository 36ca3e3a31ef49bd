//! Threads: what they inherit, what binding moves, what they leave behind, and what happens when caches run out.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{FOREIGN, assert_no_drift, child, exclusive, run_test, settled_committed, settled_live};
use plimsoll_alloc::{Module, bind_home, bind_home_c, owner_of, resident_scan, rss_identity, scope, testing, threads};
use std::cell::RefCell;
use std::ffi::{c_uint, c_void};
use std::hint::black_box;
use std::sync::{Barrier, Mutex};
use std::thread;
use tikv_jemalloc_sys as je;

plimsoll_alloc::install!();

fn use_every_module() {
    for module in Module::ALL {
        let _scope = scope(module);
        for shift in 4..15 {
            let block = black_box(vec![1u8; 1 << shift]);
            assert!(owner_of(block.as_ptr()) == Some(module) || module == Module::App);
        }
    }
}

/// Each of 2,000 threads makes eight caches; all are destroyed with their threads.
#[test]
fn two_thousand_threads_leave_nothing() {
    let _turn = exclusive();
    let generation = |count: usize| {
        for _ in 0..count / 8 {
            let eight: Vec<_> = (0..8).map(|_| thread::spawn(use_every_module)).collect();
            eight.into_iter().for_each(|worker| worker.join().unwrap());
        }
    };
    generation(64);
    let (live, committed) = (settled_live(), settled_committed());
    let (resident, rss) = (resident_scan().unwrap(), rss_identity().unwrap());
    generation(2000);
    assert_no_drift(live);
    for module in Module::ALL {
        let grown = settled_committed()[module.index()].saturating_sub(committed[module.index()]);
        assert!(grown <= 256 << 10, "{module}: {grown} bytes committed");
        let grown = resident_scan().unwrap().modules[module.index()].saturating_sub(resident.modules[module.index()]);
        assert!(grown <= 256 << 10, "{module}: {grown} bytes resident");
    }
    let grown = rss_identity().unwrap().anonymous.saturating_sub(rss.anonymous);
    assert!(grown <= 1 << 20, "{grown} bytes of anonymous memory");
}

/// In a child, because it takes all of the process's caches.
#[test]
fn without_a_cache_to_be_had_allocation_goes_on() {
    run_test(&mut child("takes_all_caches"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn takes_all_caches() {
    let mut taken: usize = 0;
    loop {
        let (mut id, mut len): (c_uint, usize) = (0, size_of::<c_uint>());
        // SAFETY: value and length describe a live integer.
        let rc = unsafe {
            je::mallctl(c"tcache.create".as_ptr(), (&raw mut id).cast(), &raw mut len, std::ptr::null_mut(), 0)
        };
        if rc != 0 {
            break;
        }
        taken += 1;
    }
    assert!((4000..4096).contains(&taken), "{taken}");
    let before = settled_live();
    for _ in 0..4 {
        thread::spawn(use_every_module).join().unwrap();
    }
    use_every_module();
    assert_no_drift(before);
}

/// Without the flush the cache would hand out what it holds of the old arena: 64 of 64 blocks.
#[test]
fn binding_leaves_no_block_of_the_old_arena() {
    let _turn = exclusive();
    for (from, to) in [(Module::App, Module::Engine), (Module::Cache, Module::Store), (Module::Store, Module::App)] {
        let worker = thread::spawn(move || {
            bind_home(from).unwrap();
            for size in [16usize, 64, 1000, 4096] {
                let blocks: Vec<_> = (0..64).map(|_| vec![1u8; size]).collect();
                drop(blocks);
            }
            bind_home(to).unwrap();
            for size in [16usize, 64, 1000, 4096] {
                let blocks: Vec<_> = (0..64).map(|_| vec![1u8; size]).collect();
                for block in &blocks {
                    let owner = owner_of(block.as_ptr());
                    assert!(owner == Some(to) || (to == Module::App && owner.is_none()), "{size}: {owner:?}");
                }
            }
        });
        worker.join().unwrap();
    }
}

/// A home bound inside a scope counts once the scope ends; scopes of the new home are the fast path.
#[test]
fn a_home_bound_inside_a_scope_starts_after_it() {
    let _turn = exclusive();
    let worker = thread::spawn(|| {
        let outer = scope(Module::Batch);
        bind_home(Module::Cache).unwrap();
        assert_eq!(owner_of(Box::new(1u64).as_ref()), Some(Module::Batch));
        drop(outer);
        assert_eq!(owner_of(Box::new(1u64).as_ref()), Some(Module::Cache));
        let _same = scope(Module::Cache);
        assert_eq!(owner_of(Box::new(1u64).as_ref()), Some(Module::Cache));
        let _app = scope(Module::App);
        assert_ne!(owner_of(Box::new(1u64).as_ref()), Some(Module::Cache));
    });
    worker.join().unwrap();
}

extern "C" fn c_thread(_: *mut c_void) -> *mut c_void {
    // SAFETY: any size may be asked for; the block is freed below by the creator.
    black_box(unsafe { libc::malloc(100) })
}

/// Rust threads and C threads work for what their creator worked for: its scope, else its home.
#[test]
fn threads_inherit_the_scope_they_are_born_in() {
    let _turn = exclusive();
    for module in FOREIGN {
        let _scope = scope(module);
        let owner = thread::spawn(|| owner_of(Box::new(1u64).as_ref())).join().unwrap();
        assert_eq!(owner, Some(module), "rust");
        // SAFETY: the thread is joined; what it allocated is freed once.
        unsafe {
            let mut id: libc::pthread_t = 0;
            let start: extern "C" fn(*mut c_void) -> *mut c_void = c_thread;
            assert_eq!(libc::pthread_create(&raw mut id, std::ptr::null(), start, std::ptr::null_mut()), 0);
            let mut block = std::ptr::null_mut();
            assert_eq!(libc::pthread_join(id, &raw mut block), 0);
            assert_eq!(owner_of(block), Some(module), "c");
            libc::free(block);
        }
    }
    let grandchild = thread::spawn(|| {
        bind_home(Module::Restore).unwrap();
        thread::spawn(|| owner_of(Box::new(1u64).as_ref())).join().unwrap()
    });
    assert_eq!(grandchild.join().unwrap(), Some(Module::Restore));
}

/// `pthread_exit` unwinds through the frame that bound the thread.
#[test]
fn a_thread_born_in_a_scope_may_end_by_pthread_exit() {
    let _turn = exclusive();
    run_test(&mut child("ends_by_pthread_exit"));
}

extern "C-unwind" fn exits(_: *mut c_void) -> *mut c_void {
    unsafe extern "C-unwind" {
        fn pthread_exit(value: *mut c_void) -> !;
    }
    // SAFETY: no value with a destructor lives in this frame.
    unsafe { pthread_exit(std::ptr::without_provenance_mut(7)) }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn ends_by_pthread_exit() {
    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    let _scope = scope(Module::Consumer);
    // SAFETY: the two function types differ only in what Rust may assume about unwinding; the thread is joined.
    unsafe {
        let start = std::mem::transmute::<extern "C-unwind" fn(*mut c_void) -> *mut c_void, Start>(exits);
        let (mut id, mut value): (libc::pthread_t, *mut c_void) = (0, std::ptr::null_mut());
        assert_eq!(libc::pthread_create(&raw mut id, std::ptr::null(), start, std::ptr::null_mut()), 0);
        assert_eq!(libc::pthread_join(id, &raw mut value), 0);
        assert_eq!(value.addr(), 7);
    }
}

/// A thread that cannot be made leaves nothing behind.
#[test]
fn a_thread_that_cannot_be_made_leaves_nothing() {
    let _turn = exclusive();
    let round = || {
        let _scope = scope(Module::Store);
        // SAFETY: an attribute object of our own; the size is refused or too large to be mapped.
        unsafe {
            let mut attributes = std::mem::zeroed();
            libc::pthread_attr_init(&raw mut attributes);
            assert_eq!(libc::pthread_attr_setstacksize(&raw mut attributes, 1 << 50), 0);
            let mut id: libc::pthread_t = 0;
            assert_ne!(libc::pthread_create(&raw mut id, &raw const attributes, c_thread, std::ptr::null_mut()), 0);
            libc::pthread_attr_destroy(&raw mut attributes);
        }
    };
    round();
    let before = settled_live();
    round();
    assert_no_drift(before);
}

thread_local! {
    static LATE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Emptied by a destructor of the latest kind.
static LATER: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// Destructors that run when a thread ends, of Rust's and of C's kind, allocate and free without drift.
#[test]
fn destructors_at_thread_exit_allocate_and_free() {
    let _turn = exclusive();
    extern "C" fn at_exit(value: *mut c_void) {
        // Runs up to four times, after our own destructor and jemalloc's: from then on jemalloc itself serves the
        // thread from its default arena, whatever arena is asked for, so App pays. Freeing credits the owners.
        let rounds = value.addr();
        for module in Module::ALL {
            let _scope = scope(module);
            let block = black_box(vec![1u8; 1000]);
            assert!([None, Some(Module::App), Some(module)].contains(&owner_of(block.as_ptr())));
        }
        LATER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
        // SAFETY: the key exists for the life of the test program.
        unsafe {
            if rounds > 1 {
                libc::pthread_setspecific(KEY.load(RELAXED), std::ptr::without_provenance(rounds - 1));
            }
        }
    }
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed as RELAXED};
    static KEY: AtomicU32 = AtomicU32::new(0);
    let mut key = 0;
    // SAFETY: `key` is writable, the destructor of the right type.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(at_exit)) }, 0);
    KEY.store(key, RELAXED);
    let round = || {
        for home in [Module::App, Module::Engine, Module::Cache] {
            let worker = thread::spawn(move || {
                bind_home(home).unwrap();
                // SAFETY: the key exists.
                unsafe { libc::pthread_setspecific(KEY.load(RELAXED), std::ptr::without_provenance(4)) };
                for module in Module::ALL {
                    let _scope = scope(module);
                    LATE.with_borrow_mut(|late| late.push(vec![1; 100]));
                    LATER.lock().unwrap().push(vec![1; 100]);
                }
                use_every_module();
            });
            worker.join().unwrap();
        }
    };
    round();
    let before = settled_live();
    round();
    assert_no_drift(before);
}

/// Every thread of the process has a module: the one it was bound to, else App.
#[test]
fn every_thread_has_a_module() {
    let _turn = exclusive();
    let barrier = Barrier::new(3);
    thread::scope(|all| {
        for (name, module) in [("cache-thread", Module::Cache), ("restore-thread", Module::Restore)] {
            let barrier = &barrier;
            let body = move || {
                assert_eq!(bind_home_c(if name == "cache-thread" { 6 } else { 3 }), 0);
                assert_eq!(plimsoll_alloc::current(), module);
                barrier.wait();
                barrier.wait();
            };
            thread::Builder::new().name(name.into()).spawn_scoped(all, body).unwrap();
        }
        barrier.wait();
        let seen = threads();
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().count();
        assert!(seen.len() >= 4 && seen.len().abs_diff(tasks) <= 1, "{} of {tasks}", seen.len());
        for (name, module) in [("cache-thread", Module::Cache), ("restore-thread", Module::Restore)] {
            assert_eq!(seen.iter().find(|(_, n, _)| n == name).map(|(.., m)| *m), Some(module));
        }
        let bound = seen.iter().filter(|(.., module)| *module != Module::App).count();
        assert_eq!(bound, 2, "the others are App's: {seen:?}");
        barrier.wait();
    });
    assert_eq!(bind_home_c(9), libc::EINVAL);
}

/// The gate counts calls and bytes exactly, by module, and not at all where nothing is allocated.
#[test]
fn the_zero_allocation_gate_counts_every_call() {
    let _turn = exclusive();
    let worker = thread::spawn(|| {
        bind_home(Module::Engine).unwrap();
        let mut buffer = Vec::<u64>::with_capacity(16);
        let (_, none) = testing::allocations(|| (0..16).for_each(|i| buffer.push(i)));
        assert_eq!((none.calls(), none.bytes, none.freed), (0, 0, 0));
        let (_, one) = testing::allocations(|| buffer.push(16));
        assert_eq!((one.calls(), one.bytes, one.freed), (1, 256, 128), "a vector of 16 grows to 32 words");
        let (_, seen) = testing::allocations(|| {
            drop(black_box(Box::new([0u8; 48])));
            let _store = scope(Module::Store);
            drop(black_box(Box::new([0u8; 64])));
            // SAFETY: a copy of a terminated text, freed once.
            unsafe { libc::free(black_box(libc::strdup(c"counted in C, too".as_ptr())).cast()) };
        });
        let mut expected = [0; Module::COUNT];
        expected[Module::Engine.index()] = 1;
        expected[Module::Store.index()] = 2;
        assert_eq!((seen.by_module, seen.bytes, seen.freed), (expected, 48 + 64 + 32, 48 + 64 + 32));
        assert!(!plimsoll_alloc::count_calls(false), "counting ended with the closure");
    });
    worker.join().unwrap();
}
