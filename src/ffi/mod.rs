//! The only files that call C: librdkafka as the control plane, RocksDB as the store.
pub(crate) mod rocks;
mod rocks_sys;
