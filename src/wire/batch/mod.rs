//! Kafka's record batch, format 2: reading in place and building in place.
//!
//! A batch is a header of 61 bytes and a records section, which may be compressed. Reading never copies: a record is
//! slices of the section. Building never copies twice: a record is encoded once, into the buffer that is sent.
//! Format: `org.apache.kafka.common.record.DefaultRecordBatch` and `DefaultRecord`.
mod builder;
mod control;
mod halve;
mod header;
mod headers;
mod record;
#[cfg(test)]
mod tests;

pub(crate) use builder::{BatchBuilder, Stamp, TooLarge, restamp};
pub(crate) use control::ControlType;
pub(crate) use halve::Rest;
pub(crate) use header::{BATCH_HEADER_BYTES, BatchHeader, Batches};
pub(crate) use headers::{Header, Headers, RawHeaders};
pub(crate) use record::{RecordCursor, RecordPlace, RecordView, Records};
