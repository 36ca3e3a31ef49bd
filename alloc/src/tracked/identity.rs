//! The RSS identity: what the kernel charges this process for, taken apart until nothing is left.
//!
//! `Anonymous` of `/proc/self/smaps_rollup` = windows + allocator + stacks + data + unexplained. Windows are scanned
//! page by page, the other parts are mappings, told apart by what the kernel says about each in `/proc/self/smaps`:
//! - **allocator**: unnamed and not reserved (`nr`), which is how jemalloc maps its metadata and the default arena's
//!   oldest extents, and hardly anybody else anything;
//! - **stacks**: the main thread's, and what follows a guard page: thread stacks and signal stacks;
//! - **data**: changed pages of files (data, relocations) and the zero-initialised data that follows them, the heap of
//!   `brk`.
//!
//! What is left was mapped by the host itself (or by the loader, some dozen KiB), or is a mistake of ours.
//! Resident file pages (program text) are shared with the page cache and stand beside the sum.
//! Allocates nothing; costs milliseconds, at most once a second, off the hot threads.

use super::window;
use crate::{AllocError, RssIdentity, resident_scan};
use std::ffi::{CStr, c_int};

/// Takes the process's resident memory apart.
///
/// # Errors
/// [`AllocError::Proc`] when a file of `/proc/self` cannot be read.
///
/// ```
/// let rss = plimsoll_alloc::rss_identity()?;
/// assert!(rss.resident() > 0 && rss.stacks > 0);
/// println!("{} bytes of which {} unexplained", rss.resident(), rss.unexplained());
/// # Ok::<(), plimsoll_alloc::AllocError>(())
/// ```
pub fn rss_identity() -> Result<RssIdentity, AllocError> {
    let mut identity = RssIdentity { windows: resident_scan()?.modules, ..RssIdentity::default() };
    let mut map = Mapping::default();
    lines(SMAPS, |line| {
        if let Some(next) = Mapping::parse(line, &map) {
            map = next;
        } else if let Some(bytes) = field(line, b"Anonymous:") {
            map.anonymous = bytes;
        } else if let Some(flags) = line.strip_prefix(b"VmFlags:") {
            let unreserved = flags.split(|&b| b == b' ').any(|flag| flag == b"nr");
            match map.part(unreserved) {
                Part::Allocator => identity.allocator += map.anonymous,
                Part::Stack => identity.stacks += map.anonymous,
                Part::Data => identity.data += map.anonymous,
                Part::Window | Part::Other => {}
            }
        }
    })?;
    let mut resident = 0;
    lines(ROLLUP, |line| {
        if let Some(bytes) = field(line, b"Rss:") {
            resident = bytes;
        } else if let Some(bytes) = field(line, b"Anonymous:") {
            identity.anonymous = bytes;
        }
    })?;
    identity.file = resident.saturating_sub(identity.anonymous);
    Ok(identity)
}

/// One mapping as `smaps` lists it.
#[derive(Default)]
struct Mapping {
    start: usize,
    end: usize,
    kind: Kind,
    accessible: bool,
    /// A guard page lies directly below.
    guarded: bool,
    anonymous: u64,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unnamed,
    File,
    Stack,
    Heap,
    /// Zero-initialised data: unnamed, directly above a file.
    Bss,
    Special,
}

enum Part {
    Window,
    Allocator,
    Stack,
    Data,
    Other,
}

impl Mapping {
    /// Reads a header line, `start-end perms offset device inode path`; `None` for the other lines.
    fn parse(line: &[u8], before: &Self) -> Option<Self> {
        let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
        let range = words.next()?;
        let dash = range.iter().position(|&b| b == b'-')?;
        let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
        let permissions = words.next()?;
        let inode = words.nth(2)?;
        let path = words.next().unwrap_or(b"");
        let adjacent = before.end == start;
        let kind = match path {
            b"" if inode != b"0" => Kind::File,
            b"" if adjacent && matches!(before.kind, Kind::File | Kind::Bss) => Kind::Bss,
            b"" => Kind::Unnamed,
            b"[heap]" => Kind::Heap,
            b"[stack]" => Kind::Stack,
            _ if path.starts_with(b"[anon") => {
                if line.windows(5).any(|word| word == b"stack") {
                    Kind::Stack
                } else {
                    Kind::Unnamed
                }
            }
            _ if path.starts_with(b"[") => Kind::Special,
            _ => Kind::File,
        };
        let guarded = adjacent && before.kind == Kind::Unnamed && !before.accessible;
        Some(Self { start, end, kind, accessible: permissions.starts_with(b"r"), guarded, anonymous: 0 })
    }

