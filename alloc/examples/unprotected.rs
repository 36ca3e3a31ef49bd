//! A program that uses the crate without the macro: everything works and nothing is tracked.
//!
//! `unprotected [LIBRARY]`: also loads the example `shared_object` and prints what the probe says inside it.

use plimsoll_alloc::{Module, committed_all, probe, scope};
use std::ffi::{CStr, CString, c_int, c_void};
use std::io::Write;

fn main() -> std::io::Result<()> {
    let _scope = scope(Module::Engine);
    let block = vec![1u8; 10 << 20];
    let mut out = std::io::stdout().lock();
    match probe() {
        Ok(()) => writeln!(out, "installed")?,
        Err(error) => writeln!(out, "not installed: {error}")?,
    }
    if let Some(path) = std::env::args_os().nth(1) {
        let path = CString::new(path.as_encoded_bytes())?;
        // SAFETY: the library is this package's example, whose function has this type; it stays loaded.
        let answer = unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if library.is_null() {
                return Err(std::io::Error::other(format!("{:?}", CStr::from_ptr(libc::dlerror()))));
            }
            let probe = libc::dlsym(library, c"plimsoll_example_probe".as_ptr());
            if probe.is_null() {
                return Err(std::io::Error::other("the library is another one"));
            }
            std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(probe)()
        };
        writeln!(out, "probe in the library: {answer}")?;
    }
    writeln!(out, "committed {} for {} bytes", committed_all().iter().sum::<u64>(), block.len())
}
