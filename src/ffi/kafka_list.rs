//! librdkafka's list of partitions with offsets and metadata, as an owned value.
use std::ffi::{CStr, CString, c_int};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use rdkafka_sys as rd;

use super::kafka_error::{Code, KafkaError};
use crate::base::partition::TopicPartition;

/// A list that is ours to destroy.
#[derive(Debug)]
pub(crate) struct List {
    raw: NonNull<rd::rd_kafka_topic_partition_list_t>,
}

/// A list that somebody else destroys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRef<'a> {
    raw: NonNull<rd::rd_kafka_topic_partition_list_t>,
    owner: PhantomData<&'a List>,
}

/// One element of a list, copied out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Element {
    pub(crate) partition: TopicPartition,
    /// An offset, or one of librdkafka's negative marks.
    pub(crate) offset: i64,
    /// Text that is committed with the offset.
    pub(crate) metadata: Option<String>,
    pub(crate) code: Code,
}

impl List {
    /// An empty list with room for so many.
    pub(crate) fn with_capacity(count: usize) -> Result<Self, KafkaError> {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        // SAFETY: no preconditions; the library aborts rather than answer null, which is checked all the same.
        let raw = unsafe { rd::rd_kafka_topic_partition_list_new(count) };
        let raw = NonNull::new(raw).ok_or(KafkaError::OutOfMemory { call: "topic_partition_list_new" })?;
        Ok(Self { raw })
    }

    /// Partitions without offsets.
    pub(crate) fn of<'a>(partitions: impl ExactSizeIterator<Item = (&'a str, i32)>) -> Result<Self, KafkaError> {
        let mut list = Self::with_capacity(partitions.len())?;
        for (topic, partition) in partitions {
            list.push(topic, partition, None, None)?;
        }
        Ok(list)
    }

    /// Appends a partition, with its offset and the text to commit with it.
    pub(crate) fn push(
        &mut self,
        topic: &str,
        partition: i32,
        offset: Option<i64>,
        metadata: Option<&str>,
    ) -> Result<(), KafkaError> {
        let name = c_string("topic", topic)?;
        // SAFETY: the list is live and ours alone (`&mut`); `name` is copied. The element's address is used before
        // anything else is appended, so it is not moved meanwhile.
        unsafe {
            let element = rd::rd_kafka_topic_partition_list_add(self.raw.as_ptr(), name.as_ptr(), partition);
            if let Some(offset) = offset {
                (*element).offset = offset;
            }
            if let Some(text) = metadata {
                // The list frees the metadata by librdkafka's own function, so it must come from there.
                let copy = rd::rd_kafka_mem_malloc(std::ptr::null_mut(), text.len().max(1));
                if copy.is_null() {
                    return Err(KafkaError::OutOfMemory { call: "mem_malloc" });
                }
                copy.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
                (*element).metadata = copy;
                (*element).metadata_size = text.len();
            }
        }
        Ok(())
    }

    pub(crate) fn as_ptr(&self) -> *mut rd::rd_kafka_topic_partition_list_t {
        self.raw.as_ptr()
    }

    pub(crate) fn elements(&self) -> Vec<Element> {
        ListRef { raw: self.raw, owner: PhantomData }.elements()
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the list is ours and nothing borrows it any more.
        unsafe { rd::rd_kafka_topic_partition_list_destroy(self.raw.as_ptr()) };
    }
}

impl<'a> ListRef<'a> {
    /// `None` for null.
    ///
    /// # Safety
    /// `raw` is null or a list that lives, unchanged, for `'a`.
    pub(crate) unsafe fn from_ptr(raw: *const rd::rd_kafka_topic_partition_list_t) -> Option<Self> {
        NonNull::new(raw.cast_mut()).map(|raw| Self { raw, owner: PhantomData })
    }

    /// Copies all elements out. Equal topic names that follow each other share their text.
    pub(crate) fn elements(self) -> Vec<Element> {
        // SAFETY: the list is live and unchanged for `'a`.
        let (first, count) = unsafe { ((*self.raw.as_ptr()).elems, (*self.raw.as_ptr()).cnt) };
        let mut out: Vec<Element> = Vec::with_capacity(usize::try_from(count).unwrap_or(0));
        for index in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: `elems` points to `cnt` initialised elements.
            let element = unsafe { read(first.add(index), out.last()) };
            out.push(element);
        }
        out
    }

    /// As [`Self::elements`], partitions only.
    pub(crate) fn partitions(self) -> Vec<TopicPartition> {
        self.elements().into_iter().map(|element| element.partition).collect()
    }
}

/// # Safety
/// `element` points to a live element of a list.
pub(crate) unsafe fn read(element: *const rd::rd_kafka_topic_partition_t, previous: Option<&Element>) -> Element {
    // SAFETY: the element is live: its topic is NUL-terminated, its metadata null or `metadata_size` bytes. The code
    // is read as an integer, because it may be a number that the bindings' enum does not list.
    unsafe {
        let topic = CStr::from_ptr((*element).topic).to_string_lossy();
        let topic: Arc<str> = match previous {
            Some(previous) if *previous.partition.topic == *topic => Arc::clone(&previous.partition.topic),
            _ => Arc::from(&*topic),
        };
        let metadata = (*element).metadata.cast::<u8>();
        let metadata = (!metadata.is_null()).then(|| {
            String::from_utf8_lossy(std::slice::from_raw_parts(metadata, (*element).metadata_size)).into_owned()
        });
        Element {
            partition: TopicPartition { topic, partition: (*element).partition },
            offset: (*element).offset,
            metadata,
            code: Code((&raw const (*element).err).cast::<i32>().read()),
        }
    }
}

/// A text for C.
pub(crate) fn c_string(what: &'static str, text: &str) -> Result<CString, KafkaError> {
    CString::new(text).map_err(|_| KafkaError::Nul { what, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_list_is_read_back() {
        let mut list = List::with_capacity(1).unwrap();
        list.push("words", 3, Some(42), Some("AgAAAYvP5WgA")).unwrap();
        list.push("words", 4, None, Some("")).unwrap();
        list.push("lines", 0, Some(7), None).unwrap();
        let elements = list.elements();
        let seen: Vec<_> =
            elements.iter().map(|e| (e.partition.to_string(), e.offset, e.metadata.as_deref(), e.code)).collect();
        let expected = [
            ("words-3".to_owned(), 42, Some("AgAAAYvP5WgA"), Code::NONE),
            ("words-4".to_owned(), -1001, Some(""), Code::NONE),
            ("lines-0".to_owned(), 7, None, Code::NONE),
        ];
        assert_eq!(seen, expected);
        assert!(Arc::ptr_eq(&elements[0].partition.topic, &elements[1].partition.topic));
    }

    #[test]
    fn a_name_with_a_nul_byte_is_refused() {
        let error = List::of([("a\0b", 0)].into_iter()).unwrap_err();
        assert_eq!(error, KafkaError::Nul { what: "topic", text: "a\0b".to_owned() });
    }
}
