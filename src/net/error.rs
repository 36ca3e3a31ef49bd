//! What can go wrong on a socket. Small and `Copy`: a lost connection is an ordinary event on the data path.
use super::sasl::SaslFault;
use super::tls_fault::TlsFault;
use rustix::io::Errno;

/// A failure of one connection. The connection is of no use afterwards; its owner closes it and connects again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NetError {
    /// The operating system refused an operation.
    #[error("{op}: {errno}")]
    Io {
        /// The call that failed.
        op: &'static str,
        /// What the system answered.
        errno: Errno,
    },
    /// The broker closed the connection.
    #[error("the broker closed the connection")]
    Closed,
    /// The broker closed the connection before it had answered more than which versions it speaks.
    #[error("the broker closed the new connection; does security.protocol fit this listener?")]
    ClosedEarly,
    /// The first bytes are those of TLS.
    #[error("the listener speaks TLS; set security.protocol to SSL or SASL_SSL")]
    SpeaksTls,
    /// The TLS session.
    #[error("TLS: {0}")]
    Tls(#[from] TlsFault),
    /// The login.
    #[error("SASL: {0}")]
    Sasl(#[from] SaslFault),
    /// The connection is not open.
    #[error("not connected")]
    NotConnected,
    /// The length in front of a response makes no sense.
    #[error("a response claims {len} bytes; is this the address of a kafka broker, and does security.protocol fit it?")]
    FrameLength {
        /// The length as received.
        len: i32,
    },
    /// The response does not belong to the oldest request.
    #[error("response {got} arrived where {expected} was due")]
    Correlation {
        /// Correlation id of the oldest request without an answer; -1 if there is none.
        expected: i32,
        /// Correlation id received.
        got: i32,
    },
    /// Too many requests without an answer on this connection.
    #[error("{limit} requests wait for their answers on one connection already")]
    Outstanding {
        /// The most requests one connection may have.
        limit: usize,
    },
    /// A request does not fit its staging buffer.
    #[error("a request of {needed} bytes does not fit the staging buffer of {have}")]
    StageFull {
        /// Bytes of the request.
        needed: usize,
        /// Capacity of the buffer.
        have: usize,
    },
    /// A response does not fit the buffer meant for it.
    #[error("a response of {needed} bytes does not fit the buffer of {have}")]
    ResponseTooLarge {
        /// Bytes of the response.
        needed: usize,
        /// Bytes of the buffer.
        have: usize,
    },
    /// The poll set has no room for another connection.
    #[error("a thread may wait for at most {limit} connections")]
    PollSetFull {
        /// Capacity of the poll set.
        limit: usize,
    },
    /// No answer in time.
    #[error("no answer within {ms} ms")]
    TimedOut {
        /// How long the caller was ready to wait.
        ms: u64,
    },
}

impl NetError {
    /// Whether settings or certificates have to change before a connection can succeed: nothing is won by trying soon.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::SpeaksTls | Self::Sasl(_) => true,
            Self::Tls(fault) => fault.is_refusal(),
            _ => false,
        }
    }

    /// Names the call that failed.
    pub(super) fn io(op: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Io { op, errno }
    }
}
