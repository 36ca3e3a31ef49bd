//! PLAIN (RFC 4616): one message, one answer.

/// Writes the message: no other identity, the name, the password.
pub(super) fn message(username: &str, password: &[u8], into: &mut Vec<u8>) {
    into.push(0);
    into.extend_from_slice(username.as_bytes());
    into.push(0);
    into.extend_from_slice(password);
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_message_is_that_of_the_rfc() {
        let mut out = Vec::new();
        super::message("tim", b"tanstaaftanstaaf", &mut out);
        assert_eq!(out, b"\0tim\0tanstaaftanstaaf");
    }
}
