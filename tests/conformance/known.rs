//! What becomes of a scenario, and the differences from Kafka Streams that are meant (`conformance/known.json`).
use super::compare::{Difference, differences};
use super::run;
use serde_json::Value;

pub enum Verdict {
    Equal,
    /// Different as a known kind of difference says.
    Known,
    /// The library has no such operation yet.
    NotYet(String),
    Different(Vec<Difference>),
}

/// Runs a scenario and compares.
pub fn verdict(scenario: &Value, kafka: &Value) -> Verdict {
    let ours = match run::answer(scenario, kafka) {
        Ok(ours) => ours,
        Err(op) => return Verdict::NotYet(op),
    };
    let found = differences(&ours, kafka);
    if found.is_empty() {
        return Verdict::Equal;
    }
    if let Some(step) = null_pointer(kafka) {
        // Up to that step both must be the same.
        let (mut scenario, mut kafka) = (scenario.clone(), kafka.clone());
        scenario["steps"].as_array_mut().unwrap().truncate(step);
        kafka["steps"].as_array_mut().unwrap().truncate(step);
        kafka["stores"] = Value::Object(serde_json::Map::new());
        let ours = run::answer(&scenario, &kafka).unwrap_or_default();
        let before = differences(&ours, &kafka);
        return if before.is_empty() { Verdict::Known } else { Verdict::Different(before) };
    }
    Verdict::Different(found)
}

/// The step at which Kafka Streams threw it.
fn null_pointer(kafka: &Value) -> Option<usize> {
    let steps = kafka["steps"].as_array()?;
    (steps.last()?[0]["error"] == "NullPointerException").then_some(steps.len() - 1)
}
