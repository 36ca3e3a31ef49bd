//! Processors of the user's: the traits, what they are lent, and the node that runs them.
//!
//! Owns the one processor that a supplier makes for each task. Invariant: forwarding takes the context mutably, opening
//! a store takes it shared, so that nothing lent by a store is held while records go on; a processor that answers well
//! although what it forwarded failed, fails. Bound: one processor a task; nothing is allocated for a record. Called by
//! `dsl`, which adds the node, and by the thread.
mod context;
mod error;
mod fixed;
mod headers;
mod life;
mod node;
mod record;
mod stores;

pub use context::{Context, Init, Timer};
pub use error::{Processed, ProcessorError};
pub(crate) use fixed::FixedKey;
pub use fixed::{FixedKeyContext, FixedKeyInit, FixedKeyProcessor, FixedKeyRecord};
pub use headers::{Headers, HeadersBuf};
pub(crate) use life::Life;
pub(crate) use node::{ProcessorNode, Supplier};
pub use record::{Record, RecordMetadata};
pub(crate) use stores::Watch;
pub use stores::{
    Connect, KeyValueStore, KeyValueView, Rows, SessionStore, SessionView, SpanRows, StoreHandle, TableStore,
    TableView, WindowStore, WindowView,
};
pub(crate) use stores::{Opener, OpenerBox};

use crate::codec::Schema;

/// A step of the user's own, with stores, timers and a say in what goes on: one is made for each task.
///
/// ```
/// use plimsoll::prelude::*;
/// use plimsoll::testing::Driver;
/// use std::time::Duration;
///
/// /// Counts records, and tells the number every ten seconds of stream time.
/// #[derive(Default)]
/// struct Meter {
///     seen: i64,
/// }
/// impl Processor for Meter {
///     type KIn = Utf8;
///     type VIn = Utf8;
///     type KOut = Utf8;
///     type VOut = I64;
///
///     fn init(&mut self, cx: &mut Init<'_, '_, Self>) -> Processed {
///         cx.schedule(Duration::from_secs(10), PunctuationType::StreamTime, |me, cx, now| {
///             cx.forward(Record::new("seen", me.seen, now))
///         })?;
///         Ok(())
///     }
///
///     fn process<'a>(&mut self, _: &mut Context<'_, 'a, Self>, _: Record<'a, Utf8, Utf8>) -> Processed {
///         self.seen += 1;
///         Ok(())
///     }
/// }
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, Utf8)).process(Utf8, I64, Meter::default).to("out");
/// let driver = Driver::new(&builder.build().unwrap())?;
/// let input = driver.input("in", Utf8, Utf8);
/// input.pipe_at("k", "a", 0)?;
/// input.pipe_at("k", "b", 12_000)?;
/// let told = driver.output("out", Utf8, I64).read_pairs()?;
/// assert_eq!(told, [("seen".to_owned(), 1), ("seen".to_owned(), 2)]);
/// # Ok::<(), plimsoll::testing::DriverError>(())
/// ```
///
/// A record of other types than the declared ones does not compile:
///
/// ```compile_fail,E0308
/// use plimsoll::prelude::*;
///
/// struct Wrong;
/// impl Processor for Wrong {
///     type KIn = Utf8;
///     type VIn = Utf8;
///     type KOut = Utf8;
///     type VOut = I64;
///     fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Utf8, Utf8>) -> Processed {
///         cx.forward(Record::new(record.key, record.value, record.timestamp)) // a &str is no i64
///     }
/// }
/// ```
///
/// # Java
/// `org.apache.kafka.streams.processor.api.Processor`.
pub trait Processor: Sized + 'static {
    /// Keys that it takes.
    type KIn: Schema;
    /// Values that it takes.
    type VIn: Schema;
    /// Keys that it forwards.
    type KOut: Schema;
    /// Values that it forwards.
    type VOut: Schema;

    /// Called once, when the task's stores are complete and before its first record.
    ///
    /// # Errors
    /// What is answered fails the task.
    fn init(&mut self, _cx: &mut Init<'_, '_, Self>) -> Processed {
        Ok(())
    }

    /// Takes a record.
    ///
    /// # Errors
    /// What is answered fails the task.
    fn process<'a>(&mut self, cx: &mut Context<'_, 'a, Self>, record: Record<'a, Self::KIn, Self::VIn>) -> Processed;

    /// Called once, when the task leaves this thread, well or not.
    fn close(&mut self) {}
}
