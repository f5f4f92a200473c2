//! Logins and their answers: golden bytes, both lengths and no other, padding on either side.

use proptest::prelude::*;
use weir_proto::soup::{
    ClientPacket, Frame, LoginAccepted, LoginReject, LoginRequest, Name, ProtocolError, ServerPacket,
    TextError,
};

/// Version 3.00 and 4.00: the length field says 47.
const LOGIN_3: &[u8] = b"\0\x2fLC00001DEMO          WEIR01                   1";

/// Version 4.1: the length field says 52.
const LOGIN_4: &[u8] = b"\0\x34LC00001DEMO          WEIR01                   115000";

fn login() -> LoginRequest {
    LoginRequest {
        username: name("C00001"),
        password: name("DEMO"),
        session: name("WEIR01"),
        sequence: 1,
        heartbeat_timeout_ms: None,
    }
}

fn name<const N: usize>(text: &str) -> Name<N> {
    text.parse().expect("a valid name")
}

fn encoded(login: &LoginRequest) -> Vec<u8> {
    let mut out = Vec::new();
    login.encode(&mut out);
    out
}

/// Reads the payload of a golden frame whose length field is right.
fn parse(frame: &[u8]) -> Result<LoginRequest, ProtocolError> {
    let [high, low, kind, payload @ ..] = frame else { panic!("a header") };
    assert_eq!(usize::from(u16::from_be_bytes([*high, *low])), 1 + payload.len());
    match ClientPacket::parse(Frame { kind: *kind, payload })? {
        ClientPacket::Login(login) => Ok(login),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_login_of_either_version_is_its_golden_bytes() {
    assert_eq!((LOGIN_3.len(), LOGIN_4.len()), (49, 54));
    assert_eq!(parse(LOGIN_3), Ok(login()));
    assert_eq!(encoded(&login()), LOGIN_3);
    let timed = LoginRequest { heartbeat_timeout_ms: Some(15_000), ..login() };
    assert_eq!(parse(LOGIN_4), Ok(timed));
    assert_eq!(encoded(&timed), LOGIN_4);
}

#[test]
fn lengths_47_and_52_are_logins_and_their_neighbours_are_not() {
    for length in 0..=60_usize {
        // Ones are valid in names and in numbers, so that the length alone decides.
        let payload = vec![b'1'; length];
        let frame = Frame { kind: b'L', payload: &payload };
        let parsed = ClientPacket::parse(frame).map(|packet| packet.kind());
        let expected =
            if matches!(length, 46 | 51) { Ok(b'L') } else { Err(ProtocolError::LoginLength(1 + length)) };
        assert_eq!(parsed, expected, "length field {}", 1 + length);
    }
}

#[test]
fn padding_is_read_on_either_side_and_as_spaces_or_nuls() {
    // As one widely used client sends it: session and sequence first, padding behind.
    let mut left = LOGIN_3.to_vec();
    left[19..29].copy_from_slice(b"WEIR01    ");
    left[29..49].copy_from_slice(b"1                   ");
    assert_eq!(parse(&left), Ok(login()));

    let nuls: Vec<u8> = left[..3]
        .iter()
        .copied()
        .chain(left[3..].iter().map(|byte| if *byte == b' ' { 0 } else { *byte }))
        .collect();
    assert_eq!(parse(&nuls), Ok(login()));

    let mut username_behind = LOGIN_3.to_vec();
    username_behind[3..9].copy_from_slice(b"    C1");
    assert_eq!(parse(&username_behind).map(|login| login.username), Ok(name("C1")));

    let mut zeros = LOGIN_3.to_vec();
    zeros[29..49].copy_from_slice(b"00000000000000000001");
    assert_eq!(parse(&zeros), Ok(login()));

    let mut current = LOGIN_3.to_vec();
    current[19..29].copy_from_slice(b"          ");
    assert!(parse(&current).expect("well formed").session.is_blank());
}

#[test]
fn numbers_are_decimal_digits_within_64_bits() {
    let with_sequence = |field: &[u8; 20]| {
        let mut frame = LOGIN_3.to_vec();
        frame[29..49].copy_from_slice(field);
        parse(&frame).map(|login| login.sequence)
    };
    assert_eq!(with_sequence(b"                   0"), Ok(0));
    assert_eq!(with_sequence(b"18446744073709551615"), Ok(u64::MAX));
    assert_eq!(with_sequence(b"18446744073709551616"), Err(ProtocolError::BadNumber));
    assert_eq!(with_sequence(b"99999999999999999999"), Err(ProtocolError::BadNumber));
    assert_eq!(with_sequence(b"                    "), Err(ProtocolError::BadNumber));
    assert_eq!(with_sequence(b"                  +1"), Err(ProtocolError::BadNumber));
    assert_eq!(with_sequence(b"                  -1"), Err(ProtocolError::BadNumber));
    assert_eq!(with_sequence(b"               1   1"), Err(ProtocolError::BadNumber));
    let with_timeout = |field: &[u8; 5]| {
        let mut frame = LOGIN_4.to_vec();
        frame[49..54].copy_from_slice(field);
        parse(&frame).map(|login| login.heartbeat_timeout_ms)
    };
    assert_eq!(with_timeout(b"99999"), Ok(Some(99_999)));
    assert_eq!(with_timeout(b"0    "), Ok(Some(0)));
    assert_eq!(with_timeout(b"1s   "), Err(ProtocolError::BadNumber));
    assert_eq!(with_timeout(b"     "), Err(ProtocolError::BadNumber));
}

#[test]
fn names_are_printable_ascii() {
    for byte in [1, b'\n', 0x7f, 0x80, 0xff] {
        let mut frame = LOGIN_3.to_vec();
        frame[4] = byte;
        assert_eq!(parse(&frame), Err(ProtocolError::BadText), "{byte:#04x}");
    }
    assert_eq!("C000001".parse::<Name<6>>(), Err(TextError::TooLong { bytes_max: 6 }));
    assert_eq!("C\u{e9}".parse::<Name<6>>(), Err(TextError::NotPrintable));
    assert_eq!(" C1 ".parse::<Name<6>>(), Ok(name("C1")));
    let spaced: Name<6> = name("A B");
    assert_eq!((spaced.as_str(), format!("{spaced:>5}")), ("A B", "  A B".to_owned()));
    assert_eq!(spaced.as_bytes(), b"A B   ");
}

#[test]
fn names_that_differ_in_case_alone_are_one() {
    let (lower, upper): (Name<6>, Name<6>) = (name("c0a"), name("C0A"));
    assert_ne!(lower, upper);
    assert!(lower.eq_ignore_case(&upper));
    assert_eq!(lower.folded(), upper);
    assert!(!lower.eq_ignore_case(&name("C0B")));
}

#[test]
fn a_login_does_not_show_its_password() {
    let shown = format!("{:?}", LoginRequest { password: name("SECRET"), ..login() });
    assert!(shown.contains("C00001") && shown.contains("redacted") && !shown.contains("SECRET"), "{shown}");
}

#[test]
fn a_timeout_beyond_five_digits_is_sent_as_the_longest() {
    let patient = LoginRequest { heartbeat_timeout_ms: Some(u32::MAX), ..login() };
    assert!(encoded(&patient).ends_with(b"199999"));
}

#[test]
fn answers_are_their_golden_bytes() {
    let accepted = LoginAccepted { session: name("WEIR01"), next_sequence: 42 };
    let golden = b"\0\x1fA    WEIR01                  42";
    let mut out = Vec::new();
    accepted.encode(&mut out);
    assert_eq!((out.as_slice(), out.len()), (&golden[..], 33));
    let parse = |payload| ServerPacket::parse(Frame { kind: b'A', payload });
    assert_eq!(parse(&golden[3..]), Ok(ServerPacket::LoginAccepted(accepted)));
    assert_eq!(parse(b"WEIR01    42                  "), Ok(ServerPacket::LoginAccepted(accepted)));
    assert_eq!(parse(&golden[4..]), Err(ProtocolError::PayloadLength { kind: b'A', bytes: 29 }));
    assert_eq!(parse(b"WEIR01    forty-two           "), Err(ProtocolError::BadNumber));
    for (reject, golden) in
        [(LoginReject::NotAuthorised, b"\0\x02JA"), (LoginReject::SessionNotAvailable, b"\0\x02JS")]
    {
        let mut out = Vec::new();
        reject.encode(&mut out);
        assert_eq!(out, golden);
    }
    let parse = |payload| ServerPacket::parse(Frame { kind: b'J', payload });
    assert_eq!(parse(b"X"), Err(ProtocolError::RejectReason(b'X')));
    assert_eq!(parse(b"AA"), Err(ProtocolError::PayloadLength { kind: b'J', bytes: 2 }));
}

proptest! {
    #[test]
    fn logins_come_back(
        username in "[!-~]{0,6}",
        password in "([!-~]([ -~]{0,8}[!-~])?)?",
        session in "[!-~]{0,10}",
        sequence: u64,
        heartbeat_timeout_ms in prop::option::of(0..=99_999_u32),
    ) {
        let login = LoginRequest {
            username: name(&username),
            password: name(&password),
            session: name(&session),
            sequence,
            heartbeat_timeout_ms,
        };
        let frame = encoded(&login);
        prop_assert_eq!(frame.len(), if heartbeat_timeout_ms.is_some() { 54 } else { 49 });
        prop_assert_eq!(parse(&frame), Ok(login));
    }

    #[test]
    fn accepted_logins_come_back(session in "[!-~]{0,10}", next_sequence: u64) {
        let accepted = LoginAccepted { session: name(&session), next_sequence };
        let mut out = Vec::new();
        accepted.encode(&mut out);
        prop_assert_eq!(LoginAccepted::parse(&out[3..]), Ok(accepted));
    }
}
