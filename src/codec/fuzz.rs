//! Every codec, driven by arbitrary bytes. The fuzz target `codec` calls [`run`]; so does a unit test. Besides not
//! panicking, what is decoded must be encoded to bytes that decode to the same, and to the same bytes where a value has
//! only one form.
use super::*;

/// Bytes of what is encoded, at most.
const LIMIT: usize = 1 << 16;

fn encoded<C: Codec>(codec: &C, view: C::View<'_>) -> Option<Vec<u8>> {
    let mut out = Scratch::with_limit(LIMIT);
    codec.encode(view, &mut out);
    (!out.is_over()).then(|| out.bytes().to_vec())
}

/// Decodes, keeps, encodes and decodes again. `canonical`: a value has one form.
fn round<C: Codec>(codec: &C, bytes: &[u8], canonical: bool) {
    let Ok(first) = codec.decode(bytes) else { return };
    let mut owned = C::own(C::lend(&first));
    C::own_into(C::lend(&first), &mut owned);
    let Some(again) = encoded(codec, C::view(&owned)) else { return };
    if canonical {
        assert_eq!(again, bytes, "another form");
    }
    let second = codec.decode(&again).map(|second| encoded(codec, C::lend(&second)));
    assert!(second.is_ok_and(|second| second.as_ref() == Some(&again)), "what was encoded is read otherwise");
}

/// Decodes `input`: the first byte chooses the codec.
pub(crate) fn run(input: &[u8]) {
    let [kind, bytes @ ..] = input else { return };
    match kind % 16 {
        0 => round(&Utf8, bytes, true),
        1 => round(&Text, bytes, true),
        2 => round(&Bytes, bytes, true),
        3 => round(&I16, bytes, true),
        4 => round(&I32, bytes, true),
        5 => round(&I64, bytes, true),
        6 => round(&F32, bytes, true),
        7 => round(&F64, bytes, true),
        8 => round(&Bool, bytes, true),
        9 => round(&Uuid, bytes, false), // upper case is read, too
        10 => round(&List(Opt(I64)), bytes, false),
        11 => round(&List(Opt(Utf8)), bytes, true),
        12 => round(&List(List(I16)), bytes, false),
        13 => round(&Windowed::time(Utf8, std::time::Duration::from_secs(1)), bytes, true),
        14 => round(&Windowed::session(Opt(Bytes)), bytes, true),
        _ => framed(bytes),
    }
}

#[cfg(feature = "protobuf")]
fn framed(bytes: &[u8]) {
    let write = |bytes: &Vec<u8>, out: &mut Scratch| {
        out.extend(bytes);
        true
    };
    // The number of the schema that is written is the one that was read, if it was this one.
    for message in [0, 1, 300] {
        round(&Framed::protobuf(7, message, |_, bytes: &[u8]| Ok(bytes.to_vec()), write), bytes, false);
    }
}

#[cfg(not(feature = "protobuf"))]
fn framed(_bytes: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of every codec, their beginnings, and each of their bytes changed.
    #[test]
    fn no_bytes_make_a_codec_panic() {
        let mut seeds: Vec<Vec<u8>> = vec![
            b"text".to_vec(),
            b"67e55044-10b1-426f-9247-bb680e5fe0c8".to_vec(),
            b"\0\0\0\0\x01\0\0\0\x00\0\0\0\x02\0\0\0\0\0\0\0\x02".to_vec(),
            b"\x01\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff".to_vec(),
            b"\x01\0\0\0\x01\0\0\0\x0b\0\0\0\0\0\0\0\0\x01\x00\x07".to_vec(),
            b"key\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01".to_vec(),
            vec![0, 0, 0, 0, 7, 2, 2, 1, 2],
        ];
        for seed in seeds.clone() {
            seeds.extend((0..seed.len()).map(|cut| seed[..cut].to_vec()));
            for at in 0..seed.len() {
                for byte in [0, 1, 0x7f, 0x80, 0xff] {
                    let mut changed = seed.clone();
                    changed[at] = byte;
                    seeds.push(changed);
                }
            }
        }
        for seed in &seeds {
            for kind in 0..16 {
                run(&[&[kind], seed.as_slice()].concat());
            }
        }
    }
}
