//! The functions that scenarios name, as `conformance/FORMAT.md` defines them.
use super::datum::{Datum, Kind};

pub type Predicate = fn(&Datum, &Datum) -> bool;
pub type ValueFunction = fn(&Datum) -> Datum;
pub type KeyFunction = fn(&Datum, &Datum) -> Datum;
pub type Flat = fn(&Datum) -> Vec<Datum>;
pub type Reducer = fn(&mut Datum, &Datum);

fn has(value: &Datum, letter: char) -> bool {
    value.text().is_some_and(|text| text.contains(letter))
}

pub fn predicate(name: &str) -> Result<Predicate, String> {
    Ok(match name {
        "true" => |_, _| true,
        "false" => |_, _| false,
        "key_not_null" => |key, _| !key.is_null(),
        "value_not_null" => |_, value| !value.is_null(),
        "len_even" => |_, value| value.text().is_some_and(|text| text.encode_utf16().count() % 2 == 0),
        "has_a" => |_, value| has(value, 'a'),
        "has_b" => |_, value| has(value, 'b'),
        other => return Err(format!("predicate {other}")),
    })
}

fn first(value: &Datum) -> Datum {
    value.text().and_then(|text| text.chars().next().map(String::from)).into()
}

fn upper(value: &Datum) -> Datum {
    value.text().map(|text| text.to_uppercase()).into()
}

pub fn value_function(name: &str) -> Result<ValueFunction, String> {
    Ok(match name {
        "identity" => Datum::clone,
        "upper" => upper,
        "reverse" => |value| value.text().map(|text| text.chars().rev().collect()).into(),
        "append_x" => |value| Datum::Text(format!("{}x", value.text().unwrap_or_default())),
        "first" => first,
        "null_if_has_a" => |value| if has(value, 'a') { Datum::Null } else { value.clone() },
        "to_string" => |value| value.text().map(|text| text.into_owned()).into(),
        "len" => |value| value.text().map_or(Datum::Null, |text| Datum::Long(text.encode_utf16().count() as i64)),
        other => return Err(format!("value function {other}")),
    })
}

/// The serde of what a value function answers.
pub fn value_kind(name: &str, from: Kind) -> Kind {
    match name {
        "identity" | "null_if_has_a" => from,
        "len" => Kind::Long,
        _ => Kind::Text,
    }
}

pub fn key_function(name: &str) -> Result<KeyFunction, String> {
    Ok(match name {
        "identity" => |key, _| key.clone(),
        "value" => |_, value| value.text().map(|text| text.into_owned()).into(),
        "value_first" => |_, value| first(value),
        "upper" => |key, _| upper(key),
        "constant" => |_, _| Datum::Text("all".to_owned()),
        other => return Err(format!("key function {other}")),
    })
}

/// The serde of what a key function answers.
pub fn key_kind(name: &str, from: Kind) -> Kind {
    if name == "identity" { from } else { Kind::Text }
}

pub fn flat(name: &str) -> Result<Flat, String> {
    Ok(match name {
        "words" => |value| {
            let words = value.text().unwrap_or_default();
            words.split(' ').filter(|word| !word.is_empty()).map(|word| Datum::Text(word.to_owned())).collect()
        },
        "chars" => |value| {
            let chars = value.text().unwrap_or_default();
            chars.chars().map(|letter| Datum::Text(letter.to_string())).collect()
        },
        "twice" => |value| if value.is_null() { Vec::new() } else { vec![value.clone(), value.clone()] },
        other => return Err(format!("flat function {other}")),
    })
}

/// The serde of the pieces.
pub fn flat_kind(name: &str, from: Kind) -> Kind {
    if name == "twice" { from } else { Kind::Text }
}

/// As Java's `a + b`, where a null is the word.
pub fn concat(a: &Datum, between: &str, b: &Datum) -> Datum {
    Datum::Text(format!("{}{between}{}", a.shown(), b.shown()))
}

pub fn reducer(name: &str) -> Result<Reducer, String> {
    Ok(match name {
        "identity" | "concat" => |a, b| *a = concat(a, "", b),
        "last" => |a, b| *a = b.clone(),
        "max" => |a, b| {
            let later = a.shown().encode_utf16().lt(b.shown().encode_utf16());
            if later {
                *a = b.clone();
            }
        },
        "null_on_b" => |a, b| *a = if has(b, 'b') { Datum::Null } else { concat(a, "", b) },
        other => return Err(format!("reducer {other}")),
    })
}

/// The joiner.
pub fn join(left: &Datum, right: &Datum) -> Datum {
    concat(left, "/", right)
}
