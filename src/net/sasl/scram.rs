//! SCRAM (RFC 5802, RFC 7677) without channel binding: the password never travels, and the broker proves that it knows
//! it, too.
//!
//! Names and passwords are taken as UTF-8, without SASLprep: as Kafka's own client does.
use super::{Mechanism, SaslFault, Turn};
use crate::base::secret::Secret;
use crate::net::base64;
use ring::rand::SecureRandom;
use ring::{digest, hmac, pbkdf2, rand};
use std::num::NonZeroU32;

/// Fewest rounds of hashing that a broker may ask for, by RFC 7677.
const LEAST_ITERATIONS: u32 = 4_096;
/// Most: some 50 ms of work. Kafka's brokers allow 16,384.
const MOST_ITERATIONS: u32 = 100_000;
/// Random bytes of a nonce.
const NONCE_BYTES: usize = 24;
/// The header that says "no channel binding", and its base 64.
const GS2_HEADER: &str = "n,,";
const GS2_HEADER_BASE64: &str = "biws";

/// The hash of a mechanism.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

impl Hash {
    /// The hash of one of SCRAM's mechanisms; SHA-256 for others.
    pub(super) fn of(mechanism: Mechanism) -> Self {
        match mechanism {
            Mechanism::ScramSha512 => {
                Self { digest: &digest::SHA512, hmac: hmac::HMAC_SHA512, pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512 }
            }
            _ => Self { digest: &digest::SHA256, hmac: hmac::HMAC_SHA256, pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256 },
        }
    }
}

/// What is awaited.
enum Step {
    /// The salt.
    First,
    /// The broker's signature, which must be this one.
    Final {
        signature: hmac::Tag,
    },
    Done,
}

/// One login.
pub(super) struct Client {
    mechanism: Mechanism,
    hash: Hash,
    password: Secret,
    nonce: String,
    /// The first message without its header.
    bare: String,
    step: Step,
}

impl Client {
    /// Starts a login with a random nonce.
    pub(super) fn new(mechanism: Mechanism, username: &str, password: &Secret) -> Result<Self, SaslFault> {
        let mut random = [0; NONCE_BYTES];
        rand::SystemRandom::new().fill(&mut random).map_err(|_| SaslFault::Random)?;
        Ok(Self::with_nonce(mechanism, Hash::of(mechanism), username, password, base64::encode(&random)))
    }

    fn with_nonce(mechanism: Mechanism, hash: Hash, username: &str, password: &Secret, nonce: String) -> Self {
        let name = username.replace('=', "=3D").replace(',', "=2C");
        let bare = format!("n={name},r={nonce}");
        Self { mechanism, hash, password: password.clone(), nonce, bare, step: Step::First }
    }

    /// Writes the first message.
    pub(super) fn first(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(GS2_HEADER.as_bytes());
        into.extend_from_slice(self.bare.as_bytes());
    }

    /// Takes a message of the broker.
    pub(super) fn next(&mut self, message: &[u8], into: &mut Vec<u8>) -> Result<Turn, SaslFault> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::First => self.answer(message, into),
            Step::Final { signature } => self.check(message, &signature),
            Step::Done => Err(self.malformed("place in the conversation")),
        }
    }

    /// Answers the salt by the proof.
    fn answer(&mut self, message: &[u8], into: &mut Vec<u8>) -> Result<Turn, SaslFault> {
        let text = std::str::from_utf8(message).map_err(|_| self.malformed("text"))?;
        let mut parts = text.split(',');
        let mut part = |name: &str, what| {
            parts.next().and_then(|part| part.strip_prefix(name)).ok_or_else(|| self.malformed(what))
        };
        let (nonce, salt, iterations) = (part("r=", "nonce")?, part("s=", "salt")?, part("i=", "number of rounds")?);
        let fresh = nonce.strip_prefix(&self.nonce).is_some_and(|rest| !rest.is_empty());
        if !fresh {
            return Err(self.malformed("nonce that goes on from ours"));
        }
        let salt = base64::decode(salt.as_bytes()).filter(|salt| !salt.is_empty());
        let salt = salt.ok_or_else(|| self.malformed("salt"))?;
        let got = iterations.parse::<u32>().map_err(|_| self.malformed("number of rounds"))?;
        let rounds = NonZeroU32::new(got).filter(|_| (LEAST_ITERATIONS..=MOST_ITERATIONS).contains(&got));
        let (least, most) = (LEAST_ITERATIONS, MOST_ITERATIONS);
        let rounds = rounds.ok_or(SaslFault::Iterations { got, least, most })?;

        let mut salted = [0; digest::MAX_OUTPUT_LEN];
        let salted = salted.get_mut(..self.hash.digest.output_len()).ok_or_else(|| self.malformed("hash"))?;
        pbkdf2::derive(self.hash.pbkdf2, rounds, &salt, self.password.expose(), salted);
        let salted = hmac::Key::new(self.hash.hmac, salted);
        let client_key = hmac::sign(&salted, b"Client Key");
        let stored_key = digest::digest(self.hash.digest, client_key.as_ref());
        let without_proof = format!("c={GS2_HEADER_BASE64},r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.bare);
        let client_signature = hmac::sign(&hmac::Key::new(self.hash.hmac, stored_key.as_ref()), signed.as_bytes());
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(client_signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        into.extend_from_slice(without_proof.as_bytes());
        into.extend_from_slice(b",p=");
        into.extend_from_slice(base64::encode(&proof).as_bytes());

        let server_key = hmac::sign(&salted, b"Server Key");
        let signature = hmac::sign(&hmac::Key::new(self.hash.hmac, server_key.as_ref()), signed.as_bytes());
        self.step = Step::Final { signature };
        Ok(Turn::Send)
    }

    /// Checks that the broker knows the password.
    fn check(&self, message: &[u8], signature: &hmac::Tag) -> Result<Turn, SaslFault> {
        if message.starts_with(b"e=") {
            return Err(SaslFault::Refused { mechanism: self.mechanism });
        }
        let shown = message.strip_prefix(b"v=").and_then(|rest| rest.split(|byte| *byte == b',').next());
        let shown = shown.and_then(base64::decode).ok_or_else(|| self.malformed("signature"))?;
        // What was sent by the broker is compared with what only the password's owner knows; its time tells nothing
        // that helps, for each login has another nonce.
        if shown == signature.as_ref() { Ok(Turn::Done) } else { Err(SaslFault::ServerProof) }
    }

    fn malformed(&self, what: &'static str) -> SaslFault {
        SaslFault::Malformed { mechanism: self.mechanism, what }
    }
}

#[cfg(test)]
#[path = "scram_tests.rs"]
mod tests;
