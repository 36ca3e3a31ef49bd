//! Any key or value of a scenario: one nullable type, whose codec knows the serde at its place only when it runs.
use plimsoll::prelude::*;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::Cell;

/// A serde by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Text,
    Long,
    Integer,
    Double,
    Bytes,
}

impl Kind {
    /// Of a node's field; text where there is none.
    pub fn named(name: Option<&str>) -> Result<Self, String> {
        Ok(match name {
            None | Some("string") => Self::Text,
            Some("long") => Self::Long,
            Some("integer") => Self::Integer,
            Some("double") => Self::Double,
            Some("bytes") => Self::Bytes,
            Some(other) => return Err(format!("serde {other}")),
        })
    }
}

/// A key or value as Java has it.
#[derive(Clone, PartialEq, Debug)]
pub enum Datum {
    Null,
    Text(String),
    Long(i64),
    Integer(i32),
    Double(f64),
    Bytes(Vec<u8>),
}

impl Datum {
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// As `String.valueOf`, without a null.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        Some(match self {
            Self::Null => return None,
            Self::Text(text) => text.into(),
            Self::Long(n) => n.to_string().into(),
            Self::Integer(n) => n.to_string().into(),
            Self::Double(n) => java_double(*n).into(),
            Self::Bytes(bytes) => hex(bytes).into(),
        })
    }

    /// As `String.valueOf`: a null is the word.
    pub fn shown(&self) -> Cow<'_, str> {
        self.text().unwrap_or("null".into())
    }

    pub fn json(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Text(text) => text.as_str().into(),
            Self::Long(n) => (*n).into(),
            Self::Integer(n) => (*n).into(),
            Self::Double(n) => (*n).into(),
            Self::Bytes(bytes) => hex(bytes).into(),
        }
    }
}

impl From<Option<String>> for Datum {
    fn from(text: Option<String>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

/// As `Double.toString`.
fn java_double(n: f64) -> String {
    if n.is_nan() {
        return "NaN".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if n == 0.0 || (1e-3..1e7).contains(&n.abs()) {
        return format!("{n:?}");
    }
    let short = format!("{n:E}");
    match short.split_once('E') {
        Some((digits, power)) if !digits.contains('.') => format!("{digits}.0E{power}"),
        _ => short,
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

thread_local! {
    /// Whether a value did not fit the serde at its place, where Java throws a `ClassCastException`.
    static MISFIT: Cell<bool> = const { Cell::new(false) };
}

/// Whether a value was written that did not fit, since the last call.
pub fn take_misfit() -> bool {
    MISFIT.take()
}

/// The codec: a serde that takes nulls, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Any(pub Kind);

pub const TEXT: Any = Any(Kind::Text);

impl Schema for Any {
    type View<'a> = &'a Datum;
    type Out<'a> = Datum;

    fn lend<'s, 'a: 's>(out: &'s Datum) -> &'s Datum {
        out
    }

    fn shorten<'s, 'a: 's>(view: &'a Datum) -> &'s Datum {
        view
    }
}

impl Codec for Any {
    type Owned = Datum;

    fn decode(&self, bytes: &[u8]) -> Result<Datum, DecodeError> {
        Ok(match self.0 {
            Kind::Text => Datum::Text(String::from_utf8_lossy(bytes).into_owned()),
            Kind::Long => Datum::Long(I64.decode(bytes)?),
            Kind::Integer => Datum::Integer(I32.decode(bytes)?),
            Kind::Double => Datum::Double(F64.decode(bytes)?),
            Kind::Bytes => Datum::Bytes(bytes.to_vec()),
        })
    }

    fn decode_null(&self) -> Result<Datum, DecodeError> {
        Ok(Datum::Null)
    }

    fn is_null(view: &Datum) -> bool {
        view.is_null()
    }

    fn encode(&self, view: &Datum, out: &mut Scratch) {
        match (self.0, view) {
            (Kind::Text, Datum::Text(text)) => out.extend(text.as_bytes()),
            (Kind::Long, Datum::Long(n)) => out.extend(&n.to_be_bytes()),
            (Kind::Integer, Datum::Integer(n)) => out.extend(&n.to_be_bytes()),
            (Kind::Double, Datum::Double(n)) => out.extend(&n.to_be_bytes()),
            (Kind::Bytes, Datum::Bytes(bytes)) => out.extend(bytes),
            (_, Datum::Null) => (),
            _ => MISFIT.set(true),
        }
    }

    fn view(owned: &Datum) -> &Datum {
        owned
    }

    fn own(view: &Datum) -> Datum {
        view.clone()
    }
}

/// A codec whose views the scenarios' functions take.
pub trait Dynamic: Codec {
    fn datum(view: Self::View<'_>) -> Datum;

    /// The serde.
    fn kind(&self) -> Kind;
}

impl Dynamic for Any {
    fn datum(view: &Datum) -> Datum {
        view.clone()
    }

    fn kind(&self) -> Kind {
        self.0
    }
}

impl Dynamic for I64 {
    fn datum(view: i64) -> Datum {
        Datum::Long(view)
    }

    fn kind(&self) -> Kind {
        Kind::Long
    }
}

impl Dynamic for Windowed<Any> {
    /// As `Windowed.toString`.
    fn datum(view: WindowKey<'_, Any>) -> Datum {
        Datum::Text(format!("[{}@{}/{}]", view.key.shown(), view.start, view.end))
    }

    fn kind(&self) -> Kind {
        Kind::Text
    }
}
