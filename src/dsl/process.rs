//! Operators that run processors of the user's.
use super::kstream::KStream;
use crate::base::id::StoreId;
use crate::codec::Schema;
use crate::node::{Connect, FixedKey, FixedKeyProcessor, Make, Opener, OpenerBox, Processor, ProcessorNode, Supplier};
use crate::topology::{NewNode, Port};
use std::fmt;
use std::sync::Arc;

/// How a processor is added: a name, stores.
///
/// ```
/// use plimsoll::prelude::*;
///
/// struct Echo;
/// impl Processor for Echo {
///     type KIn = Utf8;
///     type VIn = Utf8;
///     type KOut = Utf8;
///     type VOut = Utf8;
///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
///         cx.forward(record)
///     }
/// }
///
/// let builder = StreamsBuilder::new();
/// let stream = builder.stream("in", Consumed::with(Utf8, Utf8));
/// stream.process_with(Utf8, Utf8, || Echo, Processing::named("echo")).to("out");
/// assert!(builder.build().unwrap().describe().contains("Processor: echo (stores: [])"));
/// ```
#[derive(Clone, Default)]
pub struct Processing {
    pub(crate) name: Option<String>,
    pub(crate) stores: Vec<StoreId>,
    pub(crate) openers: Vec<Opener>,
}

impl fmt::Debug for Processing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processing").field("name", &self.name).field("stores", &self.stores.len()).finish()
    }
}

impl Processing {
    /// A generated name, no stores.
    pub fn new() -> Self {
        Self::default()
    }

    /// A node of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    /// Connects the processor to these stores: it opens them by their handles.
    #[must_use]
    pub fn stores(mut self, stores: &[&dyn Connect]) -> Self {
        for OpenerBox(id, opener) in stores.iter().map(|store| store.opener()) {
            if !self.stores.contains(&id) {
                self.stores.push(id);
                self.openers.push(opener);
            }
        }
        self
    }
}

