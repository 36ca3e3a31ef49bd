//! jemalloc's control interface: names resolved once, values read and written without allocating.

use crate::AllocError;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tikv_jemalloc_sys as je;

/// Writes `value` under `name`.
pub(crate) fn write<T: Copy>(name: &'static CStr, mut value: T) -> Result<(), AllocError> {
    // SAFETY: the name is terminated; the new value points to a live `T` of the given length, which jemalloc
    // checks against the length it expects before reading.
    let rc = unsafe {
        je::mallctl(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), (&raw mut value).cast(), size_of::<T>())
    };
    check(name, rc)
}

/// Runs the command `name`, which takes and gives nothing.
pub(crate) fn call(name: &'static CStr) -> Result<(), AllocError> {
    // SAFETY: no values are passed.
    let rc = unsafe { je::mallctl(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0) };
    check(name, rc)
}

/// Reads the value under `name`; `T` must be plain data of jemalloc's type for that name.
pub(crate) fn read<T: Copy + Default>(name: &'static CStr) -> Result<T, AllocError> {
    let mut value = T::default();
    let mut len = size_of::<T>();
    // SAFETY: value and length describe a live `T`; jemalloc refuses another length with EINVAL and writes at
    // most that many bytes. The callers' types are integers and pointers, valid for every bit pattern.
    let rc = unsafe { je::mallctl(name.as_ptr(), (&raw mut value).cast(), &raw mut len, ptr::null_mut(), 0) };
    check(name, rc).map(|()| value)
}

/// Reads the string option under `name`.
pub(crate) fn read_str(name: &'static CStr) -> Result<&'static CStr, AllocError> {
    let mut value: *const std::ffi::c_char = ptr::null();
    let mut len = size_of_val(&value);
    // SAFETY: as in `read`; the value is a pointer.
    let rc = unsafe { je::mallctl(name.as_ptr(), (&raw mut value).cast(), &raw mut len, ptr::null_mut(), 0) };
    check(name, rc)?;
    if value.is_null() {
        return Ok(c"");
    }
    // SAFETY: string options of jemalloc are terminated constants.
    Ok(unsafe { CStr::from_ptr(value) })
}

fn check(name: &'static CStr, rc: c_int) -> Result<(), AllocError> {
    if rc == 0 { Ok(()) } else { Err(AllocError::Control { name: name.to_str().unwrap_or("?"), errno: rc }) }
}

/// A control name resolved once, with at most one index in it, for calls that must be fast.
pub(crate) struct Mib<const LEN: usize> {
    name: &'static CStr,
    /// Where the index goes; `LEN` when there is none.
    slot: usize,
    parts: [AtomicUsize; LEN],
}

impl<const LEN: usize> Mib<LEN> {
    /// `LEN` is the number of dotted parts of `name`; `slot` the position of its index.
    pub(crate) const fn new(name: &'static CStr, slot: usize) -> Self {
        Self { name, slot, parts: [const { AtomicUsize::new(usize::MAX) }; LEN] }
    }

    /// Resolves the name; must come before any use. Idempotent.
    pub(crate) fn resolve(&self) -> Result<(), AllocError> {
        let mut parts = [0usize; LEN];
        let mut len = LEN;
        // SAFETY: `parts` has room for `len` entries, as told.
        let rc = unsafe { je::mallctlnametomib(self.name.as_ptr(), parts.as_mut_ptr(), &raw mut len) };
        check(self.name, rc)?;
        for (to, from) in self.parts.iter().zip(parts) {
            to.store(from, Relaxed);
        }
        Ok(())
    }

    fn at(&self, index: usize) -> [usize; LEN] {
        let mut parts = [0; LEN];
        for (i, part) in parts.iter_mut().enumerate() {
            *part = if i == self.slot { index } else { self.parts[i].load(Relaxed) };
        }
        parts
    }

    /// Reads a `T` at `index` into `value`.
    pub(crate) fn read<T: Copy + Default>(&self, index: usize) -> Result<T, AllocError> {
        let parts = self.at(index);
        let mut value = T::default();
        let mut len = size_of::<T>();
        // SAFETY: as in the free function `read`; an unresolved name gives ENOENT.
        let rc =
            unsafe { je::mallctlbymib(parts.as_ptr(), LEN, (&raw mut value).cast(), &raw mut len, ptr::null_mut(), 0) };
        check(self.name, rc).map(|()| value)
    }

    /// Writes `value` at `index`.
    pub(crate) fn write<T: Copy>(&self, index: usize, mut value: T) -> c_int {
        let parts = self.at(index);
        let value: *mut c_void = (&raw mut value).cast();
        // SAFETY: as in the free function `write`.
        unsafe { je::mallctlbymib(parts.as_ptr(), LEN, ptr::null_mut(), ptr::null_mut(), value, size_of::<T>()) }
    }

    /// Runs the command at `index`.
    pub(crate) fn call(&self, index: usize) -> c_int {
        let parts = self.at(index);
        // SAFETY: no values are passed.
        unsafe { je::mallctlbymib(parts.as_ptr(), LEN, ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0) }
    }
}
