//! Owned values that never leave the process.
use super::schema::by_reference;
use std::marker::PhantomData;

/// An owned value of any type that is never serialized. It is no [`Codec`](super::Codec), so `.to()` and
/// `.group_by_key()` do not compile on it: give it bytes with `map_values` first. Made by [`local`].
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::values(Utf8))
///     .map_values(local::<Vec<String>>(), |line| line.split(',').map(str::to_owned).collect())
///     .map_values(I64, |fields| fields.len() as i64)
///     .select_key(Utf8, |_, _| "fields")
///     .to("counts");
/// # builder.build().unwrap();
/// ```
///
/// ```compile_fail
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("lines", Consumed::with(Utf8, Utf8))
///     .map_values(local::<String>(), |line| line.to_owned())
///     .to("out"); // a local value has no bytes
/// ```
pub struct Local<T>(PhantomData<fn() -> T>);

/// The schema of an owned value that is never serialized.
///
/// ```
/// use plimsoll::prelude::*;
/// let pairs = local::<(String, i64)>();
/// # let _ = pairs;
/// ```
pub const fn local<T>() -> Local<T> {
    Local(PhantomData)
}

by_reference!(Local);
