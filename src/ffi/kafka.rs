//! The process's one librdkafka handle: group membership, plain commits, administration.
//!
//! Owns: the handle and its consumer queue, to which everything is redirected. Nothing is fetched through it: the
//! assignment given to librdkafka is always empty. Invariant: whatever librdkafka allocates, on its own threads or on
//! ours inside a call, is module Consumer's; its log goes nowhere, since its errors come as events. Bound: small fixed
//! settings (`kafka_conf`); what waits in the consumer queue is bounded by being polled: by `client::membership`, which
//! alone polls. Administration (`kafka_admin`) may be called from another thread.
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rdkafka_sys as rd;

use super::kafka_conf::{self, HandleSettings};
use super::kafka_error::{Code, KafkaError, raw, take_error};
use super::kafka_event::Event;
use super::kafka_list::{List, c_string};
use crate::base::token::OauthToken;

/// Runs `f` with this thread's allocations accounted to module Consumer.
pub(crate) fn as_consumer<T>(f: impl FnOnce() -> T) -> T {
    let _scope = plimsoll_alloc::scope(plimsoll_alloc::Module::Consumer);
    f()
}

/// The handle. Closing is `client::membership`'s work; dropping an open handle leaves the group by time-out only.
#[derive(Debug)]
pub(crate) struct Handle {
    rk: NonNull<rd::rd_kafka_t>,
    /// The consumer queue; every event arrives here.
    events: NonNull<rd::rd_kafka_queue_t>,
    shared: Arc<Shared>,
}

// SAFETY: librdkafka's handle and queues are safe to use from any thread, by its documentation; what our callbacks
// share is `Shared`, which is Sync.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// What librdkafka's callbacks reach, through the handle's opaque pointer.
#[derive(Default)]
struct Shared {
    on_event: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// What a transactional or foreign commit must name: this member in its present generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct GroupMetadata {
    /// -1 before the first join.
    pub(crate) generation: i32,
    pub(crate) member_id: String,
}

impl Handle {
    /// Makes the handle. No broker needs to be reachable: librdkafka keeps trying, and says so by error events.
    pub(crate) fn start(settings: &HandleSettings<'_>) -> Result<Self, KafkaError> {
        as_consumer(|| Self::start_accounted(settings))
    }

    fn start_accounted(settings: &HandleSettings<'_>) -> Result<Self, KafkaError> {
        let conf = kafka_conf::build(settings)?;
        let shared = Arc::new(Shared::default());
        let events = rd::RD_KAFKA_EVENT_REBALANCE | rd::RD_KAFKA_EVENT_ERROR;
        let mut reason = [0 as c_char; 512];
        // SAFETY: the configuration is live and this thread's; the callbacks have the signatures that librdkafka
        // documents. `reason` has its length.
        let rk = unsafe {
            rd::rd_kafka_conf_set_log_cb(conf.as_ptr(), None);
            rd::rd_kafka_conf_set_events(conf.as_ptr(), events);
            let name = c"plimsoll".as_ptr();
            rd::rd_kafka_conf_interceptor_add_on_new(conf.as_ptr(), name, Some(on_new), std::ptr::null_mut());
            let kind = rd::rd_kafka_type_t::RD_KAFKA_CONSUMER;
            rd::rd_kafka_new(kind, conf.as_ptr(), reason.as_mut_ptr(), reason.len())
        };
        // A handle owns its configuration. After a failure it is ours again, but with interceptors librdkafka 2.12
        // has freed parts of it: it is leaked rather than freed twice.
        conf.release();
        let rk = NonNull::new(rk).ok_or_else(|| KafkaError::Start { reason: buffer_text(&reason) })?;
        // SAFETY: the handle is live; the consumer queue exists because `group.id` is set.
        let events = unsafe {
            rd::rd_kafka_poll_set_consumer(rk.as_ptr());
            rd::rd_kafka_queue_get_consumer(rk.as_ptr())
        };
        match NonNull::new(events) {
            Some(events) => Ok(Self { rk, events, shared }),
            None => {
                // SAFETY: the handle is live and nobody else knows it.
                unsafe { rd::rd_kafka_destroy_flags(rk.as_ptr(), rd::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE) };
                Err(KafkaError::Start { reason: "no group.id".to_owned() })
            }
        }
    }

