//! The start probe: allocations of Rust, C and C++ are ours, and jemalloc's options are those we need.

use super::install::{self, Address};
use super::{ctl, window};
use crate::{Module, NotInstalled, scope};
use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// Whether the allocator is installed and set up in this process. One load; [`probe`] says why not.
#[must_use]
#[inline]
pub fn is_installed() -> bool {
    install::ready()
}

/// Whether every allocation of this process is tracked: by Rust, C and C++, with jemalloc's options as needed.
///
/// Looks once, then repeats the answer.
///
/// # Errors
/// [`NotInstalled`], saying what to change.
///
/// ```
/// // This documentation example does not contain the macro.
/// assert_eq!(plimsoll_alloc::probe(), Err(plimsoll_alloc::NotInstalled::Missing));
/// ```
pub fn probe() -> Result<(), NotInstalled> {
    static ANSWER: OnceLock<Result<(), NotInstalled>> = OnceLock::new();
    ANSWER.get_or_init(look).clone()
}

fn look() -> Result<(), NotInstalled> {
    if let Some(error) = install::failure() {
        return Err(error.into());
    }
    let Some(symbols) = install::symbols() else {
        return Err(if cfg!(any(fuzzing, miri, plimsoll_no_allocator, target_feature = "crt-static")) {
            NotInstalled::SwitchedOff
        } else {
            NotInstalled::Missing
        });
    };
    for (name, ours) in symbols {
        // SAFETY: the name is terminated.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if Address(found.cast_const().cast()) != *ours {
            return Err(NotInstalled::Shadowed { symbol: name.to_str().unwrap_or("?") });
        }
    }
    rust_is_ours()?;
    c_is_ours()?;
    cxx_is_ours()?;
    options_are_ours()
}

fn in_engine(at: *const c_void) -> bool {
    window::contains(at as usize) && window::owner(at as usize) == Module::Engine.index()
}

fn rust_is_ours() -> Result<(), NotInstalled> {
    let _engine = scope(Module::Engine);
    let block = std::hint::black_box(Box::new([0u8; 48]));
    if in_engine(block.as_ptr().cast()) { Ok(()) } else { Err(NotInstalled::Untracked { language: "rust" }) }
}

/// The C library allocates on our behalf: that shows whose `malloc` the process's other libraries see.
fn c_is_ours() -> Result<(), NotInstalled> {
    let _engine = scope(Module::Engine);
    // SAFETY: the text is terminated; the copy is freed by the `free` that belongs to the C library's `malloc`.
    let ours = unsafe {
        let copy = libc::strdup(c"a text long enough to be copied".as_ptr());
        let ours = in_engine(copy.cast());
        libc::free(copy.cast());
        ours
    };
    if ours { Ok(()) } else { Err(NotInstalled::Untracked { language: "c" }) }
}

/// `operator new`, where a C++ library is loaded.
fn cxx_is_ours() -> Result<(), NotInstalled> {
    type New = unsafe extern "C" fn(usize) -> *mut c_void;
    type Delete = unsafe extern "C" fn(*mut c_void);
    let _engine = scope(Module::Engine);
    // SAFETY: these are the C++ ABI's names of `operator new(unsigned long)` and `operator delete(void*)`, whose
    // types the two aliases are; a block of the one is freed by the other.
    let ours = unsafe {
        let new = libc::dlsym(libc::RTLD_DEFAULT, c"_Znwm".as_ptr());
        let delete = libc::dlsym(libc::RTLD_DEFAULT, c"_ZdlPv".as_ptr());
        if new.is_null() || delete.is_null() {
            return Ok(());
        }
        let block = std::mem::transmute::<*mut c_void, New>(new)(48);
        let ours = in_engine(block);
        std::mem::transmute::<*mut c_void, Delete>(delete)(block);
        ours
    };
    if ours { Ok(()) } else { Err(NotInstalled::Untracked { language: "c++" }) }
}

/// How an option's value is read.
enum Kind {
    Unsigned,
    Size,
    Signed,
    Bool,
    Text,
}

/// Every option the tracking depends on, with the value it must have.
const OPTIONS: [(&CStr, Kind, &str); 13] = [
    (c"opt.percpu_arena", Kind::Text, "disabled"),
    (c"opt.narenas", Kind::Unsigned, "1"),
    (c"opt.oversize_threshold", Kind::Size, "0"),
    (c"opt.thp", Kind::Text, "never"),
    (c"opt.dirty_decay_ms", Kind::Signed, "500"),
    (c"opt.muzzy_decay_ms", Kind::Signed, "0"),
    (c"opt.max_background_threads", Kind::Size, "1"),
    (c"opt.cache_oblivious", Kind::Bool, "false"),
    (c"opt.retain", Kind::Bool, "true"),
    (c"opt.tcache", Kind::Bool, "true"),
    (c"opt.tcache_max", Kind::Size, "4096"),
    (c"opt.lg_tcache_nslots_mul", Kind::Signed, "-1"),
    (c"opt.tcache_nslots_small_max", Kind::Unsigned, "64"),
];

fn options_are_ours() -> Result<(), NotInstalled> {
    for (name, kind, expected) in &OPTIONS {
        let found = match kind {
            Kind::Unsigned => ctl::read::<u32>(name)?.to_string(),
            Kind::Size => ctl::read::<usize>(name)?.to_string(),
            Kind::Signed => ctl::read::<isize>(name)?.to_string(),
            Kind::Bool => (ctl::read::<u8>(name)? != 0).to_string(),
            Kind::Text => ctl::read_str(name)?.to_string_lossy().into_owned(),
        };
        if found != *expected {
            let name = name.to_str().unwrap_or("?");
            return Err(NotInstalled::Option { name, found, expected });
        }
    }
    Ok(())
}
