//! Apache Kafka for tests: KRaft nodes (broker and controller in one) on loopback with free ports.
//!
//! Each node runs under a small shell that holds a pipe from this process: when the pipe closes, because the
//! [`Cluster`] was dropped or because this process ended in any way, the shell kills its node by pid and removes the
//! node's directory. So a shared cluster in a `static` leaves nothing behind either.
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Kills its node and removes the directory once stdin closes; "keep" before that leaves the directory for a restart.
const KEEPER: &str = r#"
"$@" > "$0/out.log" 2>&1 < /dev/null & node=$!
echo $node
read -r word
kill -9 $node; wait $node
[ "$word" = keep ] || { rm -rf "$0"; rmdir "${0%/*}" 2> /dev/null; }
"#;
const START_TIMEOUT: Duration = Duration::from_secs(90);

/// How a cluster is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes; replication factors of Kafka's own topics follow (at most 3).
    pub brokers: usize,
    /// JVM heap of each node, in MiB.
    pub heap_mib: usize,
    /// All JIT levels: slower to warm up, needed where a rate is measured.
    pub full_jit: bool,
    /// Ports that clients are told to connect to, one a node, where a proxy listens for it; brokers speak to each other
    /// directly. Empty: the nodes' own.
    pub advertised: Vec<u16>,
    /// More lines of `server.properties`; the last of a key wins, `{port}` and `{controller}` are the node's own.
    pub settings: Vec<(String, String)>,
    /// More arguments of the tool that formats a node's directory.
    pub format: Vec<String>,
    /// Levels of features that the cluster is formatted with, beside the defaults.
    pub features: Vec<(String, u16)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            brokers: 1,
            heap_mib: 512,
            full_jit: false,
            advertised: Vec::new(),
            settings: Vec::new(),
            format: Vec::new(),
            features: Vec::new(),
        }
    }
}

impl Options {
    /// So many nodes.
    pub fn brokers(brokers: usize) -> Self {
        Self { brokers, ..Self::default() }
    }

    /// One more line of `server.properties`.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The level of a feature, as `transaction.version`.
    #[must_use]
    pub fn feature(mut self, name: &str, level: u16) -> Self {
        self.features.push((name.to_owned(), level));
        self
    }
}

/// A running cluster. Dropping it kills its nodes and removes their directories.
#[derive(Debug)]
pub struct Cluster {
    dir: PathBuf,
    bootstrap: String,
    nodes: Vec<Mutex<Node>>,
    unique: AtomicU32,
}

/// One node; node `i` of a cluster has the broker id `i + 1`.
#[derive(Debug)]
struct Node {
    port: u16,
    dir: PathBuf,
    command: Vec<String>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    keeper: Child,
    pid: Pid,
}

impl Cluster {
    /// Starts the nodes and waits until all answer; `None`, reported as skipped, when the jars cannot be had.
    pub fn start(options: &Options) -> Option<Self> {
        match jars() {
            Ok(jars) => Some(Self::start_with(jars, options)),
            Err(why) => {
                super::skipped(why);
                None
            }
        }
    }

    fn start_with(jars: &Path, options: &Options) -> Self {
        let dir = tempfile::Builder::new().prefix("plimsoll-kafka-").tempdir().unwrap().keep();
        let ports = free_ports(3 * options.brokers);
        let nodes: Vec<_> =
            (0..options.brokers).map(|i| Mutex::new(Node::new(i, &dir, &ports, jars, options))).collect();
        let formats: Vec<_> = nodes.iter().map(|node| format(&node.lock().unwrap().dir, jars, options)).collect();
        for mut format in formats {
            assert!(format.wait().unwrap().success(), "kafka's storage tool failed: {}", dir.display());
        }
        let bootstrap: Vec<_> = ports[..options.brokers].iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let cluster = Self { dir, bootstrap: bootstrap.join(","), nodes, unique: AtomicU32::new(0) };
        for node in &cluster.nodes {
            node.lock().unwrap().spawn();
        }
        for node in &cluster.nodes {
            node.lock().unwrap().wait_until_up();
        }
        cluster
    }

