//! Grouped streams cut into windows, and the tables made of them.
use super::grouped::{AGGREGATE, KGroupedStream, REDUCE, count_one};
use super::ktable::KTable;
use super::options::Materialized;
use super::window_table::{Asked, Frame, TimeKind, add_window_table, finish};
use super::windows::{EmitStrategy, SessionWindows, Windows};
use crate::codec::{Codec, I64, Windowed};
use crate::node::ops::{EmitRule, FromInit, Merge, MergeCounts, Merger, Reduce, SessionAggregate, WindowFold};
use crate::node::{Fn2, Fn3};
use crate::topology::BuildError;
use std::fmt;
use std::sync::Arc;

impl<K: Codec, V: Codec> KGroupedStream<K, V> {
    /// Cuts the stream into windows, for a table of one value a key and window.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// None of its own.
    /// # Java
    /// `KGroupedStream.windowedBy(windows)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("clicks", Consumed::with(Utf8, Bytes))
    ///     .group_by_key()
    ///     .windowed_by(TimeWindows::of_size_and_grace(Duration::from_secs(60), Duration::from_secs(5)))
    ///     .count(Materialized::named("clicks"))
    ///     .to_stream()
    ///     .select_key(Utf8, |window, _| window.key)
    ///     .to("clicks-per-minute");
    /// # builder.build().unwrap();
    /// ```
    pub fn windowed_by<W: Windows>(&self, windows: W) -> W::Grouped<K, V> {
        windows.group(self)
    }
}

fn rule(strategy: EmitStrategy) -> EmitRule {
    match strategy {
        EmitStrategy::OnWindowUpdate => EmitRule::Updates,
        EmitStrategy::OnWindowClose => EmitRule::Closed,
    }
}

/// A grouped stream in time windows: tumbling, hopping, sliding or unlimited ones.
pub struct TimeWindowedKStream<K, V, W> {
    grouped: KGroupedStream<K, V>,
    windows: W,
    emit: EmitRule,
}

impl<K, V, W: fmt::Debug> fmt::Debug for TimeWindowedKStream<K, V, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeWindowedKStream").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl<K: Clone, V: Clone, W: Clone> Clone for TimeWindowedKStream<K, V, W> {
    fn clone(&self) -> Self {
        Self { grouped: self.grouped.clone(), windows: self.windows.clone(), emit: self.emit }
    }
}

impl<K, V, W> TimeWindowedKStream<K, V, W> {
    pub(super) fn new(grouped: KGroupedStream<K, V>, windows: W) -> Self {
        Self { grouped, windows, emit: EmitRule::Updates }
    }
}

#[allow(private_bounds)] // the three kinds of time windows, closed
impl<K: Codec, V: Codec, W: TimeKind> TimeWindowedKStream<K, V, W> {
    /// When the table tells its updates. Unlimited windows never close.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// With [`EmitStrategy::OnWindowClose`] the store of sliding windows is not cached.
    /// # Java
    /// `TimeWindowedKStream.emitStrategy(strategy)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Bytes)).group_by_key();
    /// let windows = TimeWindows::of_size_with_no_grace(Duration::from_secs(60));
    /// let closed = clicks.windowed_by(windows).emit_strategy(EmitStrategy::on_window_close());
    /// closed.count(Materialized::named("clicks"));
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn emit_strategy(mut self, strategy: EmitStrategy) -> Self {
        self.emit = rule(strategy);
        if self.emit == EmitRule::Closed && !self.windows.closes() {
            let why = "unlimited windows never close, so nothing can be emitted then";
            self.grouped.stream.shelf.borrow_mut().refuse(BuildError::Windows { why });
        }
        self
    }

    /// The number of records of each key and window.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// A window store with a changelog.
    /// # Java
    /// `TimeWindowedKStream.count(materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("clicks", Consumed::with(Utf8, Bytes))
    ///     .group_by_key()
    ///     .windowed_by(TimeWindows::of_size_with_no_grace(Duration::from_secs(60)))
    ///     .count(Materialized::named("clicks"));
    /// # builder.build().unwrap();
    /// ```
    pub fn count(&self, materialized: Materialized) -> KTable<Windowed<K>, I64> {
        if materialized.name.is_none() && !self.windows.are_sliding() {
            // Kafka Streams generates a name that it does not use.
            self.grouped.stream.shelf.borrow_mut().names.store(AGGREGATE);
        }
        self.table(AGGREGATE, I64, materialized, FromInit { init: Arc::new(|| 0), f: Arc::new(count_one::<K, V>) })
    }

