//! Per-module figures come back to exactly where they were, whoever frees, moves or dies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{FOREIGN, assert_no_drift, child, exclusive, run_test, settled_committed, settled_live};
use plimsoll_alloc::{Module, bind_home, committed, committed_all, owner_of, scope};
use std::hint::black_box;
use std::sync::mpsc::sync_channel;
use std::thread;

plimsoll_alloc::install!();

/// Blocks that travel to another thread together.
const BUNDLE: usize = 1000;

/// A block of C's malloc.
struct Block(*mut u8);

// SAFETY: the block belongs to whoever holds it.
unsafe impl Send for Block {}

fn malloc(size: usize) -> Block {
    // SAFETY: any size may be asked for; the first byte of a block exists.
    unsafe {
        let at = black_box(libc::malloc(size)).cast::<u8>();
        at.write(size as u8);
        Block(at)
    }
}

fn free(block: Block) {
    // SAFETY: a live block of `malloc`, freed once.
    unsafe { libc::free(block.0.cast()) };
}

/// `count` blocks, allocated on one thread in all modules by turns, are freed on another bound to `home`.
fn ship(count: usize, home: Module) {
    let (sender, receiver) = sync_channel::<Vec<Block>>(4);
    let freeing = thread::spawn(move || {
        bind_home(home).unwrap();
        receiver.into_iter().flatten().map(free).count()
    });
    let mut size = 0;
    for bundle in 0..count / BUNDLE {
        let mut blocks = Vec::with_capacity(BUNDLE);
        let scope = scope(Module::ALL[bundle % Module::COUNT]);
        for _ in 0..BUNDLE {
            size = (size * 31 + 17) % 1024;
            blocks.push(malloc(size + 1));
        }
        drop(scope); // what the channel keeps for this thread is App's
        sender.send(blocks).unwrap();
    }
    drop(sender);
    assert_eq!(freeing.join().unwrap(), count / BUNDLE * BUNDLE);
}

/// Exactly no drift in any module, App included: in a process where nobody else allocates.
fn no_drift(count: usize) {
    ship(BUNDLE * 18, Module::Engine); // what the first thread leaves behind for good, the C library's caches
    ship(BUNDLE * 18, Module::App);
    let before = settled_live();
    ship(count / 2, Module::Engine);
    ship(count / 2, Module::App);
    assert_eq!(settled_live(), before, "live bytes by module after {count} blocks");
}

