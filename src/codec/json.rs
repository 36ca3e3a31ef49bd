//! Values of any serde type, as JSON.
use super::error::DecodeError;
use super::schema::{Codec, by_reference};
use super::scratch::Scratch;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// An owned value of any serde type, as JSON without white space. Feature `json`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// #[derive(serde::Serialize, serde::Deserialize, PartialEq, Debug, Clone)]
/// struct Sensor { id: u32, celsius: f32 }
///
/// let codec = Json::<Sensor>::new();
/// let mut out = Scratch::with_limit(64);
/// codec.encode(&Sensor { id: 7, celsius: 20.5 }, &mut out);
/// assert_eq!(out.bytes(), br#"{"id":7,"celsius":20.5}"#);
/// assert_eq!(codec.decode(out.bytes()), Ok(Sensor { id: 7, celsius: 20.5 }));
/// ```
pub struct Json<T>(PhantomData<fn() -> T>);

impl<T> Json<T> {
    /// The codec of this type.
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for Json<T> {
    fn default() -> Self {
        Self::new()
    }
}

by_reference!(Json);

impl<T: Serialize + DeserializeOwned + Clone + 'static> Codec for Json<T> {
    type Owned = T;

    fn decode(&self, bytes: &[u8]) -> Result<T, DecodeError> {
        serde_json::from_slice(bytes).map_err(|_| DecodeError::Invalid("not JSON of this type"))
    }

    /// A type whose `Serialize` fails is refused as too large a record would be: nothing else can be said here.
    fn encode(&self, view: &T, out: &mut Scratch) {
        if serde_json::to_writer(&mut *out, view).is_err() {
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
