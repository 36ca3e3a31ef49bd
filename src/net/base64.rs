//! Base 64 with the usual alphabet and padding (RFC 4648), for SCRAM's messages.
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `bytes` in base 64.
pub(super) fn encode(bytes: &[u8], into: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = (word >> (18 - 6 * at)) as usize & 63;
            into.push(if at <= chunk.len() { DIGITS.get(digit).copied().unwrap_or(b'=') } else { b'=' });
        }
    }
}

/// The bytes behind `text`; `None` when it is not padded base 64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut chunks = text.chunks_exact(4).peekable();
    while let Some(chunk) = chunks.next() {
        let padding = chunk.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 || (padding > 0 && chunks.peek().is_some()) {
            return None;
        }
        let mut word = 0u32;
        for byte in &chunk[..4 - padding] {
            word = word << 6 | u32::try_from(DIGITS.iter().position(|digit| digit == byte)?).ok()?;
        }
        let [_, a, b, c] = (word << (6 * padding)).to_be_bytes();
        bytes.extend_from_slice([a, b, c].get(..3 - padding)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_of_the_rfc_go_both_ways() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            encode(plain.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        let mut out = Vec::new();
        encode(&[0xff, 0xef, 0xbe], &mut out);
        assert_eq!(out, b"/+++");
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in ["Z", "Zg=", "Zg==Zg==", "====", "Z===", "Zm9!", "Zm 9"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
