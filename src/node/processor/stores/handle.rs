//! Handles of stores: made with the topology, opened with a context.
use crate::base::id::{NodeId, StoreId};
use crate::node::Cx;
use crate::node::wiring::{Wiring, WiringError};
use std::any::Any;
use std::sync::Arc;

/// Opens a store for a processor's node.
pub(crate) type Opener =
    Arc<dyn Fn(&mut Wiring<'_>, NodeId) -> Result<(StoreId, Box<dyn Any>), WiringError> + Send + Sync>;

pub(super) mod sealed {
    pub trait Sealed {}
}

/// A store that a processor can be connected to. Not for implementing.
pub trait Connect: sealed::Sealed {
    #[doc(hidden)]
    fn opener(&self) -> OpenerBox;
}

/// Keeps the crate's own types out of the signature.
#[doc(hidden)]
pub struct OpenerBox(pub(crate) StoreId, pub(crate) Opener);

/// A handle that [`Context::store`](crate::Context::store) opens. Not for implementing.
pub trait StoreHandle: Connect {
    /// What a context lends.
    type Open<'c>;

    #[doc(hidden)]
    fn view<'c>(&self, all: StoresOf<'c>) -> Option<Self::Open<'c>>;
}

/// The stores of a node and the context of the step.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct StoresOf<'c> {
    pub(crate) cx: Cx<'c>,
    pub(crate) stores: &'c [(StoreId, Box<dyn Any>)],
}

impl<'c> StoresOf<'c> {
    /// The opened store of this number.
    pub(super) fn get<T: 'static>(self, id: StoreId) -> Option<&'c T> {
        let (_, opened) = self.stores.iter().find(|(store, _)| *store == id)?;
        opened.downcast_ref()
    }
}

/// A handle type with its codecs, its view and its number.
macro_rules! store_handle {
    ($(#[$doc:meta])* $handle:ident, $view:ident) => {
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $handle<K, V> {
            id: StoreId,
            name: Arc<str>,
            key: K,
            value: V,
        }

        impl<K, V> $handle<K, V> {
            pub(crate) fn new(id: StoreId, name: &str, key: K, value: V) -> Self {
                Self { id, name: name.into(), key, value }
            }

            /// The store's name.
            pub fn name(&self) -> &str {
                &self.name
            }
        }

        impl<K, V> fmt::Debug for $handle<K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($handle)).field(&self.name).finish()
            }
        }

        impl<K, V> super::handle::sealed::Sealed for $handle<K, V> {}

        impl<K: Codec, V: Codec> Connect for $handle<K, V> {
            fn opener(&self) -> OpenerBox {
                let (id, key, value) = (self.id, self.key.clone(), self.value.clone());
                OpenerBox(id, Arc::new(move |w, node| {
                    let opened: Box<dyn Any> = Box::new(Opened::open(w, node, id, &key, &value)?);
                    Ok((id, opened))
                }))
            }
        }

        impl<K: Codec, V: Codec> StoreHandle for $handle<K, V> {
            type Open<'c> = $view<'c, K, V>;

            fn view<'c>(&self, all: StoresOf<'c>) -> Option<$view<'c, K, V>> {
                Some($view { opened: all.get(self.id)?, cx: all.cx })
            }
        }

        impl<K: Codec, V: Codec> fmt::Debug for $view<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view)).finish_non_exhaustive()
            }
        }
    };
}
pub(super) use store_handle;
