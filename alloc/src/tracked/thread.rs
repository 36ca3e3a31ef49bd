//! What a thread works for: its home, its scopes, and what threads that it starts inherit.

use super::ctl::Mib;
use super::install::{self, ready};
use super::local::{COUNTING, DEAD, local};
use super::{abi, ctl, registry, tcache, window};
use crate::{AllocError, Module};
use std::ffi::{c_int, c_uint, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static ARENA: Mib<2> = Mib::new(c"thread.arena", usize::MAX);

/// Resolves names. Called once, from the set-up.
pub(crate) fn setup() -> Result<(), AllocError> {
    ARENA.resolve()
}

/// While it lives, allocations of this thread go to the scope's module. Made by [`scope`].
#[must_use = "the scope ends when this value is dropped"]
#[derive(Debug)]
pub struct Scope {
    before: u8,
    /// A scope is a state of its thread.
    _thread: PhantomData<*const ()>,
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        let local = local();
        local.tag.set(self.before);
        local.settle();
    }
}

/// Sends this thread's allocations to `module` until the returned value is dropped. Scopes nest.
///
/// Entering and leaving cost about a nanosecond. Inside a scope of a module other than the thread's home an
/// allocation costs some 15 ns more than plain jemalloc; on a thread that works for one module alone use
/// [`bind_home`] instead. Blocks keep their owner: what was allocated in a scope may be freed or reallocated
/// anywhere. A thread started inside a scope is bound to the scope's module.
///
/// Without an installed allocator a scope changes nothing.
///
/// ```
/// use plimsoll_alloc::{Module, scope};
/// let table: Vec<u64> = {
///     let _engine = scope(Module::Engine);
///     Vec::with_capacity(1024) // belongs to the engine
/// };
/// drop(table); // credited to the engine
/// ```
#[inline]
pub fn scope(module: Module) -> Scope {
    let local = local();
    let before = local.tag.replace(module as u8 + 1);
    local.settle();
    Scope { before, _thread: PhantomData }
}

/// The module this thread's allocations go to now: that of the innermost scope, else its home.
#[must_use]
pub fn current() -> Module {
    Module::from_index(local().current()).unwrap_or(Module::App)
}

/// The module that owns the block at this address; `None` for what lies outside the windows (stacks, static data, what
/// was allocated before the allocator was set up).
///
/// ```
/// use plimsoll_alloc::{Module, is_installed, owner_of, scope};
/// let _cache = scope(Module::Cache);
/// let block = Box::new(7u64);
/// assert_eq!(owner_of(&*block), is_installed().then_some(Module::Cache));
/// ```
#[must_use]
pub fn owner_of<T: ?Sized>(block: *const T) -> Option<Module> {
    let addr = block.cast::<u8>().addr();
    if window::contains(addr) { Module::from_index(window::owner(addr)) } else { None }
}

/// Makes `module` the home of this thread: outside scopes its allocations go there at the cost of plain
/// jemalloc. Every thread's home is App until it is bound or was born in a scope.
///
/// No block cached for the old home is handed out afterwards. Without an installed allocator this does nothing.
///
/// # Errors
/// [`AllocError::Bind`] when jemalloc refuses; the thread then keeps its old home.
///
/// ```
/// use plimsoll_alloc::{Module, bind_home};
/// std::thread::spawn(|| {
///     bind_home(Module::Restore)?;
///     // the whole thread works for the restore module
///     Ok::<(), plimsoll_alloc::AllocError>(())
/// })
/// .join()
/// .unwrap()?;
/// # Ok::<(), plimsoll_alloc::AllocError>(())
/// ```
pub fn bind_home(module: Module) -> Result<(), AllocError> {
    let local = local();
    if !ready() || local.mode.get() & DEAD != 0 {
        return Ok(());
    }
    let index = module.index();
    // What the explicit cache of the new home holds goes back first; nothing needs that cache any more.
    tcache::destroy(local, index);
    let rc = ARENA.write::<c_uint>(usize::MAX, install::arena(index));
    if rc != 0 {
        return Err(AllocError::Bind { module, errno: rc });
    }
    // Only now: flushed before, the cache could be refilled from the old arena by the binding itself.
    tcache::flush_automatic()?;
    local.home.set(module as u8);
    let counts = local.mode.get() & COUNTING != 0;
    local.start.set(if counts { window::NOWHERE } else { window::start(index) });
    local.settle();
    tcache::arm(local);
    registry::enter(local, index);
    Ok(())
}

