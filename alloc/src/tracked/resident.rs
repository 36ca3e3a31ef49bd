//! What is really in memory, window by window: the kernel's page tables.
//!
//! The committed counters say what a module may have in memory; this says what it has. `PAGEMAP_SCAN` (Linux 6.7)
//! walks page tables and skips empty ones, older kernels are asked page by page through `/proc/self/pagemap`. Neither
//! allocates. Only pages of the window that were ever handed out are looked at.
//! Called by reports, at most about once a second, never on a thread that must not wait: the cost is some
//! milliseconds per resident GiB (old kernels: per GiB of window used).

use super::window;
use crate::{AllocError, Residents};
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

pub(crate) const PAGE: usize = 4096;
const PAGEMAP: &str = "/proc/self/pagemap";

/// Resident bytes of all windows, from the kernel's page tables. Swapped pages and shared zero pages are not resident.
///
/// Zeros without an installed allocator.
///
/// # Errors
/// [`AllocError::Proc`] when `/proc/self/pagemap` cannot be read.
///
/// ```
/// use plimsoll_alloc::{Module, resident_scan};
/// let resident = resident_scan()?;
/// println!("block cache: {} bytes in memory", resident.modules[Module::BlockCache.index()]);
/// # Ok::<(), plimsoll_alloc::AllocError>(())
/// ```
pub fn resident_scan() -> Result<Residents, AllocError> {
    let mut residents = Residents::default();
    if !crate::is_installed() {
        return Ok(residents);
    }
    let pagemap = Pagemap::open()?;
    for (module, bytes) in residents.modules.iter_mut().enumerate() {
        let (start, end) = window::used(module);
        *bytes = pagemap.resident(start, end.next_multiple_of(PAGE))?;
    }
    Ok(residents)
}

/// An open `/proc/self/pagemap`.
struct Pagemap(c_int);

impl Drop for Pagemap {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// The kernel's argument of `PAGEMAP_SCAN` (include/uapi/linux/fs.h).
#[repr(C)]
#[derive(Default)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Region {
    start: u64,
    end: u64,
    categories: u64,
}

const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_PFNZERO: u64 = 1 << 5;
/// `_IOWR('f', 16, struct pm_scan_arg)`.
const PAGEMAP_SCAN: libc::c_ulong =
    3 << 30 | (size_of::<Scan>() as libc::c_ulong) << 16 | (b'f' as libc::c_ulong) << 8 | 16;

/// Whether the kernel knows `PAGEMAP_SCAN`: 0 not tried, 1 yes, -1 no.
static SCANS: AtomicI32 = AtomicI32::new(0);

impl Pagemap {
    fn open() -> Result<Self, AllocError> {
        // SAFETY: the path is terminated.
        let fd = unsafe { libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd < 0 { Err(Self::error()) } else { Ok(Self(fd)) }
    }

    fn error() -> AllocError {
        AllocError::Proc { file: PAGEMAP, errno: window::errno() }
    }

    fn resident(&self, start: usize, end: usize) -> Result<u64, AllocError> {
        if start == end {
            return Ok(0);
        }
        if SCANS.load(Relaxed) >= 0 {
            match self.scan(start, end) {
                Ok(bytes) => {
                    SCANS.store(1, Relaxed);
                    return Ok(bytes);
                }
                Err(error) if SCANS.load(Relaxed) > 0 => return Err(error),
                Err(_) => SCANS.store(-1, Relaxed),
            }
        }
        self.read(start, end)
    }

    /// Asks for runs of present pages.
    fn scan(&self, start: usize, end: usize) -> Result<u64, AllocError> {
        let mut regions = [Region::default(); 256];
        let mut bytes = 0;
        let mut at = start as u64;
        while at < end as u64 {
            let mut scan = Scan {
                size: size_of::<Scan>() as u64,
                start: at,
                end: end as u64,
                vec: regions.as_mut_ptr().expose_provenance() as u64,
                vec_len: regions.len() as u64,
                category_inverted: PAGE_IS_PFNZERO,
                category_mask: PAGE_IS_PRESENT | PAGE_IS_PFNZERO,
                return_mask: PAGE_IS_PRESENT,
                ..Scan::default()
            };
            // SAFETY: the argument is the kernel's structure with its own size; `vec` has room for `vec_len` regions.
            let found = unsafe { libc::ioctl(self.0, PAGEMAP_SCAN, &raw mut scan) };
            if found < 0 {
                return Err(Self::error());
            }
            bytes += regions.iter().take(found as usize).map(|r| r.end - r.start).sum::<u64>();
            if scan.walk_end <= at {
                break;
            }
            at = scan.walk_end;
        }
        Ok(bytes)
    }

    /// Reads one word a page. Counts the shared zero page too, which only a privileged reader could tell.
    fn read(&self, start: usize, end: usize) -> Result<u64, AllocError> {
        let mut words = [0u64; 1024];
        let mut bytes = 0;
        let mut page = start / PAGE;
        while page < end / PAGE {
            let want = words.len().min(end / PAGE - page) * size_of::<u64>();
            // SAFETY: the buffer has room for `want` bytes.
            let got = unsafe {
                libc::pread(self.0, ptr::from_mut(&mut words).cast(), want, (page * size_of::<u64>()) as libc::off_t)
            };
            if got <= 0 {
                return Err(Self::error());
            }
            let got = got as usize / size_of::<u64>();
            bytes += words[..got].iter().filter(|&&word| word >> 63 != 0).count() as u64 * PAGE as u64;
            page += got;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    /// Both readers agree on a mapping of 64 pages of which 3 + 5 were touched.
    #[test]
    fn scan_and_page_words_count_touched_pages() {
        // SAFETY: a mapping of our own, written inside its bounds, unmapped at the end.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let at = libc::mmap(ptr::null_mut(), 64 * PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            assert_ne!(at, libc::MAP_FAILED);
            libc::madvise(at, 64 * PAGE, libc::MADV_NOHUGEPAGE);
            for page in [0, 1, 2, 10, 12, 14, 16, 63] {
                at.byte_add(page * PAGE).cast::<u8>().write(1);
            }
            let pagemap = Pagemap::open().unwrap();
            let range = (at as usize, at as usize + 64 * PAGE);
            assert_eq!(pagemap.read(range.0, range.1), Ok(8 * 4096));
            assert_eq!(pagemap.resident(range.0, range.1), Ok(8 * 4096));
            if SCANS.load(Relaxed) > 0 {
                assert_eq!(pagemap.scan(range.0, range.1), Ok(8 * 4096));
            }
            libc::munmap(at, 64 * PAGE);
        }
    }
}
