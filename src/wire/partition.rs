//! Which partition a key goes to: what Kafka's default partitioner computes, so that keys written by us and by Java
//! meet.

/// Murmur2 with Kafka's seed (`org.apache.kafka.common.utils.Utils.murmur2`). Its result is a Java `int` there; the
/// same bits here.
pub(crate) fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    let mut hash = SEED ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        let tail = rest.iter().rev().fold(0, |tail, byte| tail << 8 | u32::from(*byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ hash >> 15
}

/// Partition of `key` in a topic of `partitions` partitions: `toPositive(murmur2(key)) % partitions`. A topic has at
/// least one partition; for none the answer is 0.
pub(crate) fn partition_for(key: &[u8], partitions: u32) -> u32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    // Most topics have a power of two of partitions; a division costs as much as the hash of a short key.
    if partitions.is_power_of_two() {
        return positive & (partitions - 1);
    }
    positive.checked_rem(partitions).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UtilsTest.testMurmur2`.
    #[test]
    fn kafkas_own_vectors() {
        let cases: [(&[u8], i32); 6] = [
            (b"21", -973932308),
            (b"foobar", -790332482),
            (b"a-little-bit-long-string", -985981536),
            (b"a-little-bit-longer-string", -1486304829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
            (b"abc", 479470107),
        ];
        for (bytes, hash) in cases {
            assert_eq!(murmur2(bytes) as i32, hash, "{:?}", std::str::from_utf8(bytes));
        }
    }

    #[test]
    fn the_sign_bit_is_dropped_before_the_remainder() {
        // -973932308 & 0x7fffffff = 1173551340
        assert_eq!(partition_for(b"21", 1_000_000_000), 173_551_340);
        assert_eq!(partition_for(b"21", 7), 1_173_551_340 % 7);
        assert_eq!(partition_for(b"21", 8), 1_173_551_340 % 8);
        assert_eq!(partition_for(b"21", 1), 0);
        assert_eq!(partition_for(b"21", 0), 0);
    }
}
