//! State: the backend, the overlay, restored bytes.
