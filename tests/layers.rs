//! Rooms import only downwards: their own room, rooms further left in their row, and lower rows.
//!
//! The table below is the architecture; a room that is not in it does not exist. Code of tests may look anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod source;

use source::Source;

/// Rows from the lowest up; within a row from left to right.
const ROWS: &[&[&str]] = &[
    &["base", "budget"],
    &["wire", "ffi"],
    &["arena", "observe", "window", "net"],
    &["codec", "client"],
    &["produce"],
    &["store"],
    &["node"],
    &["topology"],
    &["task"],
    &["placement"],
    &["worker"],
    &["dsl", "query", "app", "testing"],
];

/// Position of a room: row, then place in it.
fn place(room: &str) -> Option<(usize, usize)> {
    ROWS.iter().enumerate().find_map(|(row, rooms)| Some((row, rooms.iter().position(|name| *name == room)?)))
}

/// Whether code of one room may name another.
fn may_import(from: &str, to: &str) -> bool {
    match (place(from), place(to)) {
        (Some(from), Some(to)) => to <= from,
        _ => false,
    }
}

/// Room of a file: `src/<room>/…` or `src/<room>.rs`.
fn room(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap_or(path);
    below.split('/').next().unwrap_or(below).trim_end_matches(".rs")
}

fn violations(file: &Source) -> Vec<String> {
    let from = room(&file.path);
    if matches!(from, "lib" | "prelude") {
        return Vec::new();
    }
    if place(from).is_none() {
        return vec![format!("{}: the room `{from}` is in no row", file.path)];
    }
    let end: usize = file.code.split_inclusive('\n').take(file.lines_before_tests()).map(str::len).sum();
    let code = &file.code[..end];
    let mut found = Vec::new();
    for (at, to) in names_from_the_root(code, depth(&file.path)) {
        if !may_import(from, &to) {
            let line = code[..at].matches('\n').count() + 1;
            found.push(format!("{}:{line}: `{from}` may not import `{to}`", file.path));
        }
    }
    found
}

/// Modules between the crate's root and this file: how many `super` lead to the root.
fn depth(path: &str) -> usize {
    let parts: Vec<&str> = path.strip_prefix("src/").unwrap_or(path).split('/').collect();
    if parts.last() == Some(&"mod.rs") { parts.len() - 1 } else { parts.len() }
}

/// First names below the root, as `crate::name`, `crate::{name, name::…}` or through `super`, with their positions.
fn names_from_the_root(code: &str, depth: usize) -> Vec<(usize, String)> {
    let mut names = Vec::new();
    let climbed = "super::".repeat(depth);
    for prefix in ["crate::", climbed.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                Some(group) => names.extend(group_names(group).into_iter().map(|name| (at, name))),
                None => names.push((at, name(rest))),
            }
        }
    }
    names.retain(|(_, name)| !name.is_empty() && name != "super");
    names
}

fn name(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Names at the top of `{a, b::{c, d}, e}`, given without its first brace.
fn group_names(group: &str) -> Vec<String> {
    let (mut names, mut level, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => level += 1,
            ',' | '}' if level == 0 => {
                names.push(name(&group[start..at]));
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            '}' => level -= 1,
            _ => {}
        }
    }
    names
}

#[test]
fn imports_lead_downwards() {
    let files = source::files(&["src"]);
    assert!(files.len() > 20, "only {} files found", files.len());
    let found: Vec<String> = files.iter().flat_map(violations).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn an_import_upwards_is_found_in_every_form() {
    let bad = |path: &str, code: &str| violations(&Source::new(path, code)).len();
    assert_eq!(bad("src/wire/batch.rs", "use crate::client::Fetcher;\n"), 1);
    assert_eq!(bad("src/wire/batch.rs", "use crate::{base::id, store::{Backend, slab}};\n"), 1);
    assert_eq!(bad("src/wire/batch.rs", "fn f() -> crate::worker::Turn {}\n"), 1);
    assert_eq!(bad("src/wire/batch.rs", "use super::super::dsl::KStream;\n"), 1);
    assert_eq!(bad("src/wire/mod.rs", "use super::dsl::KStream;\n"), 1);
    assert_eq!(bad("src/arena/frame.rs", "use crate::net::Conn;\n"), 1, "further right in its row");
    assert_eq!(bad("src/wire/batch.rs", "use crate::Memory;\n"), 1, "through the root");
    assert_eq!(bad("src/helpers/mod.rs", "\n"), 1, "a room in no row");
}

#[test]
fn imports_downwards_comments_and_tests_are_not_found() {
    let good = |path: &str, code: &str| assert_eq!(violations(&Source::new(path, code)), [""; 0], "{path}");
    good("src/worker/turn.rs", "use crate::{base::id::TaskId, task::Task, worker::port};\nuse super::port;\n");
    good("src/net/conn.rs", "use crate::arena::FramePool; // crate::worker\n");
    good("src/wire/batch.rs", "#[cfg(test)]\nmod tests {\n    use crate::client::Fetcher;\n}\n");
    good("src/lib.rs", "pub use crate::dsl::KStream;\n");
    good("src/ffi/rocks.rs", "use super::kafka;\nuse plimsoll_alloc::scope;\n");
}
