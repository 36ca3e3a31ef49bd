//! Where records without a key go: Kafka's uniform sticky partitioning (KIP-794).
//!
//! Records stay with one partition until a batch's worth of bytes went there, then move to another one at random, so
//! batches are full and partitions even. Partitions without a leader are left out while others have one.

/// The partition that records without a key go to now, for one topic.
#[derive(Clone, Debug)]
pub(super) struct Sticky {
    partition: u32,
    /// Bytes that still go to it.
    left: usize,
    /// State of a xorshift generator; never 0.
    seed: u32,
}

impl Sticky {
    pub(super) fn new(seed: u32) -> Self {
        Self { partition: 0, left: 0, seed: seed.wrapping_mul(0x9e37_79b9) | 1 }
    }

    /// The partition for a record of `bytes`, of `partitions` (at least 1). `share` bytes go to each before the next.
    #[inline]
    pub(super) fn next(
        &mut self,
        partitions: u32,
        bytes: usize,
        share: usize,
        has_leader: impl Fn(u32) -> bool,
    ) -> u32 {
        if self.left == 0 || self.partition >= partitions || !has_leader(self.partition) {
            self.partition = self.choose(partitions, has_leader);
            self.left = share;
        }
        self.left = self.left.saturating_sub(bytes.max(1));
        self.partition
    }

    fn choose(&mut self, partitions: u32, has_leader: impl Fn(u32) -> bool) -> u32 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 17;
        self.seed ^= self.seed << 5;
        let start = self.seed % partitions.max(1);
        let from_start = (start..partitions).chain(0..start);
        from_start.into_iter().find(|p| has_leader(*p)).unwrap_or(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_until_a_batch_is_full_and_partitions_get_even_shares() {
        let mut sticky = Sticky::new(42);
        let mut counts = [0u32; 4];
        let mut moves = 0;
        let mut last = u32::MAX;
        for _ in 0..40_000 {
            let partition = sticky.next(4, 100, 1_000, |_| true);
            moves += u32::from(partition != last);
            last = partition;
            counts[partition as usize] += 1;
        }
        // 4,000 batches of 10 records; one in four stays where it was.
        assert!((2_700..=3_300).contains(&moves), "{moves}");
        for count in counts {
            assert!((9_000..=11_000).contains(&count), "{counts:?}");
        }
    }

    #[test]
    fn partitions_without_a_leader_are_left_out_while_others_have_one() {
        let mut sticky = Sticky::new(1);
        for _ in 0..100 {
            assert_eq!(sticky.next(8, 50, 100, |p| p == 5), 5);
        }
        assert!(sticky.next(8, 50, 100, |_| false) < 8);
    }

    #[test]
    fn a_topic_with_fewer_partitions_than_before_is_chosen_within() {
        let mut sticky = Sticky::new(9);
        for _ in 0..50 {
            sticky.next(100, 1, 10, |_| true);
        }
        assert_eq!(sticky.next(1, 1, 10, |_| true), 0);
    }
}
