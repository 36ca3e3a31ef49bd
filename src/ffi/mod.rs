//! The only files that call C: librdkafka as the control plane (`kafka*`), RocksDB as the store (`rocks*`).
pub(crate) mod kafka;
pub(crate) mod kafka_admin;
pub(crate) mod kafka_admin_read;
pub(crate) mod kafka_conf;
pub(crate) mod kafka_error;
pub(crate) mod kafka_event;
pub(crate) mod kafka_list;
pub(crate) mod kafka_mock;
pub(crate) mod rocks;
mod rocks_sys;