    /// Merges the values of each key and window: the closure changes the first by the second.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// A window store with a changelog.
    /// # Java
    /// `TimeWindowedKStream.reduce(reducer, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("numbers", Consumed::with(Utf8, I64))
    ///     .group_by_key()
    ///     .windowed_by(TimeWindows::of_size_with_no_grace(Duration::from_secs(60)))
    ///     .reduce(Materialized::named("sums"), |sum, n| *sum += n);
    /// # builder.build().unwrap();
    /// ```
    pub fn reduce(
        &self,
        materialized: Materialized,
        f: impl for<'a, 'm> Fn2<&'m mut V::Owned, V::View<'a>, ()>,
    ) -> KTable<Windowed<K>, V> {
        self.table(REDUCE, self.grouped.stream.value.clone(), materialized, Reduce { f: Arc::new(f) })
    }

    /// Folds the values of each key and window: the closure changes an aggregate, which begins as `init` answers.
    ///
    /// # Null
    /// As the windows say.
    /// # Late
    /// As the windows say.
    /// # Stores
    /// A window store with a changelog.
    /// # Java
    /// `TimeWindowedKStream.aggregate(initializer, aggregator, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("names", Consumed::with(Utf8, Utf8))
    ///     .group_by_key()
    ///     .windowed_by(SlidingWindows::of_time_difference_with_no_grace(Duration::from_secs(60)))
    ///     .aggregate(Utf8, Materialized::named("lists"), String::new, |_, name, list| list.push_str(name));
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate<A: Codec>(
        &self,
        to: A,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
        f: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
    ) -> KTable<Windowed<K>, A> {
        self.table(AGGREGATE, to, materialized, FromInit { init: Arc::new(init), f: Arc::new(f) })
    }

    fn table<A: Codec>(
        &self,
        prefix: &str,
        value: A,
        materialized: Materialized,
        fold: impl WindowFold<K, V, A> + Clone + Send + Sync + 'static,
    ) -> KTable<Windowed<K>, A> {
        let frame = self.windows.frame().unwrap_or_else(|why| {
            self.grouped.stream.shelf.borrow_mut().refuse(BuildError::Windows { why });
            Frame::time(crate::node::ops::TimeSpec::Unlimited { start_ms: 0 })
        });
        let cacheable = self.emit == EmitRule::Updates || !self.windows.are_sliding();
        let asked = Asked { prefix, value, materialized, frame, emit: self.emit, cacheable };
        let windows = self.windows;
        add_window_table(&self.grouped, asked, move |w, parts| windows.wire::<K, V, A, _>(w, parts, fold.clone()))
    }
}

/// A grouped stream in sessions.
pub struct SessionWindowedKStream<K, V> {
    grouped: KGroupedStream<K, V>,
    windows: SessionWindows,
    emit: EmitRule,
}

impl<K, V> fmt::Debug for SessionWindowedKStream<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionWindowedKStream").field("windows", &self.windows).finish_non_exhaustive()
    }
}

impl<K: Clone, V: Clone> Clone for SessionWindowedKStream<K, V> {
    fn clone(&self) -> Self {
        Self { grouped: self.grouped.clone(), windows: self.windows, emit: self.emit }
    }
}

impl<K: Codec, V: Codec> SessionWindowedKStream<K, V> {
    pub(super) fn new(grouped: KGroupedStream<K, V>, windows: SessionWindows) -> Self {
        Self { grouped, windows, emit: EmitRule::Updates }
    }

    /// When the table tells its updates.
    ///
    /// # Null
    /// As [`SessionWindows`] say.
    /// # Late
    /// As [`SessionWindows`] say.
    /// # Stores
    /// With [`EmitStrategy::OnWindowClose`] the store is not cached.
    /// # Java
    /// `SessionWindowedKStream.emitStrategy(strategy)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// let clicks = builder.stream("clicks", Consumed::with(Utf8, Bytes)).group_by_key();
    /// let windows = SessionWindows::of_inactivity_gap_with_no_grace(Duration::from_secs(60));
    /// let closed = clicks.windowed_by(windows).emit_strategy(EmitStrategy::on_window_close());
    /// closed.count(Materialized::named("clicks"));
    /// # builder.build().unwrap();
    /// ```
    #[must_use]
    pub fn emit_strategy(mut self, strategy: EmitStrategy) -> Self {
        self.emit = rule(strategy);
        self
    }

