//! The scripted brokers' part in transactions: both coordinators, with the rules that Kafka's have.
use super::bytes::{put, put_len, put_string};
use crate::wire::Reader;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a coordinator does with a request beside what Kafka does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// Answers this code and does nothing.
    Error(i16),
    /// Does nothing and ends the connection.
    HangUp,
    /// Does what Kafka does and ends the connection without an answer.
    DoThenHangUp,
}

pub(super) const FIND: i16 = 10;
pub(super) const INIT: i16 = 22;
pub(super) const ADD_PARTITIONS: i16 = 24;
pub(super) const ADD_OFFSETS: i16 = 25;
pub(super) const END: i16 = 26;
pub(super) const COMMIT_OFFSETS: i16 = 28;

/// An offset as it was committed: group, generation, member, instance, topic, partition, offset, leader epoch,
/// metadata.
pub(super) type Committed = (String, i32, String, Option<String>, String, i32, i64, i32, String);

#[derive(Debug, Default)]
pub(super) struct Coordinator {
    /// Level of `transaction.version` that brokers tell.
    pub(super) level: i16,
    /// The broker that coordinates everything.
    pub(super) node: i32,
    pub(super) epoch: i16,
    pub(super) open: bool,
    pub(super) added: BTreeSet<(String, i32)>,
    pub(super) groups: BTreeSet<String>,
    pub(super) pending: Vec<Committed>,
    /// Offsets of committed transactions.
    pub(super) offsets: Vec<Committed>,
    /// Transactions ended: whether they were committed.
    pub(super) ended: Vec<bool>,
    pub(super) faults: BTreeMap<i16, VecDeque<Fault>>,
    /// Every request, by API.
    pub(super) asked: Vec<i16>,
}

/// The id that the coordinator gives.
pub(super) const PRODUCER: i64 = 9_000;

impl Coordinator {
    pub(super) fn fault(&mut self, api: i16, fault: Fault) {
        self.faults.entry(api).or_default().push_back(fault);
    }

    /// What a Produce request with the transactional id does before its batches are looked at: an error code.
    pub(super) fn produced(&mut self, topic: &str, partition: i32, version: i16) -> i16 {
        if version >= 12 {
            self.open = true;
            self.added.insert((topic.to_owned(), partition));
            return 0;
        }
        if self.added.contains(&(topic.to_owned(), partition)) { 0 } else { 48 }
    }

    /// Handles a request of broker `node`; `None` ends the connection.
    pub(super) fn handle(
        &mut self,
        node: i32,
        api: i16,
        version: i16,
        r: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        self.asked.push(api);
        let fault = self.faults.get_mut(&api).and_then(VecDeque::pop_front);
        if fault == Some(Fault::HangUp) {
            return None;
        }
        let flexible = version >= if api == INIT { 2 } else { 3 };
        r.set_flexible(flexible);
        r.skip_tags().unwrap();
        out.extend(flexible.then_some(0));
        put(out, &0i32.to_be_bytes());
        let code = match fault {
            Some(Fault::Error(code)) => code,
            _ if api != FIND && node != self.node => 16,
            _ => 0,
        };
        match api {
            FIND => self.find(code, flexible, out),
            INIT => self.init(r, code, out),
            ADD_PARTITIONS => self.add_partitions(r, code, flexible, out),
            ADD_OFFSETS => self.add_offsets(r, code, out),
            END => self.end(r, code, version, out),
            COMMIT_OFFSETS => self.commit_offsets(r, code, version, flexible, out),
            other => panic!("api {other}"),
        }
        out.extend(flexible.then_some(0));
        (fault != Some(Fault::DoThenHangUp)).then_some(())
    }

    fn find(&self, code: i16, flexible: bool, out: &mut Vec<u8>) {
        put(out, &code.to_be_bytes());
        match flexible {
            true => out.push(0),
            false => put(out, &(-1i16).to_be_bytes()),
        }
        put(out, &(if code == 0 { self.node } else { -1 }).to_be_bytes());
        put_string(out, "127.0.0.1", flexible);
        put(out, &1i32.to_be_bytes());
    }

    fn init(&mut self, r: &mut Reader<'_>, code: i16, out: &mut Vec<u8>) {
        r.nullable_string().unwrap();
        r.i32().unwrap();
        let (id, epoch) = (r.i64().unwrap(), r.i16().unwrap());
        let mut code = code;
        if code == 0 && id >= 0 && (id, epoch) != (PRODUCER, self.epoch) {
            code = 90;
        }
        if code == 0 {
            if self.open {
                // The epoch that fences is never given to anybody.
                self.close(false);
                self.epoch += 1;
            }
            self.epoch += 1;
        }
        put(out, &code.to_be_bytes());
        put(out, &(if code == 0 { PRODUCER } else { -1 }).to_be_bytes());
        put(out, &(if code == 0 { self.epoch } else { -1 }).to_be_bytes());
    }

