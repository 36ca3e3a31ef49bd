//! What the kernel says about this process: mapped program, resident size.
//!
//! Owns an open `/proc/self/statm`. Linux only; elsewhere every answer is `None`. Called by the plan's measurement and
//! by the governor.
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;

/// The root of jemalloc's radix tree of extents: in bss, and used in a few pages, which the row of the allocator's
/// tables pays for.
const RADIX_ROOT_BYTES: u64 = 2 << 20;

/// Bytes of mappings that belong to files (the program, libraries), their data and bss included, but for the
/// allocator's own where it is installed.
pub(super) fn program_bytes() -> Option<u64> {
    let mapped = program_bytes_of(&fs::read_to_string("/proc/self/maps").ok()?);
    let root = if plimsoll_alloc::is_installed() { RADIX_ROOT_BYTES } else { 0 };
    Some(mapped.saturating_sub(root))
}

/// As [`program_bytes`], from the text of `/proc/self/maps`.
fn program_bytes_of(maps: &str) -> u64 {
    let (mut sum, mut after_file) = (0, 0u64);
    for line in maps.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some((from, to)) = fields.next().and_then(range) else { continue };
        let (permissions, path) = (fields.next().unwrap_or(""), fields.nth(3).unwrap_or(""));
        // Bss has no path and follows its file's last mapping without a gap. Reserved gaps (---p) hold no page.
        let is_program = path.starts_with('/') || path == "[vdso]" || (path.is_empty() && from == after_file);
        if is_program {
            after_file = to;
            if !permissions.starts_with("---") {
                sum += to - from;
            }
        }
    }
    sum
}

fn range(text: &str) -> Option<(u64, u64)> {
    let (from, to) = text.split_once('-')?;
    Some((u64::from_str_radix(from, 16).ok()?, u64::from_str_radix(to, 16).ok()?))
}

/// Reads the resident size again and again without an allocation.
#[derive(Debug)]
pub(super) struct Resident(Option<File>);

impl Resident {
    pub(super) fn open() -> Self {
        Self(File::open("/proc/self/statm").ok())
    }

    /// Resident bytes now; close to exact (the kernel keeps part of the count per processor). One system call.
    pub(super) fn bytes(&self) -> Option<u64> {
        let mut buffer = [0u8; 128];
        let length = self.0.as_ref()?.read_at(&mut buffer, 0).ok()?;
        resident_of(&buffer[..length])
    }
}

/// The second number of `statm`, in bytes.
fn resident_of(statm: &[u8]) -> Option<u64> {
    let field = statm.split(|byte| *byte == b' ').nth(1)?;
    std::str::from_utf8(field).ok()?.parse::<u64>().ok().map(|pages| pages * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_its_files_with_data_and_bss() {
        let maps = "\
            1000-3000 r--p 00000000 00:1f 1 /bin/app\n\
            3000-6000 r-xp 00002000 00:1f 1 /bin/app\n\
            6000-7000 rw-p 00005000 00:1f 1 /bin/app\n\
            7000-9000 rw-p 00000000 00:00 0\n\
            a000-f000 rw-p 00000000 00:00 0 [heap]\n\
            20000-90000 ---p 00000000 00:1f 2 /lib/libc.so\n\
            100000-200000 rw-p 00000000 00:00 0\n\
            300000-302000 rw-p 00000000 00:00 0 [stack]\n";
        assert_eq!(program_bytes_of(maps), 0x2000 + 0x3000 + 0x1000 + 0x2000);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_a_program_and_a_resident_size() {
        let program = program_bytes().unwrap();
        assert!(program > 1 << 20, "{program}");
        let resident = Resident::open().bytes().unwrap();
        assert!(resident > 1 << 20 && resident < 1 << 40, "{resident}");
    }

    #[test]
    fn a_cut_statm_is_no_size() {
        assert_eq!(resident_of(b"100 25 3 4 0 5 0\n"), Some(25 * 4096));
        assert_eq!(resident_of(b"100"), None);
        assert_eq!(resident_of(b""), None);
    }
}
