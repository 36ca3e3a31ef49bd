//! Windows over grouped streams, and the tables made of them.
use super::build::Building;
use super::datum::{Any, Datum, TEXT};
use super::functions as f;
use super::handle::{Handle, Made, Node, Stop};
use super::tables::empty;
use plimsoll::prelude::*;
use plimsoll::{CogroupedKStream, SessionWindowedKStream, TimeWindowedKStream};
use std::rc::Rc;

pub type Time = TimeWindowedKStream<Any, Any, TimeWindows>;
pub type Sliding = TimeWindowedKStream<Any, Any, SlidingWindows>;
pub type Session = SessionWindowedKStream<Any, Any>;

pub fn windowed_by(building: &Building, node: Node<'_>) -> Made {
    let grouped = match building.handle(node, "of")? {
        Handle::Grouped(grouped) => grouped,
        Handle::Cogrouped(streams) => return cogrouped_by(&streams, node),
        _ => return Err(Stop::Refused("not grouped".to_owned())),
    };
    let (size, grace) = (node.duration("size").unwrap_or_default(), node.duration("grace").unwrap_or_default());
    let time = TimeWindows::of_size_and_grace(size, grace);
    Ok(match node.text("kind") {
        Some("tumbling") => Handle::Time(grouped.windowed_by(time)),
        Some("hopping") => Handle::Time(grouped.windowed_by(time.advance_by(node.duration("advance").unwrap_or(size)))),
        Some("sliding") => {
            Handle::Sliding(grouped.windowed_by(SlidingWindows::of_time_difference_and_grace(size, grace)))
        }
        Some("session") => {
            Handle::Session(grouped.windowed_by(SessionWindows::of_inactivity_gap_and_grace(size, grace)))
        }
        other => return Err(Stop::Refused(format!("windows {other:?}"))),
    })
}

pub fn emit_on_close(building: &Building, node: Node<'_>) -> Made {
    let close = EmitStrategy::on_window_close();
    Ok(match building.handle(node, "of")? {
        Handle::Time(windowed) => Handle::Time(windowed.emit_strategy(close)),
        Handle::Sliding(windowed) => Handle::Sliding(windowed.emit_strategy(close)),
        Handle::Session(windowed) => Handle::Session(windowed.emit_strategy(close)),
        _ => return Err(Stop::Refused("not windowed".to_owned())),
    })
}

fn append(_: &Datum, value: &Datum, sum: &mut Datum) {
    *sum = f::concat(sum, "", value);
}

/// The same three tables of both kinds of time windows.
macro_rules! of_time {
    ($windowed:expr, $node:expr) => {{
        let store = $node.materialized();
        Ok(match $node.op() {
            "count" => Handle::WindowedCounts($windowed.count(store)),
            "reduce" => Handle::WindowedTable($windowed.reduce(store, f::reducer($node.function())?)),
            _ => Handle::WindowedTable($windowed.aggregate(TEXT, store, empty, append)),
        })
    }};
}

pub fn of_time(windowed: &Time, node: Node<'_>) -> Made {
    of_time!(windowed, node)
}

pub fn of_sliding(windowed: &Sliding, node: Node<'_>) -> Made {
    of_time!(windowed, node)
}

pub fn of_session(windowed: &Session, node: Node<'_>) -> Made {
    let store = node.materialized();
    let merge = |_: &Datum, a: &mut Datum, b: &Datum| *a = f::concat(a, "", b);
    Ok(match node.op() {
        "count" => Handle::WindowedCounts(windowed.count(store)),
        "reduce" => Handle::WindowedTable(windowed.reduce(store, f::reducer(node.function())?)),
        _ => Handle::WindowedTable(windowed.aggregate(TEXT, store, empty, append, merge)),
    })
}

pub fn suppress(building: &Building, node: Node<'_>) -> Made {
    let table = building.handle(node, "of")?;
    if node.text("until") == Some("window_close") {
        return Ok(match table {
            Handle::WindowedTable(table) => Handle::WindowedTable(table.suppress(closes())),
            Handle::WindowedCounts(table) => Handle::WindowedCounts(table.suppress(closes())),
            _ => return Err(Stop::Refused("not windowed".to_owned())),
        });
    }
    Ok(match table {
        Handle::Table(table) => Handle::Table(table.suppress(limit(node))),
        Handle::Counts(table) => Handle::Counts(table.suppress(limit(node))),
        Handle::WindowedTable(table) => Handle::WindowedTable(table.suppress(limit(node))),
        Handle::WindowedCounts(table) => Handle::WindowedCounts(table.suppress(limit(node))),
        _ => return Err(Stop::Refused("not a table".to_owned())),
    })
}

fn closes() -> Suppressed<Windowed<Any>> {
    Suppressed::until_window_closes(BufferConfig::unbounded())
}

fn limit<K: Schema>(node: Node<'_>) -> Suppressed<K> {
    let bound = |field: &str| node.0[field].as_u64();
    let buffer = match (bound("max_records"), bound("max_bytes")) {
        (Some(records), Some(bytes)) => BufferConfig::max_records(records).with_max_bytes(bytes),
        (Some(records), None) => BufferConfig::max_records(records),
        (None, Some(bytes)) => BufferConfig::max_bytes(bytes),
        (None, None) => BufferConfig::unbounded().into(),
    };
    Suppressed::until_time_limit(node.duration("ms").unwrap_or_default(), buffer)
}

fn cogrouped_by(streams: &CogroupedKStream<Any, Any>, node: Node<'_>) -> Made {
    let (size, grace) = (node.duration("size").unwrap_or_default(), node.duration("grace").unwrap_or_default());
    let time = TimeWindows::of_size_and_grace(size, grace);
    let advance = node.duration("advance").unwrap_or(size);
    let sliding = SlidingWindows::of_time_difference_and_grace(size, grace);
    let session = SessionWindows::of_inactivity_gap_and_grace(size, grace);
    Ok(match node.text("kind") {
        Some("tumbling") => Handle::TimeCogrouped(Rc::new(streams.windowed_by(time))),
        Some("hopping") => Handle::TimeCogrouped(Rc::new(streams.windowed_by(time.advance_by(advance)))),
        Some("sliding") => Handle::TimeCogrouped(Rc::new(streams.windowed_by(sliding))),
        _ => Handle::SessionCogrouped(Rc::new(streams.windowed_by(session))),
    })
}

pub fn cogroup(building: &Building, node: Node<'_>) -> Made {
    let Handle::Grouped(first) = building.handle(node, "of")? else {
        return Err(Stop::Refused("not grouped".to_owned()));
    };
    let streams = first.cogroup(TEXT, |_, value, sum| *sum = f::concat(sum, "1", value));
    Ok(Handle::Cogrouped(match building.handle(node, "with") {
        Ok(Handle::Grouped(second)) => streams.cogroup(&second, |_, value, sum| *sum = f::concat(sum, "2", value)),
        _ => streams,
    }))
}

/// The tables of what is cogrouped.
pub fn of_cogrouped(handle: &Handle, node: Node<'_>) -> Made {
    let store = node.materialized();
    let merge = |_: &Datum, a: &mut Datum, b: &Datum| *a = f::concat(a, "", b);
    Ok(match handle {
        Handle::Cogrouped(streams) => Handle::Table(streams.aggregate(store, empty)),
        Handle::TimeCogrouped(streams) => Handle::WindowedTable(streams.aggregate(store, empty)),
        Handle::SessionCogrouped(streams) => Handle::WindowedTable(streams.aggregate(store, empty, merge)),
        _ => return Err(Stop::Refused("not grouped".to_owned())),
    })
}
