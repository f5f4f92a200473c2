//! Codes and arguments as they are recorded.

use super::*;

#[test]
fn a_finding_is_a_code_with_arguments() {
    let found =
        Finding::LowerBound { arm: "uring".to_owned(), per_second: 126_219.0, kind: MessageKind::Message };
    let text = serde_json::to_string(&found).expect("it is plain data");
    assert_eq!(text, r#"{"code":"lower-bound","arm":"uring","per_second":126219.0,"kind":"message"}"#);
    assert_eq!(serde_json::from_str::<Finding>(&text).expect("it is what was written"), found);
    assert_eq!(found.code(), "lower-bound");
    let plain = serde_json::to_string(&Finding::NotAsked).expect("it is plain data");
    assert_eq!(serde_json::from_str::<Finding>(&plain).expect("no arguments"), Finding::NotAsked);
}

#[test]
fn a_sentence_of_an_older_record_stays_a_sentence() {
    let found: Finding = serde_json::from_str(r#""2 state changed""#).expect("it is a text");
    assert_eq!(found, Finding::Text("2 state changed".to_owned()));
    assert_eq!(serde_json::to_string(&found).expect("it is a text"), r#""2 state changed""#);
}

#[test]
fn codes_are_distinct() {
    let distinct: std::collections::BTreeSet<_> = Finding::CODES.iter().collect();
    assert_eq!(distinct.len(), Finding::CODES.len());
}
