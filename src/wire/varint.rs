//! Variable-length integers: seven bits a byte, lowest first; signed values in zigzag form (protocol buffers'
//! encoding).

/// Reads a signed value of up to 64 bits at `*at` and moves `*at` behind it. One and two bytes, which nearly all
/// values take, are read without a loop. `None`: the bytes end, or the value has more than ten bytes.
#[inline(always)]
pub(super) fn read_signed(bytes: &[u8], at: &mut usize) -> Option<i64> {
    let first = u64::from(*bytes.get(*at)?);
    if first < 0x80 {
        *at += 1;
        return Some(unzigzag(first));
    }
    let second = u64::from(*bytes.get(*at + 1)?);
    let mut value = (first & 0x7f) | (second & 0x7f) << 7;
    *at += 2;
    if second >= 0x80 {
        value |= rest(bytes, at)?;
    }
    Some(unzigzag(value))
}

/// The third to tenth byte of a value.
#[cold]
fn rest(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (14..64).step_by(7) {
        let byte = u64::from(*bytes.get(*at)?);
        *at += 1;
        value |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Bytes that a signed value takes. Nearly all values take one or two, which is told without counting bits.
#[inline(always)]
pub(super) fn signed_len(value: i64) -> usize {
    let left = zigzag(value);
    match left {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        _ => (70 - left.leading_zeros() as usize) / 7,
    }
}

/// Writes a signed value at the start of `into` and answers the bytes it took; `None` when they are not there.
#[inline(always)]
pub(super) fn write_signed(into: &mut [u8], value: i64) -> Option<usize> {
    let left = zigzag(value);
    if left < 0x80 {
        *into.first_mut()? = left as u8;
        return Some(1);
    }
    if left < 0x4000 {
        *into.first_chunk_mut()? = [left as u8 | 0x80, (left >> 7) as u8];
        return Some(2);
    }
    write_long(into, left)
}

/// Writes a value of three to ten bytes.
#[cold]
fn write_long(into: &mut [u8], mut left: u64) -> Option<usize> {
    let mut at = 0;
    while left >= 0x80 {
        *into.get_mut(at)? = left as u8 | 0x80;
        left >>= 7;
        at += 1;
    }
    *into.get_mut(at)? = left as u8;
    Some(at + 1)
}

/// Small magnitudes to small unsigned values: 0, -1, 1, -2, … become 0, 1, 2, 3, …
#[inline(always)]
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[inline(always)]
fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values and bytes of Kafka's own `ByteUtilsTest`.
    #[test]
    fn kafkas_vectors_are_read_and_written() {
        let vectors: [(i64, &[u8]); 14] = [
            (0, &[0x00]),
            (-1, &[0x01]),
            (1, &[0x02]),
            (63, &[0x7e]),
            (-64, &[0x7f]),
            (64, &[0x80, 0x01]),
            (-65, &[0x81, 0x01]),
            (8191, &[0xfe, 0x7f]),
            (-8192, &[0xff, 0x7f]),
            (8192, &[0x80, 0x80, 0x01]),
            (i64::from(i32::MAX), &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
            (i64::from(i32::MIN), &[0xff, 0xff, 0xff, 0xff, 0x0f]),
            (i64::MAX, &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
            (i64::MIN, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]),
        ];
        for (value, bytes) in vectors {
            let mut at = 0;
            assert_eq!(read_signed(bytes, &mut at), Some(value));
            assert_eq!((at, signed_len(value)), (bytes.len(), bytes.len()));
            let mut out = [0; 10];
            assert_eq!(write_signed(&mut out, value), Some(bytes.len()));
            assert_eq!(&out[..bytes.len()], bytes);
            assert_eq!(write_signed(&mut out[..bytes.len() - 1], value), None, "no room");
            assert_eq!(read_signed(&bytes[..bytes.len() - 1], &mut 0), None, "cut");
        }
    }

    #[test]
    fn eleven_bytes_are_refused() {
        assert_eq!(read_signed(&[0x80; 11], &mut 0), None);
    }
}
