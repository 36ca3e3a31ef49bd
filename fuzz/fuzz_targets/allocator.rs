//! Programs of malloc, realloc and free over threads and modules, against a model.
//!
//! Calls the allocator's functions directly; the fuzzer itself allocates elsewhere, so that every module's live bytes
//! must be zero after each program. A step is four bytes: what to do and on which of four threads, in which module's
//! scope, with which of 32 blocks, how large.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_alloc::__private::{self as c, Address, Conf, Symbols};
use plimsoll_alloc::{Module, Plimsoll, bind_home, is_installed, live_all, owner_of, purge, scope};
use std::alloc::{GlobalAlloc, Layout};
use std::ptr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

#[unsafe(no_mangle)]
static _rjem_malloc_conf: Conf = Conf::NEEDED;

/// Nothing is shadowed here, because nothing is replaced.
static SYMBOLS: Symbols = [(c"malloc", Address(ptr::null())); 11];

const THREADS: usize = 4;
const BLOCKS: usize = 32;
/// Steps of a program: more would only make it slow.
const STEPS: usize = 300;

#[derive(Clone, Copy)]
struct Block {
    at: *mut u8,
    size: usize,
    align: usize,
    owner: Module,
    fill: u8,
}

// SAFETY: a block belongs to whoever holds it; steps run one at a time.
unsafe impl Send for Block {}

/// What a thread is asked to do.
enum Step {
    Malloc { size: usize, module: Module, fill: u8 },
    Calloc { size: usize, module: Module, fill: u8 },
    Aligned { size: usize, align: usize, module: Module, fill: u8 },
    Realloc { block: Block, size: usize, module: Module },
    Free { block: Block, module: Module },
    Rust { block: Block, module: Module },
    Bind(Module),
    Flush,
}

struct Worker {
    steps: SyncSender<Step>,
    answers: Receiver<Option<Block>>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new() -> Self {
        let (steps, asked) = sync_channel::<Step>(0);
        let (answer, answers) = sync_channel(0);
        let thread = std::thread::spawn(move || {
            for step in asked {
                if answer.send(run(step)).is_err() {
                    return;
                }
            }
        });
        Self { steps, answers, thread }
    }

    fn ask(&self, step: Step) -> Option<Block> {
        self.steps.send(step).expect("the thread lives");
        self.answers.recv().expect("the thread answers")
    }

    fn end(self) {
        drop(self.steps);
        self.thread.join().expect("the thread ends well");
    }
}

fn run(step: Step) -> Option<Block> {
    match step {
        Step::Malloc { size, module, fill } => {
            let _scope = scope(module);
            // SAFETY: any size may be asked for.
            Some(made(unsafe { c::malloc(size) }.cast(), size, 1, module, fill))
        }
        Step::Calloc { size, module, fill } => {
            let _scope = scope(module);
            // SAFETY: any sizes may be asked for; the block is read inside its size.
            let at = unsafe {
                let at = c::calloc(size, 3).cast::<u8>();
                assert!(std::slice::from_raw_parts(at, size * 3).iter().all(|&byte| byte == 0), "calloc gives zeroes");
                at
            };
            Some(made(at, size * 3, 1, module, fill))
        }
        Step::Aligned { size, align, module, fill } => {
            let _scope = scope(module);
            let mut at = ptr::null_mut();
            // SAFETY: `at` is writable.
            assert_eq!(unsafe { c::posix_memalign(&raw mut at, align, size) }, 0);
            Some(made(at.cast(), size, align, module, fill))
        }
        Step::Realloc { block, size, module } => {
            let _scope = scope(module);
            check(&block, block.size);
            // SAFETY: a live block, replaced by its successor.
            let at = unsafe { c::realloc(block.at.cast(), size) }.cast::<u8>();
            if size == 0 {
                assert!(at.is_null(), "realloc to nothing frees");
                return None;
            }
            let moved = Block { at, size, align: 1, ..block };
            check(&moved, block.size.min(size));
            Some(made(at, size, 1, block.owner, block.fill))
        }
        Step::Free { block, module } => {
            let _scope = scope(module);
            check(&block, block.size);
            // SAFETY: a live block, freed once.
            unsafe { c::free(block.at.cast()) };
            None
        }
        Step::Rust { block, module } => rust(block, module),
        Step::Bind(module) => {
            bind_home(module).expect("the module has an arena");
            None
        }
        Step::Flush => {
            Module::ALL.into_iter().for_each(purge);
            None
        }
    }
}

