//! Values framed as schema registries want them: a zero, the schema's number, the payload.
//!
//! Owns the frame, not the payload: what Avro or Protobuf makes of it is the closures' business. Invariant: what is
//! written is read again. Bound: a record's.
use super::error::DecodeError;
use super::schema::{Codec, Schema};
use super::scratch::Scratch;
use std::fmt;
use std::sync::Arc;

/// First byte of a framed value.
const MAGIC: u8 = 0;

/// Reads a payload that was written with the schema of this number.
type Read<T> = dyn Fn(u32, &[u8]) -> Result<T, DecodeError> + Send + Sync;
/// Writes a payload; false when the value has none.
type Write<T> = dyn Fn(&T, &mut Scratch) -> bool + Send + Sync;

/// What stands between the number and the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    #[cfg(feature = "avro")]
    Avro,
    /// The message's place among those of its file.
    #[cfg(feature = "protobuf")]
    Protobuf(u32),
}

/// A value framed for a schema registry, byte for byte as the registry's Java serializers write it. The payload is read
/// and written by closures, over `apache-avro`, `prost` or what the application has; the reader is told with which
/// schema the record was written. Features `avro` and `protobuf`.
pub struct Framed<T> {
    schema: u32,
    form: Form,
    read: Arc<Read<T>>,
    write: Arc<Write<T>>,
}

impl<T> Framed<T> {
    /// An Avro value: the zero, the schema's number, the datum in Avro's binary form. Values are written with the
    /// schema of this number. Feature `avro`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// // The datum of `"long"` is a zigzag varint; here of one byte.
    /// let codec = Framed::avro(
    ///     7,
    ///     |schema, datum: &[u8]| match (schema, datum) {
    ///         (7, [n]) => Ok(i64::from(n >> 1)),
    ///         _ => Err(DecodeError::Invalid("another schema")),
    ///     },
    ///     |n, out| {
    ///         out.push((n << 1) as u8);
    ///         true
    ///     },
    /// );
    /// let mut out = Scratch::with_limit(64);
    /// codec.encode(&21, &mut out);
    /// assert_eq!(out.bytes(), [0, 0, 0, 0, 7, 42]);
    /// assert_eq!(codec.decode(out.bytes()), Ok(21));
    /// ```
    #[cfg(feature = "avro")]
    pub fn avro(
        schema: u32,
        read: impl Fn(u32, &[u8]) -> Result<T, DecodeError> + Send + Sync + 'static,
        write: impl Fn(&T, &mut Scratch) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { schema, form: Form::Avro, read: Arc::new(read), write: Arc::new(write) }
    }

    /// A Protobuf message: the zero, the schema's number, which of the file's top-level messages it is, the message.
    /// Values are written with the schema of this number. Feature `protobuf`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let first = Framed::protobuf(
    ///     7,
    ///     0,
    ///     |_, message: &[u8]| Ok(message.to_vec()),
    ///     |message, out| {
    ///         out.extend(message);
    ///         true
    ///     },
    /// );
    /// let mut out = Scratch::with_limit(64);
    /// first.encode(&b"\x08\x01".to_vec(), &mut out);
    /// assert_eq!(out.bytes(), [0, 0, 0, 0, 7, 0, 8, 1]); // the first message is a single 0
    /// assert_eq!(first.decode(out.bytes()).unwrap(), [8, 1]);
    /// ```
    #[cfg(feature = "protobuf")]
    pub fn protobuf(
        schema: u32,
        message: u32,
        read: impl Fn(u32, &[u8]) -> Result<T, DecodeError> + Send + Sync + 'static,
        write: impl Fn(&T, &mut Scratch) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { schema, form: Form::Protobuf(message), read: Arc::new(read), write: Arc::new(write) }
    }

