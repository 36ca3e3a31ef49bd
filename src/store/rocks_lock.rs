//! The lock on a state directory: one process at a time, and the next one is told who holds it.
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

use super::error::StoreError;

const LOCK_FILE: &str = "lock";

/// A held lock; released when dropped, or by the kernel when the process dies.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    /// Makes the directory if it is missing and locks it.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, StoreError> {
        let not_writable = |source| StoreError::NotWritable { path: directory.to_owned(), source };
        fs::create_dir_all(directory).map_err(not_writable)?;
        let path = directory.join(LOCK_FILE);
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(not_writable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked { path: directory.to_owned(), holder: holder(&mut file) });
            }
            Err(error) => return Err(not_writable(error.into())),
        }
        sign(&mut file).map_err(not_writable)?;
        Ok(Self { _file: file })
    }
}

/// Leaves our process id for whoever comes next.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_to_lock_a_directory_learns_who_holds_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        let held = DirLock::acquire(&directory).unwrap();
        match DirLock::acquire(&directory) {
            Err(StoreError::Locked { path, holder }) => {
                assert_eq!((path, holder), (directory.clone(), Some(std::process::id())));
            }
            other => panic!("{other:?}"),
        }
        drop(held);
        DirLock::acquire(&directory).unwrap();
    }

    #[test]
    fn a_path_below_a_file_is_not_writable() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = DirLock::acquire(&file.path().join("state")).unwrap_err();
        assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
    }
}
