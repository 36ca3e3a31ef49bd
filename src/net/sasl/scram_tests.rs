use super::*;

const SHA1: Hash = Hash {
    digest: &digest::SHA1_FOR_LEGACY_USE_ONLY,
    hmac: hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA1,
};

/// The example of RFC 7677.
const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const FIRST: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
const FINAL: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

fn client(hash: Hash, nonce: &str, password: &str) -> Client {
    Client::with_nonce(Mechanism::ScramSha256, hash, "user", &Secret::new(password), nonce.to_owned())
}

fn sha256(password: &str) -> Client {
    client(Hash::of(Mechanism::ScramSha256), NONCE, password)
}

fn first(client: &Client) -> String {
    let mut out = Vec::new();
    client.first(&mut out);
    String::from_utf8(out).unwrap()
}

fn next(client: &mut Client, message: &str) -> Result<(Turn, String), SaslFault> {
    let mut out = Vec::new();
    let turn = client.next(message.as_bytes(), &mut out)?;
    Ok((turn, String::from_utf8(out).unwrap()))
}

#[test]
fn the_conversation_of_rfc_7677_is_spoken() {
    let mut client = sha256("pencil");
    assert_eq!(first(&client), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let expected = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    assert_eq!(next(&mut client, FIRST), Ok((Turn::Send, expected.to_owned())));
    assert_eq!(next(&mut client, FINAL), Ok((Turn::Done, String::new())));
}

#[test]
fn the_conversation_of_rfc_5802_is_spoken() {
    let mut client = client(SHA1, "fyko+d2lbbFgONRv9qkxdawL", "pencil");
    let message = "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096";
    let expected = "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=";
    assert_eq!(next(&mut client, message), Ok((Turn::Send, expected.to_owned())));
    assert_eq!(next(&mut client, "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="), Ok((Turn::Done, String::new())));
}

#[test]
fn a_broker_that_does_not_know_the_password_is_found_out() {
    let mut client = sha256("pencil");
    next(&mut client, FIRST).unwrap();
    let wrong = "v=AAriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    assert_eq!(next(&mut client, wrong), Err(SaslFault::ServerProof));
    // Another password is another signature, so that broker is a stranger to us.
    let mut client = sha256("pencil2");
    next(&mut client, FIRST).unwrap();
    assert_eq!(next(&mut client, FINAL), Err(SaslFault::ServerProof));
}

#[test]
fn messages_that_make_no_sense_are_typed_errors() {
    let malformed = |what| SaslFault::Malformed { mechanism: Mechanism::ScramSha256, what };
    for (message, what) in [
        ("", "nonce"),
        ("x=1", "nonce"),
        ("r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce that goes on from ours"),
        ("r=other%hvYDp,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce that goes on from ours"),
        ("r=rOprNGfwEbeRWgbNEkqO1", "salt"),
        ("r=rOprNGfwEbeRWgbNEkqO1,s=???,i=4096", "salt"),
        ("r=rOprNGfwEbeRWgbNEkqO1,s=,i=4096", "salt"),
        ("r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==", "number of rounds"),
        ("r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=-1", "number of rounds"),
    ] {
        assert_eq!(next(&mut sha256("pencil"), message), Err(malformed(what)), "{message}");
    }
    let mut client = sha256("pencil");
    next(&mut client, FIRST).unwrap();
    assert_eq!(next(&mut client, "v=6rr"), Err(malformed("signature")));
    assert_eq!(next(&mut client, FINAL), Err(malformed("place in the conversation")));
    let mut client = sha256("pencil");
    next(&mut client, FIRST).unwrap();
    let refused = SaslFault::Refused { mechanism: Mechanism::ScramSha256 };
    assert_eq!(next(&mut client, "e=invalid-proof"), Err(refused));
}

#[test]
fn too_few_and_too_many_rounds_are_refused() {
    for (asked, got) in [("4095", 4_095), ("0", 0), ("100001", 100_001), ("4294967295", u32::MAX)] {
        let message = format!("r=rOprNGfwEbeRWgbNEkqO1,s=W22ZaJ0SNY7soEsUEjb6gQ==,i={asked}");
        let fault = SaslFault::Iterations { got, least: 4_096, most: 100_000 };
        assert_eq!(next(&mut sha256("pencil"), &message), Err(fault));
    }
}

#[test]
fn names_are_quoted_and_nonces_differ() {
    let secret = Secret::new("p");
    let hash = Hash::of(Mechanism::ScramSha512);
    let client = Client::with_nonce(Mechanism::ScramSha512, hash, "a=b,c", &secret, "N".to_owned());
    assert_eq!(first(&client), "n,,n=a=3Db=2Cc,r=N");
    let new = || first(&Client::new(Mechanism::ScramSha512, "u", &secret).unwrap());
    assert_ne!(new(), new());
    assert_eq!(new().len(), "n,,n=u,r=".len() + 32);
}
