//! Every operator says the same four things, where its user looks for them: what null keys and values do, what late
//! records do, which stores and topics it has, and the Java call; and it has an example that runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::path::{Path, PathBuf};

/// Handles whose methods are operators.
const HANDLES: &[&str] = &[
    "StreamsBuilder",
    "KStream",
    "KTable",
    "KGroupedStream",
    "KGroupedTable",
    "GlobalKTable",
    "TimeWindowedKStream",
    "SessionWindowedKStream",
    "CogroupedKStream",
    "TimeWindowedCogroupedKStream",
    "SessionWindowedCogroupedKStream",
    "GlobalTable",
];
/// Methods of handles that are no operators.
const NO_OPERATORS: &[&str] = &["new", "named", "build", "build_with", "clone", "key_schema", "value_schema"];
const HEADINGS: [&str; 4] = ["# Null", "# Late", "# Stores", "# Java"];

/// A public method with its documentation.
struct Method {
    of: String,
    name: String,
    doc: Vec<String>,
}

/// The public methods in a source text.
fn methods(source: &str) -> Vec<Method> {
    let (mut of, mut doc, mut found) = (String::new(), Vec::new(), Vec::new());
    for line in source.lines() {
        let text = line.trim_start();
        if line.starts_with("impl") {
            of = implemented(line);
        }
        if line.starts_with("mod tests") {
            break;
        }
        if let Some(rest) = text.strip_prefix("///") {
            doc.push(rest.strip_prefix(' ').unwrap_or(rest).to_owned());
        } else if let Some(rest) = line.strip_prefix("    pub fn ") {
            let name = rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            found.push(Method { of: of.clone(), name, doc: std::mem::take(&mut doc) });
        } else if !text.starts_with("#[") {
            doc.clear();
        }
    }
    found
}

/// The type of an `impl` line: what stands behind the parameters, and behind `for`.
fn implemented(line: &str) -> String {
    let mut rest = line.strip_prefix("impl").unwrap_or(line);
    if rest.starts_with('<') {
        let mut depth = 0i32;
        let end = rest.char_indices().find(|(at, c)| {
            let arrow = *c == '>' && rest[..*at].ends_with('-');
            depth += i32::from(*c == '<') - i32::from(*c == '>' && !arrow);
            depth == 0
        });
        rest = &rest[end.map_or(0, |(at, _)| at + 1)..];
    }
    let rest = rest.split(" for ").last().unwrap_or(rest).trim_start();
    rest.split(['<', ' ', '{']).next().unwrap_or_default().to_owned()
}

/// What is missing in a method's documentation.
fn missing(method: &Method) -> Vec<&'static str> {
    let refers = method.doc.first().is_some_and(|line| line.starts_with("As [`"));
    if !HANDLES.contains(&method.of.as_str()) || NO_OPERATORS.contains(&method.name.as_str()) || refers {
        return Vec::new();
    }
    let mut missing: Vec<&str> =
        HEADINGS.into_iter().filter(|heading| !method.doc.iter().any(|line| line == heading)).collect();
    if !method.doc.iter().any(|line| line.starts_with("```")) {
        missing.push("an example");
    }
    missing
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_operator_says_null_late_stores_java_and_has_an_example() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dsl"), &mut files);
    files.sort();
    let (mut operators, mut wrong) = (0, Vec::new());
    for file in &files {
        let source = std::fs::read_to_string(file).unwrap();
        for method in methods(&source) {
            operators += usize::from(HANDLES.contains(&method.of.as_str()));
            let missing = missing(&method);
            if !missing.is_empty() {
                wrong.push(format!("{}::{} lacks {}", method.of, method.name, missing.join(", ")));
            }
        }
    }
    assert!(operators > 40, "only {operators} methods of handles were found");
    assert!(wrong.is_empty(), "{} of {operators}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_operator_without_a_heading_or_an_example_is_found() {
    let bad = concat!(
        "impl<K: Schema, F: Fn() -> K> KStream<K, V> {\n    /// Does.\n    ///\n    /// # Null\n    #[must_use]\n",
        "    pub fn act<W>(&self) {}\n    /// As [`act`](Self::act), otherwise.\n    pub fn act_with(&self) {}\n}\n",
    );
    let found = methods(bad);
    assert_eq!(
        found.iter().map(|m| format!("{}::{}", m.of, m.name)).collect::<Vec<_>>(),
        ["KStream::act", "KStream::act_with"]
    );
    assert_eq!(missing(&found[0]), ["# Late", "# Stores", "# Java", "an example"]);
    assert!(missing(&found[1]).is_empty());
}
