//! The driver that runs a topology without a broker.
