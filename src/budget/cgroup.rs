//! The memory limit of the cgroup that this process runs in, version 1 or 2.
//!
//! Owns the reading of `/proc/self/cgroup` and of the limit files; holds nothing. The smallest limit on the way from
//! the process's own group to the root counts, because the kernel enforces each of them. Called by `Memory` at start.
use std::fs;
use std::path::{Path, PathBuf};

/// Limits from here on mean "none": version 1 writes the largest page-aligned number instead of a word.
const NO_LIMIT: u64 = 1 << 62;

/// The limit in bytes, or `None` when no group on the way to the root has one.
pub(crate) fn limit() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_below(Path::new("/sys/fs/cgroup"), &groups)
}

/// As [`limit`], with the mount point and the text of `/proc/self/cgroup` given.
fn limit_below(mount: &Path, groups: &str) -> Option<u64> {
    groups.lines().filter_map(|line| limit_of(mount, line)).min()
}

/// Smallest limit for one line of `/proc/self/cgroup`: `hierarchy:controllers:path`.
fn limit_of(mount: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (root, file) = if controllers.is_empty() {
        // With both versions mounted, version 2 has a directory of its own.
        let unified = mount.join("unified");
        (if unified.is_dir() { unified } else { mount.to_path_buf() }, "memory.max")
    } else if controllers.split(',').any(|c| c == "memory") {
        (mount.join(controllers), "memory.limit_in_bytes")
    } else {
        return None;
    };
    // In a container the path may be one of the host's that is not mounted here: its last existing ancestor counts.
    let group: PathBuf = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|dir| dir.starts_with(&root)).filter_map(|dir| read_limit(&dir.join(file))).min()
}

fn read_limit(file: &Path) -> Option<u64> {
    let bytes = fs::read_to_string(file).ok()?.trim().parse::<u64>().ok()?; // "max" is no number
    (bytes < NO_LIMIT).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn version_2_takes_the_smallest_limit_up_to_the_root() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "a/memory.max", "134217728\n");
        write(dir.path(), "a/b/memory.max", "max\n");
        assert_eq!(limit_below(dir.path(), "0::/a/b\n"), Some(134_217_728));
        assert_eq!(limit_below(dir.path(), "0::/\n"), None);
    }

    #[test]
    fn version_1_reads_the_memory_hierarchy_and_knows_its_word_for_none() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "memory/memory.limit_in_bytes", "9223372036854771712\n");
        write(dir.path(), "memory/app/memory.limit_in_bytes", "67108864\n");
        let groups = "5:cpu:/app\n4:memory:/app\n0::/\n";
        assert_eq!(limit_below(dir.path(), groups), Some(67_108_864));
        assert_eq!(limit_below(dir.path(), "4:memory:/\n"), None);
    }

    #[test]
    fn a_path_of_the_host_falls_back_to_the_mounted_root() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "memory.max", "268435456\n");
        assert_eq!(limit_below(dir.path(), "0::/kubepods/pod1/c1\n"), Some(268_435_456));
    }
}