    pub(crate) fn as_ptr(&self) -> *mut rd::rd_kafka_t {
        self.rk.as_ptr()
    }

    /// Calls `wake` from one of librdkafka's threads when the empty queue gets an event; it must not block or panic.
    /// Whoever relies on it must poll until nothing is left. Only the first call of this function counts.
    pub(crate) fn on_event(&self, wake: Box<dyn Fn() + Send + Sync>) {
        if self.shared.on_event.set(wake).is_err() {
            return;
        }
        let opaque = Arc::as_ptr(&self.shared).cast_mut().cast();
        // SAFETY: the queue is live; the callback reads `Shared`, which outlives the queue (`Drop`).
        as_consumer(|| unsafe { rd::rd_kafka_queue_cb_event_enable(self.events.as_ptr(), Some(on_event), opaque) });
    }

    /// The next event, waiting for one at most so long.
    pub(crate) fn poll(&self, timeout: Duration) -> Option<Event> {
        // SAFETY: the queue is live; the event is ours and read before it is destroyed.
        unsafe { self.poll_queue(self.events.as_ptr(), timeout) }
    }

    /// # Safety
    /// `queue` is a live queue of this handle.
    unsafe fn poll_queue(&self, queue: *mut rd::rd_kafka_queue_t, timeout: Duration) -> Option<Event> {
        as_consumer(|| {
            // SAFETY: by the contract of this function; an event that is not null is ours to destroy.
            unsafe {
                let event = rd::rd_kafka_queue_poll(queue, millis(timeout));
                if event.is_null() {
                    return None;
                }
                let read = Event::read(self.rk.as_ptr(), event);
                rd::rd_kafka_event_destroy(event);
                Some(read)
            }
        })
    }

    /// Joins the group, or changes what this member is offered.
    pub(crate) fn subscribe(&self, topics: &[&str]) -> Result<(), KafkaError> {
        as_consumer(|| {
            let list = List::of(topics.iter().map(|topic| (*topic, -1)))?;
            // SAFETY: handle and list are live; the list is copied.
            let code = unsafe { rd::rd_kafka_subscribe(self.rk.as_ptr(), list.as_ptr()) };
            Code(code as i32).check("subscribe")
        })
    }

    /// Answers an assignment: nothing is to be fetched, the membership is kept.
    pub(crate) fn assign_nothing(&self) -> Result<(), KafkaError> {
        as_consumer(|| {
            let empty = List::with_capacity(0)?;
            // SAFETY: handle and list are live; the list is copied.
            Code(unsafe { rd::rd_kafka_assign(self.rk.as_ptr(), empty.as_ptr()) } as i32).check("assign")
        })
    }

    /// Answers a revocation.
    pub(crate) fn unassign(&self) -> Result<(), KafkaError> {
        // SAFETY: the handle is live; null means no assignment.
        let code = as_consumer(|| unsafe { rd::rd_kafka_assign(self.rk.as_ptr(), std::ptr::null()) });
        Code(code as i32).check("assign")
    }

    /// Member and generation now; `None` before the first join. A round trip to librdkafka's main thread.
    pub(crate) fn group(&self) -> Option<GroupMetadata> {
        // SAFETY: the handle is live; the object is ours, its member id is copied before it is destroyed.
        as_consumer(|| unsafe {
            let group = NonNull::new(rd::rd_kafka_consumer_group_metadata(self.rk.as_ptr()))?.as_ptr();
            let generation = rd::rd_kafka_consumer_group_metadata_generation_id(group);
            let member_id = text(rd::rd_kafka_consumer_group_metadata_member_id(group));
            rd::rd_kafka_consumer_group_metadata_destroy(group);
            Some(GroupMetadata { generation, member_id })
        })
    }

