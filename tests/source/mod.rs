//! The project's own source as tests see it: files, and code with comments and literals blanked.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use std::fs;
use std::path::{Path, PathBuf};

/// One Rust file.
pub struct Source {
    /// Path from the top of the checkout, with `/`.
    pub path: String,
    pub text: String,
    /// The text with comments, strings and characters blanked; same lines, same columns.
    pub code: String,
    /// Whether the whole file is compiled for tests only.
    pub is_test: bool,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let top = path.split('/').next().unwrap_or("");
        let is_test = matches!(top, "tests" | "benches" | "examples" | "fuzz") || path.contains("/tests/");
        Self { path: path.to_owned(), text: text.to_owned(), code: blank(text), is_test }
    }

    /// Paths of the files that this one declares as modules of tests.
    fn test_modules(&self) -> Vec<String> {
        let (dir, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let dir = match name {
            "mod.rs" | "lib.rs" | "main.rs" => dir.to_owned(),
            _ => format!("{dir}/{}", name.trim_end_matches(".rs")),
        };
        let declared = |(index, line): (usize, &str)| {
            let name = line.trim().strip_suffix(';')?.split_whitespace().last()?;
            let text: Vec<&str> = self.text.lines().collect();
            let path = text[..index].last().and_then(|above| above.trim().strip_prefix("#[path = \""));
            Some(match path {
                Some(path) => format!("{}/{}", self.path.rsplit_once('/')?.0, path.trim_end_matches("\"]")),
                None => format!("{dir}/{name}"),
            })
        };
        self.test_lines().into_iter().filter_map(declared).collect()
    }

    /// Lines that declare or open a module of tests.
    fn test_lines(&self) -> Vec<(usize, &str)> {
        let lines: Vec<&str> = self.code.lines().collect();
        let is_marked = |index: &usize| {
            let line = lines[*index].trim_start();
            let line = if line.starts_with("pub") { line.split_once(' ').map_or(line, |(_, rest)| rest) } else { line };
            line.starts_with("mod ")
                && lines[..*index].iter().rev().take_while(|line| line.trim_start().starts_with("#[")).any(|line| {
                    let attribute: String = line.split_whitespace().collect();
                    attribute.starts_with("#[cfg(test)]") || attribute.starts_with("#[cfg(all(test")
                })
        };
        (0..lines.len()).filter(is_marked).map(|index| (index, lines[index])).collect()
    }

    /// Number of lines before the test module at the end of the file; 0 for a file of tests.
    pub fn lines_before_tests(&self) -> usize {
        if self.is_test {
            return 0;
        }
        let opened = self.test_lines().into_iter().find(|(_, line)| line.trim_end().ends_with('{'));
        opened.map_or(usize::MAX, |(index, _)| index)
    }
}

/// Every Rust file below these directories of the checkout, in order of paths.
pub fn files(tops: &[&str]) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for top in tops {
        collect(&root.join(top), &mut paths);
    }
    paths.sort();
    let read = |path: &PathBuf| {
        let relative = path.strip_prefix(root).unwrap().to_str().unwrap();
        Source::new(relative, &fs::read_to_string(path).unwrap())
    };
    let mut files: Vec<Source> = paths.iter().map(read).collect();
    let tests: Vec<String> = files.iter().flat_map(Source::test_modules).collect();
    for file in &mut files {
        let module = file.path.trim_end_matches(".rs").trim_end_matches("/mod");
        file.is_test |= tests.iter().any(|test| *test == file.path || test == module);
    }
    files
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push(path);
        }
    }
}

/// Blanks comments, strings and characters; lines and columns stay.
fn blank(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut word = false; // whether the character before is part of a name: then `r"` starts no raw string
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if first == '"' {
            quoted(rest, 1, '"')
        } else if !word && raw(rest) > 0 {
            raw(rest)
        } else if first == '\'' {
            character(rest)
        } else {
            0
        };
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = &rest[length..];
        }
        word = length == 0 && (first.is_alphanumeric() || first == '_');
    }
    out
}

/// Length of a block comment, nested ones included.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        let step = if rest.starts_with("/*") {
            depth += 1;
            2
        } else if rest.starts_with("*/") {
            depth -= 1;
            2
        } else {
            rest.chars().next().map_or(1, char::len_utf8)
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Length of a literal whose contents start at `from` and end at an unescaped `end`.
fn quoted(text: &str, from: usize, end: char) -> usize {
    let mut escaped = false;
    for (at, c) in text[from..].char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == end => return from + at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// Length of a raw string (`r"…"`, `r#"…"#`, `br"…"`, `cr"…"`), 0 if there is none.
fn raw(text: &str) -> usize {
    let body = text.strip_prefix(['b', 'c']).unwrap_or(text);
    let Some(body) = body.strip_prefix('r') else { return 0 };
    let hashes = body.len() - body.trim_start_matches('#').len();
    let Some(body) = body[hashes..].strip_prefix('"') else { return 0 };
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - body.len();
    body.find(&end).map_or(text.len(), |at| start + at + end.len())
}

/// Length of a character literal, 0 for a lifetime or label.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => quoted(text, 1, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 0,
    }
}
