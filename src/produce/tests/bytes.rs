//! Writing Kafka's primitive types, for the scripted brokers.

pub(super) fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(bytes);
}

pub(super) fn put_len(out: &mut Vec<u8>, len: usize, flexible: bool) {
    match flexible {
        true if len < 127 => out.push(len as u8 + 1),
        true => put(out, &[(len as u8 + 1) | 0x80, ((len + 1) >> 7) as u8]),
        false => put(out, &(len as u32).to_be_bytes()),
    }
}

pub(super) fn put_string(out: &mut Vec<u8>, text: &str, flexible: bool) {
    match flexible {
        true => put_len(out, text.len(), true),
        false => put(out, &(text.len() as u16).to_be_bytes()),
    }
    put(out, text.as_bytes());
}
