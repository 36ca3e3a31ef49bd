//! Sockets, the poll set and its waker.
