//! Numbers and booleans, byte for byte as Java's serializers write them: big-endian.
use super::error::DecodeError;
use super::schema::{Codec, copy_schema};
use super::scratch::Scratch;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $type:ty, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name;

        copy_schema!($name, 'a, $type);

        impl Codec for $name {
            type Owned = $type;
            const FIXED_BYTES: Option<usize> = Some($bytes);

            #[inline]
            fn decode(&self, bytes: &[u8]) -> Result<$type, DecodeError> {
                match bytes.first_chunk::<$bytes>() {
                    Some(all) if bytes.len() == $bytes => Ok(<$type>::from_be_bytes(*all)),
                    _ => Err(DecodeError::Length { expected: $bytes, found: bytes.len() }),
                }
            }

            #[inline]
            fn encode(&self, view: $type, out: &mut Scratch) {
                out.extend(&view.to_be_bytes());
            }

            #[inline]
            fn view(owned: &$type) -> $type {
                *owned
            }

            #[inline]
            fn own(view: $type) -> $type {
                view
            }
        }
    };
}

number!(
    /// 16-bit integer: two bytes, as Java's `ShortSerializer`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// assert_eq!(I16.decode(&[0xff, 0xfe]), Ok(-2));
    /// ```
    I16, i16, 2
);
number!(
    /// 32-bit integer: four bytes, as Java's `IntegerSerializer`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// assert_eq!(I32.decode(&[0, 0, 1, 2]), Ok(258));
    /// ```
    I32, i32, 4
);
number!(
    /// 64-bit integer: eight bytes, as Java's `LongSerializer`. What `count` makes.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// assert_eq!(I64.decode(&[0, 0, 0, 0, 0, 0, 1, 2]), Ok(258));
    /// ```
    I64, i64, 8
);
number!(
    /// 32-bit IEEE 754: four bytes, as Java's `FloatSerializer`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// assert_eq!(F32.decode(&[0x3f, 0xc0, 0, 0]), Ok(1.5));
    /// ```
    F32, f32, 4
);
number!(
    /// 64-bit IEEE 754: eight bytes, as Java's `DoubleSerializer`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// assert_eq!(F64.decode(&[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]), Ok(1.5));
    /// ```
    F64, f64, 8
);

/// True or false: one byte, 1 or 0, as Java's `BooleanSerializer`.
///
/// ```
/// use plimsoll::prelude::*;
/// assert_eq!(Bool.decode(&[1]), Ok(true));
/// assert!(Bool.decode(&[2]).is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bool;

copy_schema!(Bool, 'a, bool);

impl Codec for Bool {
    type Owned = bool;

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<bool, DecodeError> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(DecodeError::Invalid("neither 0 nor 1")),
            _ => Err(DecodeError::Length { expected: 1, found: bytes.len() }),
        }
    }

    #[inline]
    fn encode(&self, view: bool, out: &mut Scratch) {
        out.push(u8::from(view));
    }

    #[inline]
    fn view(owned: &bool) -> bool {
        *owned
    }

    #[inline]
    fn own(view: bool) -> bool {
        view
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<C: Codec>(codec: &C, view: C::View<'_>) -> Vec<u8> {
        let mut out = Scratch::with_limit(64);
        codec.encode(view, &mut out);
        out.bytes().to_vec()
    }

    #[test]
    fn numbers_are_big_endian_as_java_writes_them() {
        assert_eq!(bytes(&I16, -2), [0xff, 0xfe]);
        assert_eq!(bytes(&I32, 1_000_000), [0, 0x0f, 0x42, 0x40]);
        assert_eq!(bytes(&I64, 1_700_000_000_000), [0, 0, 1, 0x8b, 0xcf, 0xe5, 0x68, 0]);
        assert_eq!(bytes(&F32, 1.5), [0x3f, 0xc0, 0, 0]);
        assert_eq!(bytes(&F64, -2.0), [0xc0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes(&Bool, true), [1]);
    }

    #[test]
    fn another_size_is_refused_with_both_sizes() {
        assert_eq!(I64.decode(&[0; 9]), Err(DecodeError::Length { expected: 8, found: 9 }));
        assert_eq!(I16.decode(&[]), Err(DecodeError::Length { expected: 2, found: 0 }));
        assert_eq!(Bool.decode(&[1, 1]), Err(DecodeError::Length { expected: 1, found: 2 }));
    }
}
