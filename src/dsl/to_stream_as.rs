//! A table's updates as a stream of another type, and the schemas of handles.
use super::kstream::KStream;
use super::ktable::KTable;
use crate::codec::{Change, Schema};
use crate::node::ops::ToStreamAs;
use crate::node::{Fn1, Make, Wiring};
use crate::topology::{NewNode, Port};
use std::marker::PhantomData;
use std::sync::Arc;

impl<K: Schema, V: Schema> KTable<K, V> {
    /// As [`to_stream`](Self::to_stream), where the closure says how an update looks; a deletion is `None`. It runs
    /// within the node that makes the stream, for a stream whose type has a null of its own, or a value for "gone".
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let counts = builder.stream("words", Consumed::with(Utf8, Utf8)).group_by_key().count(Materialized::new());
    /// counts.to_stream_as(I64, |n| n.unwrap_or(0)).to("counts-or-zero");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// The value is what the closure answers.
    /// # Late
    /// Every update goes on, whatever its time.
    /// # Stores
    /// None.
    /// # Java
    /// `KTable#toStream()`, whose values may be null.
    pub fn to_stream_as<W: Schema>(
        &self,
        to: W,
        f: impl for<'a> Fn1<Option<V::View<'a>>, W::Out<'a>>,
    ) -> KStream<K, W> {
        let f = Arc::new(f);
        let make: Make = Box::new(move |w, id| {
            let (f, out) = (Arc::clone(&f), w.edge::<K, W>(id, 0)?);
            Ok(Wiring::made::<K, Change<V>>(ToStreamAs { f, out, from: PhantomData }))
        });
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.processor("KTABLE-TOSTREAM-");
        let node = graph.add(NewNode { name, parents: &[self.at], outputs: 1, stores: &[], named_by: None, make });
        drop(graph);
        KStream::new(&self.shelf, Port(node, 0), self.key.clone(), to, false)
    }

    /// The schema of the keys.
    pub fn key_schema(&self) -> &K {
        &self.key
    }

    /// The schema of the values.
    pub fn value_schema(&self) -> &V {
        &self.value
    }
}

impl<K: Schema, V: Schema> KStream<K, V> {
    /// The schema of the keys.
    pub fn key_schema(&self) -> &K {
        &self.key
    }

    /// The schema of the values.
    pub fn value_schema(&self) -> &V {
        &self.value
    }
}
