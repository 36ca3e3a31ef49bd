//! Base 64 with the usual alphabet and padding (RFC 4648), for SCRAM's messages.
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, general_purpose::PAD};

/// Bits behind the last whole byte are ignored.
const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD.with_decode_allow_trailing_bits(true));

/// `bytes` in base 64.
pub(super) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// The bytes behind `text`; `None` when it is not padded base 64.
pub(super) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
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
            assert_eq!(encode(plain.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(plain.as_bytes()));
        }
        assert_eq!(encode(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for text in ["Z", "Zg=", "Zg==Zg==", "====", "Z===", "Zm9!", "Zm 9"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
