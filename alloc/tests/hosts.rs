//! Kinds of programs and surroundings: example, test, shared library, fork, huge pages, one CPU, little address space,
//! other options. (Doctests: the crate's documentation installs the macro in two.)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod common;

use common::{build_example, child, run, run_test};
use plimsoll_alloc::{Module, bind_home, is_installed, owner_of, probe, resident_scan, rss_identity, scope};
use std::ffi::CString;
use std::process::Command;
use std::thread;

plimsoll_alloc::install!();

/// A bit of everything; used where the surroundings are unusual.
fn works() {
    assert_eq!(probe(), Ok(()));
    for home in [Module::App, Module::Engine] {
        thread::spawn(move || {
            bind_home(home).unwrap();
            for module in Module::ALL {
                let _scope = scope(module);
                let blocks: Vec<Vec<u8>> = (0..100).map(|i| vec![1; i * 101 + 1]).collect();
                assert!(module == Module::App || owner_of(blocks.as_ptr()) == Some(module));
            }
        })
        .join()
        .unwrap();
    }
}

#[test]
fn a_test_program_has_it() {
    assert!(is_installed());
    works();
}

#[test]
#[ignore = "run by other tests, in other surroundings"]
fn works_here() {
    works();
}

#[test]
fn an_example_program_has_it() {
    let examples = build_example("probe");
    let text = run(&mut Command::new(examples.join("probe")));
    assert!(text.contains("block cache") && text.contains("unexplained"), "{text}");
}

#[test]
fn a_program_without_the_macro_says_so() {
    let examples = build_example("unprotected");
    let text = run(&mut Command::new(examples.join("unprotected")));
    assert!(text.contains("not installed: the tracking allocator is not installed: add"), "{text}");
    assert!(text.contains("committed 0 for 10485760 bytes"), "{text}");
}

/// The answer of the probe inside a shared library that this process loads.
fn probe_of_shared_object(path: &std::path::Path) -> i32 {
    let path = CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the library is ours, its function has this type; it stays loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!library.is_null(), "{:?}", std::ffi::CStr::from_ptr(libc::dlerror()));
        let probe = libc::dlsym(library, c"plimsoll_example_probe".as_ptr());
        assert!(!probe.is_null());
        std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> i32>(probe)()
    }
}

/// Room for jemalloc's thread-local data in a library that is loaded late.
const TUNABLE: (&str, &str) = ("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384");

