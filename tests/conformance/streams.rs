//! Operators on streams, and where streams begin and end.
use super::build::{Building, SinkKinds};
use super::datum::{Any, Datum, Dynamic};
use super::functions as f;
use super::handle::{Handle, Key, Made, Node, Stop, each_stream};
use plimsoll::prelude::*;

type Stream<K> = KStream<K, Any>;

pub fn consumed(node: Node<'_>) -> Result<Consumed<Any, Any>, Stop> {
    let how = Consumed::with(node.serde("key")?, node.serde("value")?);
    Ok(match node.text("name") {
        Some(name) => how.named(name),
        None => how,
    })
}

pub fn source(building: &Building, node: Node<'_>) -> Made {
    let topics: Vec<String> = match &node.0["topic"] {
        serde_json::Value::Array(topics) => topics.iter().filter_map(|t| t.as_str().map(str::to_owned)).collect(),
        topic => topic.as_str().map(str::to_owned).into_iter().collect(),
    };
    Ok(Handle::Stream(building.builder.stream(topics, consumed(node)?)))
}

pub fn operator(building: &Building, node: Node<'_>) -> Made {
    let of = building.handle(node, "of")?;
    match node.op() {
        "merge" => merge(&of, &building.handle(node, "with")?, node),
        "map" => match &of {
            Handle::Stream(stream) => Ok(swap(stream, node)),
            _ => Err(Stop::Refused("map".to_owned())),
        },
        "flat_map" => match &of {
            Handle::Stream(stream) => flat_map(stream, node),
            _ => Err(Stop::Refused("flat_map".to_owned())),
        },
        "group_by_key" => match &of {
            Handle::Stream(stream) => Ok(Handle::Grouped(stream.group_by_key_with(grouped(node)))),
            _ => Err(Stop::Refused("group_by_key".to_owned())),
        },
        _ => each_stream!(&of, stream => on_stream(stream, node)),
    }
}

/// Gives the node its name.
fn named<K: Key>(node: Node<'_>, stream: Stream<K>) -> Handle {
    K::stream(match node.text("name") {
        Some(name) => stream.named(name),
        None => stream,
    })
}

fn on_stream<K: Key>(stream: &Stream<K>, node: Node<'_>) -> Made {
    let function = node.function();
    let value = stream.value_schema().0;
    Ok(match node.op() {
        "filter" => {
            let test = f::predicate(function)?;
            named(node, stream.filter(move |k, v| test(&K::datum(k), v)))
        }
        "filter_not" => {
            let test = f::predicate(function)?;
            named(node, stream.filter_not(move |k, v| test(&K::datum(k), v)))
        }
        "map_values" => {
            let change = f::value_function(function)?;
            named(node, stream.map_values(Any(f::value_kind(function, value)), change))
        }
        "select_key" => {
            let key = f::key_function(function)?;
            let kind = f::key_kind(function, stream.key_schema().kind());
            named(node, stream.select_key(Any(kind), move |k, v| key(&K::datum(k), v)))
        }
        "group_by" => {
            let key = f::key_function(function)?;
            let kind = f::key_kind(function, stream.key_schema().kind());
            let choose = move |k: K::View<'_>, v: &Datum| key(&K::datum(k), v);
            Handle::Grouped(stream.group_by_with(Any(kind), choose, grouped(node)))
        }
        "flat_map_values" => {
            let pieces = f::flat(function)?;
            let push = move |v: &Datum, out: &mut Push<'_, '_, Any>| pieces(v).into_iter().for_each(|p| out.push(p));
            named(node, stream.flat_map_values(Any(f::flat_kind(function, value)), push))
        }
        "peek" => named(node, stream.peek(|_, _| ())),
        "repartition" => {
            let how = node.text("name").map_or_else(Repartitioned::new, |name| Repartitioned::new().named(name));
            K::stream(stream.repartition(how))
        }
        other => return Err(Stop::Refused(format!("{other} on a stream"))),
    })
}

fn swap(stream: &Stream<Any>, node: Node<'_>) -> Handle {
    let (key, value) = (Any(stream.value_schema().0), Any(stream.key_schema().kind()));
    named(node, stream.map(key, value, |k, v| (v.clone(), k.clone())))
}

fn flat_map(stream: &Stream<Any>, node: Node<'_>) -> Made {
    let pieces = f::flat(node.function())?;
    let key = Any(f::flat_kind(node.function(), stream.value_schema().0));
    let push = move |k: &Datum, v: &Datum, out: &mut PushPair<'_, '_, Any, Any>| {
        pieces(v).into_iter().for_each(|piece| out.push(piece, k.clone()));
    };
    Ok(named(node, stream.flat_map(key, Any(stream.key_schema().kind()), push)))
}

fn merge(of: &Handle, with: &Handle, node: Node<'_>) -> Made {
    match (of, with) {
        (Handle::Stream(of), Handle::Stream(with)) => Ok(named(node, of.merge(with))),
        _ => Err(Stop::Refused("merge".to_owned())),
    }
}

pub fn grouped(node: Node<'_>) -> Grouped {
    node.text("name").map_or_else(Grouped::default, Grouped::named)
}

pub fn branch(building: &Building, node: Node<'_>) -> Result<Vec<(String, Handle)>, Stop> {
    let of = building.handle(node, "of")?;
    each_stream!(&of, stream => split(stream, node))
}

fn split<K: Key>(stream: &Stream<K>, node: Node<'_>) -> Result<Vec<(String, Handle)>, Stop> {
    let id = node.id();
    let mut split = stream.split_named(&format!("{id}-"));
    let mut made = Vec::new();
    for (number, name) in node.0["preds"].as_array().into_iter().flatten().enumerate() {
        let test = f::predicate(name.as_str().unwrap_or_default())?;
        let way = split.branch_named(&number.to_string(), move |k, v| test(&K::datum(k), v));
        made.push((format!("{id}.{number}"), K::stream(way)));
    }
    if node.flag("default").unwrap_or(true) {
        made.push((format!("{id}.default"), K::stream(split.default_branch_named("default"))));
    }
    Ok(made)
}

pub fn sink(building: &mut Building, node: Node<'_>) -> Result<(), Stop> {
    let of = building.handle(node, "of")?;
    let topic = node.text("topic").unwrap_or_default();
    let (key, value) = (node.serde("key")?.0, node.serde("value")?.0);
    let fits = each_stream!(&of, stream => {
        stream.to(topic);
        (stream.key_schema().kind() == key, stream.value_schema().0 == value)
    });
    building.sinks.insert(topic.to_owned(), SinkKinds { key, value, fits });
    Ok(())
}
