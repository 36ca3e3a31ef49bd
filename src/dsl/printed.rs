//! Where `print` writes.
use std::path::PathBuf;

/// How a stream is printed: one line a record, `[label]: key, value`.
///
/// # Null
/// A null is printed as the key's or value's schema shows it.
///
/// # Late
/// Every record is printed.
///
/// # Stores
/// None.
///
/// # Java
/// `Printed.toSysOut()`, `Printed.toFile(path)`, `.withLabel(label)`, `.withName(name)`.
///
/// ```
/// use plimsoll::prelude::*;
///
/// let builder = StreamsBuilder::new();
/// builder.stream("in", Consumed::with(Utf8, I64)).print(Printed::to_stdout().label("in"));
/// # builder.build().unwrap();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Printed {
    pub(crate) file: Option<PathBuf>,
    pub(crate) label: Option<String>,
    pub(crate) name: Option<String>,
}

impl Printed {
    /// To the standard output, with the name of the stream's node as label.
    pub fn to_stdout() -> Self {
        Self::default()
    }

    /// Behind what the file has, with the name of the stream's node as label.
    pub fn to_file(path: impl Into<PathBuf>) -> Self {
        Self { file: Some(path.into()), ..Self::default() }
    }

    /// Another label.
    #[must_use]
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.to_owned());
        self
    }

    /// Names the node.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}