    /// What follows the number.
    fn payload<'b>(&self, rest: &'b [u8]) -> Result<&'b [u8], DecodeError> {
        match self.form {
            #[cfg(feature = "avro")]
            Form::Avro => Ok(rest),
            #[cfg(feature = "protobuf")]
            Form::Protobuf(message) => {
                let mut from = rest;
                let depth = unzigzag(&mut from)?;
                let first = if depth == 0 { 0 } else { unzigzag(&mut from)? };
                match (depth, first == i64::from(message)) {
                    (0 | 1, true) => Ok(from),
                    _ => Err(DecodeError::Invalid("another message of the schema")),
                }
            }
        }
    }

    fn front(&self, out: &mut Scratch) {
        out.push(MAGIC);
        out.extend(&self.schema.to_be_bytes());
        match self.form {
            #[cfg(feature = "avro")]
            Form::Avro => {}
            #[cfg(feature = "protobuf")]
            Form::Protobuf(0) => out.push(0),
            #[cfg(feature = "protobuf")]
            Form::Protobuf(message) => {
                zigzag(1, out);
                zigzag(message, out);
            }
        }
    }
}

impl<T> Clone for Framed<T> {
    fn clone(&self) -> Self {
        let (read, write) = (Arc::clone(&self.read), Arc::clone(&self.write));
        Self { schema: self.schema, form: self.form, read, write }
    }
}

impl<T> fmt::Debug for Framed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framed").field("schema", &self.schema).field("form", &self.form).finish_non_exhaustive()
    }
}

impl<T: 'static> Schema for Framed<T> {
    type View<'a> = &'a T;
    type Out<'a> = T;

    fn lend<'s, 'a: 's>(out: &'s T) -> &'s T {
        out
    }

    fn shorten<'s, 'a: 's>(view: &'a T) -> &'s T {
        view
    }
}

impl<T: Clone + 'static> Codec for Framed<T> {
    type Owned = T;

    fn decode(&self, bytes: &[u8]) -> Result<T, DecodeError> {
        let [MAGIC, a, b, c, d, rest @ ..] = bytes else {
            return Err(DecodeError::Invalid("not framed for a schema registry: no 0 and four bytes in front"));
        };
        (self.read)(u32::from_be_bytes([*a, *b, *c, *d]), self.payload(rest)?)
    }

    /// A value that the closure cannot write is refused as too large a record would be.
    fn encode(&self, view: &T, out: &mut Scratch) {
        self.front(out);
        if !(self.write)(view, out) {
            out.refuse();
        }
    }

    fn view(owned: &T) -> &T {
        owned
    }

    fn own(view: &T) -> T {
        view.clone()
    }

    fn own_into(view: &T, slot: &mut T) {
        slot.clone_from(view);
    }
}

#[cfg(feature = "protobuf")]
fn zigzag(number: u32, out: &mut Scratch) {
    let mut left = u64::from(number) << 1;
    while left >= 0x80 {
        out.push((left & 0x7f | 0x80) as u8);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(feature = "protobuf")]
fn unzigzag(from: &mut &[u8]) -> Result<i64, DecodeError> {
    let mut value = 0u64;
    for shift in (0..35).step_by(7) {
        let Some((byte, rest)) = from.split_first() else { break };
        *from = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
        }
    }
    Err(DecodeError::Invalid("no message index in front of a Protobuf message"))
}

#[cfg(all(test, feature = "protobuf"))]
mod tests {
    use super::*;

    fn message(number: u32) -> Framed<Vec<u8>> {
        Framed::protobuf(
            258,
            number,
            |_, bytes| Ok(bytes.to_vec()),
            |bytes, out| {
                out.extend(bytes);
                true
            },
        )
    }

    #[test]
    fn a_message_that_is_not_the_first_has_its_place_in_zigzag_varints() {
        let mut out = Scratch::with_limit(64);
        message(100).encode(&b"x".to_vec(), &mut out);
        assert_eq!(out.bytes(), [0, 0, 0, 1, 2, 2, 200, 1, b'x']);
        assert_eq!(message(100).decode(out.bytes()).unwrap(), b"x");
        let other = message(0).decode(out.bytes());
        assert_eq!(other, Err(DecodeError::Invalid("another message of the schema")));
        assert!(message(0).decode(&[0, 0, 0, 1, 2, 0x80, 0x80, 0x80, 0x80, 0x80]).is_err());
        assert!(message(0).decode(&[1, 0, 0, 1, 2, 0]).is_err());
    }
}
