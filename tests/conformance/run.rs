//! Runs a scenario through the library's `Driver`, to the same answer as the oracle gives.
use super::build::{Built, SinkKinds, build};
use super::datum::{Any, Kind, TEXT, hex, take_misfit};
use super::handle::Stop;
use plimsoll::prelude::*;
use plimsoll::testing::{Driver, DriverError, RawOutput, WindowRow};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The answer of the library, or the operation that it does not have yet.
pub fn answer(scenario: &Value, expected: &Value) -> Result<Value, String> {
    match build(scenario) {
        Err(Stop::NotYet(op)) => Err(op),
        Err(Stop::Refused(why)) => Ok(json!({"name": scenario["name"], "build_error": why})),
        Ok(built) => Ok(run(scenario, expected, &built)),
    }
}

fn run(scenario: &Value, expected: &Value, built: &Built) -> Value {
    let wall = scenario["wall"].as_i64().unwrap_or(0);
    let options = Driver::options().application_id("app").wall_ms(wall);
    let driver = match options.build(&built.topology) {
        Ok(driver) => driver,
        Err(error) => return json!({"name": scenario["name"], "build_error": error.to_string()}),
    };
    let mut internal: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut steps = Vec::new();
    for step in scenario["steps"].as_array().into_iter().flatten() {
        take_misfit();
        match pipe(&driver, step).and_then(|()| outputs(&driver, built, &mut internal)) {
            Ok(got) => steps.push(Value::Array(got)),
            Err(error) => {
                steps.push(json!([{"error": error}]));
                break;
            }
        }
    }
    json!({
        "name": scenario["name"],
        "describe": built.topology.describe(),
        "steps": steps,
        "internal": internal,
        "stores": stores(expected, &driver),
    })
}

fn pipe(driver: &Driver, step: &Value) -> Result<(), String> {
    let piped = if let Some(by) = step["wall"].as_u64() {
        driver.advance_wall_clock(Duration::from_millis(by))
    } else {
        let headers: Vec<(&str, &[u8])> = step["h"].as_object().map_or_else(Vec::new, |headers| {
            headers.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default().as_bytes())).collect()
        });
        let topic = step["in"].as_str().unwrap_or_default();
        let (key, value) = (bytes(&step["k"])?, bytes(&step["v"])?);
        let time = step["t"].as_i64().unwrap_or_default();
        driver.pipe_with_headers(topic, key.as_deref(), value.as_deref(), time, &headers)
    };
    piped.map_err(|error| error.to_string())?;
    if take_misfit() { Err("a value does not fit its serde".to_owned()) } else { Ok(()) }
}

/// Bytes of a key or value in a step.
fn bytes(value: &Value) -> Result<Option<Vec<u8>>, String> {
    Ok(match value {
        Value::Null => None,
        Value::Object(fields) => Some(match fields.iter().next().map(|(kind, value)| (kind.as_str(), value)) {
            Some(("long", n)) => n.as_i64().ok_or("long")?.to_be_bytes().to_vec(),
            Some(("integer", n)) => (n.as_i64().ok_or("integer")? as i32).to_be_bytes().to_vec(),
            Some(("hex", text)) => from_hex(text.as_str().unwrap_or_default())?,
            _ => return Err(format!("value {value}")),
        }),
        Value::String(text) => Some(text.clone().into_bytes()),
        other => Some(other.to_string().into_bytes()),
    })
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| str::from_utf8(pair).ok().and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or("hex".into()))
        .collect()
}

/// What a step wrote: to sinks as rows, to internal topics into the collection.
fn outputs(driver: &Driver, built: &Built, internal: &mut BTreeMap<String, Vec<Value>>) -> Result<Vec<Value>, String> {
    let mut got = Vec::new();
    for topic in driver.written_topics() {
        while let Some(raw) = driver.read_raw(&topic) {
            match built.sinks.get(&topic) {
                Some(kinds) => got.push(sink_record(&topic, &raw, *kinds)?),
                None => internal.entry(topic.clone()).or_default().push(internal_record(&raw)),
            }
        }
    }
    Ok(got)
}

fn sink_record(topic: &str, raw: &RawOutput, kinds: SinkKinds) -> Result<Value, String> {
    let (key, value) = (raw.key.as_deref(), raw.value.as_deref());
    if (key.is_some() && !kinds.fits.0) || (value.is_some() && !kinds.fits.1) {
        return Err("the stream's type is not the topic's".to_owned());
    }
    let read = |kind, bytes: Option<&[u8]>| match bytes {
        None => Ok(Value::Null),
        Some(bytes) => Any(kind).decode(bytes).map(|datum| datum.json()).map_err(|error| error.to_string()),
    };
    let mut row =
        json!({"topic": topic, "k": read(kinds.key, key)?, "v": read(kinds.value, value)?, "t": raw.timestamp});
    with_headers(&mut row, raw, |bytes| String::from_utf8_lossy(bytes).into_owned());
    Ok(row)
}

fn internal_record(raw: &RawOutput) -> Value {
    let mut row = json!({"k": raw.key.as_deref().map(hex), "v": raw.value.as_deref().map(hex), "t": time(raw)});
    with_headers(&mut row, raw, hex);
    row
}

fn with_headers(row: &mut Value, raw: &RawOutput, show: impl Fn(&[u8]) -> String) {
    if !raw.headers.is_empty() {
        let headers = raw.headers.iter().map(|(key, value)| (key.clone(), value.as_deref().map(&show).into()));
        row["h"] = Value::Object(headers.collect::<Map<_, _>>());
    }
}

/// The stores that Kafka Streams has, as the library has them; one that it has not is left out.
fn stores(expected: &Value, driver: &Driver) -> Value {
    let mut all = Map::new();
    for (name, rows) in expected["stores"].as_object().into_iter().flatten() {
        let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
        if rows.first().is_some_and(Value::is_string) {
            continue;
        }
        let ours = key_values(driver, name, rows).or_else(|_| windows(driver, name, rows));
        all.insert(name.clone(), ours.map_or_else(|error| error.to_string().into(), Value::Array));
    }
    all.into()
}

/// The serde of a store's values, told by the answers: all are text but those of counts.
fn value_serde(rows: &[Value], column: usize) -> Any {
    let counts = rows.iter().filter_map(|row| row.get(column)).any(Value::is_i64);
    Any(if counts { Kind::Long } else { Kind::Text })
}

fn with_time(mut row: Vec<Value>, timestamp: i64) -> Value {
    // A store without timestamps tells none.
    if timestamp >= 0 {
        row.push(timestamp.into());
    }
    row.into()
}

fn key_values(driver: &Driver, name: &str, rows: &[Value]) -> Result<Vec<Value>, DriverError> {
    let rows = driver.store(name, TEXT, value_serde(rows, 1))?.rows()?;
    Ok(rows.into_iter().map(|row| with_time(vec![row.key.json(), row.value.json()], row.timestamp)).collect())
}

fn windows(driver: &Driver, name: &str, rows: &[Value]) -> Result<Vec<Value>, DriverError> {
    let rows = driver.window_store(name, TEXT, value_serde(rows, 2))?.rows()?;
    let shown =
        |row: WindowRow<Any, Any>| with_time(vec![row.key.json(), row.start.into(), row.value.json()], row.timestamp);
    Ok(rows.into_iter().map(shown).collect())
}

/// The producer's "now" is null.
fn time(raw: &RawOutput) -> Option<i64> {
    (raw.timestamp >= 0).then_some(raw.timestamp)
}
