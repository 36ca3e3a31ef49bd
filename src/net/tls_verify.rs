//! Which certificates a session trusts and which one it shows, out of PEM text or files.
//!
//! Owns nothing. No text of a key gets into an error: what a PEM reader says of a damaged file may quote it.
use super::security::{Pem, SecurityError, TlsSettings, Verification};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Where systems keep the authorities they trust, in one file.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
];
/// Largest file of certificates or keys, in bytes.
const MAX_PEM_BYTES: u64 = 4 << 20;

fn certificate_error(setting: &'static str, reason: impl Into<String>) -> SecurityError {
    SecurityError::Certificate { setting, reason: reason.into() }
}

/// How certificates of brokers are checked.
pub(super) fn verifier(
    settings: &TlsSettings,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, SecurityError> {
    let algorithms = provider.signature_verification_algorithms;
    match settings.verification {
        Verification::Full => {
            let roots = Arc::new(roots(settings)?);
            let verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider)).build();
            let verifier = verifier.map_err(|_| certificate_error("ssl.ca", "there is no certificate in it"))?;
            Ok(verifier)
        }
        Verification::AnyHost => Ok(Arc::new(Lenient { roots: Some(roots(settings)?), algorithms })),
        Verification::None => Ok(Arc::new(Lenient { roots: None, algorithms })),
    }
}

/// The trusted authorities.
fn roots(settings: &TlsSettings) -> Result<RootCertStore, SecurityError> {
    let mut roots = RootCertStore::empty();
    let setting = settings.ca.as_ref().map_or("ssl.ca.location", |ca| ca.setting);
    let pem = match &settings.ca {
        Some(ca) => text_of(ca)?,
        None => {
            let found = SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read(path).ok());
            found.ok_or_else(|| certificate_error(setting, "the system has no file of authorities; set it"))?
        }
    };
    for certificate in certificates(&pem, setting)? {
        let added = roots.add(certificate);
        // A system's bundle may hold some that are too old to be read.
        if added.is_err() && settings.ca.is_some() {
            return Err(certificate_error(setting, "a certificate in it cannot be read"));
        }
    }
    if roots.is_empty() {
        return Err(certificate_error(setting, "there is no certificate in it"));
    }
    Ok(roots)
}

/// Our own certificate with its chain, and its key.
pub(super) fn identity(
    settings: &TlsSettings,
) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, SecurityError> {
    let Some((certificate, key)) = &settings.identity else { return Ok(None) };
    let chain = certificates(&text_of(certificate)?, certificate.setting)?;
    if chain.is_empty() {
        return Err(certificate_error(certificate.setting, "there is no certificate in it"));
    }
    let pem = text_of(key)?;
    let encrypted = |label: &str| String::from_utf8_lossy(&pem).contains(label);
    if encrypted("ENCRYPTED PRIVATE KEY") || encrypted("Proc-Type: 4,ENCRYPTED") {
        let reason = "the key is encrypted, which is not read; decrypt it: openssl pkey -in key.pem -out plain.pem";
        return Err(certificate_error(key.setting, reason));
    }
    let key_der = PrivateKeyDer::from_pem_slice(&pem)
        .map_err(|_| certificate_error(key.setting, "there is no private key in it (PKCS#8, PKCS#1 or SEC1 in PEM)"))?;
    Ok(Some((chain, key_der)))
}

fn certificates(pem: &[u8], setting: &'static str) -> Result<Vec<CertificateDer<'static>>, SecurityError> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|_| certificate_error(setting, "it is not valid PEM"))
}

fn text_of(pem: &Pem) -> Result<Vec<u8>, SecurityError> {
    let Some(path) = &pem.location else { return Ok(pem.text.expose().to_vec()) };
    let unread = |error: std::io::Error| certificate_error(pem.setting, format!("{}: {error}", path.display()));
    let kept = std::fs::metadata(path).map_err(unread)?;
    if !kept.is_file() || kept.len() > MAX_PEM_BYTES {
        let reason = format!("{} is not a file of at most {} MiB", path.display(), MAX_PEM_BYTES >> 20);
        return Err(certificate_error(pem.setting, reason));
    }
    std::fs::read(path).map_err(unread)
}

/// Checks less: not the host, or, without roots, nothing but that the broker owns the key of its certificate.
#[derive(Debug)]
struct Lenient {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let parsed = ParsedCertificate::try_from(end_entity)?;
            verify_server_cert_signed_by_trust_anchor(&parsed, roots, intermediates, now, self.algorithms.all)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