    /// Sends a commit; its outcome arrives as [`Event::Committed`] with `ticket`.
    pub(crate) fn commit(&self, offsets: &List, ticket: u64) -> Result<(), KafkaError> {
        let opaque = std::ptr::without_provenance_mut::<c_void>(usize::try_from(ticket).unwrap_or(usize::MAX));
        // SAFETY: handle, list and queue are live; the list is copied; without a callback the opaque value is only
        // handed back, never followed.
        let code = as_consumer(|| unsafe {
            rd::rd_kafka_commit_queue(self.rk.as_ptr(), offsets.as_ptr(), self.events.as_ptr(), None, opaque)
        });
        Code(code as i32).check("OffsetCommit")
    }

    /// Fills in the committed offsets and metadata of the list's partitions.
    pub(crate) fn committed(&self, list: &mut List, timeout: Duration) -> Result<(), KafkaError> {
        // SAFETY: handle and list are live, the list is ours alone (`&mut`).
        let code = as_consumer(|| unsafe {
            raw::rd_kafka_committed(self.rk.as_ptr().cast(), list.as_ptr().cast(), millis(timeout))
        });
        match Code(code) {
            Code::TIMED_OUT => Err(KafkaError::TimedOut { call: "OffsetFetch", waited_ms: timeout_ms(timeout) }),
            code => code.check("OffsetFetch"),
        }
    }

    /// The error that ended this handle for good, if any.
    #[cfg(test)]
    pub(crate) fn fatal(&self) -> Option<KafkaError> {
        let mut reason = [0 as c_char; 512];
        // SAFETY: the handle is live; `reason` has its length.
        let code = unsafe { raw::rd_kafka_fatal_error(self.rk.as_ptr().cast(), reason.as_mut_ptr(), reason.len()) };
        (code != 0).then(|| KafkaError::refused("the group membership", Code(code), &buffer_text(&reason)))
    }

    /// Gives the token that the next logins show.
    pub(crate) fn set_oauth_token(&self, token: &OauthToken) -> Result<(), KafkaError> {
        let value = c_string("a token", std::str::from_utf8(token.value().expose()).unwrap_or_default())?;
        let principal = c_string("a principal", token.principal_name())?;
        let pairs = token.extensions().iter().flat_map(|(name, value)| [name, value]);
        let texts = pairs.map(|text| c_string("an extension", text)).collect::<Result<Vec<_>, _>>()?;
        let mut extensions: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut reason = [0 as c_char; 512];
        // SAFETY: the handle is live; all texts are, and are copied; the list has its length; `reason` has its own.
        let code = as_consumer(|| unsafe {
            rd::rd_kafka_oauthbearer_set_token(
                self.rk.as_ptr(),
                value.as_ptr(),
                token.expires_at_ms(),
                principal.as_ptr(),
                extensions.as_mut_ptr(),
                extensions.len(),
                reason.as_mut_ptr(),
                reason.len(),
            )
        });
        // librdkafka's reason may quote the extension, never the token; still it is left out.
        Code(code as i32).check("the token")
    }

