//! Joins, by the kinds of their two sides.
use super::build::Building;
use super::datum::{Any, Datum, TEXT};
use super::functions::{join, key_function};
use super::handle::{Handle, Key, Made, Node, Stop, Value};
use plimsoll::prelude::*;

/// A join of whatever is on both sides.
pub fn operator(building: &Building, node: Node<'_>) -> Made {
    let (left, right) = (building.handle(node, "of")?, building.handle(node, "with")?);
    match (&left, &right) {
        (Handle::Table(left), Handle::Table(right)) => tables(left, right, node),
        (Handle::Table(left), Handle::Counts(right)) => tables(left, right, node),
        (Handle::Counts(left), Handle::Table(right)) => tables(left, right, node),
        (Handle::Counts(left), Handle::Counts(right)) => tables(left, right, node),
        (Handle::WindowedTable(left), Handle::WindowedTable(right)) => tables(left, right, node),
        (Handle::WindowedTable(left), Handle::WindowedCounts(right)) => tables(left, right, node),
        (Handle::WindowedCounts(left), Handle::WindowedTable(right)) => tables(left, right, node),
        (Handle::WindowedCounts(left), Handle::WindowedCounts(right)) => tables(left, right, node),
        (Handle::Stream(left), Handle::Table(right)) => stream_table(left, right, node),
        (Handle::Stream(left), Handle::Counts(right)) => stream_table(left, right, node),
        (Handle::Stream(left), Handle::Global(right)) => stream_global(left, right, node),
        (Handle::Stream(left), Handle::Stream(right)) => streams(left, right, node),
        _ => Err(Stop::Refused("join".to_owned())),
    }
}

fn value<V: Value>(view: V::View<'_>) -> Datum {
    V::datum(view)
}

fn optional<V: Value>(view: Option<V::View<'_>>) -> Datum {
    view.map_or(Datum::Null, V::datum)
}

fn tables<K: Key, V: Value, R: Value>(left: &KTable<K, V>, right: &KTable<K, R>, node: Node<'_>) -> Made {
    let inner = |l: V::View<'_>, r: R::View<'_>| join(&value::<V>(l), &value::<R>(r));
    let leftmost = |l: V::View<'_>, r: Option<R::View<'_>>| join(&value::<V>(l), &optional::<R>(r));
    let outer = |l: Option<V::View<'_>>, r: Option<R::View<'_>>| join(&optional::<V>(l), &optional::<R>(r));
    let store = node.text("store").map(|_| node.materialized());
    Ok(K::table(match (node.op(), store) {
        ("join", None) => left.join(right, TEXT, inner),
        ("join", Some(store)) => left.join_with(right, TEXT, store, inner),
        ("left_join", None) => left.left_join(right, TEXT, leftmost),
        ("left_join", Some(store)) => left.left_join_with(right, TEXT, store, leftmost),
        (_, None) => left.outer_join(right, TEXT, outer),
        (_, Some(store)) => left.outer_join_with(right, TEXT, store, outer),
    }))
}

fn stream_table<R: Value>(left: &KStream<Any, Any>, right: &KTable<Any, R>, node: Node<'_>) -> Made {
    let mut joined = node.text("name").map_or_else(Joined::default, Joined::named);
    if let Some(grace) = node.duration("grace") {
        joined = joined.grace(grace);
    }
    let inner = |l: &Datum, r: R::View<'_>| join(l, &value::<R>(r));
    let leftmost = |l: &Datum, r: Option<R::View<'_>>| join(l, &optional::<R>(r));
    Ok(Handle::Stream(match node.op() {
        "join" => left.join_table_with(right, TEXT, joined, inner),
        "left_join" => left.left_join_table_with(right, TEXT, joined, leftmost),
        _ => return Err(Stop::Refused("outer join with a table".to_owned())),
    }))
}

fn stream_global(left: &KStream<Any, Any>, right: &plimsoll::GlobalKTable<Any, Any>, node: Node<'_>) -> Made {
    let key = key_function(node.function())?;
    Ok(Handle::Stream(match node.op() {
        "join" => left.join_global_table(right, TEXT, key, |l: &Datum, r: &Datum| join(l, r)),
        "left_join" => {
            left.left_join_global_table(right, TEXT, key, |l: &Datum, r: Option<&Datum>| join(l, &optional::<Any>(r)))
        }
        _ => return Err(Stop::Refused("outer join with a global table".to_owned())),
    }))
}

fn streams(left: &KStream<Any, Any>, right: &KStream<Any, Any>, node: Node<'_>) -> Made {
    let duration = |field| node.duration(field).unwrap_or_default();
    let mut windows = JoinWindows::of_time_difference_and_grace(duration("within"), duration("grace"));
    if let Some(before) = node.duration("before") {
        windows = windows.before(before);
    }
    if let Some(after) = node.duration("after") {
        windows = windows.after(after);
    }
    let mut joined = node.text("name").map_or_else(StreamJoined::new, StreamJoined::named);
    if let Some(store) = node.text("store") {
        joined = joined.store_name(store);
    }
    let inner = |l: &Datum, r: &Datum| join(l, r);
    let leftmost = |l: &Datum, r: Option<&Datum>| join(l, &optional::<Any>(r));
    let outer = |l: Option<&Datum>, r: Option<&Datum>| join(&optional::<Any>(l), &optional::<Any>(r));
    Ok(Handle::Stream(match node.op() {
        "join" => left.join_stream_with(right, windows, joined, TEXT, inner),
        "left_join" => left.left_join_stream_with(right, windows, joined, TEXT, leftmost),
        _ => left.outer_join_stream_with(right, windows, joined, TEXT, outer),
    }))
}

/// A join by a key that is in the left table's values.
pub fn foreign_key(building: &Building, node: Node<'_>) -> Made {
    let (left, right) = (building.handle(node, "of")?, building.handle(node, "with")?);
    match (&left, &right) {
        (Handle::Table(left), Handle::Table(right)) => by_foreign_key(left, right, node),
        (Handle::Table(left), Handle::Counts(right)) => by_foreign_key(left, right, node),
        (Handle::Counts(left), Handle::Table(right)) => by_foreign_key(left, right, node),
        (Handle::Counts(left), Handle::Counts(right)) => by_foreign_key(left, right, node),
        _ => Err(Stop::Refused("foreign-key join".to_owned())),
    }
}

fn by_foreign_key<V: Value, R: Value>(left: &KTable<Any, V>, right: &KTable<Any, R>, node: Node<'_>) -> Made {
    let key = key_function(node.text("fn").filter(|name| *name != "identity").unwrap_or("value_first"))?;
    let key = move |_: &Datum, v: V::View<'_>| key(&Datum::Null, &value::<V>(v));
    let inner = |l: V::View<'_>, r: R::View<'_>| join(&value::<V>(l), &value::<R>(r));
    let leftmost = |l: V::View<'_>, r: Option<R::View<'_>>| join(&value::<V>(l), &optional::<R>(r));
    let store = node.materialized();
    Ok(Handle::Table(match node.op() {
        "fk_join" => left.join_on(right, key, TEXT, store, inner),
        _ => left.left_join_on(right, key, TEXT, store, leftmost),
    }))
}
