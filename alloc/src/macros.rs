//! The macro that puts the allocator into a program.

/// Installs the tracking allocator: one line at the top level of the program's main file.
///
/// ```standalone_crate
/// plimsoll_alloc::install!();
///
/// fn main() {
///     plimsoll_alloc::probe().expect("every allocation of this process is tracked");
/// }
/// ```
///
/// It defines Rust's global allocator, the C functions `malloc`, `calloc`, `realloc`, `free`, `posix_memalign`,
/// `aligned_alloc`, `memalign`, `valloc`, `pvalloc` and `malloc_usable_size`, `pthread_create` (threads inherit
/// their creator's module), jemalloc's options, and a function that runs before `main`. It works in binaries,
/// examples, tests, benches and doctests that are linked dynamically; in a shared library or a static
/// executable [`probe`](crate::probe) reports that the allocator is not installed.
///
/// It also switches transparent huge pages off for the process (and, as the kernel defines it, for the children it
/// starts): they make memory resident that nobody asked for. `install!(keep_huge_pages)` leaves them as they
/// are; the windows themselves never use them.
///
/// The host must not forbid unsafe code (`deny` is fine). Under `--cfg fuzzing`, `--cfg miri` or
/// `--cfg plimsoll_no_allocator` the macro expands to nothing, for sanitizers bring their own allocator.
#[cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(target_feature = "crt-static"),
    not(any(fuzzing, miri, plimsoll_no_allocator))
))]
#[macro_export]
macro_rules! install {
    () => {
        $crate::__install!(true);
    };
    (keep_huge_pages) => {
        $crate::__install!(false);
    };
}

/// Installs the tracking allocator, which is switched off in this build.
#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(target_feature = "crt-static"),
    not(any(fuzzing, miri, plimsoll_no_allocator))
)))]
#[macro_export]
macro_rules! install {
    () => {};
    (keep_huge_pages) => {};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __install {
    ($disable_huge_pages:expr) => {
        #[global_allocator]
        static PLIMSOLL_ALLOCATOR: $crate::Plimsoll = $crate::Plimsoll;

        #[allow(unsafe_code, missing_docs, non_upper_case_globals, unreachable_pub, dead_code, clippy::all)]
        #[doc(hidden)]
        mod plimsoll_allocator_symbols {
            use ::core::ffi::{c_int, c_void};
            use $crate::__private as a;

            #[unsafe(no_mangle)]
            pub static _rjem_malloc_conf: a::Conf = a::Conf::NEEDED;

            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::malloc(size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::calloc(count, size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::realloc(at, size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn free(at: *mut c_void) {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::free(at) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::posix_memalign(out, align, size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::aligned_alloc(align, size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::aligned_alloc(align, size) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::valloc(size, false) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::valloc(size, true) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn malloc_usable_size(at: *const c_void) -> usize {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::malloc_usable_size(at) }
            }
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn pthread_create(
                thread: *mut a::pthread_t,
                attributes: *const a::pthread_attr_t,
                start: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
                argument: *mut c_void,
            ) -> c_int {
                // SAFETY: the caller keeps the contract of the function of this name.
                unsafe { a::pthread_create(thread, attributes, start, argument) }
            }

            static SYMBOLS: a::Symbols = [
                (c"malloc", a::Address(malloc as *const ())),
                (c"calloc", a::Address(calloc as *const ())),
                (c"realloc", a::Address(realloc as *const ())),
                (c"free", a::Address(free as *const ())),
                (c"posix_memalign", a::Address(posix_memalign as *const ())),
                (c"aligned_alloc", a::Address(aligned_alloc as *const ())),
                (c"memalign", a::Address(memalign as *const ())),
                (c"valloc", a::Address(valloc as *const ())),
                (c"pvalloc", a::Address(pvalloc as *const ())),
                (c"malloc_usable_size", a::Address(malloc_usable_size as *const ())),
                (c"pthread_create", a::Address(pthread_create as *const ())),
            ];

            extern "C" fn start() {
                a::start(&SYMBOLS, $disable_huge_pages);
            }

            #[used]
            #[unsafe(link_section = ".init_array")]
            static START: extern "C" fn() = start;
        }
    };
}
