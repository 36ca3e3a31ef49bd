//! What can go wrong with a TLS session. Small and `Copy`; each says what to look at.

/// Why a TLS session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(dead_code)] // without TLS
pub(crate) enum TlsFault {
    /// No authority that is trusted has signed the broker's certificate.
    #[error("no trusted authority has signed the broker's certificate; check ssl.ca.location or ssl.ca.pem")]
    UnknownIssuer,
    /// The certificate is for other hosts.
    #[error(
        "the broker's certificate is not for the host that was connected to; check the host in bootstrap.servers and \
         advertised.listeners, or ssl.endpoint.identification.algorithm"
    )]
    WrongHost,
    /// The certificate's time is over.
    #[error("the broker's certificate has expired")]
    Expired,
    /// The certificate's time has not come.
    #[error("the broker's certificate is not valid yet; check both clocks")]
    NotYetValid,
    /// The certificate is damaged, or not one of a server.
    #[error("the broker's certificate is not acceptable (damaged, revoked, or not made for a server)")]
    BadCertificate,
    /// The broker wants a certificate of ours.
    #[error("the broker asks for a client certificate; set ssl.certificate.location and ssl.key.location")]
    CertificateRequired,
    /// The broker refuses ours.
    #[error(
        "the broker refuses our certificate, or misses one; check ssl.certificate.location, and that an authority in \
         the broker's truststore signed it"
    )]
    CertificateRefused,
    /// Nothing in common.
    #[error("the broker and this client have no TLS version or cipher in common (TLS 1.2 and 1.3 are spoken)")]
    NothingInCommon,
    /// What answers is not TLS.
    #[error(
        "what answers does not speak TLS; set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or use the TLS port"
    )]
    NotTls,
    /// The other side ended it before it began.
    #[error(
        "the broker closed the connection during the handshake; is this its TLS port, and does it ask for a client \
         certificate?"
    )]
    ClosedInHandshake,
    /// The host cannot be put into a handshake.
    #[error("the broker's host is neither a DNS name nor an address")]
    HostName,
    /// Bytes were changed or lost on the way, or the broker broke the protocol.
    #[error("the session broke ({0})")]
    Broken(&'static str),
}

impl TlsFault {
    /// Whether certificates or settings have to change before a session can succeed.
    pub(super) fn is_refusal(self) -> bool {
        !matches!(self, Self::ClosedInHandshake | Self::Broken(_))
    }
}
