//! Against librdkafka's mock cluster, read back by librdkafka's consumer.
