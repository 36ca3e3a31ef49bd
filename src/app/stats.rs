//! What an application has done, in numbers.

/// What an application has done since its start; all threads together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Records taken from input and repartition topics.
    pub records_in: u64,
    /// Records skipped: undecodable with a handler that goes on, null keys at aggregations, invalid timestamps.
    pub records_dropped: u64,
    /// Commits that succeeded.
    pub commits: u64,
    /// Bytes that the stream threads have allocated, by the allocator's own count; 0 without it.
    pub allocated_bytes: u64,
    /// Calls of the stream threads that allocated, C and C++ included; 0 unless
    /// [`count_allocations`](crate::AppBuilder::count_allocations) is on.
    pub allocations: u64,
}
