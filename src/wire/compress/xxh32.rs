//! xxHash of 32 bits, which LZ4 frames use as their checksum.

const P1: u32 = 0x9e37_79b1;
const P2: u32 = 0x85eb_ca77;
const P3: u32 = 0xc2b2_ae3d;
const P4: u32 = 0x27d4_eb2f;
const P5: u32 = 0x1656_67b1;

/// The hash of `bytes` with seed 0.
pub(super) fn xxh32(bytes: &[u8]) -> u32 {
    let (stripes, rest) = bytes.as_chunks::<16>();
    let mut hash = match stripes.is_empty() {
        true => P5,
        false => {
            let mut lanes = [P1.wrapping_add(P2), P2, 0, 0_u32.wrapping_sub(P1)];
            for stripe in stripes {
                for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks::<4>().0) {
                    let mixed = lane.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(P2));
                    *lane = mixed.rotate_left(13).wrapping_mul(P1);
                }
            }
            let [a, b, c, d] = lanes;
            let (a, b) = (a.rotate_left(1), b.rotate_left(7));
            a.wrapping_add(b).wrapping_add(c.rotate_left(12)).wrapping_add(d.rotate_left(18))
        }
    };
    hash = hash.wrapping_add(bytes.len() as u32);
    let (words, tail) = rest.as_chunks::<4>();
    for word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(*word).wrapping_mul(P3)).rotate_left(17).wrapping_mul(P4);
    }
    for byte in tail {
        hash = hash.wrapping_add(u32::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ hash >> 15).wrapping_mul(P2);
    hash = (hash ^ hash >> 13).wrapping_mul(P3);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::xxh32;

    #[test]
    fn published_vectors() {
        assert_eq!(xxh32(b""), 0x02cc_5d05);
        assert_eq!(xxh32(b"a"), 0x550d_7456);
        assert_eq!(xxh32(b"abc"), 0x32d1_53ff);
        assert_eq!(xxh32(b"Nobody inspects the spammish repetition"), 0xe229_3b2f);
    }

    #[test]
    fn the_header_checksum_that_kafkas_java_client_writes() {
        assert_eq!((xxh32(&[0x60, 0x40]) >> 8) as u8, 0x82);
    }
}
