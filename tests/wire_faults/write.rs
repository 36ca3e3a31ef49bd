//! The writing half of a case.
use crate::Case;
use crate::run::Run;
use plimsoll::testing::wire::{Client, End, Out, Writer, WriterOptions};
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

/// Transactions of a case; each so many'th is aborted and written again.
const TRANSACTIONS: u64 = 100;
const ABORTED: u64 = 7;

/// Writes all records; answers what had to be done again.
pub fn write(bootstrap: &str, case: &Case, run: &Run) -> Result<String, String> {
    let client = Client::new(bootstrap)?;
    let options = WriterOptions {
        codec: case.codec,
        batch_bytes: case.batch_bytes,
        request_timeout_ms: case.request_timeout_ms,
        transactional_id: run.group.clone(),
        silent: |stand| println!("nothing is acknowledged: {stand}"),
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(&client, &options)?;
    let topic = writer.topic(&run.topic);
    let start = Instant::now();
    let mut work = Work { writer, topic, value: vec![b'.'; case.value_bytes], case, run };
    let told = match &run.group {
        None => work.records(0..run.records).and_then(|()| work.writer.flush()).map(|()| String::new())?,
        Some(group) => work.transactions(group)?,
    };
    let (retried, lost) = work.writer.troubles();
    let silence = work.writer.longest_silence().as_secs_f32();
    let took = start.elapsed().as_secs_f32();
    Ok(format!("written in {took:.1} s, {told}{retried} batches again, {lost} connections lost, silent {silence:.1} s"))
}

struct Work<'a> {
    writer: Writer,
    topic: Out,
    value: Vec<u8>,
    case: &'a Case,
    run: &'a Run,
}

impl Work<'_> {
    /// Waits until this record may be written.
    fn wait_for(&mut self, n: u64) -> Result<(), String> {
        while n >= self.run.allowed.load(Ordering::Acquire) {
            self.writer.turn(10)?;
            if self.run.failed.load(Ordering::Acquire) {
                return Err("given up".to_owned());
            }
        }
        Ok(())
    }

    fn records(&mut self, range: std::ops::Range<u64>) -> Result<(), String> {
        let partitions = u64::from(self.case.partitions.unsigned_abs());
        for n in range {
            self.wait_for(n)?;
            self.value[..8].copy_from_slice(&(n / partitions).to_be_bytes());
            let partition = u32::try_from(n % partitions).unwrap();
            self.writer.write_value(self.topic, partition, now_ms(), &self.value)?;
            if self.run.group.is_none() {
                self.run.written.store(n + 1, Ordering::Release);
            }
        }
        Ok(())
    }

    /// What is aborted, by us or by the fault, is written again: so the committed records are all, once, in order.
    fn transactions(&mut self, group: &str) -> Result<String, String> {
        let (records, each) = (self.run.records, self.run.records.div_ceil(TRANSACTIONS));
        let (mut n, mut begun, mut aborted) = (0, 0u64, 0u64);
        while n < records {
            self.wait_for(n)?;
            self.writer.begin()?;
            begun += 1;
            let end = (n + each).min(records);
            let written = self.records(n..end);
            let written = written.and_then(|()| self.writer.send_offset(group, &self.run.topic, 0, end.cast_signed()));
            let ended = match written {
                Err(_) if self.writer.must_abort() => self.writer.abort().map(|()| End::Aborted)?,
                Err(why) => return Err(why),
                Ok(()) if begun % ABORTED == 0 => {
                    self.writer.flush()?;
                    self.writer.abort().map(|()| End::Aborted)?
                }
                Ok(()) => self.writer.commit()?,
            };
            match ended {
                End::Committed => {
                    n = end;
                    self.run.written.store(n, Ordering::Release);
                }
                End::Aborted => aborted += 1,
            }
        }
        Ok(format!("{begun} transactions, {aborted} aborted, "))
    }
}

/// Of today: a broker forgets a producer by the time of its records.
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}
