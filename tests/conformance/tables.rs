//! Operators on tables, and what makes tables of grouped streams.
use super::build::Building;
use super::datum::{Any, Datum, Dynamic, Kind, TEXT};
use super::functions as f;
use super::handle::{Handle, Key, Made, Node, Stop, Value, each_stream, each_table};
use super::{streams, windows};
use plimsoll::prelude::*;

pub fn source(building: &Building, node: Node<'_>) -> Made {
    let (topic, how) = (node.text("topic").unwrap_or_default(), streams::consumed(node)?);
    Ok(Handle::Table(match node.text("store") {
        Some(_) => building.builder.table_with(topic, how, node.materialized()),
        None => building.builder.table(topic, how),
    }))
}

pub fn global(building: &Building, node: Node<'_>) -> Made {
    let (topic, how) = (node.text("topic").unwrap_or_default(), streams::consumed(node)?);
    Ok(Handle::Global(building.builder.global_table(topic, how)))
}

pub fn to_table(building: &Building, node: Node<'_>) -> Made {
    let of = building.handle(node, "of")?;
    Ok(each_stream!(&of, stream => Key::table(stream.to_table(node.materialized()))))
}

pub fn operator(building: &Building, node: Node<'_>) -> Made {
    let of = building.handle(node, "of")?;
    each_table!(&of, table => on_table(table, node))
}

fn on_table<K: Key, V: Value>(table: &KTable<K, V>, node: Node<'_>) -> Made {
    let function = node.function();
    let store = node.text("store").map(|_| node.materialized());
    Ok(match node.op() {
        "filter" => {
            let test = f::predicate(function)?;
            let test = move |k: K::View<'_>, v: V::View<'_>| test(&K::datum(k), &V::datum(v));
            V::table(match store {
                Some(store) => table.filter_with(store, test),
                None => table.filter(test),
            })
        }
        "filter_not" => {
            let test = f::predicate(function)?;
            V::table(table.filter_not(move |k, v| test(&K::datum(k), &V::datum(v))))
        }
        "map_values" => {
            let change = f::value_function(function)?;
            let change = move |v: V::View<'_>| change(&V::datum(v));
            let to = Any(f::value_kind(function, table.value_schema().kind()));
            K::table(match store {
                Some(store) => table.map_values_with(to, store, change),
                None => table.map_values(to, change),
            })
        }
        "group_by" => {
            let key = f::key_function(function)?;
            let to = Any(f::key_kind(function, table.key_schema().kind()));
            let choose = move |k: K::View<'_>, v: V::View<'_>| {
                let value = V::datum(v);
                (key(&K::datum(k), &value), value)
            };
            let of = Any(table.value_schema().kind());
            Handle::GroupedTable(table.group_by_with(to, of, streams::grouped(node), choose))
        }
        other => return Err(Stop::Refused(format!("{other} on a table"))),
    })
}

fn of_grouped_table(grouped: &KGroupedTable<Any, Any>, node: Node<'_>) -> Made {
    let store = node.materialized();
    let add = |a: &mut Datum, b: &Datum| *a = f::concat(a, "+", b);
    let subtract = |a: &mut Datum, b: &Datum| *a = f::concat(a, "-", b);
    Ok(match node.op() {
        "count" => Handle::Counts(grouped.count(store)),
        "reduce" => Handle::Table(grouped.reduce(store, add, subtract)),
        _ => {
            let add = move |_: &Datum, v: &Datum, a: &mut Datum| add(a, v);
            let subtract = move |_: &Datum, v: &Datum, a: &mut Datum| subtract(a, v);
            Handle::Table(grouped.aggregate(TEXT, store, empty, add, subtract))
        }
    })
}

/// `count`, `reduce` and `aggregate` of whatever is grouped.
pub fn aggregation(building: &Building, node: Node<'_>) -> Made {
    match building.handle(node, "of")? {
        Handle::Grouped(grouped) => of_grouped(&grouped, node),
        Handle::GroupedTable(grouped) => of_grouped_table(&grouped, node),
        Handle::Time(windowed) => windows::of_time(&windowed, node),
        Handle::Sliding(windowed) => windows::of_sliding(&windowed, node),
        Handle::Session(windowed) => windows::of_session(&windowed, node),
        other => windows::of_cogrouped(&other, node),
    }
}

fn of_grouped(grouped: &KGroupedStream<Any, Any>, node: Node<'_>) -> Made {
    let store = node.materialized();
    Ok(match node.op() {
        "count" => Handle::Counts(grouped.count(store)),
        "reduce" => Handle::Table(grouped.reduce(store, f::reducer(node.function())?)),
        _ => Handle::Table(grouped.aggregate(TEXT, store, empty, |_, value, sum| *sum = f::concat(sum, "", value))),
    })
}

pub fn empty() -> Datum {
    Datum::Text(String::new())
}

pub fn to_stream(building: &Building, node: Node<'_>) -> Made {
    let of = building.handle(node, "of")?;
    match (node.text("key_map"), of) {
        (Some("windowed"), Handle::WindowedTable(table)) => Ok(unwindowed(&table)),
        (Some("windowed"), Handle::WindowedCounts(table)) => Ok(unwindowed(&table)),
        (_, of) => Ok(each_table!(&of, table => updates(table))),
    }
}

/// The updates of a table as a stream of nullable values.
fn updates<K: Key, V: Dynamic>(table: &KTable<K, V>) -> Handle {
    let kind: Kind = table.value_schema().kind();
    K::stream(table.to_stream_as(Any(kind), |value| value.map_or(Datum::Null, |v| V::datum(v))))
}

/// The same with `key@start/end` as the key.
fn unwindowed<V: Dynamic>(table: &KTable<Windowed<Any>, V>) -> Handle {
    let Handle::WindowedStream(stream) = updates(table) else { unreachable!() };
    let key =
        |key: WindowKey<'_, Any>, _: &Datum| Datum::Text(format!("{}@{}/{}", key.key.shown(), key.start, key.end));
    Handle::Stream(stream.select_key(TEXT, key))
}
