//! Kafka's protocol, sans-I/O: batches, messages, compression. No sockets, no clock.