    /// The number of records of each key and session.
    ///
    /// # Null
    /// As [`SessionWindows`] say.
    /// # Late
    /// As [`SessionWindows`] say.
    /// # Stores
    /// A session store with a changelog.
    /// # Java
    /// `SessionWindowedKStream.count(materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("clicks", Consumed::with(Utf8, Bytes))
    ///     .group_by_key()
    ///     .windowed_by(SessionWindows::of_inactivity_gap_with_no_grace(Duration::from_secs(1800)))
    ///     .count(Materialized::named("visits"));
    /// # builder.build().unwrap();
    /// ```
    pub fn count(&self, materialized: Materialized) -> KTable<Windowed<K>, I64> {
        if materialized.name.is_none() {
            // Kafka Streams generates a name that it does not use.
            self.grouped.stream.shelf.borrow_mut().names.store(AGGREGATE);
        }
        let fold = FromInit { init: Arc::new(|| 0), f: Arc::new(count_one::<K, V>) };
        self.table(AGGREGATE, I64, materialized, fold, MergeCounts)
    }

    /// Merges the values of each key and session: the closure changes the first by the second.
    ///
    /// # Null
    /// As [`SessionWindows`] say.
    /// # Late
    /// As [`SessionWindows`] say.
    /// # Stores
    /// A session store with a changelog.
    /// # Java
    /// `SessionWindowedKStream.reduce(reducer, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("numbers", Consumed::with(Utf8, I64))
    ///     .group_by_key()
    ///     .windowed_by(SessionWindows::of_inactivity_gap_with_no_grace(Duration::from_secs(60)))
    ///     .reduce(Materialized::named("sums"), |sum, n| *sum += n);
    /// # builder.build().unwrap();
    /// ```
    pub fn reduce(
        &self,
        materialized: Materialized,
        f: impl for<'a, 'm> Fn2<&'m mut V::Owned, V::View<'a>, ()>,
    ) -> KTable<Windowed<K>, V> {
        let f = Arc::new(f);
        let fold = Reduce { f: Arc::clone(&f) };
        self.table(REDUCE, self.grouped.stream.value.clone(), materialized, fold, Reduce { f })
    }

    /// Folds the values of each key and session: `f` changes an aggregate, which begins as `init` answers; `merge`
    /// changes the first of two sessions' aggregates by the second.
    ///
    /// # Null
    /// As [`SessionWindows`] say.
    /// # Late
    /// As [`SessionWindows`] say.
    /// # Stores
    /// A session store with a changelog.
    /// # Java
    /// `SessionWindowedKStream.aggregate(initializer, aggregator, sessionMerger, materialized)`
    ///
    /// ```
    /// use plimsoll::prelude::*;
    /// use std::time::Duration;
    ///
    /// let builder = StreamsBuilder::new();
    /// builder
    ///     .stream("names", Consumed::with(Utf8, Utf8))
    ///     .group_by_key()
    ///     .windowed_by(SessionWindows::of_inactivity_gap_with_no_grace(Duration::from_secs(60)))
    ///     .aggregate(
    ///         Utf8,
    ///         Materialized::named("lists"),
    ///         String::new,
    ///         |_, name, list| list.push_str(name),
    ///         |_, list, other| list.push_str(other),
    ///     );
    /// # builder.build().unwrap();
    /// ```
    pub fn aggregate<A: Codec>(
        &self,
        to: A,
        materialized: Materialized,
        init: impl Fn() -> A::Owned + Send + Sync + 'static,
        f: impl for<'a, 'm> Fn3<K::View<'a>, V::View<'a>, &'m mut A::Owned, ()>,
        merge: impl for<'a, 'm> Fn3<K::View<'a>, &'m mut A::Owned, A::View<'a>, ()>,
    ) -> KTable<Windowed<K>, A> {
        let fold = FromInit { init: Arc::new(init), f: Arc::new(f) };
        self.table(AGGREGATE, to, materialized, fold, Merger(Arc::new(merge)))
    }

    fn table<A: Codec>(
        &self,
        prefix: &str,
        value: A,
        materialized: Materialized,
        fold: impl WindowFold<K, V, A> + Clone + Send + Sync + 'static,
        merge: impl Merge<K, A> + Clone + Send + Sync + 'static,
    ) -> KTable<Windowed<K>, A> {
        let windows = self.windows.spec();
        let (frame, emit) = (Frame::session(windows), self.emit);
        let asked = Asked { prefix, value, materialized, frame, emit, cacheable: emit == EmitRule::Updates };
        add_window_table(&self.grouped, asked, move |w, parts| {
            let id = parts.node;
            finish::<K, V, _>(w, id, emit, SessionAggregate::new(parts, windows, fold.clone(), merge.clone()))
        })
    }
}
