//! How keys and values look while they flow, in a store and on the wire.
//!
//! Owns the [`Schema`] and [`Codec`] traits and the codecs that ship with the library. Invariant: a decoder borrows
//! from the bytes it is given and allocates only if its type must own. Bound: an encoder writes into a [`Scratch`] that
//! stops at its limit. Called by `node` (decode at the source, encode at sinks, repartitions and stores) and by users'
//! own codecs.
#[cfg(feature = "bincode")]
mod bincode;
mod bytes;
mod change;
mod changed;
mod error;
#[cfg(any(feature = "avro", feature = "protobuf"))]
mod framed;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(feature = "json")]
mod json;
mod list;
mod local;
pub(crate) mod murmur3;
mod opt;
mod owned_text;
mod place;
mod primitive;
mod read;
mod schema;
mod scratch;
pub(crate) mod subscription;
mod text;
mod uuid;
mod windowed;

#[cfg(feature = "bincode")]
pub use self::bincode::Bincode;
#[cfg(any(feature = "avro", feature = "protobuf"))]
pub use self::framed::Framed;
#[cfg(feature = "json")]
pub use self::json::Json;
pub use self::list::List;
pub use self::uuid::Uuid;
pub use bytes::Bytes;
pub use change::{Change, Delta};
pub(crate) use changed::Changed;
pub use error::DecodeError;
pub use local::{Local, local};
pub use opt::Opt;
pub use owned_text::Text;
pub use place::{Place, Side};
pub use primitive::{Bool, F32, F64, I16, I32, I64};
pub use read::{Read, Unread};
pub use schema::{Codec, Schema};
pub use scratch::Scratch;
pub(crate) use scratch::ScratchFull;
pub(crate) use subscription::Answer;
pub use text::Utf8;
#[allow(unused_imports)] // for windowed tables
pub(crate) use windowed::WindowForm;
pub use windowed::{OwnedWindowKey, WindowKey, WindowKeyOut, Windowed};
