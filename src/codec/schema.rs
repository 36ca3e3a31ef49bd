//! The two traits of every type that flows: how it looks, and its bytes.
use super::error::DecodeError;
use super::place::Place;
use super::scratch::Scratch;

/// A family of types: how a key or a value looks while it flows from node to node.
///
/// [`View`](Schema::View) is what closures see: a `Copy` borrow such as `&str`, `i64` or a small struct of such fields.
/// [`Out`](Schema::Out) is what closures and decoders return; it stays on the node's stack while the children look at
/// it, then it is dropped. For a type that borrows both are the same; for an owned one `Out` is the value and `View` a
/// reference to it.
///
/// A schema is a *value*, cheap to clone, and may carry state (a registry client, say). An operator that makes a new
/// type takes its schema as the first argument.
///
/// ```
/// use plimsoll::prelude::*;
///
/// // A price in cents at a place, as it lies in the bytes: eight bytes of price, then the place's name.
/// #[derive(Clone, Copy)]
/// struct Offer;
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct OfferView<'a> {
///     cents: i64,
///     place: &'a str,
/// }
/// impl Schema for Offer {
///     type View<'a> = OfferView<'a>;
///     type Out<'a> = OfferView<'a>;
///     fn lend<'s, 'a: 's>(out: &'s OfferView<'a>) -> OfferView<'s> {
///         *out
///     }
///     fn shorten<'s, 'a: 's>(view: OfferView<'a>) -> OfferView<'s> {
///         view
///     }
/// }
/// let offer = OfferView { cents: 250, place: "Oslo" };
/// assert_eq!(Offer::lend(&offer).place, "Oslo");
/// ```
pub trait Schema: Clone + Send + Sync + 'static {
    /// What closures see. `Copy`, so that several children may look at it.
    type View<'a>: Copy;
    /// What closures and decoders return.
    type Out<'a>;
    /// A view of what was returned, for as long as it stays on the node's stack.
    fn lend<'s, 'a: 's>(out: &'s Self::Out<'a>) -> Self::View<'s>;
    /// The same view for a shorter life; always `{ view }`, which the compiler cannot see for all families at once.
    fn shorten<'s, 'a: 's>(view: Self::View<'a>) -> Self::View<'s>;
}

/// A schema that has bytes on the wire and an owned form in a store.
///
/// Null is not among the values of a codec unless it says so: wrap it in [`Opt`](super::Opt) where a topic has null
/// keys or values.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let mut out = Scratch::with_limit(64);
/// I64.encode(258, &mut out);
/// assert_eq!(out.bytes(), [0, 0, 0, 0, 0, 0, 1, 2]); // big-endian, as Java's LongSerializer
/// assert_eq!(I64.decode(out.bytes()), Ok(258));
/// assert_eq!(Utf8.decode(b"caf\xc3\xa9"), Ok("café"));
/// ```
pub trait Codec: Schema {
    /// What a store keeps: the deserialized value.
    type Owned: 'static;

    /// The number of bytes that every value has, where Java's list serializer relies on it: numbers and UUIDs.
    const FIXED_BYTES: Option<usize> = None;

    /// Called once for each place where the codec is used, when a thread is wired: the topic, and key or value.
    fn bind(&self, _at: &Place<'_>) -> Self {
        self.clone()
    }

    /// Reads bytes, borrowing from them where the type can.
    ///
    /// # Errors
    /// The bytes are not of this type.
    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<Self::Out<'a>, DecodeError>;

    /// Reads a null.
    ///
    /// # Errors
    /// Always, unless null is a value of this codec.
    fn decode_null(&self) -> Result<Self::Out<'_>, DecodeError> {
        Err(DecodeError::Null)
    }

    /// Whether this view is the null; it is then written as null, skipped by aggregations and deletes in a store.
    fn is_null(_view: Self::View<'_>) -> bool {
        false
    }

    /// Appends the bytes of a view. Not called for a null.
    fn encode(&self, view: Self::View<'_>, out: &mut Scratch);

    /// The bytes of a view that lie in memory as [`encode`](Codec::encode) would write them: a sink then copies them
    /// once instead of twice. `None` where they must be made.
    fn as_bytes<'a>(&self, _view: Self::View<'a>) -> Option<&'a [u8]> {
        None
    }

    /// The view of an owned value.
    fn view(owned: &Self::Owned) -> Self::View<'_>;

    /// An owned value from a view.
    fn own(view: Self::View<'_>) -> Self::Owned;

    /// As [`own`](Codec::own), into a value that is there already: reuse its buffers, so that a store's update
    /// allocates nothing.
    fn own_into(view: Self::View<'_>, slot: &mut Self::Owned) {
        *slot = Self::own(view);
    }

    /// Bytes on the heap that the value owns, as an estimate. Used only where the allocator is not installed, whose
    /// counters are exact.
    fn weight(_owned: &Self::Owned) -> usize {
        0
    }
}

/// Schemas whose view and output are one `Copy` type.
macro_rules! copy_schema {
    ($schema:ty, $life:lifetime, $view:ty) => {
        impl $crate::codec::Schema for $schema {
            type View<$life> = $view;
            type Out<$life> = $view;

            #[inline]
            fn lend<'s, $life: 's>(out: &'s Self::Out<$life>) -> Self::View<'s> {
                *out
            }

            #[inline]
            fn shorten<'s, $life: 's>(view: Self::View<$life>) -> Self::View<'s> {
                view
            }
        }
    };
}
pub(crate) use copy_schema;

/// The schema of a marker over `T` whose values flow as `&T`: a copyable marker, named by its type.
macro_rules! by_reference {
    ($marker:ident) => {
        impl<T> Clone for $marker<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $marker<T> {}

        impl<T> std::fmt::Debug for $marker<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}<{}>", stringify!($marker), std::any::type_name::<T>())
            }
        }

        impl<T: 'static> crate::codec::Schema for $marker<T> {
            type View<'a> = &'a T;
            type Out<'a> = T;

            #[inline]
            fn lend<'s, 'a: 's>(out: &'s T) -> &'s T {
                out
            }

            #[inline]
            fn shorten<'s, 'a: 's>(view: &'a T) -> &'s T {
                view
            }
        }
    };
}
pub(crate) use by_reference;
