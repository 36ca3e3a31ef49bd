//! `split` and `branch`.
use super::kstream::KStream;
use crate::codec::Schema;
use crate::node::ops::{Branch, Pass, Predicate};
use crate::node::{Fn2, Make, Wiring};
use crate::topology::{NewNode, Port};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

type Predicates<K, V> = Arc<Mutex<Vec<Predicate<K, V>>>>;

/// A stream being split, made by [`KStream::split`]: each record goes to the first branch whose closure says yes.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// let mut split = builder.stream("numbers", Consumed::with(Utf8, I64)).split_named("size-");
/// split.branch_named("small", |_, n| n < 10).to("small");
/// split.branch_named("medium", |_, n| n < 1000).to("medium");
/// split.default_branch_named("large").to("large");
/// assert!(builder.build().unwrap().describe().contains("Processor: size-medium"));
/// ```
pub struct Split<K: Schema, V: Schema> {
    /// The splitting node.
    node: KStream<K, V>,
    name: String,
    predicates: Predicates<K, V>,
}

impl<K: Schema, V: Schema> fmt::Debug for Split<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<K: Schema, V: Schema> KStream<K, V> {
    /// Begins to split the stream. Records that no branch takes are dropped.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let mut split = builder.stream("numbers", Consumed::with(Utf8, I64)).split();
    /// split.branch(|_, n| n < 10).to("small");
    /// split.default_branch().to("large");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.split()`; each branch answers its stream at once instead of in a map.
    pub fn split(&self) -> Split<K, V> {
        self.split_as(None)
    }

    /// As [`split`](Self::split); the name begins the names of all branches.
    pub fn split_named(&self, name: &str) -> Split<K, V> {
        self.split_as(Some(name))
    }

    fn split_as(&self, name: Option<&str>) -> Split<K, V> {
        let predicates: Predicates<K, V> = Arc::default();
        let wired = Arc::clone(&predicates);
        let make: Make = Box::new(move |w, id| {
            let predicates = wired.lock().unwrap_or_else(PoisonError::into_inner);
            let ways = predicates.iter().enumerate().map(|(port, p)| Ok((p.clone(), w.edge::<K, V>(id, port)?)));
            Ok(Wiring::made::<K, V>(Branch { ways: ways.collect::<Result<_, _>>()? }))
        });
        let mut graph = self.shelf.borrow_mut();
        let name = graph.names.given_or(name, "KSTREAM-BRANCH-");
        let new = NewNode {
            name: name.clone(),
            parents: &[self.at],
            outputs: 0,
            stores: &[],
            named_by: Some("split_named"),
            make,
        };
        let node = graph.add(new);
        drop(graph);
        let node = Self::new(&self.shelf, Port(node, 0), self.key.clone(), self.value.clone(), self.key_changed);
        Split { node, name, predicates }
    }

    /// The records for which the closure says yes, and the others.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// let builder = StreamsBuilder::new();
    /// let (even, odd) = builder.stream("numbers", Consumed::with(Utf8, I64)).branch(|_, n| n % 2 == 0);
    /// even.to("even");
    /// odd.to("odd");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// # Null
    /// Null keys and values reach the closure where the schemas allow them (`Opt`).
    /// # Late
    /// Time plays no role: a late record is treated as any other.
    /// # Stores
    /// None.
    /// # Java
    /// `KStream.split().branch(predicate).defaultBranch()`
    pub fn branch(&self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> (Self, Self) {
        let mut split = self.split();
        let matched = split.branch(f);
        (matched, split.default_branch())
    }
}

impl<K: Schema, V: Schema> Split<K, V> {
    /// Adds a branch for records that no earlier branch took.
    pub fn branch(&mut self, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> KStream<K, V> {
        let number = self.predicates.lock().unwrap_or_else(PoisonError::into_inner).len() + 1;
        self.add(&number.to_string(), Some(Arc::new(f)))
    }

    /// As [`branch`](Self::branch); the node's name is the split's name and this one.
    pub fn branch_named(&mut self, name: &str, f: impl for<'a> Fn2<K::View<'a>, V::View<'a>, bool>) -> KStream<K, V> {
        self.add(name, Some(Arc::new(f)))
    }

    /// The branch of all records that no other took.
    pub fn default_branch(mut self) -> KStream<K, V> {
        self.add("0", None)
    }

    /// As [`default_branch`](Self::default_branch); the node's name is the split's name and this one.
    pub fn default_branch_named(mut self, name: &str) -> KStream<K, V> {
        self.add(name, None)
    }

    fn add(&mut self, suffix: &str, predicate: Predicate<K, V>) -> KStream<K, V> {
        let mut graph = self.node.shelf.borrow_mut();
        // A branch uses up a number though its name has none, as in Kafka Streams.
        graph.names.processor("");
        self.predicates.lock().unwrap_or_else(PoisonError::into_inner).push(predicate);
        let from = graph.add_output(self.node.at.0);
        let make: Make = Box::new(|w, id| Ok(Wiring::made::<K, V>(Pass { out: w.edge::<K, V>(id, 0)? })));
        let name = format!("{}{suffix}", self.name);
        let named_by = Some("branch_named");
        let node = graph.add(NewNode { name, parents: &[from], outputs: 1, stores: &[], named_by, make });
        drop(graph);
        let of = &self.node;
        KStream::new(&of.shelf, Port(node, 0), of.key.clone(), of.value.clone(), of.key_changed)
    }
}