impl<K: Schema, V: Schema> KStream<K, V> {
    /// Hands each record to a processor; what it forwards is the new stream. The supplier makes one processor for each
    /// task. Since it may change the key, grouping or joining behind it repartitions.
    ///
    /// # Null
    /// Reaches the processor where the schema is an [`Opt`](crate::Opt).
    ///
    /// # Late
    /// Reaches the processor, which may compare it with [`Context::stream_time`](crate::Context::stream_time).
    ///
    /// # Stores
    /// Those that [`process_with`](Self::process_with) is given.
    ///
    /// # Java
    /// `KStream.process(supplier)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// struct Twice;
    /// impl Processor for Twice {
    ///     type KIn = Utf8;
    ///     type VIn = I64;
    ///     type KOut = Utf8;
    ///     type VOut = I64;
    ///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, I64>) -> Processed {
    ///         cx.forward(record)?;
    ///         cx.forward(record.with_value(-record.value))
    ///     }
    /// }
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, I64)).process(Utf8, I64, || Twice).to("out");
    /// # builder.build().unwrap();
    /// ```
    ///
    /// A processor of other records than the stream has does not compile:
    ///
    /// ```compile_fail,E0271
    /// # use plimsoll::prelude::*;
    /// # struct Twice;
    /// # impl Processor for Twice {
    /// #     type KIn = Utf8;
    /// #     type VIn = I64;
    /// #     type KOut = Utf8;
    /// #     type VOut = I64;
    /// #     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, I64>) -> Processed {
    /// #         cx.forward(record)
    /// #     }
    /// # }
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, Utf8)).process(Utf8, I64, || Twice).to("out");
    /// ```
    pub fn process<J: Schema, W: Schema, P>(
        &self,
        key: J,
        value: W,
        supplier: impl Fn() -> P + Send + Sync + 'static,
    ) -> KStream<J, W>
    where
        P: Processor<KIn = K, VIn = V, KOut = J, VOut = W>,
    {
        self.process_with(key, value, supplier, Processing::new())
    }

    /// As [`process`](Self::process), with a name or stores.
    ///
    /// # Null
    /// As there.
    ///
    /// # Late
    /// As there.
    ///
    /// # Stores
    /// Those that are named; the processor opens them by their handles.
    ///
    /// # Java
    /// `KStream.process(supplier, named, storeNames)`.
    pub fn process_with<J: Schema, W: Schema, P>(
        &self,
        key: J,
        value: W,
        supplier: impl Fn() -> P + Send + Sync + 'static,
        how: Processing,
    ) -> KStream<J, W>
    where
        P: Processor<KIn = K, VIn = V, KOut = J, VOut = W>,
    {
        let at = self.add_processor::<P>("KSTREAM-PROCESSOR-", Arc::new(supplier), how);
        KStream::new(&self.shelf, at, key, value, true)
    }

    /// Hands each record to a processor that cannot change the key; what it forwards is the new stream, partitioned as
    /// this one is.
    ///
    /// # Null
    /// Reaches the processor where the schema is an [`Opt`](crate::Opt).
    ///
    /// # Late
    /// Reaches the processor.
    ///
    /// # Stores
    /// Those that [`process_values_with`](Self::process_values_with) is given.
    ///
    /// # Java
    /// `KStream.processValues(supplier)`.
    ///
    /// ```
    /// use plimsoll::prelude::*;
    ///
    /// struct Length;
    /// impl FixedKeyProcessor for Length {
    ///     type Key = Utf8;
    ///     type VIn = Utf8;
    ///     type VOut = I64;
    ///     fn process<'a>(
    ///         &mut self,
    ///         cx: &mut FixedKeyContext<'_, '_, 'a, Self>,
    ///         record: FixedKeyRecord<'a, Utf8, Utf8>,
    ///     ) -> Processed {
    ///         cx.forward(record.with_value(record.value().len() as i64))
    ///     }
    /// }
    ///
    /// let builder = StreamsBuilder::new();
    /// builder.stream("in", Consumed::with(Utf8, Utf8)).process_values(I64, || Length).to("out");
    /// # builder.build().unwrap();
    /// ```
    pub fn process_values<W: Schema, P>(
        &self,
        value: W,
        supplier: impl Fn() -> P + Send + Sync + 'static,
    ) -> KStream<K, W>
    where
        P: FixedKeyProcessor<Key = K, VIn = V, VOut = W>,
    {
        self.process_values_with(value, supplier, Processing::new())
    }

    /// As [`process_values`](Self::process_values), with a name or stores.
    ///
    /// # Null
    /// As there.
    ///
    /// # Late
    /// As there.
    ///
    /// # Stores
    /// Those that are named; the processor opens them by their handles.
    ///
    /// # Java
    /// `KStream.processValues(supplier, named, storeNames)`.
    pub fn process_values_with<W: Schema, P>(
        &self,
        value: W,
        supplier: impl Fn() -> P + Send + Sync + 'static,
        how: Processing,
    ) -> KStream<K, W>
    where
        P: FixedKeyProcessor<Key = K, VIn = V, VOut = W>,
    {
        let supplier: Supplier<FixedKey<P>> = Arc::new(move || FixedKey(supplier()));
        let at = self.add_processor::<FixedKey<P>>("KSTREAM-PROCESSVALUES-", supplier, how);
        KStream::new(&self.shelf, at, self.key.clone(), value, self.key_changed)
    }

    fn add_processor<P: Processor>(&self, prefix: &str, supplier: Supplier<P>, how: Processing) -> Port {
        let openers = how.openers;
        let make: Make = Box::new(move |w, id| ProcessorNode::<P>::make(w, id, Arc::clone(&supplier), &openers));
        let mut graph = self.shelf.borrow_mut();
        // A given name uses up no number here, as in Kafka Streams.
        let name = how.name.unwrap_or_else(|| graph.names.processor(prefix));
        let new = NewNode { name, parents: &[self.at], outputs: 1, stores: &how.stores, named_by: None, make };
        Port(graph.add(new), 0)
    }
}