/// A shared library's own copy of the allocator comes after the program's, tracked or not, and its probe finds out.
#[test]
fn a_shared_library_is_not_installed() {
    let library = build_example("shared_object").join("libshared_object.so");
    run_test(child("loads_a_shared_library").env("PLIMSOLL_TEST_LIBRARY", &library).env(TUNABLE.0, TUNABLE.1));
    let plain = build_example("unprotected").join("unprotected");
    let text = run(Command::new(plain).arg(&library).env(TUNABLE.0, TUNABLE.1));
    assert!(text.contains("probe in the library: 3"), "{text}");
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn loads_a_shared_library() {
    let library = std::env::var_os("PLIMSOLL_TEST_LIBRARY").unwrap();
    // Inside the library `malloc` is the program's: the symbols are the same, but allocations arrive elsewhere.
    assert_eq!(probe_of_shared_object(library.as_ref()), 3);
    works();
}

#[test]
fn a_forked_child_allocates_while_other_threads_do() {
    static STOP: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    let busy: Vec<_> = Module::ALL
        .into_iter()
        .map(|module| {
            thread::spawn(move || {
                bind_home(module).unwrap();
                while !STOP.load(std::sync::atomic::Ordering::Relaxed) {
                    let _scope = scope(Module::Cache);
                    std::hint::black_box(vec![1u8; 100_000]);
                }
            })
        })
        .collect();
    for round in 0..20 {
        // SAFETY: the child allocates (jemalloc's fork handlers make that sound), starts a thread, and leaves by
        // `_exit`.
        unsafe {
            let pid = libc::fork();
            assert!(pid >= 0);
            if pid == 0 {
                let good = Module::ALL.into_iter().all(|module| {
                    let _scope = scope(module);
                    let block = vec![round; 3 << 20];
                    module == Module::App || owner_of(block.as_ptr()) == Some(module)
                });
                let inherited = {
                    let _scope = scope(Module::Store);
                    let born = thread::Builder::new().spawn(|| owner_of(Box::new(1u64).as_ref()));
                    born.ok().and_then(|born| born.join().ok()).flatten()
                };
                libc::_exit(if good && inherited == Some(Module::Store) { 0 } else { 1 });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            assert_eq!(status, 0, "the child of round {round}");
        }
    }
    STOP.store(true, std::sync::atomic::Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn works_on_one_cpu() {
    let child = child("works_here");
    let mut taskset = Command::new("taskset");
    taskset.args(["-c", "0"]).arg(child.get_program()).args(child.get_args());
    run_test(&mut taskset);
}

/// Under `/sys/kernel/mm/transparent_hugepage/enabled` = `always` a module does not become resident in huge pages.
///
/// Sets the machine to `always` for the moment only where `PLIMSOLL_TEST_THP` or `CI` allows it.
#[test]
fn works_with_huge_pages_always_on() {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    struct Restore(String);
    impl Drop for Restore {
        fn drop(&mut self) {
            std::fs::write(SETTING, &self.0).unwrap();
        }
    }
    let setting = std::fs::read_to_string(SETTING).unwrap_or_default();
    let now = setting.split(['[', ']']).nth(1).unwrap_or_default().to_owned();
    let may_set = ["PLIMSOLL_TEST_THP", "CI"].into_iter().any(|name| std::env::var_os(name).is_some());
    let _restore = if now == "always" {
        None
    } else if may_set && std::fs::write(SETTING, "always").is_ok() {
        Some(Restore(now))
    } else {
        eprintln!("in part: huge pages are `{now}` here, not `always` (PLIMSOLL_TEST_THP=set sets them, as root)");
        None
    };
    run_test(&mut child("is_not_resident_in_huge_pages"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn is_not_resident_in_huge_pages() {
    works();
    let block = {
        let _scope = scope(Module::Batch);
        let mut block = Vec::<u8>::with_capacity(64 << 20);
        // SAFETY: inside the capacity: one byte in every 2 MiB.
        (0..32).for_each(|i| unsafe { block.as_mut_ptr().add(i << 21).write(1) });
        block
    };
    let resident = resident_scan().unwrap().modules[Module::Batch.index()];
    assert!(resident < 1 << 20, "{resident} bytes for 32 touched pages");
    let status = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    assert!(status.contains("AnonHugePages:         0 kB"), "{status}");
    drop(block);
    assert!(rss_identity().unwrap().anonymous > 0);
}

/// Too little address space: the program runs, untracked, and the probe says what to change.
#[test]
fn too_little_address_space_is_a_typed_error() {
    let example = build_example("probe").join("probe");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 20000000; exec \"$0\""]).arg(&example);
    let output = shell.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let expected =
        "could not be set up: cannot reserve 42949672960 bytes of address space (errno 12): raise `ulimit -v`";
    assert!(text.contains(expected), "{text}");
}

/// With less than is wanted but enough, the windows are smaller.
#[test]
fn less_address_space_makes_smaller_windows() {
    let child = child("works_here");
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 100000000; exec \"$0\" \"$@\""]).arg(child.get_program()).args(child.get_args());
    run_test(&mut shell);
}

/// When the process may map nothing more, allocations fail as C defines it, and succeed again once it may.
#[test]
fn running_out_of_address_space_is_survived() {
    run_test(&mut child("runs_out_of_address_space"));
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn runs_out_of_address_space() {
    works();
    // Blocks of one size class of pages each: jemalloc needs metadata for every one of them.
    let mut blocks: Vec<*mut libc::c_void> = Vec::with_capacity(1 << 20);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mapped = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()).unwrap() * 4096;
    let limit = |bytes| {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the limit lives for the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    };
    limit(mapped + (64 << 10));
    let mut refused = 0;
    for round in 0..1 << 20 {
        let _scope = scope(Module::ALL[round % Module::COUNT]);
        // SAFETY: any size may be asked for; what is not null is freed below.
        let block = std::hint::black_box(unsafe { libc::malloc(16 << 10) });
        if block.is_null() {
            refused += 1;
            if refused > 100 {
                break;
            }
        } else {
            blocks.push(block);
        }
    }
    // SAFETY: live blocks, freed once.
    blocks.drain(..).for_each(|block| unsafe { libc::free(block) });
    limit(libc::RLIM_INFINITY);
    assert!(refused > 100, "the limit was never felt");
    works();
}

/// The environment may override jemalloc's options; the probe notices every one the tracking needs.
#[test]
fn other_options_are_a_typed_error() {
    let example = build_example("probe").join("probe");
    for (option, message) in [
        ("narenas:4", "`opt.narenas` is 4 and must be 1"),
        ("dirty_decay_ms:10000", "`opt.dirty_decay_ms` is 10000 and must be 500"),
        ("muzzy_decay_ms:100", "`opt.muzzy_decay_ms` is 100 and must be 0"),
        ("percpu_arena:percpu", "`opt.percpu_arena` is percpu and must be disabled"),
        ("oversize_threshold:8388608", "`opt.oversize_threshold` is 8388608 and must be 0"),
        ("retain:false", "`opt.retain` is false and must be true"),
        ("thp:always", "`opt.thp` is always and must be never"),
        ("tcache_max:32768", "`opt.tcache_max` is 32768 and must be 4096"),
        ("cache_oblivious:true", "`opt.cache_oblivious` is true and must be false"),
    ] {
        let output = Command::new(&example).env("_RJEM_MALLOC_CONF", option).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{option}: {text}");
        assert!(text.contains(message), "{option}: {text}");
    }
}

/// Another library that defines `malloc` in front of ours is named.
#[test]
fn a_preloaded_allocator_does_not_win() {
    // The executable's own definitions come before preloaded ones: preloading the C library changes nothing.
    let example = build_example("probe").join("probe");
    let text = run(Command::new(&example).env("LD_PRELOAD", "libc.so.6"));
    assert!(text.contains("block cache"), "{text}");
}