    fn part(&self, unreserved: bool) -> Part {
        match self.kind {
            _ if window::contains(self.start) => Part::Window,
            Kind::Stack => Part::Stack,
            Kind::File | Kind::Heap | Kind::Bss => Part::Data,
            Kind::Unnamed if self.guarded => Part::Stack,
            Kind::Unnamed if unreserved => Part::Allocator,
            Kind::Unnamed | Kind::Special => Part::Other,
        }
    }
}

fn hex(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The value of a line like `Anonymous:   112 kB`, in bytes.
fn field(line: &[u8], name: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(name)?.strip_suffix(b" kB")?.trim_ascii();
    std::str::from_utf8(digits).ok()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

const SMAPS: (&CStr, &str) = (c"/proc/self/smaps", "/proc/self/smaps");
const ROLLUP: (&CStr, &str) = (c"/proc/self/smaps_rollup", "/proc/self/smaps_rollup");

struct File(c_int);

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this value's own.
        unsafe { libc::close(self.0) };
    }
}

/// Calls `each` for every line of a file, without its end; lines are cut at 4 KiB. Allocates nothing.
fn lines(file: (&CStr, &'static str), mut each: impl FnMut(&[u8])) -> Result<(), AllocError> {
    let error = || AllocError::Proc { file: file.1, errno: window::errno() };
    // SAFETY: the path is terminated.
    let open = File(unsafe { libc::open(file.0.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) });
    if open.0 < 0 {
        return Err(error());
    }
    let mut buffer = [0u8; 8192];
    let mut filled = 0;
    loop {
        let room = &mut buffer[filled..];
        // SAFETY: the buffer has that much room.
        let got = unsafe { libc::read(open.0, room.as_mut_ptr().cast(), room.len()) };
        if got < 0 {
            return Err(error());
        }
        if got == 0 {
            return Ok(());
        }
        filled += got as usize;
        let mut done = 0;
        while let Some(len) = buffer[done..filled].iter().position(|&b| b == b'\n') {
            each(&buffer[done..done + len]);
            done += len + 1;
        }
        buffer.copy_within(done..filled, 0);
        filled -= done;
        if filled > buffer.len() / 2 {
            filled = 0; // no line of these files is that long but for a path, which decides nothing after 4 KiB
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn mappings_are_told_apart() {
        let none = Mapping::default();
        let file =
            Mapping::parse(b"00400000-00452000 rw-p 00051000 08:02 173521      /usr/bin/dbus-daemon", &none).unwrap();
        assert!(matches!(file.part(false), Part::Data));
        let bss = Mapping::parse(b"00452000-00453000 rw-p 00000000 00:00 0", &file).unwrap();
        assert!(matches!(bss.part(false), Part::Data));
        let guard = Mapping::parse(b"7f0000000000-7f0000001000 ---p 00000000 00:00 0 ", &bss).unwrap();
        let stack = Mapping::parse(b"7f0000001000-7f0000201000 rw-p 00000000 00:00 0 ", &guard).unwrap();
        assert!(matches!(stack.part(false), Part::Stack));
        let plain = Mapping::parse(b"7f1000001000-7f1000201000 rw-p 00000000 00:00 0 ", &guard).unwrap();
        assert!(matches!(plain.part(true), Part::Allocator));
        assert!(matches!(plain.part(false), Part::Other));
        assert!(Mapping::parse(b"Anonymous:           112 kB", &none).is_none());
        assert!(Mapping::parse(b"VmFlags: rd wr mr mw me ac sd", &none).is_none());
        assert_eq!(field(b"Anonymous:           112 kB", b"Anonymous:"), Some(114_688));
    }

    /// The parts exist in a process without the allocator, too.
    #[test]
    fn stacks_grow_by_what_a_thread_touches() {
        // Threads of other tests come and go meanwhile: one undisturbed look is enough, and some pages either way.
        let expected = (1 << 20) - (64 << 10)..1 << 21;
        // Each stack is larger than those before, which glibc would give out again with their pages touched.
        let seen: Vec<i64> = (4..12).map(|mib| growth_by_a_touched_mebibyte(mib << 20)).collect();
        assert!(seen.iter().any(|grown| expected.contains(grown)), "{seen:?}");
    }

    fn growth_by_a_touched_mebibyte(stack: usize) -> i64 {
        let stacks = || i64::try_from(rss_identity().unwrap().stacks).unwrap();
        let before = stacks();
        let (touched, go) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|threads| {
            let touch = || {
                let mut frame = [0u8; 1 << 20];
                std::hint::black_box(&mut frame);
                touched.wait();
                go.wait();
            };
            std::thread::Builder::new().stack_size(stack).spawn_scoped(threads, touch).unwrap();
            touched.wait();
            let grown = stacks() - before;
            go.wait();
            grown
        })
    }
}
