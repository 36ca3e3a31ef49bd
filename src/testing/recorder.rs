//! The driver's port: what nodes send is recorded by topic.
use super::output::RawOutput;
use crate::base::id::{NodeId, SinkId, StoreId, TaskId};
use crate::node::{Flow, LogBytes, OutBytes, Port};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};

/// Records what leaves.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    /// Full names by sink, and whether the driver reads the topic again.
    pub(crate) sinks: Vec<(String, Option<usize>)>,
    /// Full names of changelogs by store.
    pub(crate) changelogs: Vec<String>,
    /// Full names of the topics that the driver reads.
    pub(crate) inputs: Vec<String>,
    pub(crate) keep: bool,
    pub(crate) topics: RefCell<BTreeMap<String, VecDeque<RawOutput>>>,
    /// Those for sources, until the driver queues them.
    pub(crate) again: RefCell<Vec<Again>>,
    pub(crate) count: Cell<u64>,
    pub(crate) dropped: Cell<u64>,
    pub(crate) spare: RefCell<Vec<Again>>,
}

/// A record on its way back into the topology.
#[derive(Debug, Default)]
pub(crate) struct Again {
    pub(crate) source: usize,
    pub(crate) key: Vec<u8>,
    pub(crate) has_key: bool,
    pub(crate) value: Vec<u8>,
    pub(crate) has_value: bool,
    pub(crate) headers: Vec<u8>,
    pub(crate) timestamp: i64,
}

impl Again {
    fn fill(&mut self, source: usize, record: &OutBytes<'_>) {
        self.source = source;
        self.timestamp = record.timestamp;
        (self.has_key, self.has_value) = (record.key.is_some(), record.value.is_some());
        for (to, from) in [
            (&mut self.key, record.key.unwrap_or_default()),
            (&mut self.value, record.value.unwrap_or_default()),
            (&mut self.headers, record.headers.as_bytes()),
        ] {
            to.clear();
            to.extend_from_slice(from);
        }
    }
}

impl Recorder {
    fn record(&self, topic: &str, record: &OutBytes<'_>) {
        self.count.set(self.count.get() + 1);
        if !self.keep {
            return;
        }
        let mut topics = self.topics.borrow_mut();
        if !topics.contains_key(topic) {
            topics.insert(topic.to_owned(), VecDeque::new());
        }
        if let Some(topic) = topics.get_mut(topic) {
            topic.push_back(RawOutput::of(record));
        }
    }

    /// Gives a record's buffers back.
    pub(crate) fn recycle(&self, again: Again) {
        self.spare.borrow_mut().push(again);
    }
}

impl Port for Recorder {
    fn produce(&self, _task: TaskId, sink: SinkId, _partition: Option<u32>, record: &OutBytes<'_>) -> Flow {
        if let Some((topic, again)) = self.sinks.get(sink.index()) {
            self.record(topic, record);
            if let Some(source) = again {
                let mut back = self.spare.borrow_mut().pop().unwrap_or_default();
                back.fill(*source, record);
                self.again.borrow_mut().push(back);
            }
        }
        Ok(())
    }

    fn produce_named(&self, _task: TaskId, _sink: SinkId, topic: &str, record: &OutBytes<'_>) -> Flow {
        self.record(topic, record);
        if let Some(source) = self.inputs.iter().position(|input| input == topic) {
            let mut back = self.spare.borrow_mut().pop().unwrap_or_default();
            back.fill(source, record);
            self.again.borrow_mut().push(back);
        }
        Ok(())
    }

    fn changelog(&self, store: StoreId, _partition: u32, record: &LogBytes<'_>) -> Flow {
        if let Some(topic) = self.changelogs.get(store.index()) {
            self.record(topic, &record.out());
        }
        Ok(())
    }

    fn dropped(&self, _node: NodeId) {
        self.dropped.set(self.dropped.get() + 1);
    }
}