/// [`bind_home`] for C: binds the calling thread to the module with this index, returns zero or an error number.
///
/// Meant for thread-start hooks of C libraries (librdkafka's `on_thread_start`).
///
/// ```
/// use plimsoll_alloc::{Module, bind_home_c};
/// assert_eq!(bind_home_c(Module::App as u32), 0);
/// assert_ne!(bind_home_c(99), 0);
/// ```
pub extern "C" fn bind_home_c(module: u32) -> c_int {
    match Module::from_index(module as usize).map(bind_home) {
        Some(Ok(())) => 0,
        Some(Err(AllocError::Bind { errno, .. })) => errno,
        Some(Err(_)) => libc::EAGAIN,
        None => libc::EINVAL,
    }
}

/// The modules of all threads of the process, by thread id, with the threads' names.
///
/// For reports: reads `/proc/self/task` and allocates. Empty when that cannot be read.
#[must_use]
pub fn threads() -> Vec<(u32, String, Module)> {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .map(|tid: u32| {
            let name = std::fs::read_to_string(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
            (tid, name.trim_end().to_owned(), registry::home_of(tid))
        })
        .collect()
}

type Start = extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type Create = unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

/// What a thread born in a scope needs before it starts its own work.
struct Birth {
    start: Start,
    argument: *mut c_void,
    module: Module,
}

static REAL_CREATE: AtomicUsize = AtomicUsize::new(0);

fn real_create() -> Option<Create> {
    let mut real = REAL_CREATE.load(Relaxed);
    if real == 0 {
        // SAFETY: the name is terminated; the next definition after this object's own is the C library's.
        real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) } as usize;
        REAL_CREATE.store(real, Relaxed);
    }
    if real == 0 {
        return None;
    }
    // SAFETY: the address is that of the C library's `pthread_create`, whose type this is.
    Some(unsafe { std::mem::transmute::<usize, Create>(real) })
}

/// `pthread_create`: the new thread's home is the module its creator works for.
///
/// # Safety
/// As for the C function.
pub unsafe fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    start: Start,
    argument: *mut c_void,
) -> c_int {
    let Some(real) = real_create() else {
        return libc::EAGAIN;
    };
    let module = current();
    if module == Module::App || !ready() {
        // SAFETY: the caller's promise.
        return unsafe { real(thread, attributes, start, argument) };
    }
    // SAFETY: a fresh block, checked, large and aligned enough for a `Birth`, written before it is read; it is
    // freed once: by the new thread, or here when there is none.
    unsafe {
        let birth = abi::malloc(size_of::<Birth>()).cast::<Birth>();
        if birth.is_null() {
            return libc::EAGAIN;
        }
        birth.write(Birth { start, argument, module });
        let rc = real(thread, attributes, be_born, birth.cast());
        if rc != 0 {
            abi::free(birth.cast());
        }
        rc
    }
}

/// The new thread. `C-unwind`: `pthread_exit` and cancellation unwind through this frame.
extern "C-unwind" fn be_born(birth: *mut c_void) -> *mut c_void {
    // SAFETY: `pthread_create` above wrote it and gave it to this thread alone.
    let Birth { start, argument, module } = unsafe { birth.cast::<Birth>().read() };
    // A thread that cannot be bound works for App: its memory is counted there.
    let _ = bind_home(module);
    // SAFETY: ours, freed once.
    unsafe { abi::free(birth) };
    start(argument)
}

static ALLOCATED: &std::ffi::CStr = c"thread.allocatedp";
static DEALLOCATED: &std::ffi::CStr = c"thread.deallocatedp";

/// Bytes this thread has allocated since it started, as jemalloc counts them (size classes, all modules).
///
/// Two loads; the difference of two readings is the exact weight of what was allocated in between, and zero
/// exactly if nothing was. Zero for ever without an installed allocator.
///
/// ```
/// use plimsoll_alloc::{is_installed, thread_allocated_bytes};
/// let before = thread_allocated_bytes();
/// let text = String::from("fifteen letters");
/// assert_eq!(thread_allocated_bytes() - before, if is_installed() { 16 } else { 0 });
/// # drop(text);
/// ```
#[must_use]
pub fn thread_allocated_bytes() -> u64 {
    let local = local();
    read(&local.allocated, ALLOCATED)
}

/// Bytes this thread has freed since it started, as jemalloc counts them. See [`thread_allocated_bytes`].
#[must_use]
pub fn thread_deallocated_bytes() -> u64 {
    let local = local();
    read(&local.deallocated, DEALLOCATED)
}

#[inline]
fn read(cell: &std::cell::Cell<*const u64>, name: &'static std::ffi::CStr) -> u64 {
    if cell.get().is_null() {
        if !ready() || local().mode.get() & DEAD != 0 {
            return 0;
        }
        cell.set(ctl::read::<usize>(name).unwrap_or(0) as *const u64);
        if cell.get().is_null() {
            return 0;
        }
    }
    // SAFETY: jemalloc's counter of this thread, which lives in the thread's static TLS block like the cell.
    unsafe { ptr::read(cell.get()) }
}