/// A block of Rust's allocator with the size and alignment of `model` comes, grows and goes.
fn rust(model: Block, module: Module) -> Option<Block> {
    let _scope = scope(module);
    let layout = Layout::from_size_align(model.size.max(1), model.align).expect("an alignment is a power of two");
    // SAFETY: a size above zero; a live block with its layout throughout.
    unsafe {
        let at = Plimsoll.alloc(layout);
        made(at, layout.size(), layout.align(), module, model.fill);
        let at = Plimsoll.realloc(at, layout, layout.size() * 2);
        let wide = Layout::from_size_align_unchecked(layout.size() * 2, layout.align());
        let block = Block { at, size: wide.size(), align: wide.align(), owner: module, fill: model.fill };
        check(&block, layout.size());
        Plimsoll.dealloc(at, wide);
    }
    Some(model)
}

/// Checks a fresh block and fills it.
fn made(at: *mut u8, size: usize, align: usize, owner: Module, fill: u8) -> Block {
    assert!(!at.is_null(), "{size} bytes can be had");
    let block = Block { at, size, align, owner, fill };
    // SAFETY: a live block of that size.
    unsafe {
        assert!(c::malloc_usable_size(at.cast()) >= size);
        ptr::write_bytes(at, fill, size);
    }
    check(&block, size);
    block
}

/// Owner, alignment, contents up to `filled`.
fn check(block: &Block, filled: usize) {
    let owner = owner_of(block.at);
    assert!(owner == Some(block.owner) || block.owner == Module::App && owner.is_none(), "{owner:?}");
    assert!(block.at.addr() % block.align == 0);
    // SAFETY: a live block with at least so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(block.at, filled) };
    assert!(bytes.iter().all(|&byte| byte == block.fill), "contents of a live block changed");
}

/// Small sizes mostly, some beyond the caches, some beyond a slab, few of many pages.
fn size(selector: u8) -> usize {
    let low = usize::from(selector & 0x3f);
    match selector >> 6 {
        0 => low,
        1 => low * 24 + 1,
        2 => low * 301 + 7,
        _ => low * 9000 + 15_000,
    }
}

fuzz_target!(|program: &[u8]| {
    if !is_installed() {
        c::start(&SYMBOLS, false);
        assert!(is_installed(), "set up");
    }
    let mut workers: Vec<Worker> = (0..THREADS).map(|_| Worker::new()).collect();
    let mut blocks: [Option<Block>; BLOCKS] = [None; BLOCKS];
    for step in program.chunks_exact(4).take(STEPS) {
        let thread = usize::from(step[0] >> 6);
        let module = Module::ALL[usize::from(step[1]) % Module::COUNT];
        let slot = usize::from(step[2]) % BLOCKS;
        let (size, fill) = (size(step[3]), step[2] ^ step[3] | 1);
        let worker = &workers[thread];
        let held = blocks[slot].take();
        blocks[slot] = match (step[0] & 0x0f, held) {
            (0..=4, None) => worker.ask(Step::Malloc { size, module, fill }),
            (5..=6, None) => worker.ask(Step::Calloc { size, module, fill }),
            (7..=8, None) => {
                let align = 8 << (step[2] >> 5) << (step[1] >> 6);
                worker.ask(Step::Aligned { size, align, module, fill })
            }
            (0..=4, Some(block)) => worker.ask(Step::Free { block, module }),
            (5..=9, Some(block)) => worker.ask(Step::Realloc { block, size, module }),
            (10..=11, Some(block)) => worker.ask(Step::Rust { block, module }),
            (12, held) => {
                worker.ask(Step::Bind(module));
                held
            }
            (13, held) => {
                std::mem::replace(&mut workers[thread], Worker::new()).end();
                held
            }
            (14, held) => {
                worker.ask(Step::Flush);
                held
            }
            (_, held) => held,
        };
    }
    for (i, block) in blocks.into_iter().flatten().enumerate() {
        workers[i % THREADS].ask(Step::Free { block, module: Module::ALL[i % Module::COUNT] });
    }
    workers.into_iter().for_each(Worker::end);
    let live = live_all();
    assert!(live[1..].iter().all(|&bytes| bytes == 0), "live after all was freed: {live:?}");
});
