//! The only files that call C: librdkafka as the control plane, RocksDB as the store.
