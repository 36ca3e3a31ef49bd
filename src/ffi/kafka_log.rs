//! librdkafka's log, kept for whoever wants it: a bounded queue, never stderr.
//!
//! librdkafka's threads write, the control thread reads. At most [`LOG_LINES`] lines wait; a full queue drops its
//! oldest line and counts it. The lines are librdkafka's memory (module Consumer), since its threads allocate them.
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Lines that wait for a reader at most.
pub(crate) const LOG_LINES: usize = 256;
/// Bytes of a line that are kept.
const LINE_BYTES: usize = 512;

/// A line of librdkafka's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogLine {
    /// Syslog level: 0 emergency to 7 debug.
    pub(crate) level: u8,
    /// librdkafka's word for where it comes from, such as `FAIL` or `MAXPOLL`.
    pub(crate) facility: Box<str>,
    /// The text.
    pub(crate) text: Box<str>,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct LogQueue {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<LogLine>,
    dropped: u64,
}

impl LogQueue {
    pub(crate) fn push(&self, level: i32, facility: &str, text: &str) {
        let line = LogLine {
            level: u8::try_from(level.clamp(0, 7)).unwrap_or(7),
            facility: facility.into(),
            text: prefix(text, LINE_BYTES).into(),
        };
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.lines.len() == LOG_LINES {
            inner.lines.pop_front();
            inner.dropped += 1;
        }
        inner.lines.push_back(line);
    }

    /// The oldest line that waits.
    pub(crate) fn pop(&self) -> Option<LogLine> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).lines.pop_front()
    }

    /// Lines that nobody read in time.
    pub(crate) fn dropped(&self) -> u64 {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).dropped
    }
}

fn prefix(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_oldest_line_and_counts_it() {
        let queue = LogQueue::default();
        for i in 0..LOG_LINES + 3 {
            queue.push(6, "T", &i.to_string());
        }
        assert_eq!(queue.dropped(), 3);
        assert_eq!(queue.pop().map(|line| line.text), Some("3".into()));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), LOG_LINES - 1);
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        assert_eq!(prefix("añb", 2), "a");
        assert_eq!(prefix("añb", 3), "añ");
        assert_eq!(prefix("ab", 512), "ab");
    }
}
