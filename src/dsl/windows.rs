//! How a grouped stream is cut into windows.
//!
//! Pure descriptions. What is wrong with one is told when the topology is built.
use super::cogroup::{CogroupedKStream, SessionWindowedCogroupedKStream, TimeOrSliding, TimeWindowedCogroupedKStream};
use super::grouped::KGroupedStream;
use super::windowed::{SessionWindowedKStream, TimeWindowedKStream};
use crate::codec::Codec;
use crate::node::ops::{SessionSpec, SlidingSpec, TimeSpec};
use crate::topology::BuildError;
use std::time::Duration;

/// Milliseconds; what is more than there are is the most.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What [`KGroupedStream::windowed_by`] takes: [`TimeWindows`], [`SlidingWindows`], [`SessionWindows`] or
/// [`UnlimitedWindows`]. Not for implementing.
pub trait Windows: sealed::Kind {
    /// What a grouped stream becomes.
    type Grouped<K: Codec, V: Codec>;
    #[doc(hidden)]
    fn group<K: Codec, V: Codec>(self, stream: &KGroupedStream<K, V>) -> Self::Grouped<K, V>;
    /// What cogrouped streams become.
    type Cogrouped<K: Codec, A: Codec>;
    #[doc(hidden)]
    fn cogroup<K: Codec, A: Codec>(self, streams: &CogroupedKStream<K, A>) -> Self::Cogrouped<K, A>;
}

pub(super) mod sealed {
    /// Closed to other crates.
    pub trait Kind: Copy + Send + Sync + 'static {}
}

/// Windows of a fixed length that begin at multiples of their advance: tumbling if both are equal, else hopping.
///
/// A window contains its first millisecond and not its end.
///
/// # Null
/// Records with a null key are dropped and counted; a null value is a value.
/// # Late
/// A record changes the windows that ended less than `grace` before the latest timestamp that the task has seen; for
/// each other window it is dropped and counted.
/// # Stores
/// A window store that keeps windows for size and grace, or as long as
/// [`Materialized::retention`](crate::Materialized::retention) says.
/// # Java
/// `TimeWindows.ofSizeAndGrace(size, grace).advanceBy(advance)`
///
/// ```
/// use plimsoll::prelude::*;
/// use std::time::Duration;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("clicks", Consumed::with(Utf8, Bytes))
///     .group_by_key()
///     .windowed_by(TimeWindows::of_size_with_no_grace(Duration::from_secs(60)).advance_by(Duration::from_secs(10)))
///     .count(Materialized::named("clicks"))
///     .to_stream()
///     .to("clicks-per-minute");
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeWindows {
    size_ms: i64,
    advance_ms: i64,
    grace_ms: i64,
}

impl TimeWindows {
    /// Tumbling windows of this length, closed as soon as they end.
    pub fn of_size_with_no_grace(size: Duration) -> Self {
        Self::of_size_and_grace(size, Duration::ZERO)
    }

    /// Tumbling windows of this length that take late records for so long after their end.
    pub fn of_size_and_grace(size: Duration, grace: Duration) -> Self {
        Self { size_ms: millis(size), advance_ms: millis(size), grace_ms: millis(grace) }
    }

    /// A window begins every `advance`: at least 1 ms, at most the length.
    #[must_use]
    pub fn advance_by(self, advance: Duration) -> Self {
        Self { advance_ms: millis(advance), ..self }
    }

    pub(super) fn checked(self) -> Result<TimeSpec, &'static str> {
        let Self { size_ms, advance_ms, grace_ms } = self;
        if size_ms <= 0 {
            return Err("their size is 0; give at least one millisecond");
        }
        if advance_ms <= 0 || advance_ms > size_ms {
            return Err("they advance by nothing or by more than their size");
        }
        Ok(TimeSpec::Fixed { size_ms, advance_ms, grace_ms })
    }
}

/// One window, of everything from its start on.
///
/// # Null
/// As with [`TimeWindows`].
/// # Late
/// No record is late; those from before the start are in no window.
/// # Stores
/// A window store that forgets nothing.
/// # Java
/// `UnlimitedWindows.of().startOn(start)`
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("clicks", Consumed::with(Utf8, Bytes))
///     .group_by_key()
///     .windowed_by(UnlimitedWindows::of().start_on(1_700_000_000_000))
///     .count(Materialized::new());
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnlimitedWindows {
    start_ms: i64,
}

impl UnlimitedWindows {
    /// From the epoch on.
    pub fn of() -> Self {
        Self::default()
    }

    /// From this time on, milliseconds since the epoch.
    #[must_use]
    pub fn start_on(self, start_ms: i64) -> Self {
        Self { start_ms }
    }

    pub(super) fn checked(self) -> Result<TimeSpec, &'static str> {
        if self.start_ms < 0 {
            return Err("they start before the epoch");
        }
        Ok(TimeSpec::Unlimited { start_ms: self.start_ms })
    }
}

/// Windows of a fixed length at every place where a record begins or ends one: all sets of a key's records that are at
/// most the time difference apart.
///
/// A window contains both its first and its last millisecond.
///
/// # Null
/// Records with a null key or value are dropped and counted.
/// # Late
/// A record changes the windows whose last millisecond is at most `grace` before the latest timestamp that the task has
/// seen; for each other window it is dropped and counted.
/// # Stores
/// A window store that keeps windows for twice the time difference and grace, or as long as
/// [`Materialized::retention`](crate::Materialized::retention) says.
/// # Java
/// `SlidingWindows.ofTimeDifferenceAndGrace(timeDifference, grace)`
///
/// ```
/// use plimsoll::prelude::*;
/// use std::time::Duration;
///
/// let builder = StreamsBuilder::new();
/// builder
///     .stream("temperatures", Consumed::with(Utf8, I64))
///     .group_by_key()
///     .windowed_by(SlidingWindows::of_time_difference_with_no_grace(Duration::from_secs(60)))
///     .reduce(Materialized::new(), |highest, t| *highest = t.max(*highest));
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlidingWindows {
    difference_ms: i64,
    grace_ms: i64,
}