    /// Begins to leave the group. Events, the last revocation among them, arrive at the answered queue.
    pub(crate) fn begin_close(&self) -> Result<Closing<'_>, KafkaError> {
        as_consumer(|| {
            let queue = Queue::new(self)?;
            // SAFETY: handle and queue are live; the queue lives in `Closing`.
            unsafe { take_error("close", rd::rd_kafka_consumer_close_queue(self.rk.as_ptr(), queue.as_ptr()))? };
            Ok(Closing { queue })
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: both are live, and `&mut` says that no other call is under way. Queues go before the handle.
        // `destroy` returns when all of librdkafka's threads ended, so no callback can reach `shared` afterwards.
        // The consumer is not closed here: that could wait for brokers without end.
        as_consumer(|| unsafe {
            rd::rd_kafka_queue_cb_event_enable(self.events.as_ptr(), None, std::ptr::null_mut());
            rd::rd_kafka_queue_destroy(self.events.as_ptr());
            rd::rd_kafka_destroy_flags(self.rk.as_ptr(), rd::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        });
    }
}

/// A handle that is leaving the group.
#[derive(Debug)]
pub(crate) struct Closing<'h> {
    queue: Queue<'h>,
}

impl Closing<'_> {
    pub(crate) fn poll(&self, timeout: Duration) -> Option<Event> {
        // SAFETY: the queue is live and this handle's.
        unsafe { self.queue.handle.poll_queue(self.queue.as_ptr(), timeout) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        // SAFETY: the handle is live.
        unsafe { rd::rd_kafka_consumer_closed(self.queue.handle.as_ptr()) != 0 }
    }
}

/// A queue of its own for the answers of one call.
#[derive(Debug)]
pub(crate) struct Queue<'h> {
    raw: NonNull<rd::rd_kafka_queue_t>,
    handle: &'h Handle,
}

impl<'h> Queue<'h> {
    pub(crate) fn new(handle: &'h Handle) -> Result<Self, KafkaError> {
        // SAFETY: the handle is live, and outlives the queue by its lifetime.
        let raw = unsafe { rd::rd_kafka_queue_new(handle.as_ptr()) };
        let raw = NonNull::new(raw).ok_or(KafkaError::OutOfMemory { call: "queue_new" })?;
        Ok(Self { raw, handle })
    }

    pub(crate) fn as_ptr(&self) -> *mut rd::rd_kafka_queue_t {
        self.raw.as_ptr()
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        // SAFETY: the queue is ours and live.
        as_consumer(|| unsafe { rd::rd_kafka_queue_destroy(self.raw.as_ptr()) });
    }
}

/// librdkafka asks for interceptors of the new handle, before any of its threads exists.
unsafe extern "C" fn on_new(
    rk: *mut rd::rd_kafka_t,
    _conf: *const rd::rd_kafka_conf_t,
    _opaque: *mut c_void,
    _reason: *mut c_char,
    _reason_size: usize,
) -> rd::rd_kafka_resp_err_t {
    // SAFETY: `rk` is the handle under construction, as the interceptor's contract says.
    unsafe {
        let name = c"plimsoll".as_ptr();
        rd::rd_kafka_interceptor_add_on_thread_start(rk, name, Some(on_thread_start), std::ptr::null_mut())
    }
}

/// The first thing that each of the handle's threads runs: from here on its memory is module Consumer's.
unsafe extern "C" fn on_thread_start(
    _rk: *mut rd::rd_kafka_t,
    _kind: rd::rd_kafka_thread_type_t,
    _name: *const c_char,
    _opaque: *mut c_void,
) -> rd::rd_kafka_resp_err_t {
    // A thread that cannot be bound still works; the allocator's own report shows it as unbound.
    let _ = plimsoll_alloc::bind_home(plimsoll_alloc::Module::Consumer);
    rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
}

unsafe extern "C" fn on_event(_rk: *mut rd::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: the pointer is the `Shared` given to `rd_kafka_queue_cb_event_enable`; it outlives the queue.
    if let Some(shared) = unsafe { opaque.cast::<Shared>().as_ref() }
        && let Some(wake) = shared.on_event.get()
    {
        wake();
    }
}

/// Copies a C text; empty for null.
///
/// # Safety
/// `text` is null or NUL-terminated and live.
pub(crate) unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract of this function.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// The text that a C function wrote into a buffer of ours.
pub(crate) fn buffer_text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|c| c.cast_unsigned()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A time-out as librdkafka takes it; never its mark for "without end".
pub(crate) fn millis(timeout: Duration) -> c_int {
    c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX)
}

pub(crate) fn timeout_ms(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}
