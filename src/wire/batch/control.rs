//! Control batches: markers that a broker writes into the log for clients.
use crate::wire::Reader;
use crate::wire::error::Result;

/// The kind of a control record, from its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlType {
    /// The producer's transaction was aborted.
    Abort,
    /// The producer's transaction was committed.
    Commit,
    /// Any other marker; none concerns a consumer.
    Other(i16),
}

impl ControlType {
    /// Reads the key of a control record: version and type, two bytes each. Later versions may append fields.
    pub(crate) fn from_key(key: Option<&[u8]>) -> Result<ControlType> {
        let mut reader = Reader::new(key.unwrap_or(&[]), false);
        if reader.i16()? < 0 {
            return Err(reader.malformed("version of a control record"));
        }
        Ok(match reader.i16()? {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            other => ControlType::Other(other),
        })
    }
}
