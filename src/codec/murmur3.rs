//! Murmur3's 128-bit hash (x64), with the seed that Kafka Streams hashes values with.

/// Kafka Streams' seed.
const SEED: u64 = 104_729;
const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The hash as Java's serializer writes its two longs: 16 bytes, big-endian.
pub(crate) fn hash128(bytes: &[u8]) -> [u8; 16] {
    let (mut h1, mut h2) = (SEED, SEED);
    let mut blocks = bytes.chunks_exact(16);
    for block in &mut blocks {
        let (k1, k2) = halves(block);
        h1 = (h1 ^ mix1(k1)).rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix2(k2)).rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    // What is missing of the last block counts as zeros, whose mix is zero.
    let (k1, k2) = halves(blocks.remainder());
    h1 ^= mix1(k1) ^ bytes.len() as u64;
    h2 ^= mix2(k2) ^ bytes.len() as u64;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2) = (finish(h1), finish(h2));
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (u128::from(h1) << 64 | u128::from(h2)).to_be_bytes()
}

/// Two little-endian numbers of at most 16 bytes.
fn halves(bytes: &[u8]) -> (u64, u64) {
    let all = bytes.iter().rev().fold(0u128, |all, byte| all << 8 | u128::from(*byte));
    (all as u64, (all >> 64) as u64)
}

fn mix1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

fn finish(mut h: u64) -> u64 {
    h = (h ^ (h >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h = (h ^ (h >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    h ^ (h >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        hash128(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn hashes_are_those_of_kafka_streams() {
        assert_eq!(hex(b""), "9d2764a018e329428c3cf3b035938518");
        assert_eq!(hex(b"xyz"), "32fe685d1daad156e723b6e1cd42367e");
        assert_eq!(hex(b"bb cc"), "a12fd6b4760aca62ca62dd222070bee7");
        assert_ne!(hex(b"0123456789abcdef"), hex(b"0123456789abcdef\0"));
    }
}
