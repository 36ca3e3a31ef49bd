//! The plain loop: librdkafka's batch consumer and producer, one thread of ours, the system's malloc. What a careful
//! person writes by hand for a pass-through at least once: every commit interval it waits for acknowledgements, then
//! commits. It is cheaper than the other systems in one thing: it does not keep the records' timestamps.
#![allow(clippy::print_stdout)]
use plimsoll_peer::{Meter, Outcome, Task, end_with_stdin};
use rdkafka_sys as rd;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::time::{Duration, Instant};

/// Records taken at once.
const BATCH: usize = 1_024;
/// Longest wait of one call, in milliseconds.
const WAIT_MS: i32 = 100;
const FLUSH_MS: i32 = 60_000;
/// `RD_KAFKA_PARTITION_UA`: the partitioner chooses.
const ANY_PARTITION: i32 = -1;

fn main() -> Outcome<()> {
    run(|_| ())
}

/// Runs the loop; what `around` gives lives while a handle of that kind is made.
pub(crate) fn run<G>(around: impl Fn(rd::rd_kafka_type_t) -> G) -> Outcome<()> {
    let task = Task::from_environment()?;
    end_with_stdin();
    let mut raw = Loop::new(&task, around)?;
    let figures = raw.run(&task)?;
    println!("{}", serde_json::to_string(&figures)?);
    // The handles go with the process.
    Ok(())
}

struct Loop {
    consumer: *mut rd::rd_kafka_t,
    producer: *mut rd::rd_kafka_t,
    queue: *mut rd::rd_kafka_queue_t,
    output: *mut rd::rd_kafka_topic_t,
}

