//! Builds the topology of a scenario with the library's DSL, node by node.
use super::datum::Kind;
use super::handle::{Handle, Made, Node, Stop};
use super::{joins, processors, streams, tables, windows};
use plimsoll::prelude::*;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// How a sink is to be read, and whether Kafka Streams could have written it.
#[derive(Clone, Copy)]
pub struct SinkKinds {
    pub key: Kind,
    pub value: Kind,
    /// Whether key and value have these kinds: otherwise Java throws a `ClassCastException` at the first record.
    pub fits: (bool, bool),
}

/// A scenario's topology.
pub struct Built {
    pub topology: Topology,
    pub sinks: BTreeMap<String, SinkKinds>,
}

/// A topology being built.
pub struct Building {
    pub builder: StreamsBuilder,
    pub handles: HashMap<String, Handle>,
    pub sinks: BTreeMap<String, SinkKinds>,
}

impl Building {
    pub fn handle(&self, node: Node<'_>, field: &str) -> Result<Handle, Stop> {
        let id = node.text(field).unwrap_or_default();
        self.handles.get(id).cloned().ok_or_else(|| Stop::Refused(format!("no node {id}")))
    }

    fn add(&mut self, node: Node<'_>) -> Result<(), Stop> {
        let made = match node.op() {
            "branch" => {
                let made = streams::branch(self, node)?;
                self.handles.extend(made);
                return Ok(());
            }
            "to" => return streams::sink(self, node),
            op => self.operator(op, node)?,
        };
        self.handles.insert(node.id().to_owned(), made);
        Ok(())
    }

    fn operator(&self, op: &str, node: Node<'_>) -> Made {
        let of = self.handle(node, "of");
        let on_table = of.as_ref().is_ok_and(Handle::is_table);
        match op {
            "stream" => streams::source(self, node),
            "table" | "versioned_table" => tables::source(self, node),
            "global_table" => tables::global(self, node),
            "to_table" => tables::to_table(self, node),
            "filter" | "filter_not" | "map_values" | "group_by" if on_table => tables::operator(self, node),
            "filter" | "filter_not" | "map_values" | "select_key" | "flat_map_values" | "flat_map" | "peek" | "map"
            | "merge" | "repartition" | "group_by_key" | "group_by" => streams::operator(self, node),
            "count" | "reduce" | "aggregate" => tables::aggregation(self, node),
            "join" | "left_join" | "outer_join" => joins::operator(self, node),
            "fk_join" | "left_fk_join" => joins::foreign_key(self, node),
            "windowed_by" => windows::windowed_by(self, node),
            "suppress" => windows::suppress(self, node),
            "cogroup" => windows::cogroup(self, node),
            "emit_on_close" => windows::emit_on_close(self, node),
            "to_stream" => tables::to_stream(self, node),
            "process" => processors::process(self, node),
            _ => node.not_yet(),
        }
    }
}

/// Builds it.
pub fn build(scenario: &Value) -> Result<Built, Stop> {
    let mut building = Building { builder: StreamsBuilder::new(), handles: HashMap::new(), sinks: BTreeMap::new() };
    for node in scenario["topology"].as_array().into_iter().flatten() {
        building.add(Node(node))?;
    }
    let refused = |error: &dyn std::fmt::Display| Stop::Refused(error.to_string());
    let optimization: Optimization = match scenario["config"]["topology.optimization"].as_str() {
        Some(named) => named.parse().map_err(|error| refused(&error))?,
        None => Optimization::NONE,
    };
    let topology = building.builder.build_with(optimization).map_err(|error| refused(&error))?;
    Ok(Built { topology, sinks: building.sinks })
}