impl SlidingWindows {
    /// Windows of this time difference, closed as soon as they end.
    pub fn of_time_difference_with_no_grace(difference: Duration) -> Self {
        Self::of_time_difference_and_grace(difference, Duration::ZERO)
    }

    /// Windows of this time difference that take late records for so long after their end.
    pub fn of_time_difference_and_grace(difference: Duration, grace: Duration) -> Self {
        Self { difference_ms: millis(difference), grace_ms: millis(grace) }
    }

    pub(super) fn spec(self) -> SlidingSpec {
        SlidingSpec { difference_ms: self.difference_ms, grace_ms: self.grace_ms }
    }
}

/// Sessions: records of a key that follow each other within the gap.
///
/// A session reaches from its first record to its last.
///
/// # Null
/// Records with a null key are dropped and counted; a null value is a value.
/// # Late
/// A record is dropped and counted if the session it makes or joins ended more than gap and `grace` before the latest
/// timestamp that the task has seen.
/// # Stores
/// A session store that keeps sessions for gap and grace, or as long as
/// [`Materialized::retention`](crate::Materialized::retention) says. Sessions that became one are deleted.
/// # Java
/// `SessionWindows.ofInactivityGapAndGrace(gap, grace)`
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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionWindows {
    gap_ms: i64,
    grace_ms: i64,
}

impl SessionWindows {
    /// Sessions with this gap, closed when it is over.
    pub fn of_inactivity_gap_with_no_grace(gap: Duration) -> Self {
        Self::of_inactivity_gap_and_grace(gap, Duration::ZERO)
    }

    /// Sessions with this gap that take late records for so long after it.
    pub fn of_inactivity_gap_and_grace(gap: Duration, grace: Duration) -> Self {
        Self { gap_ms: millis(gap), grace_ms: millis(grace) }
    }

    pub(super) fn spec(self) -> SessionSpec {
        SessionSpec { gap_ms: self.gap_ms, grace_ms: self.grace_ms }
    }
}

impl TimeWindows {
    fn which(self) -> Result<TimeOrSliding, &'static str> {
        self.checked().map(TimeOrSliding::Time)
    }
}

impl UnlimitedWindows {
    fn which(self) -> Result<TimeOrSliding, &'static str> {
        self.checked().map(TimeOrSliding::Time)
    }
}

impl SlidingWindows {
    fn which(self) -> Result<TimeOrSliding, &'static str> {
        Ok(TimeOrSliding::Sliding(self.spec()))
    }
}

macro_rules! time_windows {
    ($($windows:ty),*) => {$(
        impl sealed::Kind for $windows {}

        impl Windows for $windows {
            type Grouped<K: Codec, V: Codec> = TimeWindowedKStream<K, V, Self>;

            fn group<K: Codec, V: Codec>(self, stream: &KGroupedStream<K, V>) -> TimeWindowedKStream<K, V, Self> {
                TimeWindowedKStream::new(stream.clone(), self)
            }

            type Cogrouped<K: Codec, A: Codec> = TimeWindowedCogroupedKStream<K, A>;

            fn cogroup<K: Codec, A: Codec>(
                self,
                streams: &CogroupedKStream<K, A>,
            ) -> TimeWindowedCogroupedKStream<K, A> {
                let windows = self.which().unwrap_or_else(|why| {
                    streams.shelf.borrow_mut().refuse(BuildError::Windows { why });
                    TimeOrSliding::Time(TimeSpec::Unlimited { start_ms: 0 })
                });
                TimeWindowedCogroupedKStream::new(streams.clone(), windows)
            }
        }
    )*};
}

time_windows!(TimeWindows, UnlimitedWindows, SlidingWindows);

impl sealed::Kind for SessionWindows {}

impl Windows for SessionWindows {
    type Grouped<K: Codec, V: Codec> = SessionWindowedKStream<K, V>;

    fn group<K: Codec, V: Codec>(self, stream: &KGroupedStream<K, V>) -> SessionWindowedKStream<K, V> {
        SessionWindowedKStream::new(stream.clone(), self)
    }

    type Cogrouped<K: Codec, A: Codec> = SessionWindowedCogroupedKStream<K, A>;

    fn cogroup<K: Codec, A: Codec>(self, streams: &CogroupedKStream<K, A>) -> SessionWindowedCogroupedKStream<K, A> {
        SessionWindowedCogroupedKStream::new(streams.clone(), self.spec())
    }
}

/// When a windowed table tells its updates.
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
///     .emit_strategy(EmitStrategy::on_window_close())
///     .count(Materialized::new())
///     .to_stream()
///     .to("clicks-of-each-minute");
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EmitStrategy {
    /// Each update of a window.
    #[default]
    OnWindowUpdate,
    /// The final value of each window, once, when no record can change it any more. Looked for with each record, at
    /// most once a second of the wall clock.
    OnWindowClose,
}

impl EmitStrategy {
    /// Each update of a window.
    pub fn on_window_update() -> Self {
        Self::OnWindowUpdate
    }

    /// The final value of each window.
    pub fn on_window_close() -> Self {
        Self::OnWindowClose
    }
}