impl Loop {
    fn new<G>(task: &Task, around: impl Fn(rd::rd_kafka_type_t) -> G) -> Outcome<Self> {
        let linger = task.linger_ms.to_string();
        let batch = task.batch_bytes.to_string();
        let consumer = [
            ("bootstrap.servers", task.bootstrap.as_str()),
            ("group.id", &task.id),
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "true"),
            ("auto.offset.reset", "earliest"),
            ("check.crcs", "true"),
            ("queued.min.messages", "100000"),
            ("queued.max.messages.kbytes", "32768"),
            ("fetch.queue.backoff.ms", "5"),
        ];
        let producer = [
            ("bootstrap.servers", task.bootstrap.as_str()),
            ("linger.ms", &linger),
            ("acks", "all"),
            ("enable.idempotence", "true"),
            ("compression.type", &task.compression),
            ("partitioner", "murmur2_random"),
            ("queue.buffering.max.messages", "200000"),
            ("queue.buffering.max.kbytes", "65536"),
            ("batch.size", &batch),
        ];
        let made = |kind, settings: &[(&str, &str)]| {
            let _around = around(kind);
            handle(kind, &[settings, &task.security()].concat())
        };
        let consumer = made(rd::rd_kafka_type_t::RD_KAFKA_CONSUMER, &consumer)?;
        let producer = made(rd::rd_kafka_type_t::RD_KAFKA_PRODUCER, &producer)?;
        let (input, output) = (CString::new(task.input.as_str())?, CString::new(task.output.as_str())?);
        // SAFETY: both handles live until the process ends; librdkafka copies names and the list.
        unsafe {
            rd::rd_kafka_poll_set_consumer(consumer);
            let output = rd::rd_kafka_topic_new(producer, output.as_ptr(), ptr::null_mut());
            let partitions = i32::try_from(task.partitions)?;
            let list = rd::rd_kafka_topic_partition_list_new(partitions);
            for partition in 0..partitions {
                let added = rd::rd_kafka_topic_partition_list_add(list, input.as_ptr(), partition);
                (*added).offset = i64::from(rd::RD_KAFKA_OFFSET_BEGINNING);
            }
            let assigned = rd::rd_kafka_assign(consumer, list);
            rd::rd_kafka_topic_partition_list_destroy(list);
            ok(assigned, "assign")?;
            let queue = rd::rd_kafka_queue_get_consumer(consumer);
            Ok(Self { consumer, producer, queue, output })
        }
    }

    fn run(&mut self, task: &Task) -> Outcome<plimsoll_peer::Figures> {
        let mut taken = vec![ptr::null_mut::<rd::rd_kafka_message_t>(); BATCH];
        let mut done = 0;
        let mut meter = None;
        let interval = Duration::from_millis(task.commit_ms);
        let mut commit_at = Instant::now() + interval;
        while done < task.records {
            // SAFETY: the array has room for BATCH pointers; each message is destroyed once, by `copy`.
            let count = unsafe { rd::rd_kafka_consume_batch_queue(self.queue, WAIT_MS, taken.as_mut_ptr(), BATCH) };
            let count = usize::try_from(count).map_err(|_| "consuming failed")?;
            if count > 0 && meter.is_none() {
                meter = Some(Meter::start(0));
            }
            for message in &taken[..count] {
                done += self.copy(*message)?;
            }
            // SAFETY: a live handle.
            unsafe { rd::rd_kafka_poll(self.producer, 0) };
            if Instant::now() >= commit_at {
                self.commit()?;
                commit_at = Instant::now() + interval;
            }
        }
        let mut meter = meter.ok_or("no records were asked for")?;
        meter.last_record();
        self.commit()?;
        Ok(meter.finish(done, 0, task.batch_bytes))
    }

    /// Writes a record to the output; answers how many it was: 0 for an event.
    fn copy(&self, message: *mut rd::rd_kafka_message_t) -> Outcome<u64> {
        // SAFETY: a message that was just taken and is destroyed here, after its bytes were copied.
        unsafe {
            let is_record = (*message).err == rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR;
            let (value, key) = ((*message).payload, (*message).key.cast_const());
            let (value_len, key_len) = ((*message).len, (*message).key_len);
            while is_record && !self.produce(value, value_len, key, key_len) {
                if rd::rd_kafka_last_error() != rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__QUEUE_FULL {
                    return Err("producing failed".into());
                }
                rd::rd_kafka_poll(self.producer, 10);
            }
            rd::rd_kafka_message_destroy(message);
            Ok(u64::from(is_record))
        }
    }

    /// # Safety
    /// Both pointers are to so many readable bytes.
    unsafe fn produce(&self, value: *mut c_void, value_len: usize, key: *const c_void, key_len: usize) -> bool {
        let copy = rd::RD_KAFKA_MSG_F_COPY;
        // SAFETY: by the caller; librdkafka copies both.
        unsafe {
            rd::rd_kafka_produce(self.output, ANY_PARTITION, copy, value, value_len, key, key_len, ptr::null_mut()) == 0
        }
    }

    fn commit(&self) -> Outcome<()> {
        // SAFETY: live handles; no list means the stored offsets.
        unsafe {
            ok(rd::rd_kafka_flush(self.producer, FLUSH_MS), "flush")?;
            match rd::rd_kafka_commit(self.consumer, ptr::null(), 0) {
                rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__NO_OFFSET => Ok(()), // nothing new
                code => ok(code, "commit"),
            }
        }
    }
}

fn ok(code: rd::rd_kafka_resp_err_t, what: &str) -> Outcome<()> {
    if code == rd::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return Ok(());
    }
    // SAFETY: a static string.
    let reason = unsafe { CStr::from_ptr(rd::rd_kafka_err2str(code)) };
    Err(format!("{what}: {}", reason.to_string_lossy()).into())
}

fn handle(kind: rd::rd_kafka_type_t, settings: &[(&str, &str)]) -> Outcome<*mut rd::rd_kafka_t> {
    let mut error = [0 as c_char; 512];
    // SAFETY: strings live through the calls; `rd_kafka_new` takes the configuration over.
    unsafe {
        let conf = rd::rd_kafka_conf_new();
        for (key, value) in settings {
            let (name, value) = (CString::new(*key)?, CString::new(*value)?);
            let set = rd::rd_kafka_conf_set(conf, name.as_ptr(), value.as_ptr(), error.as_mut_ptr(), error.len());
            if set != rd::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK {
                return Err(format!("{key}: {}", CStr::from_ptr(error.as_ptr()).to_string_lossy()).into());
            }
        }
        let handle = rd::rd_kafka_new(kind, conf, error.as_mut_ptr(), error.len());
        if handle.is_null() {
            return Err(CStr::from_ptr(error.as_ptr()).to_string_lossy().into_owned().into());
        }
        Ok(handle)
    }
}
