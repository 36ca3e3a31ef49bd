//! OAUTHBEARER (RFC 7628 with Kafka's extensions, KIP-342): the token, and an answer that is empty when it is good.
use crate::base::token::OauthToken;

/// Writes the message.
pub(super) fn message(token: &OauthToken, into: &mut Vec<u8>) {
    into.extend_from_slice(b"n,,\x01auth=Bearer ");
    into.extend_from_slice(token.value().expose());
    into.push(1);
    for (name, value) in token.extensions() {
        into.extend_from_slice(name.as_bytes());
        into.push(b'=');
        into.extend_from_slice(value.as_bytes());
        into.push(1);
    }
    into.push(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn the_message_has_the_token_and_the_extensions() {
        let mut out = Vec::new();
        message(&OauthToken::new("vF9dft4qmT", UNIX_EPOCH), &mut out);
        assert_eq!(out, b"n,,\x01auth=Bearer vF9dft4qmT\x01\x01");
        out.clear();
        message(&OauthToken::new("t", UNIX_EPOCH).extension("logicalCluster", "lkc-1"), &mut out);
        assert_eq!(out, b"n,,\x01auth=Bearer t\x01logicalCluster=lkc-1\x01\x01");
    }
}
