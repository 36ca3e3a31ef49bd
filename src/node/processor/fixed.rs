//! Processors that cannot change the key.
use super::context::{Context, Init, Timer};
use super::headers::Headers;
use super::record::{Record, RecordMetadata};
use super::stores::StoreHandle;
use super::{Processed, Processor, ProcessorError};
use crate::base::id::TaskId;
use crate::codec::Schema;
use crate::node::timers::PunctuationType;
use std::fmt;
use std::time::Duration;

/// A [`Processor`] that keeps each record's key, so that nothing has to be repartitioned behind it. The key cannot be
/// changed: a [`FixedKeyRecord`] has no constructor.
///
/// ```
/// use plimsoll::prelude::*;
///
/// struct Trim;
/// impl FixedKeyProcessor for Trim {
///     type Key = Utf8;
///     type VIn = Utf8;
///     type VOut = Utf8;
///     fn process<'a>(
///         &mut self,
///         cx: &mut FixedKeyContext<'_, '_, 'a, Self>,
///         record: FixedKeyRecord<'a, Utf8, Utf8>,
///     ) -> Processed {
///         cx.forward(record.with_value(record.value().trim()))
///     }
/// }
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Utf8)).process_values(Utf8, || Trim).to("out");
/// # builder.build().unwrap();
/// ```
///
/// Neither can one be made:
///
/// ```compile_fail,E0423
/// use plimsoll::prelude::*;
///
/// let record: Record<'_, Utf8, Utf8> = Record::new("k", "v", 0);
/// let forged = plimsoll::FixedKeyRecord(record);
/// ```
///
/// nor its key be set:
///
/// ```compile_fail,E0599
/// use plimsoll::prelude::*;
///
/// fn rekey<'a>(record: FixedKeyRecord<'a, Utf8, Utf8>) -> FixedKeyRecord<'a, Utf8, Utf8> {
///     record.with_key("other")
/// }
/// ```
///
/// # Java
/// `org.apache.kafka.streams.processor.api.FixedKeyProcessor`.
pub trait FixedKeyProcessor: Sized + 'static {
    /// Keys, taken and forwarded.
    type Key: Schema;
    /// Values that it takes.
    type VIn: Schema;
    /// Values that it forwards.
    type VOut: Schema;

    /// As [`Processor::init`].
    ///
    /// # Errors
    /// What is answered fails the task.
    fn init(&mut self, _cx: &mut FixedKeyInit<'_, '_, '_, Self>) -> Processed {
        Ok(())
    }

    /// Takes a record.
    ///
    /// # Errors
    /// What is answered fails the task.
    fn process<'a>(
        &mut self,
        cx: &mut FixedKeyContext<'_, '_, 'a, Self>,
        record: FixedKeyRecord<'a, Self::Key, Self::VIn>,
    ) -> Processed;

    /// As [`Processor::close`].
    fn close(&mut self) {}
}

/// A record whose key stays.
///
/// # Java
/// `org.apache.kafka.streams.processor.api.FixedKeyRecord`.
pub struct FixedKeyRecord<'a, K: Schema, V: Schema>(Record<'a, K, V>);

impl<K: Schema, V: Schema> Clone for FixedKeyRecord<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Schema, V: Schema> Copy for FixedKeyRecord<'_, K, V> {}

impl<K: Schema, V: Schema> fmt::Debug for FixedKeyRecord<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'a, K: Schema, V: Schema> FixedKeyRecord<'a, K, V> {
    /// The key.
    pub fn key(&self) -> K::View<'a> {
        self.0.key
    }

    /// The value.
    pub fn value(&self) -> V::View<'a> {
        self.0.value
    }

    /// Milliseconds since the epoch.
    pub fn timestamp(&self) -> i64 {
        self.0.timestamp
    }

    /// Its headers.
    pub fn headers(&self) -> Headers<'a> {
        self.0.headers
    }

    /// The same with another value.
    #[must_use]
    pub fn with_value<'s, W: Schema>(&self, value: W::View<'s>) -> FixedKeyRecord<'s, K, W>
    where
        'a: 's,
    {
        FixedKeyRecord(self.0.with_value(value))
    }

    /// The same with another timestamp, milliseconds since the epoch.
    #[must_use]
    pub fn with_timestamp(self, timestamp: i64) -> Self {
        Self(self.0.with_timestamp(timestamp))
    }

    /// The same with other headers.
    #[must_use]
    pub fn with_headers<'s>(&self, headers: Headers<'s>) -> FixedKeyRecord<'s, K, V>
    where
        'a: 's,
    {
        FixedKeyRecord(self.0.with_headers(headers))
    }
}

/// The processor as any other.
pub(crate) struct FixedKey<P>(pub(crate) P);

impl<P: FixedKeyProcessor> Processor for FixedKey<P> {
    type KIn = P::Key;
    type VIn = P::VIn;
    type KOut = P::Key;
    type VOut = P::VOut;

    fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
        self.0.init(&mut FixedKeyInit(cx))
    }

    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, P::Key, P::VIn>) -> Processed {
        self.0.process(&mut FixedKeyContext(cx), FixedKeyRecord(record))
    }

    fn close(&mut self) {
        self.0.close();
    }
}

/// What a [`FixedKeyProcessor`] is lent: a [`Context`] that forwards only what has its record's key.
///
/// # Java
/// `org.apache.kafka.streams.processor.api.FixedKeyProcessorContext`.
pub struct FixedKeyContext<'x, 'c, 'a, P: FixedKeyProcessor>(&'x mut Context<'c, 'a, FixedKey<P>>);

impl<P: FixedKeyProcessor> fmt::Debug for FixedKeyContext<'_, '_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn wrapped<P: FixedKeyProcessor>(
    mut call: impl for<'x, 'y, 'z> FnMut(&mut P, &mut FixedKeyContext<'x, 'y, 'z, P>, i64) -> Processed + 'static,
) -> impl for<'y, 'z> FnMut(&mut FixedKey<P>, &mut Context<'y, 'z, FixedKey<P>>, i64) -> Processed + 'static {
    move |me, cx, now| call(&mut me.0, &mut FixedKeyContext(cx), now)
}

impl<'a, P: FixedKeyProcessor> FixedKeyContext<'_, '_, 'a, P> {
    /// As [`Context::forward`].
    ///
    /// # Errors
    /// A child failed.
    pub fn forward<'s>(&mut self, record: FixedKeyRecord<'s, P::Key, P::VOut>) -> Processed
    where
        'a: 's,
    {
        self.0.forward(record.0)
    }

    /// As [`Context::forward_to`].
    ///
    /// # Errors
    /// There is no such child, or it failed.
    pub fn forward_to<'s>(&mut self, child: &str, record: FixedKeyRecord<'s, P::Key, P::VOut>) -> Processed
    where
        'a: 's,
    {
        self.0.forward_to(child, record.0)
    }

    /// As [`Context::schedule`].
    ///
    /// # Errors
    /// The interval is shorter than a millisecond.
    pub fn schedule(
        &mut self,
        every: Duration,
        by: PunctuationType,
        call: impl for<'x, 'y, 'z> FnMut(&mut P, &mut FixedKeyContext<'x, 'y, 'z, P>, i64) -> Processed + 'static,
    ) -> Result<Timer, ProcessorError> {
        self.0.schedule(every, by, wrapped(call))
    }

    /// As [`Context::store`].
    ///
    /// # Errors
    /// The node is not connected to it.
    pub fn store<H: StoreHandle>(&self, handle: &H) -> Result<H::Open<'_>, ProcessorError> {
        self.0.store(handle)
    }

    /// As [`Context::commit`].
    pub fn commit(&mut self) {
        self.0.commit();
    }

    /// As [`Context::metadata`].
    pub fn metadata(&self) -> Option<RecordMetadata<'a>> {
        self.0.metadata()
    }

    /// As [`Context::headers`].
    pub fn headers(&self) -> Headers<'a> {
        self.0.headers()
    }

    /// As [`Context::stream_time`].
    pub fn stream_time(&self) -> i64 {
        self.0.stream_time()
    }

    /// As [`Context::wall_time`].
    pub fn wall_time(&self) -> i64 {
        self.0.wall_time()
    }

    /// As [`Context::task_id`].
    pub fn task_id(&self) -> TaskId {
        self.0.task_id()
    }
}

/// What a [`FixedKeyProcessor`] is lent when it begins.
pub struct FixedKeyInit<'x, 'i, 'a, P: FixedKeyProcessor>(&'x mut Init<'i, 'a, FixedKey<P>>);

impl<P: FixedKeyProcessor> fmt::Debug for FixedKeyInit<'_, '_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<P: FixedKeyProcessor> FixedKeyInit<'_, '_, '_, P> {
    /// As [`Context::schedule`].
    ///
    /// # Errors
    /// The interval is shorter than a millisecond.
    pub fn schedule(
        &mut self,
        every: Duration,
        by: PunctuationType,
        call: impl for<'x, 'y, 'z> FnMut(&mut P, &mut FixedKeyContext<'x, 'y, 'z, P>, i64) -> Processed + 'static,
    ) -> Result<Timer, ProcessorError> {
        self.0.schedule(every, by, wrapped(call))
    }

    /// As [`Context::store`].
    ///
    /// # Errors
    /// The node is not connected to it.
    pub fn store<H: StoreHandle>(&self, handle: &H) -> Result<H::Open<'_>, ProcessorError> {
        self.0.store(handle)
    }

    /// As [`Context::stream_time`].
    pub fn stream_time(&self) -> i64 {
        self.0.stream_time()
    }

    /// As [`Context::wall_time`].
    pub fn wall_time(&self) -> i64 {
        self.0.wall_time()
    }

    /// As [`Context::task_id`].
    pub fn task_id(&self) -> TaskId {
        self.0.task_id()
    }
}
