use super::*;
use crate::base::token::OauthToken;
use std::time::UNIX_EPOCH;

fn settings(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn refused(list: &[(&str, &str)]) -> String {
    parse(&settings(list), None).map(|_| ()).unwrap_err().to_string()
}

fn callback() -> Option<Arc<TokenCallback>> {
    Some(Arc::new(|| Ok(OauthToken::new("t", UNIX_EPOCH))))
}

#[test]
fn nothing_said_is_plaintext() {
    let parsed = parse(&[], None).unwrap();
    assert!(parsed.tls.is_none() && parsed.credentials.is_none());
    assert!(parse(&settings(&[("security.protocol", "PLAINTEXT"), ("ssl.ca.location", "")]), None).is_ok());
}

#[test]
fn plain_works_in_every_build() {
    let list = [
        ("security.protocol", "SASL_PLAINTEXT"),
        ("sasl.mechanisms", "PLAIN"),
        ("sasl.username", "me"),
        ("sasl.password", "hush-hush"),
    ];
    let parsed = parse(&settings(&list), None).unwrap();
    assert!(!format!("{parsed:?}").contains("hush"), "{parsed:?}");
    let Some(Credentials::Password { mechanism, username, password }) = parsed.credentials else { panic!("password") };
    assert_eq!((mechanism, username.as_str(), password.expose()), (Mechanism::Plain, "me", &b"hush-hush"[..]));
}

#[test]
fn what_one_plane_would_not_honour_is_refused_with_what_to_do() {
    let gssapi = refused(&[("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "GSSAPI")]);
    assert!(gssapi.contains("GSSAPI") && gssapi.contains("not supported on the data path"), "{gssapi}");
    for (name, part) in [
        ("ssl.key.password", "openssl pkey"),
        ("ssl.keystore.location", "PEM"),
        ("ssl.truststore.location", "ssl.ca.location"),
        ("ssl.cipher.suites", "rustls"),
        ("ssl.crl.location", "revocation"),
        ("sasl.kerberos.service.name", "SCRAM"),
        ("sasl.jaas.config", "sasl.username"),
        ("sasl.oauthbearer.config", "oauth_token"),
    ] {
        let text = refused(&[(name, "hush-hush")]);
        assert!(text.starts_with(name) && text.contains(part) && !text.contains("hush"), "{text}");
    }
    assert_eq!(
        refused(&[("sasl.password", "hush\0hush")]),
        "sasl.password is not valid; expected a text without zero bytes"
    );
    assert!(refused(&[("ssl.no.such", "x")]).contains("ssl.no.such"));
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let plaintext = refused(&[("sasl.username", "me")]);
    assert_eq!(plaintext, "sasl.username has no effect with security.protocol=plaintext; remove one of them");
    assert!(refused(&[("ssl.ca.location", "/x")]).contains("security.protocol=plaintext"));
    assert!(refused(&[("security.protocol", "tls")]).contains("sasl_ssl"));
    let sasl = ("security.protocol", "sasl_plaintext");
    assert_eq!(refused(&[sasl]), "SASL needs sasl.mechanism");
    assert_eq!(refused(&[sasl, ("sasl.mechanism", "PLAIN")]), "sasl.mechanism needs sasl.username");
    let no_password = [sasl, ("sasl.mechanism", "PLAIN"), ("sasl.username", "me")];
    assert_eq!(refused(&no_password), "sasl.mechanism needs sasl.password");
    assert!(refused(&[sasl, ("sasl.mechanism", "plane")]).contains("SCRAM-SHA-512"));
    assert!(parse(&[], callback()).is_err(), "a token callback without SASL");
}

#[cfg(not(feature = "ssl"))]
#[test]
fn without_the_feature_everything_else_is_refused_by_its_name() {
    for list in [
        [("security.protocol", "ssl"), ("ssl.ca.pem", "x")],
        [("security.protocol", "sasl_plaintext"), ("sasl.mechanism", "SCRAM-SHA-256")],
    ] {
        assert!(refused(&list).contains("crate feature \"ssl\""), "{}", refused(&list));
    }
}

#[cfg(feature = "ssl")]
#[test]
fn tls_settings_are_read_by_librdkafka_s_names() {
    let list = [
        ("security.protocol", "ssl"),
        ("ssl.ca.location", "/ca.pem"),
        ("ssl.certificate.pem", "certificate"),
        ("ssl.key.pem", "hush-hush"),
    ];
    let parsed = parse(&settings(&list), None).unwrap();
    assert!(!format!("{parsed:?}").contains("hush"), "{parsed:?}");
    let tls = parsed.tls.unwrap();
    assert_eq!(tls.verification, Verification::Full);
    assert_eq!(tls.ca.unwrap().location, Some(PathBuf::from("/ca.pem")));
    assert_eq!(tls.identity.unwrap().1.text.expose(), b"hush-hush");
    let verified = |name, value| parse(&settings(&[list[0], (name, value)]), None).unwrap().tls.unwrap().verification;
    assert_eq!(verified("ssl.endpoint.identification.algorithm", "none"), Verification::AnyHost);
    assert_eq!(verified("ssl.endpoint.identification.algorithm", "https"), Verification::Full);
    assert_eq!(verified("enable.ssl.certificate.verification", "false"), Verification::None);
    assert!(refused(&[list[0], list[2]]).contains("ssl.key.location"));
    assert!(refused(&[list[0], list[3]]).contains("ssl.certificate.location"));
    assert!(refused(&[list[0], list[1], ("ssl.ca.pem", "x")]).contains("ssl.ca.location"));
    assert!(refused(&[list[0], ("enable.ssl.certificate.verification", "maybe")]).contains("true or false"));
}

#[cfg(feature = "ssl")]
#[test]
fn a_token_needs_a_callback_and_a_callback_a_token() {
    let sasl = ("security.protocol", "sasl_ssl");
    let oauth = settings(&[sasl, ("sasl.mechanism", "OAUTHBEARER")]);
    assert!(matches!(parse(&oauth, callback()).unwrap().credentials, Some(Credentials::Token(_))));
    assert!(parse(&oauth, None).unwrap_err().to_string().contains("oauth_token"));
    let both = settings(&[sasl, ("sasl.mechanism", "OAUTHBEARER"), ("sasl.username", "me")]);
    assert!(parse(&both, callback()).unwrap_err().to_string().contains("sasl.username has no effect"));
    let scram = settings(&[sasl, ("sasl.mechanism", "SCRAM-SHA-256"), ("sasl.username", "u"), ("sasl.password", "p")]);
    assert!(parse(&scram, None).is_ok());
    assert!(parse(&scram, callback()).is_err());
}