/// Allocated on one thread, freed on another: 10⁷ blocks here, 10⁸ in the long test.
#[test]
fn ten_million_blocks_freed_on_another_thread_leave_no_drift() {
    run_test(&mut child("ships_ten_million_blocks"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn ships_ten_million_blocks() {
    no_drift(10_000_000);
}

#[test]
#[ignore = "long: run it alone, with --test-threads=1"]
fn a_hundred_million_blocks_freed_on_another_thread_leave_no_drift() {
    no_drift(100_000_000);
}

/// A block keeps its owner through every reallocation, in whatever scope and size that happens.
#[test]
fn realloc_across_scopes_keeps_the_owner_and_leaves_no_drift() {
    let _turn = exclusive();
    let before = settled_live();
    for owner in FOREIGN {
        for other in Module::ALL {
            let block = {
                let _scope = scope(owner);
                malloc(24).0
            };
            let _scope = scope(other);
            let mut at = block;
            for size in [100, 5000, 3_000_000, 70, 9] {
                // SAFETY: a live block, replaced by its successor; its first byte exists.
                unsafe {
                    at = libc::realloc(at.cast(), size).cast();
                    assert_eq!(owner_of(at), Some(owner), "reallocated to {size} in scope {other}");
                    assert_eq!(at.read(), 24);
                }
            }
            // SAFETY: the last successor; C's realloc to nothing frees it.
            assert!(unsafe { libc::realloc(at.cast(), 0) }.is_null());
        }
    }
    assert_no_drift(before);
}

/// The same through Rust's allocator: a vector that grows in other scopes stays where it began.
#[test]
fn a_vector_grows_in_the_module_where_it_began() {
    let _turn = exclusive();
    let before = settled_live();
    let mut vector: Vec<u64> = {
        let _scope = scope(Module::Cache);
        Vec::with_capacity(2)
    };
    let _scope = scope(Module::Store);
    for i in 0..100_000 {
        vector.push(i);
    }
    assert_eq!(owner_of(vector.as_ptr()), Some(Module::Cache));
    drop(vector);
    drop(_scope);
    assert_no_drift(before);
}

/// Threads that exit with blocks in their caches give them back.
#[test]
fn threads_that_exit_leave_no_drift() {
    let _turn = exclusive();
    let round = || {
        for home in Module::ALL {
            let worker = thread::spawn(move || {
                bind_home(home).unwrap();
                for module in Module::ALL {
                    let _scope = scope(module);
                    (0..200).map(|i| malloc(i * 7 + 1)).collect::<Vec<_>>().into_iter().for_each(free);
                }
            });
            worker.join().unwrap();
        }
    };
    round();
    let before = settled_live();
    round();
    assert_no_drift(before);
}

/// An allocation that cannot be served says so as C wants it, and counts nothing.
#[test]
fn failed_allocations_return_null_and_count_nothing() {
    let _turn = exclusive();
    let before = settled_committed();
    for module in Module::ALL {
        let _scope = scope(module);
        // More than jemalloc has size classes for; more than a window; and a product that overflows.
        for (count, size) in [(1, usize::MAX / 2), (1, 200 << 30), (usize::MAX / 2, 3)] {
            // SAFETY: any size may be asked for; the C library's error number of this thread is writable.
            unsafe {
                *libc::__errno_location() = 0;
                assert!(black_box(libc::calloc(count, size)).is_null());
                assert_eq!(*libc::__errno_location(), libc::ENOMEM, "calloc({count}, {size}) in {module}");
                if count == 1 {
                    *libc::__errno_location() = 0;
                    assert!(black_box(libc::malloc(size)).is_null());
                    assert_eq!(*libc::__errno_location(), libc::ENOMEM, "malloc({size}) in {module}");
                    let block = malloc(100).0;
                    assert!(black_box(libc::realloc(block.cast(), size)).is_null());
                    assert_eq!(block.read(), 100, "the old block is still there");
                    free(Block(block));
                    let mut out = std::ptr::null_mut();
                    assert_eq!(libc::posix_memalign(&raw mut out, 64, size), libc::ENOMEM);
                }
            }
        }
    }
    let after = settled_committed();
    for module in FOREIGN {
        let grown = after[module.index()].abs_diff(before[module.index()]);
        assert!(grown <= 64 << 10, "{module}: {grown} bytes after failures only");
    }
}

/// Alignments as C asks for them, in every module, with the errors C defines.
#[test]
fn aligned_blocks_are_aligned_and_owned() {
    let _turn = exclusive();
    let before = settled_live();
    for module in FOREIGN {
        let _scope = scope(module);
        for shift in 3..22 {
            let align = 1usize << shift;
            let mut out = std::ptr::null_mut();
            // SAFETY: `out` is writable; what comes back is freed once.
            unsafe {
                assert_eq!(libc::posix_memalign(&raw mut out, align, 100), 0);
                let blocks = [out, libc::aligned_alloc(align, align * 2), libc::memalign(align, 1)];
                for at in blocks {
                    assert!(at.addr().is_multiple_of(align) && owner_of(at) == Some(module), "{align} in {module}");
                    libc::free(at);
                }
            }
        }
        let mut out = std::ptr::null_mut();
        // SAFETY: refused before anything is written.
        unsafe {
            assert_eq!(libc::posix_memalign(&raw mut out, 24, 100), libc::EINVAL);
            assert_eq!(libc::posix_memalign(&raw mut out, 4, 100), libc::EINVAL);
            assert!(black_box(libc::aligned_alloc(24, 48)).is_null());
        }
        #[repr(align(256))]
        struct Wide([u8; 256]);
        let wide = Box::new(Wide([1; 256]));
        assert_eq!(owner_of(&raw const *wide), Some(module));
        assert!(wide.0.as_ptr().addr().is_multiple_of(256));
    }
    assert_no_drift(before);
}

/// Scopes nest, end where they were opened, and move nothing but their module.
#[test]
fn a_scope_moves_its_module_and_nothing_else() {
    let _turn = exclusive();
    for module in FOREIGN {
        let before = committed_all();
        let block = {
            let _outer = scope(module);
            {
                let _inner = scope(Module::App);
                assert_ne!(owner_of(Box::new(1u64).as_ref()), Some(module));
            }
            vec![1u8; 32 << 20]
        };
        assert_eq!(plimsoll_alloc::current(), Module::App);
        assert!(committed(module) - before[module.index()] >= 32 << 20, "{module}");
        for other in FOREIGN.into_iter().filter(|other| *other != module) {
            assert_eq!(committed(other), before[other.index()], "{other} moved with {module}");
        }
        drop(block);
    }
}
