//! Byte vectors written by Apache Kafka's own client library (`Vectors.java` beside this file says how). Tests and
//! the fuzz target's seeds use them.

const TEXT: &str = include_str!("vectors.txt");

/// Names and bytes of all vectors.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    TEXT.lines().map(|line| {
        let (name, hex) = line.rsplit_once(' ').unwrap();
        let digit = |byte: u8| (byte as char).to_digit(16).unwrap() as u8;
        (name, hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
    })
}

/// The vector called `name`.
pub(crate) fn vector(name: &str) -> Vec<u8> {
    all().find(|(this, _)| *this == name).map(|(_, bytes)| bytes).unwrap_or_else(|| panic!("no vector {name}"))
}
