//! tracking allocator