    /// Reads the identity; the code if it is not the present one.
    fn check(&self, r: &mut Reader<'_>, code: i16) -> i16 {
        let identity = (r.i64().unwrap(), r.i16().unwrap());
        if code == 0 && identity != (PRODUCER, self.epoch) { 90 } else { code }
    }

    fn add_partitions(&mut self, r: &mut Reader<'_>, code: i16, flexible: bool, out: &mut Vec<u8>) {
        r.string().unwrap();
        let code = self.check(r, code);
        answer_partitions(r, code, flexible, out, |topic, partition, _| {
            if code == 0 {
                self.open = true;
                let new = self.added.insert((topic.to_owned(), partition));
                assert!(new || !self.faults.is_empty(), "asked twice");
            }
        });
    }

    fn add_offsets(&mut self, r: &mut Reader<'_>, code: i16, out: &mut Vec<u8>) {
        r.string().unwrap();
        let code = self.check(r, code);
        if code == 0 {
            self.open = true;
            self.groups.insert(r.string().unwrap().to_owned());
        }
        put(out, &code.to_be_bytes());
    }

    fn commit_offsets(&mut self, r: &mut Reader<'_>, code: i16, version: i16, flexible: bool, out: &mut Vec<u8>) {
        r.string().unwrap();
        let group = r.string().unwrap().to_owned();
        let code = self.check(r, code);
        let generation = r.i32().unwrap();
        let member = r.string().unwrap().to_owned();
        let instance = r.nullable_string().unwrap().map(str::to_owned);
        match version >= 5 {
            true => self.open |= code == 0,
            false => assert!(code != 0 || self.groups.contains(&group), "the group is added first"),
        }
        answer_partitions(r, code, flexible, out, |topic, partition, r| {
            let (offset, epoch) = (r.i64().unwrap(), r.i32().unwrap());
            let metadata = r.nullable_string().unwrap().unwrap().to_owned();
            r.skip_tags().unwrap();
            if code == 0 {
                let (group, member, topic) = (group.clone(), member.clone(), topic.to_owned());
                let committed =
                    (group, generation, member, instance.clone(), topic, partition, offset, epoch, metadata);
                if !self.pending.contains(&committed) {
                    self.pending.push(committed);
                }
            }
        });
    }

    fn end(&mut self, r: &mut Reader<'_>, code: i16, version: i16, out: &mut Vec<u8>) {
        r.string().unwrap();
        let identity = (r.i64().unwrap(), r.i16().unwrap());
        let commit = r.bool().unwrap();
        // In version 2 the answer to an end may have been lost: the same again, from the epoch before.
        let again = version >= 5 && identity == (PRODUCER, self.epoch - 1) && !self.open;
        let code = match code {
            0 if again => 0,
            0 if identity != (PRODUCER, self.epoch) => 90,
            0 if self.open => {
                self.close(commit);
                self.epoch += i16::from(version >= 5);
                0
            }
            // Ended already, or never begun.
            0 if version < 5 && self.ended.last() == Some(&commit) => 0,
            0 if version >= 5 && !commit => {
                self.epoch += 1;
                0
            }
            0 => 48,
            code => code,
        };
        put(out, &code.to_be_bytes());
        if version >= 5 {
            put(out, &(if code == 0 { PRODUCER } else { -1 }).to_be_bytes());
            put(out, &(if code == 0 { self.epoch } else { -1 }).to_be_bytes());
        }
    }

    fn close(&mut self, commit: bool) {
        self.open = false;
        self.added.clear();
        self.groups.clear();
        self.ended.push(commit);
        let pending = std::mem::take(&mut self.pending);
        if commit {
            self.offsets.extend(pending);
        }
    }
}

/// Answers topics of partitions with the same code for each; `each` reads what is asked about a partition behind its
/// number.
fn answer_partitions<'a>(
    r: &mut Reader<'a>,
    code: i16,
    flexible: bool,
    out: &mut Vec<u8>,
    mut each: impl FnMut(&str, i32, &mut Reader<'a>),
) {
    let topics = r.array_len().unwrap();
    put_len(out, topics, flexible);
    for _ in 0..topics {
        let topic = r.string().unwrap();
        put_string(out, topic, flexible);
        let partitions = r.array_len().unwrap();
        put_len(out, partitions, flexible);
        for _ in 0..partitions {
            let partition = r.i32().unwrap();
            put(out, &partition.to_be_bytes());
            put(out, &code.to_be_bytes());
            out.extend(flexible.then_some(0));
            each(topic, partition, r);
        }
        r.skip_tags().unwrap();
        out.extend(flexible.then_some(0));
    }
}