    /// `bootstrap.servers` of all nodes.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Port of a node's listener.
    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].lock().unwrap().port
    }

    /// Where a node keeps its partitions.
    pub fn log_dir(&self, node: usize) -> PathBuf {
        self.nodes[node].lock().unwrap().dir.join("logs")
    }

    /// A name that no other test of this cluster has.
    pub fn unique(&self, name: &str) -> String {
        format!("{name}-{}", self.unique.fetch_add(1, Ordering::Relaxed))
    }

    /// `kill -9`: the node loses what it had not written.
    pub fn kill(&self, node: usize) {
        self.nodes[node].lock().unwrap().kill();
    }

    /// An orderly end: the node hands its partitions over first.
    pub fn stop(&self, node: usize) {
        self.signal(node, Signal::TERM);
        let mut node = self.nodes[node].lock().unwrap();
        node.wait_until_ended();
        node.kill();
    }

    /// Starts a killed node again, on its port and directory, and waits until it answers.
    pub fn restart(&self, node: usize) {
        let mut node = self.nodes[node].lock().unwrap();
        node.kill();
        node.spawn();
        node.wait_until_up();
    }

    /// Stops the node's process without ending it: its connections stay open and silent.
    pub fn pause(&self, node: usize) {
        self.signal(node, Signal::STOP);
    }

    /// Undoes [`Self::pause`].
    pub fn resume(&self, node: usize) {
        self.signal(node, Signal::CONT);
    }

    fn signal(&self, node: usize, signal: Signal) {
        let node = self.nodes[node].lock().unwrap();
        kill_process(node.running.as_ref().expect("the node runs").pid, signal).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            // Closing the pipe is the order to kill and clean up.
            if let Some(mut running) = node.get_mut().unwrap().running.take() {
                drop(running.keeper.stdin.take());
                let _ = running.keeper.wait();
            }
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Node {
    fn new(index: usize, dir: &Path, ports: &[u16], jars: &Path, options: &Options) -> Self {
        let dir = dir.join((index + 1).to_string());
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("server.properties"), properties(index, &dir, ports, options)).unwrap();
        let mut command = java(jars, options.heap_mib, options.full_jit);
        command.push("kafka.Kafka".to_owned());
        command.push(dir.join("server.properties").display().to_string());
        Self { port: ports[index], dir, command, running: None }
    }

    fn spawn(&mut self) {
        let mut keeper = Command::new("sh")
            .arg("-c")
            .arg(KEEPER)
            .arg(&self.dir)
            .args(&self.command)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0) // Ctrl-C must not end the keeper before its node
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
        self.running = Some(Running { keeper, pid });
    }

    fn kill(&mut self) {
        if let Some(mut running) = self.running.take() {
            let mut pipe = running.keeper.stdin.take().unwrap();
            pipe.write_all(b"keep\n").unwrap();
            running.keeper.wait().unwrap();
        }
    }

    /// Until the process is gone, or waits to be reaped by its keeper.
    fn wait_until_ended(&self) {
        let Some(running) = &self.running else { return };
        let stat = format!("/proc/{}/stat", running.pid.as_raw_nonzero());
        let deadline = Instant::now() + START_TIMEOUT;
        while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
            assert!(Instant::now() < deadline, "kafka did not end in {START_TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_until_up(&self) {
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let log = self.dir.join("out.log");
            assert!(Instant::now() < deadline, "kafka did not start in {START_TIMEOUT:?}: {}", tail(&log));
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn properties(index: usize, dir: &Path, ports: &[u16], options: &Options) -> String {
    let brokers = options.brokers;
    let voters: Vec<_> = (0..brokers).map(|i| format!("{}@127.0.0.1:{}", i + 1, ports[brokers + i])).collect();
    let factor = brokers.min(3);
    let mut text = String::new();
    let id = index + 1;
    let port = ports[index];
    let controller = ports[brokers + index];
    write!(
        text,
        "process.roles=broker,controller\n\
         node.id={id}\n\
         controller.quorum.voters={voters}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\n\
         log.dirs={dir}/logs\n\
         num.partitions=4\n\
         default.replication.factor={factor}\n\
         auto.create.topics.enable=false\n\
         offsets.topic.replication.factor={factor}\n\
         offsets.topic.num.partitions=8\n\
         transaction.state.log.replication.factor={factor}\n\
         transaction.state.log.min.isr=1\n\
         transaction.state.log.num.partitions=8\n\
         share.coordinator.state.topic.replication.factor={factor}\n\
         share.coordinator.state.topic.min.isr=1\n\
         group.initial.rebalance.delay.ms=0\n\
         transaction.abort.timed.out.transaction.cleanup.interval.ms=1000\n\
         group.min.session.timeout.ms=1000\n\
         log.segment.delete.delay.ms=1000\n",
        voters = voters.join(","),
        dir = dir.display(),
    )
    .unwrap();
    if let Some(proxy) = options.advertised.get(index) {
        let own = ports[2 * brokers + index];
        write!(
            text,
            "listeners=PLAINTEXT://127.0.0.1:{port},BROKER://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://127.0.0.1:{proxy},BROKER://127.0.0.1:{own}\n\
             listener.security.protocol.map=PLAINTEXT:PLAINTEXT,BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
             inter.broker.listener.name=BROKER\n",
        )
        .unwrap();
    }
    for (key, value) in &options.settings {
        let value = value.replace("{port}", &port.to_string()).replace("{controller}", &controller.to_string());
        writeln!(text, "{key}={value}").unwrap();
    }
    text
}

fn format(node: &Path, jars: &Path, options: &Options) -> Child {
    let command = java(jars, 128, false);
    Command::new(&command[0])
        .args(&command[1..])
        .args(["kafka.tools.StorageTool", "format", "-t", "plimsoll-test-cluster0", "-c"])
        .arg(node.join("server.properties"))
        .args(&options.format)
        .args(options.features.iter().flat_map(|(name, level)| ["--feature".to_owned(), format!("{name}={level}")]))
        .stdout(std::fs::File::create(node.join("format.log")).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The command line of a JVM over Kafka's jars, up to the class or file it runs.
pub fn java(jars: &Path, heap_mib: usize, full_jit: bool) -> Vec<String> {
    let mut command = vec!["java".to_owned(), format!("-Xmx{heap_mib}m"), "-XX:+UseSerialGC".to_owned()];
    if !full_jit {
        command.push("-XX:TieredStopAtLevel=1".to_owned());
    }
    command.extend(["-cp".to_owned(), format!("{}/*", jars.display())]);
    command
}

/// Directory of Kafka's jars, collected the first time.
pub fn jars() -> Result<&'static Path, &'static str> {
    static JARS: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let found = JARS.get_or_init(|| {
        if Command::new("java").arg("-version").stderr(Stdio::null()).status().is_err() {
            return Err("no java on the path".to_owned());
        }
        if let Some(given) = std::env::var_os("PLIMSOLL_KAFKA") {
            return Ok(PathBuf::from(given));
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/native/kafka.sh");
        let output = Command::new(script).output().map_err(|e| format!("{script}: {e}"))?;
        if output.status.success() {
            Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
        } else {
            Err(format!("kafka's jars cannot be had: {}", String::from_utf8_lossy(&output.stderr).trim()))
        }
    });
    found.as_ref().map(PathBuf::as_path).map_err(String::as_str)
}

/// Ports that are free now. All are held until all are known, so that they differ.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
