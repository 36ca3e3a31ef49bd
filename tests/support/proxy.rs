//! A proxy between a client and a broker that delays, cuts, dribbles or throttles what passes, in both directions.
//!
//! Four threads a connection, plain blocking sockets. It ends with the process or when dropped. A [`Tap`] sees
//! whole frames of both sides, to keep what brokers answer.
use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_socket_linger;

/// What happens to the bytes. It holds for connections that are there and for new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Each byte arrives so much later.
    Delay(Duration),
    /// A connection is reset (RST to both sides) at a random byte, on average after so many.
    Reset(u64),
    /// Each byte is a write of its own.
    Trickle,
    /// So many bytes a second at most, on each connection and in each direction.
    Throttle(u64),
}

/// Told of every frame, length prefix left out.
pub trait Tap: Send + Sync {
    /// A request; connections are numbered.
    fn request(&self, connection: u64, frame: &[u8]);
    /// An answer.
    fn answer(&self, connection: u64, frame: &[u8]);
}

#[derive(Default)]
struct Shared {
    fault: Mutex<Option<Fault>>,
    /// Rises with each change of the fault.
    version: AtomicU64,
    broker: AtomicU16,
    stop: AtomicBool,
    resets: AtomicU64,
    connections: AtomicU64,
    tap: Option<Arc<dyn Tap>>,
}

