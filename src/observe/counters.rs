//! Counters with one writer: a load and a store, no locked instruction.
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread raises and all may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds. Only the owning thread may call it: two writers would lose counts.
    #[inline]
    pub(crate) fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    /// The number now.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Counters of one thread, on cache lines of their own.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters { $($(#[$doc])* pub(crate) $name: Counter),+ }

        /// The same as numbers.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub(crate) struct Totals { $($(#[$doc])* pub(crate) $name: u64),+ }

        impl Counters {
            /// Every counter now; each is exact, together they are not of one moment.
            pub(crate) fn read(&self) -> Totals {
                Totals { $($name: self.$name.get()),+ }
            }
        }

        impl Add for Totals {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self { $($name: self.$name.wrapping_add(other.$name)),+ }
            }
        }
    };
}

counters! {
    /// Records taken from input topics.
    records_in,
    /// Records written to output, repartition and changelog topics.
    records_out,
    /// Bytes of keys and values taken.
    bytes_in,
    /// Bytes of keys and values written.
    bytes_out,
    /// Records skipped by the deserialization handler, or late.
    skipped,
    /// Commits that succeeded.
    commits,
    /// Turns of the loop.
    turns,
    /// Bytes that the thread allocated, by the allocator's own count.
    allocated_bytes,
    /// Calls of the thread that allocated, in all modules, while the allocator counts them.
    allocations,
}

const _: () = assert!(size_of::<Counters>() == 128);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_what_the_one_writer_added() {
        let counters = Counters::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|_| counters.records_in.add(1)));
            while counters.records_in.get() < 100_000 {
                std::thread::yield_now();
            }
        });
        assert_eq!(counters.read(), Totals { records_in: 100_000, ..Totals::default() });
    }
}
