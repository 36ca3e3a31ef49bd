//! The bytes of foreign-key joins: subscriptions, answers to them and the keys of the store between, as Kafka Streams
//! writes them.
use super::error::DecodeError;
use super::schema::copy_schema;
use super::scratch::Scratch;

const NO_HASH: u8 = 0x80;
const HASH_BYTES: usize = 16;
/// With the partition of the primary key behind it.
const SUBSCRIPTION_VERSION: u8 = 1;
const ANSWER_VERSION: u8 = 0;

const BAD: DecodeError = DecodeError::Invalid("not a subscription of a foreign-key join");

/// What the side of the foreign key is to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Instruction {
    /// Forget the subscription.
    Delete = 0,
    /// Forget it and answer that there is nothing.
    DeleteAndAnswer = 1,
    /// Keep it and answer, with nothing if there is no row.
    Answer = 2,
    /// Keep it and answer if there is a row.
    AnswerIfThere = 3,
}

/// A subscription: a row of the left table wants to know a row of the right one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscription<'a> {
    pub(crate) instruction: Instruction,
    /// Of the left value; none if it was deleted.
    pub(crate) hash: Option<[u8; HASH_BYTES]>,
    /// The left row's key.
    pub(crate) key: &'a [u8],
    /// Where the left row is.
    pub(crate) partition: Option<u32>,
}

impl<'a> Subscription<'a> {
    /// Appends the bytes in front of and behind the key, which `key` appends.
    pub(crate) fn write(
        instruction: Instruction,
        hash: Option<[u8; HASH_BYTES]>,
        partition: u32,
        out: &mut Scratch,
        key: impl FnOnce(&mut Scratch),
    ) {
        out.push(if hash.is_some() { SUBSCRIPTION_VERSION } else { SUBSCRIPTION_VERSION | NO_HASH });
        out.push(instruction as u8);
        out.extend(hash.as_ref().map_or(&[], |hash| &hash[..]));
        key(out);
        out.extend(&partition.to_be_bytes());
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let [version, instruction, rest @ ..] = bytes else { return Err(BAD) };
        let instruction = match instruction {
            0 => Instruction::Delete,
            1 => Instruction::DeleteAndAnswer,
            2 => Instruction::Answer,
            3 => Instruction::AnswerIfThere,
            _ => return Err(BAD),
        };
        let (hash, rest) = read_hash(*version, rest)?;
        let (key, partition) = match version & !NO_HASH {
            0 => (rest, None),
            SUBSCRIPTION_VERSION => {
                let (key, partition) = rest.split_last_chunk().ok_or(BAD)?;
                (key, Some(u32::from_be_bytes(*partition)))
            }
            _ => return Err(BAD),
        };
        Ok(Self { instruction, hash, key, partition })
    }
}

fn read_hash(version: u8, bytes: &[u8]) -> Result<(Option<[u8; HASH_BYTES]>, &[u8]), DecodeError> {
    if version & NO_HASH != 0 {
        return Ok((None, bytes));
    }
    let (hash, rest) = bytes.split_first_chunk().ok_or(BAD)?;
    Ok((Some(*hash), rest))
}

/// Appends what stands in front of an answer's value.
pub(crate) fn write_answer(hash: Option<[u8; HASH_BYTES]>, out: &mut Scratch) {
    out.push(if hash.is_some() { ANSWER_VERSION } else { ANSWER_VERSION | NO_HASH });
    out.extend(hash.as_ref().map_or(&[], |hash| &hash[..]));
}

/// The hash of the row that was asked for, and the bytes of the answer's value.
pub(crate) type ReadAnswer<'a> = (Option<[u8; HASH_BYTES]>, Option<&'a [u8]>);

/// The hash and the value's bytes of an answer; no bytes are no value.
pub(crate) fn read_answer(bytes: &[u8]) -> Result<ReadAnswer<'_>, DecodeError> {
    let (version, rest) = bytes.split_first().ok_or(BAD)?;
    if version & !NO_HASH != ANSWER_VERSION {
        return Err(BAD);
    }
    let (hash, value) = read_hash(*version, rest)?;
    Ok((hash, (!value.is_empty()).then_some(value)))
}

/// Appends the part of a store's key that all subscriptions of a foreign key share.
pub(crate) fn write_foreign_key(out: &mut Scratch, key: impl FnOnce(&mut Scratch)) {
    let at = out.len();
    key(out);
    out.insert(at, &u32::try_from(out.len() - at).unwrap_or(u32::MAX).to_be_bytes());
}

/// The primary key in a store's key (without the partition).
pub(crate) fn primary_key(key: &[u8]) -> Result<&[u8], DecodeError> {
    let (length, rest) = key.split_first_chunk().ok_or(BAD)?;
    rest.get(usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX)..).ok_or(BAD)
}

/// An answer on its way: its bytes, and the partition where the left row is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer;

copy_schema!(Answer, 'a, (&'a [u8], Option<u32>));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subscriptions_have_javas_bytes_and_are_read_again() {
        let mut out = Scratch::with_limit(100);
        Subscription::write(Instruction::Answer, Some([7; 16]), 3, &mut out, |out| out.extend(b"pk"));
        assert_eq!(out.bytes(), [&[1, 2][..], &[7; 16], b"pk", &[0, 0, 0, 3]].concat());
        let read = Subscription::read(out.bytes()).unwrap();
        assert_eq!((read.instruction, read.hash, read.key), (Instruction::Answer, Some([7; 16]), &b"pk"[..]));
        assert_eq!(read.partition, Some(3));
        out.clear();
        Subscription::write(Instruction::DeleteAndAnswer, None, 0, &mut out, |out| out.extend(b"a"));
        assert_eq!(out.bytes(), [0x81, 1, b'a', 0, 0, 0, 0]);
        let old = Subscription::read(&[0x80, 3, b'a']).unwrap();
        assert_eq!((old.hash, old.key, old.partition), (None, &b"a"[..], None));
        for bad in [&[][..], &[1], &[1, 4, 0, 0, 0, 0], &[1, 0, 1], &[0x82, 0, 0, 0, 0, 0]] {
            assert!(Subscription::read(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn answers_and_combined_keys_have_javas_bytes() {
        let mut out = Scratch::with_limit(100);
        write_answer(None, &mut out);
        assert_eq!((out.bytes(), read_answer(&[0x80, 1])), (&[0x80][..], Ok((None, Some(&[1][..])))));
        assert_eq!(read_answer(&[0x80]), Ok((None, None)));
        out.clear();
        write_foreign_key(&mut out, |out| out.extend(b"fk"));
        out.extend(b"pk");
        assert_eq!(out.bytes(), [0, 0, 0, 2, b'f', b'k', b'p', b'k']);
        assert_eq!(primary_key(out.bytes()), Ok(&b"pk"[..]));
        assert_eq!(primary_key(&[0, 0, 0, 9, 1]), Err(BAD));
    }
}