/// One broker's proxy.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free port. Connections are refused until [`Self::lead_to`] tells where the broker is.
    pub fn start(tap: Option<Arc<dyn Tap>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared { tap, ..Shared::default() });
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if own.stop.load(Ordering::Acquire) {
                    return;
                }
                // A broker that is down refuses: so does its proxy, by closing.
                let broker = TcpStream::connect(("127.0.0.1", own.broker.load(Ordering::Acquire)));
                if let Ok(broker) = broker {
                    let number = own.connections.fetch_add(1, Ordering::Relaxed);
                    connect(&own, number, client, broker);
                }
            }
        });
        Self { address, shared, thread: Some(thread) }
    }

    /// The port that clients are to connect to.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where the broker listens.
    pub fn lead_to(&self, port: u16) {
        self.shared.broker.store(port, Ordering::Release);
    }

    /// What happens from now on.
    pub fn set(&self, fault: Fault) {
        *self.shared.fault.lock().unwrap() = Some(fault);
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    /// Connections that were reset.
    pub fn resets(&self) -> u64 {
        self.shared.resets.load(Ordering::Relaxed)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn connect(shared: &Arc<Shared>, number: u64, client: TcpStream, broker: TcpStream) {
    for stream in [&client, &broker] {
        stream.set_nodelay(true).unwrap();
    }
    let (client_too, broker_too) = (client.try_clone().unwrap(), broker.try_clone().unwrap());
    for (from, to, up) in [(client, broker, true), (broker_too, client_too, false)] {
        let pump = Pump { from, up, number, shared: Arc::clone(shared), frames: Vec::new() };
        std::thread::spawn(move || pump.run(to));
    }
}

/// Bytes on their way: not before when, and what happens to them.
type Late = (Instant, Fault, Vec<u8>);

/// One direction of a connection: its reading half.
struct Pump {
    from: TcpStream,
    /// From client to broker.
    up: bool,
    number: u64,
    shared: Arc<Shared>,
    /// What the tap has not been told yet.
    frames: Vec<u8>,
}

impl Pump {
    fn run(mut self, to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        // A queue, so that a delay takes nothing from the rate.
        let (queue, late) = mpsc::sync_channel::<Late>(64);
        let rng = fastrand::Rng::with_seed(2 * self.number + u64::from(self.up));
        let other = self.from.try_clone().unwrap();
        let drain = Drain { to, other, shared: Arc::clone(&self.shared), rng, left: 0 };
        let writer = std::thread::spawn(move || drain.run(&late));
        let (mut version, mut fault) = (u64::MAX, Fault::None);
        while let Ok(count @ 1..) = self.from.read(&mut buffer) {
            self.tell(&buffer[..count]);
            let now = self.shared.version.load(Ordering::Acquire);
            if version != now {
                version = now;
                fault = self.shared.fault.lock().unwrap().unwrap_or(Fault::None);
            }
            let delay = if let Fault::Delay(delay) = fault { delay } else { Duration::ZERO };
            if queue.send((Instant::now() + delay, fault, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
        drop(queue);
        let _ = writer.join();
    }

    fn tell(&mut self, bytes: &[u8]) {
        let Some(tap) = &self.shared.tap else { return };
        self.frames.extend(bytes);
        while let Some(length) = self.frames.first_chunk() {
            let end = 4 + u32::from_be_bytes(*length) as usize;
            let Some(frame) = self.frames.get(4..end) else { return };
            if self.up {
                tap.request(self.number, frame)
            } else {
                tap.answer(self.number, frame)
            }
            self.frames.drain(..end);
        }
    }
}

/// The writing half of a direction.
struct Drain {
    to: TcpStream,
    other: TcpStream,
    shared: Arc<Shared>,
    rng: fastrand::Rng,
    /// Bytes until the next reset; 0: not chosen.
    left: u64,
}

impl Drain {
    fn run(mut self, late: &mpsc::Receiver<Late>) {
        let mut reset = false;
        while let Ok((due, fault, bytes)) = late.recv() {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            reset = matches!(fault, Fault::Reset(average) if self.is_last(average, &bytes));
            if reset || self.write(fault, &bytes).is_none() {
                break;
            }
        }
        for stream in [&self.to, &self.other] {
            // A reset is sent when the last of both directions closes the socket, so it only wakes the other one.
            let how = if reset { Shutdown::Read } else { Shutdown::Both };
            let _ = stream.shutdown(how);
        }
    }

    /// Whether the connection ends among these bytes; those before are written.
    fn is_last(&mut self, average: u64, bytes: &[u8]) -> bool {
        if self.left == 0 {
            self.left = self.rng.u64(1..=2 * average);
        }
        if self.left > bytes.len() as u64 {
            self.left -= bytes.len() as u64;
            return false;
        }
        let _ = self.to.write_all(&bytes[..self.left as usize]);
        for stream in [&self.to, &self.other] {
            let _ = set_socket_linger(stream, Some(Duration::ZERO));
        }
        self.shared.resets.fetch_add(1, Ordering::Relaxed);
        true
    }

    fn write(&mut self, fault: Fault, bytes: &[u8]) -> Option<()> {
        match fault {
            Fault::Trickle => bytes.iter().try_for_each(|byte| self.to.write_all(&[*byte]).ok()),
            Fault::Throttle(rate) => bytes.chunks(4 << 10).try_for_each(|chunk| {
                self.to.write_all(chunk).ok()?;
                std::thread::sleep(Duration::from_micros(chunk.len() as u64 * 1_000_000 / rate));
                Some(())
            }),
            Fault::None | Fault::Delay(_) | Fault::Reset(_) => self.to.write_all(bytes).ok(),
        }
    }
}

/// Keeps answers to one client as seeds of the fuzz target `wire`.
pub struct Recorder {
    client_id: &'static str,
    folder: std::path::PathBuf,
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    /// API and version of requests on their way, by connection and correlation id.
    asked: HashMap<(u64, [u8; 4]), (u8, u8)>,
    /// How many answers of an API were kept, by size: the binary logarithm.
    kept: HashMap<(u8, u8, u32), u32>,
}

impl Recorder {
    /// Keeps what the client with this `client.id` is answered in that folder.
    pub fn new(client_id: &'static str, folder: &str) -> Self {
        Self { client_id, folder: folder.into(), state: Mutex::default() }
    }
}

impl Tap for Recorder {
    fn request(&self, connection: u64, frame: &[u8]) {
        // API, version, correlation id, client id.
        let [_, api, _, version, correlation @ ..] = frame else { return };
        let (Some(correlation), Some(id)) = (correlation.first_chunk(), frame.get(10..10 + self.client_id.len()))
        else {
            return;
        };
        if id == self.client_id.as_bytes() {
            self.state.lock().unwrap().asked.insert((connection, *correlation), (*api, *version));
        }
    }

    fn answer(&self, connection: u64, frame: &[u8]) {
        /// What the fuzzer takes at most, with the three bytes in front.
        const MOST: usize = 8_192 - 3;
        /// Answers kept of one API, version and size.
        const EACH: u32 = 2;
        let Some(correlation) = frame.first_chunk() else { return };
        let mut state = self.state.lock().unwrap();
        let Some((api, version)) = state.asked.remove(&(connection, *correlation)) else { return };
        let size = frame.len().ilog2();
        let kept = state.kept.entry((api, version, size)).or_default();
        if frame.len() <= MOST && *kept < EACH {
            *kept += 1;
            let name = format!("live-{api}-{version}-{size}-{kept}");
            std::fs::write(self.folder.join(name), [&[0, api, version], frame].concat()).unwrap();
        }
    }
}
