//! The differences between two answers, each in one line.
use serde_json::Value;

/// Characters of an answer that a line shows.
const SHOWN: usize = 400;

/// One difference: in what field, and both answers there.
#[derive(Debug)]
pub struct Difference {
    pub field: String,
    pub ours: String,
    pub kafka: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n    ours  {}\n    kafka {}", self.field, short(&self.ours), short(&self.kafka))
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// At most one difference a field: the first.
pub fn differences(ours: &Value, kafka: &Value) -> Vec<Difference> {
    if !ours["build_error"].is_null() || !kafka["build_error"].is_null() {
        let both = !ours["build_error"].is_null() && !kafka["build_error"].is_null();
        return if both {
            Vec::new()
        } else {
            vec![difference("build_error", &ours["build_error"], &kafka["build_error"])]
        };
    }
    let mut found = Vec::new();
    found.extend(describe(ours, kafka));
    found.extend(list("steps", &ours["steps"], &kafka["steps"], &mut same_step));
    let failed = kafka["steps"].as_array().and_then(|steps| steps.last()).is_some_and(is_error);
    found.extend(maps("internal", &ours["internal"], &kafka["internal"]));
    if !failed {
        // What a failed task leaves in its stores is not defined.
        found.extend(maps("stores", &ours["stores"], &kafka["stores"]));
    }
    found
}

fn difference(field: &str, ours: &Value, kafka: &Value) -> Difference {
    Difference { field: field.to_owned(), ours: ours.to_string(), kafka: kafka.to_string() }
}

fn describe(ours: &Value, kafka: &Value) -> Option<Difference> {
    let (ours, kafka) = (ours["describe"].as_str()?, kafka["describe"].as_str()?);
    let line = |text: &str, n: usize| text.lines().nth(n).unwrap_or("(end)").trim().to_owned();
    let lines = ours.lines().count().max(kafka.lines().count());
    let n = (0..lines).find(|n| line(ours, *n) != line(kafka, *n))?;
    Some(Difference { field: format!("describe line {n}"), ours: line(ours, n), kafka: line(kafka, n) })
}

fn is_error(step: &Value) -> bool {
    !step[0]["error"].is_null()
}

fn same_step(ours: &Value, kafka: &Value) -> bool {
    ours == kafka || is_error(ours) && is_error(kafka)
}

fn list(field: &str, ours: &Value, kafka: &Value, same: &mut dyn FnMut(&Value, &Value) -> bool) -> Option<Difference> {
    let rows = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (ours, kafka) = (rows(ours), rows(kafka));
    let n = (0..ours.len().max(kafka.len())).find(|n| match (ours.get(*n), kafka.get(*n)) {
        (Some(ours), Some(kafka)) => !same(ours, kafka),
        _ => true,
    })?;
    let at = |rows: &[Value]| rows.get(n).map_or("(end)".to_owned(), Value::to_string);
    Some(Difference { field: format!("{field}[{n}]"), ours: at(&ours), kafka: at(&kafka) })
}

fn maps(field: &str, ours: &Value, kafka: &Value) -> Option<Difference> {
    let empty = serde_json::Map::new();
    let (ours, kafka) = (ours.as_object().unwrap_or(&empty), kafka.as_object().unwrap_or(&empty));
    let not_compared = |rows: &Value| rows[0].is_string();
    for (name, rows) in kafka {
        if not_compared(rows) {
            continue;
        }
        let field = format!("{field}.{name}");
        match ours.get(name) {
            None => return Some(difference(&field, &Value::Null, rows)),
            Some(given) if given.is_string() => return Some(difference(&field, given, rows)),
            Some(given) => {
                if let Some(found) = list(&field, given, rows, &mut |a, b| a == b) {
                    return Some(found);
                }
            }
        }
    }
    let more = ours.iter().find(|(name, _)| !kafka.contains_key(*name))?;
    Some(difference(&format!("{field}.{}", more.0), more.1, &Value::Null))
}
