//! A container for one process: a memory cgroup with a limit, version 1 or 2, and what the kernel counts in it.
//!
//! Swap is off in it. Dropping it removes the group; its process must have ended.
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A memory cgroup.
#[derive(Debug)]
pub struct Container {
    dir: PathBuf,
    version: u8,
}

/// Most bytes of each kind that the kernel charged, as seen at the looks; and what cannot be missed between two.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charged {
    pub anon: u64,
    pub file: u64,
    pub kernel: u64,
    pub sock: u64,
    pub oom_kills: u64,
    /// How often the limit was reached; pages of files were given back then.
    pub at_limit: u64,
}

impl Container {
    /// A container of at most `limit` bytes; `None` with the reason where this machine has none for us.
    pub fn new(name: &str, limit: u64) -> Result<Self, String> {
        let name = format!("plimsoll-{name}-{}", std::process::id());
        let root = PathBuf::from("/sys/fs/cgroup");
        let (dir, version) = if root.join("memory/memory.limit_in_bytes").exists() {
            (root.join("memory").join(name), 1)
        } else if root.join("cgroup.controllers").exists() {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+memory");
            (root.join(name), 2)
        } else {
            return Err("no memory cgroup is mounted at /sys/fs/cgroup".to_owned());
        };
        fs::create_dir(&dir).map_err(|error| format!("no memory cgroup can be made: {error}"))?;
        let container = Self { dir, version };
        let set = |file: &str, value: u64| {
            fs::write(container.dir.join(file), value.to_string()).map_err(|error| format!("{file}: {error}"))
        };
        if version == 1 {
            set("memory.limit_in_bytes", limit)?;
            set("memory.swappiness", 0)?;
            let _ = set("memory.memsw.limit_in_bytes", limit); // absent where swap is not counted
        } else {
            set("memory.max", limit)?;
            let _ = set("memory.swap.max", 0); // absent where there is no swap
        }
        Ok(container)
    }

    /// A command that runs `program` in the container from its first instruction.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        let enter = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        command.args(["-c", enter]).arg(&self.dir).arg(program);
        command
    }

    fn number(&self, file: &str) -> u64 {
        fs::read_to_string(self.dir.join(file)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    }

    /// A number from a file of lines "name number".
    fn field(&self, file: &str, name: &str) -> u64 {
        let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// What is charged now.
    pub fn charged(&self) -> Charged {
        if self.version == 1 {
            Charged {
                anon: self.field("memory.stat", "total_rss"),
                file: self.field("memory.stat", "total_cache"),
                kernel: self.number("memory.kmem.usage_in_bytes"),
                sock: self.number("memory.kmem.tcp.usage_in_bytes"),
                oom_kills: self.field("memory.oom_control", "oom_kill"),
                at_limit: self.number("memory.failcnt"),
            }
        } else {
            Charged {
                anon: self.field("memory.stat", "anon"),
                file: self.field("memory.stat", "file"),
                kernel: self.field("memory.stat", "kernel"),
                sock: self.field("memory.stat", "sock"),
                oom_kills: self.field("memory.events", "oom_kill"),
                at_limit: self.field("memory.events", "max"),
            }
        }
    }
}

impl Charged {
    /// The larger of each.
    pub fn max(self, other: Self) -> Self {
        Self {
            anon: self.anon.max(other.anon),
            file: self.file.max(other.file),
            kernel: self.kernel.max(other.kernel),
            sock: self.sock.max(other.sock),
            oom_kills: self.oom_kills.max(other.oom_kills),
            at_limit: self.at_limit.max(other.at_limit),
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        for _ in 0..50 {
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
