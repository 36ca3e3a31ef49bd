//! A real broker with a listener of each kind: TLS, SASL, both, and TLS that asks for a client certificate.
use super::broker::{Cluster, Options};
use super::certs::Authority;
use std::net::TcpListener;
use std::sync::OnceLock;

/// The name and password that the broker knows.
pub const USER: &str = "alice";
/// Its password.
pub const PASSWORD: &str = "wonder-land-0815";
/// How long a login over `sasl_plaintext` by PLAIN lasts, in milliseconds.
pub const SESSION_MS: u64 = 2_000;

/// The broker and what its clients need.
pub struct Secured {
    pub cluster: Cluster,
    /// Who signed the broker's certificate, and may sign those of clients.
    pub authority: Authority,
    ports: [u16; 4],
}

/// A listener beside the plaintext one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Listener {
    Ssl,
    /// TLS that wants a certificate of the client.
    Mutual,
    SaslPlaintext,
    SaslSsl,
}

impl Secured {
    /// `bootstrap.servers` of a listener, by the name that the broker's certificate is for.
    pub fn bootstrap(&self, listener: Listener) -> String {
        format!("localhost:{}", self.ports[listener as usize])
    }

    /// The same by an address that the certificate is not for.
    pub fn by_address(&self, listener: Listener) -> String {
        format!("127.0.0.1:{}", self.ports[listener as usize])
    }
}

/// The broker that all tests of this binary share; `None` when Kafka's jars cannot be had.
pub fn secured() -> Option<&'static Secured> {
    static SHARED: OnceLock<Option<Secured>> = OnceLock::new();
    SHARED.get_or_init(start).as_ref()
}

fn start() -> Option<Secured> {
    let authority = Authority::new("test authority");
    let broker = authority.identity("localhost");
    let held: Vec<_> = (0..4).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: [u16; 4] = std::array::from_fn(|at| held[at].local_addr().unwrap().port());
    drop(held);
    let [ssl, mutual, sasl, both] = ports;
    // A PEM value of a properties file is one line.
    let pem = |text: &str| text.trim().replace('\n', "\\n");
    let listeners = format!(
        "PLAINTEXT://127.0.0.1:{{port}},SSL://127.0.0.1:{ssl},MUTUAL://127.0.0.1:{mutual},\
         SASL_PLAINTEXT://127.0.0.1:{sasl},SASL_SSL://127.0.0.1:{both}"
    );
    let advertised = listeners.replace("SSL://127.0.0.1", "SSL://localhost");
    let advertised = advertised.replace("MUTUAL://127.0.0.1", "MUTUAL://localhost");
    let plain = format!("org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}=\"{PASSWORD}\";");
    let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
    let oauth = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
                 unsecuredLoginStringClaim_sub=\"broker\";";
    let mut options = Options::default()
        .set("listeners", &format!("{listeners},CONTROLLER://127.0.0.1:{{controller}}"))
        .set("advertised.listeners", &advertised)
        .set(
            "listener.security.protocol.map",
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,MUTUAL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,\
             SASL_SSL:SASL_SSL",
        )
        .set("inter.broker.listener.name", "PLAINTEXT")
        .set("ssl.keystore.type", "PEM")
        .set("ssl.keystore.certificate.chain", &pem(&broker.certificate))
        .set("ssl.keystore.key", &pem(&broker.key))
        .set("ssl.truststore.type", "PEM")
        .set("ssl.truststore.certificates", &pem(&authority.pem()))
        .set("listener.name.mutual.ssl.client.auth", "required")
        .set("listener.name.sasl_plaintext.plain.connections.max.reauth.ms", &SESSION_MS.to_string())
        // A refused client learns it at once.
        .set("connection.failed.authentication.delay.ms", "0");
    // One of them takes no tokens.
    for (name, tokens) in [("sasl_plaintext", ",OAUTHBEARER"), ("sasl_ssl", "")] {
        let key = |rest: &str| format!("listener.name.{name}.{rest}");
        options = options
            .set(&key("sasl.enabled.mechanisms"), &format!("PLAIN,SCRAM-SHA-256,SCRAM-SHA-512{tokens}"))
            .set(&key("plain.sasl.jaas.config"), &plain)
            .set(&key("scram-sha-256.sasl.jaas.config"), scram)
            .set(&key("scram-sha-512.sasl.jaas.config"), scram)
            .set(&key("oauthbearer.sasl.jaas.config"), oauth);
    }
    for mechanism in ["SCRAM-SHA-256", "SCRAM-SHA-512"] {
        options.format.push("--add-scram".to_owned());
        options.format.push(format!("{mechanism}=[name={USER},password={PASSWORD}]"));
    }
    Some(Secured { cluster: Cluster::start(&options)?, authority, ports })
}

/// A token as the broker's test validator takes it: not signed, for `subject`, good for so many seconds.
pub fn unsigned_token(subject: &str, seconds: i64) -> (String, std::time::SystemTime) {
    let now = std::time::SystemTime::now();
    let since = now.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let ends = since + seconds;
    let claims = format!(r#"{{"sub":"{subject}","iat":{since},"exp":{ends}}}"#);
    let token = format!("{}.{}.", base64url(br#"{"alg":"none"}"#), base64url(claims.as_bytes()));
    (token, std::time::UNIX_EPOCH + std::time::Duration::from_secs(ends.max(0) as u64))
}

fn base64url(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..=chunk.len() {
            out.push(DIGITS[(word >> (18 - 6 * at)) as usize & 63] as char);
        }
    }
    out
}
