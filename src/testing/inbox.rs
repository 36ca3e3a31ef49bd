//! Records that wait for their turn: a queue a source topic, the lowest timestamp first.
//!
//! Ties are broken as in Kafka Streams, whose `PartitionGroup` keeps its queues in a Java `PriorityQueue`: the heap is
//! imitated. Buffers are used again, so that a driver in its stride allocates nothing.
use std::collections::VecDeque;

/// A waiting record.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    /// As in a record: count and headers.
    pub(crate) headers: Vec<u8>,
    pub(crate) timestamp: i64,
    pub(crate) offset: i64,
}

/// Queues by source.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queues: Vec<VecDeque<Waiting>>,
    /// Sources whose queue is not empty, as a binary heap by the timestamp of their first record.
    heap: Vec<usize>,
    buffers: Vec<Vec<u8>>,
}

impl Inbox {
    pub(crate) fn new(sources: usize) -> Self {
        Self { queues: (0..sources).map(|_| VecDeque::new()).collect(), heap: Vec::new(), buffers: Vec::new() }
    }

    /// A copy of the bytes in a used buffer.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.extend_from_slice(bytes);
        buffer
    }

    /// Takes a record's buffers back.
    pub(crate) fn recycle(&mut self, record: Waiting) {
        for mut buffer in [record.key, record.value, Some(record.headers)].into_iter().flatten() {
            buffer.clear();
            self.buffers.push(buffer);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        self.heap.clear();
    }

    fn head(&self, source: usize) -> i64 {
        self.queues.get(source).and_then(VecDeque::front).map_or(i64::MAX, |record| record.timestamp)
    }

    pub(crate) fn add(&mut self, source: usize, record: Waiting) {
        let Some(queue) = self.queues.get_mut(source) else { return };
        queue.push_back(record);
        if queue.len() == 1 {
            self.offer(source);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The next record and its source.
    pub(crate) fn next(&mut self) -> Option<(usize, Waiting)> {
        let source = self.poll()?;
        let queue = self.queues.get_mut(source)?;
        let record = queue.pop_front()?;
        if !queue.is_empty() {
            self.offer(source);
        }
        Some((source, record))
    }

    /// `PriorityQueue.offer`.
    fn offer(&mut self, source: usize) {
        self.heap.push(source);
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.head(source) >= self.head(self.heap[parent]) {
                break;
            }
            self.heap.swap(at, parent);
            at = parent;
        }
    }

    /// `PriorityQueue.poll`.
    fn poll(&mut self) -> Option<usize> {
        let last = self.heap.pop()?;
        let Some(first) = self.heap.first_mut() else { return Some(last) };
        let result = std::mem::replace(first, last);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(mut child) = self.heap.get(left).map(|_| left) else { break };
            if self.heap.get(right).is_some_and(|right| self.head(self.heap[left]) > self.head(*right)) {
                child = right;
            }
            if self.head(last) <= self.head(self.heap[child]) {
                break;
            }
            self.heap.swap(at, child);
            at = child;
        }
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_timestamp_is_next_and_a_queue_keeps_its_order() {
        let mut inbox = Inbox::new(3);
        for (source, timestamp) in [(0, 5), (1, 3), (2, 4), (1, 1), (0, 2)] {
            inbox.add(source, Waiting { timestamp, ..Waiting::default() });
        }
        let order: Vec<_> = std::iter::from_fn(|| inbox.next().map(|(s, r)| (s, r.timestamp))).collect();
        assert_eq!(order, [(1, 3), (1, 1), (2, 4), (0, 5), (0, 2)]);
        assert!(inbox.is_empty());
    }
}
