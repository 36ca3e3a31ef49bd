//! The source keeps its own rules: sizes of files, functions and lines, arguments for `unsafe`, no panics.
//!
//! Each rule is a function from a file to its findings, and each is shown to find a bad sample.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod source;

use source::Source;

const MAX_FILE_LINES: usize = 500;
const MAX_FUNCTION_LINES: usize = 70;
const MAX_COLUMNS: usize = 120;
/// Where `unsafe` may stand: the rooms whose tests try to falsify each argument.
const UNSAFE_ROOMS: &[&str] =
    &["alloc/", "src/ffi/", "src/arena/", "src/store/slab.rs", "fuzz/", "benches/peer/src/bin/peer-raw.rs"];
/// What stops the host's process.
const PANICS: &[&str] = &[
    ".unwrap()",
    ".expect(",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "unreachable!(",
    "process::abort",
    "process::exit",
];

type Rule = fn(&Source) -> Vec<String>;

fn files() -> Vec<Source> {
    let files = source::files(&["src", "alloc", "tests", "benches", "examples", "fuzz"]);
    assert!(files.len() > 20, "only {} files found", files.len());
    files
}

fn is_library(file: &Source) -> bool {
    file.path.starts_with("src/") || file.path.starts_with("alloc/src/")
}

fn check(rule: Rule) {
    let found: Vec<String> = files().iter().flat_map(rule).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

fn file_length(file: &Source) -> Vec<String> {
    let lines = file.text.lines().count();
    if lines < MAX_FILE_LINES { Vec::new() } else { vec![format!("{}: {lines} lines", file.path)] }
}

fn line_width(file: &Source) -> Vec<String> {
    let wide = |(index, line): (usize, &str)| {
        let columns = line.chars().count();
        (columns > MAX_COLUMNS).then(|| format!("{}:{}: {columns} columns", file.path, index + 1))
    };
    file.text.lines().enumerate().filter_map(wide).collect()
}

/// A function ends at the brace in its own column: the code is formatted, which another check sees to.
fn function_length(file: &Source) -> Vec<String> {
    let lines: Vec<&str> = file.code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        if !is_function(line) {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let ends = |line: &str| {
            let own = line.len() - line.trim_start().len();
            own == indent && (line.trim_start().starts_with('}') || line.trim_end().ends_with(['}', ';']))
        };
        let length = lines[start..].iter().position(|line| ends(line)).map_or(0, |end| end + 1);
        if length >= MAX_FUNCTION_LINES {
            found.push(format!("{}:{}: a function of {length} lines", file.path, start + 1));
        }
    }
    found
}

fn is_function(line: &str) -> bool {
    const BEFORE: &[&str] = &["pub", "const", "async", "unsafe", "extern", "default", "fn"];
    let words = line.split_whitespace().take_while(|word| BEFORE.contains(&word.split('(').next().unwrap_or(word)));
    words.last() == Some("fn")
}

/// A block or implementation of `unsafe` has its argument directly above (or on its line).
fn safety_comments(file: &Source) -> Vec<String> {
    let (code, text): (Vec<&str>, Vec<&str>) = (file.code.lines().collect(), file.text.lines().collect());
    let mut found = Vec::new();
    for (index, line) in code.iter().enumerate() {
        let squeezed = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_block = squeezed.contains("unsafe {") || squeezed.contains("unsafe impl");
        if is_block && !is_argued(&text, index) {
            found.push(format!("{}:{}: unsafe without a SAFETY comment above", file.path, index + 1));
        }
    }
    found
}

fn is_argued(text: &[&str], index: usize) -> bool {
    // Up through the statement's own earlier lines to the comment above it.
    const STATEMENT_LINES: usize = 6;
    if text[index].contains("SAFETY:") {
        return true;
    }
    let mut above = text[..index].iter().rev().map(|line| line.trim());
    let mut passed = 0;
    for line in above.by_ref() {
        if line.contains("SAFETY:") {
            return true;
        }
        if !line.starts_with("//") {
            passed += 1;
            if passed > STATEMENT_LINES || line.ends_with(';') || line == "}" || line.is_empty() {
                return false;
            }
        }
    }
    false
}

fn unsafe_rooms(file: &Source) -> Vec<String> {
    if UNSAFE_ROOMS.iter().any(|room| file.path.starts_with(room)) || !is_library(file) {
        return Vec::new();
    }
    let word = |line: &str| line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
    numbered(file, usize::MAX, word, "unsafe outside of its rooms")
}

fn no_panics(file: &Source) -> Vec<String> {
    if !is_library(file) {
        return Vec::new();
    }
    let stops = |line: &str| PANICS.iter().any(|panic| line.contains(panic));
    numbered(file, file.lines_before_tests(), stops, "a panic in library code")
}

fn numbered(file: &Source, lines: usize, found: impl Fn(&str) -> bool, what: &str) -> Vec<String> {
    let found = |(index, line): (usize, &str)| found(line).then(|| format!("{}:{}: {what}", file.path, index + 1));
    file.code.lines().take(lines).enumerate().filter_map(found).collect()
}

/// What a module owns, its invariant, its bound and its callers stand at its top; a file of tests names its claims.
fn header_comment(file: &Source) -> Vec<String> {
    let has = file.text.trim_start_matches("#!").lines().next().is_some_and(|line| line.starts_with("//!"));
    if has || file.is_test || !is_library(file) {
        Vec::new()
    } else {
        vec![format!("{}: no header comment", file.path)]
    }
}

#[test]
fn files_are_short() {
    check(file_length);
}

#[test]
fn functions_are_short() {
    check(function_length);
}

#[test]
fn lines_are_narrow() {
    check(line_width);
}

#[test]
fn every_unsafe_block_is_argued() {
    check(safety_comments);
}

#[test]
fn unsafe_stays_in_its_rooms() {
    check(unsafe_rooms);
}

#[test]
fn library_code_does_not_panic() {
    check(no_panics);
}

#[test]
fn every_file_says_what_it_owns() {
    check(header_comment);
}

/// Lines of the findings in a sample.
fn lines_found(rule: Rule, path: &str, text: &str) -> Vec<usize> {
    let number = |finding: String| {
        let rest = &finding[path.len() + 1..];
        rest.split(':').next().and_then(|line| line.trim().parse().ok()).unwrap_or(0)
    };
    rule(&Source::new(path, text)).into_iter().map(number).collect()
}

#[test]
fn a_long_file_a_wide_line_and_a_long_function_are_found() {
    assert!(file_length(&Source::new("src/a.rs", &"\n".repeat(MAX_FILE_LINES - 1))).is_empty());
    assert_eq!(file_length(&Source::new("src/a.rs", &"\n".repeat(MAX_FILE_LINES))), ["src/a.rs: 500 lines"]);
    let wide = format!("//! ok\n// {}\n", "é".repeat(MAX_COLUMNS - 2));
    assert_eq!(lines_found(line_width, "src/a.rs", &wide), [2]);
    let lines = |lines: usize| "        a();\n".repeat(lines);
    let body = |count: usize| format!("impl A {{\n    pub(crate) const fn f() {{\n{}    }}\n}}\n", lines(count));
    assert_eq!(lines_found(function_length, "src/a.rs", &body(MAX_FUNCTION_LINES - 3)), [0; 0]);
    assert_eq!(lines_found(function_length, "src/a.rs", &body(MAX_FUNCTION_LINES - 2)), [2]);
    let declared = format!("trait T {{\n    fn f();\n}}\n{}", "const A: u8 = 1;\n".repeat(100));
    assert_eq!(lines_found(function_length, "src/a.rs", &declared), [0; 0]);
}

#[test]
fn an_unsafe_block_without_its_argument_or_in_another_room_is_found() {
    let bad = "fn f() {\n    let a = 1;\n    unsafe { g() }\n}\nunsafe impl Send for A {}\n";
    assert_eq!(lines_found(safety_comments, "src/arena/a.rs", bad), [3, 5]);
    let good = "fn f() {\n    // SAFETY: g has no condition.\n    let a =\n        unsafe { g() };\n}\n";
    assert_eq!(lines_found(safety_comments, "src/arena/a.rs", good), [0; 0]);
    assert_eq!(lines_found(unsafe_rooms, "src/arena/a.rs", bad), [0; 0]);
    assert_eq!(lines_found(unsafe_rooms, "src/dsl/a.rs", bad), [3, 5]);
    let talk = "//! unsafe\nfn f() -> &'static str {\n    \"unsafe { }\" // unsafe { }\n}\n";
    assert_eq!(lines_found(unsafe_rooms, "src/dsl/a.rs", talk), [0; 0]);
    assert_eq!(lines_found(safety_comments, "src/dsl/a.rs", talk), [0; 0]);
}

#[test]
fn a_panic_before_the_tests_is_found() {
    let text = "\
//! x
fn f() {
    a.unwrap();
    b.unwrap_or(1); // .unwrap()
}

#[cfg(test)]
mod tests {
    fn t() {
        a.unwrap();
    }
}
";
    assert_eq!(lines_found(no_panics, "src/a.rs", text), [3]);
    assert_eq!(lines_found(no_panics, "tests/a.rs", text), [0; 0]);
    assert_eq!(lines_found(no_panics, "src/a.rs", "fn f() { r#\"\n.unwrap()\"#; '\"'; panic!(\"x\") }\n"), [2]);
}

#[test]
fn a_file_without_a_header_is_found() {
    assert_eq!(header_comment(&Source::new("src/a.rs", "use a::b;\n")), ["src/a.rs: no header comment"]);
    assert!(header_comment(&Source::new("src/a.rs", "//! Owns a.\n")).is_empty());
}
