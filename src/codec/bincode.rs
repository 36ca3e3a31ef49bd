//! Values of any serde type, encoded by bincode.
use super::error::DecodeError;
use super::schema::{Codec, by_reference};
use super::scratch::Scratch;
use bincode::config::{Configuration, standard};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// An owned value of any serde type, encoded by bincode 2 with its standard configuration (little-endian,
/// variable-length integers). The version is pinned, since the encoding is stored data. Feature `bincode`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug, Clone)]
/// struct Sensor { id: u32, celsius: f32 }
///
/// let codec = Bincode::<Sensor>::new();
/// let mut out = Scratch::with_limit(64);
/// codec.encode(&Sensor { id: 7, celsius: 20.5 }, &mut out);
/// assert_eq!(out.bytes(), [7, 0, 0, 0xa4, 0x41]);
/// assert_eq!(codec.decode(out.bytes()), Ok(Sensor { id: 7, celsius: 20.5 }));
/// ```
pub struct Bincode<T>(PhantomData<fn() -> T>);

const CONFIG: Configuration = standard();

impl<T> Bincode<T> {
    /// The codec of this type.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Bincode<T> {
    fn default() -> Self {
        Self::new()
    }
}

by_reference!(Bincode);

impl<T: Serialize + DeserializeOwned + Clone + 'static> Codec for Bincode<T> {
    type Owned = T;

    fn decode(&self, bytes: &[u8]) -> Result<T, DecodeError> {
        match bincode::serde::decode_from_slice::<T, _>(bytes, CONFIG) {
            Ok((value, read)) if read == bytes.len() => Ok(value),
            Ok((_, read)) => Err(DecodeError::Length { expected: read, found: bytes.len() }),
            Err(_) => Err(DecodeError::Invalid("not a bincode value of this type")),
        }
    }

    /// A type whose `Serialize` fails is refused as too large a record would be: nothing else can be said here.
    fn encode(&self, view: &T, out: &mut Scratch) {
        if bincode::serde::encode_into_std_write(view, out, CONFIG).is_err() {
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
