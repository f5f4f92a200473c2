//! Fuzz bodies of order sessions and order messages. For longer runs and for a replay, see [`crate::fuzz`].

use weir_proto::{
    ouch::{
        Inbound, Outbound, encode_tag, inbound_user_ref_num, outbound_original_user_ref_num,
        outbound_user_ref_num, set_inbound_user_ref_num, set_original_user_ref_num,
        set_outbound_original_user_ref_num, set_outbound_user_ref_num,
    },
    soup::{
        ClientInput, ClientPacket, ClientSession, Deframer, Due, LoginAccepted, LoginReject, LoginRequest,
        Name, ServerInput, ServerPacket, ServerSession, Timing,
    },
};

use crate::{
    fuzz::{Noise, fuzz},
    ouch_layouts::{INBOUND, OUTBOUND},
    soup_frames::deframe,
    transcript::cut,
};

/// Longest payload the fuzzed streams may have; some of the samples are longer.
const PAYLOAD_BYTES_MAX: usize = 80;

const CLIENT_FRAMES: &[&[u8]] = &[
    b"\0\x2fLC00001DEMO          WEIR01                   1",
    b"\0\x34LC00001DEMO          WEIR01                   115000",
    b"\0\x01R",
    b"\0\x01O",
    b"\0\x06+hello",
    b"\0\x02UQ",
    b"\0\x0aUX\0\0\0\x01\0\0\0\0",
    b"\0\x30UO\0\0\0\x01B\0\0\0\x64WEIR    \0\0\0\0\0\x16\xed\x240YPNNW0000000000001\0\0",
    b"\0\0",
    b"\xff\xffU",
];

const SERVER_FRAMES: &[&[u8]] = &[
    b"\0\x1fA    WEIR01                  42",
    b"\0\x02JA",
    b"\0\x02JS",
    b"\0\x01H",
    b"\0\x01Z",
    b"\0\x06+hello",
    b"\0\x0bSS\0\0\x1f\x1a\xce\xd9\xf0\0S",
    b"\0\x0eUI\0\0\x1f\x1a\xce\xd9\xf0\0\0\0\0\x07",
    b"\0\0",
    b"\xff\xffS",
];

#[test]
fn frames() {
    let stock = [CLIENT_FRAMES, SERVER_FRAMES].concat();
    fuzz("frames", &stock, |input, noise| {
        let places: Vec<usize> = (0..noise.below(6)).map(|_| noise.place(input.len() + 1)).collect();
        let whole = deframe(PAYLOAD_BYTES_MAX, [input]);
        assert_eq!(whole, deframe(PAYLOAD_BYTES_MAX, cut(input, &places)), "cut at {places:?}");
    });
}

#[test]
fn client_packets() {
    fuzz("client packets", CLIENT_FRAMES, |mut input, noise| {
        let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let mut session = ServerSession::new(0, Timing::default());
        let mut now_ns = 0;
        let mut logins = 0;
        while let Ok(Some(frame)) = deframer.next(&mut input) {
            now_ns += noise.below(2_000_000_000);
            assert!(
                session.on_time(now_ns) == Due::Nothing || session.deadline_ns() <= now_ns + 1_000_000_000
            );
            let Ok(packet) = ClientPacket::parse(frame) else { return };
            assert_eq!(packet.kind(), frame.kind);
            match session.on_packet(now_ns, packet) {
                Ok(ServerInput::Login(login)) => {
                    logins += 1;
                    assert_eq!(logins, 1, "one login a connection");
                    login_comes_back(&login);
                    session.accepted(now_ns, login.heartbeat_timeout_ms);
                }
                Ok(ServerInput::Message(message)) => {
                    assert!(session.is_logged_in());
                    inbound(message);
                }
                Ok(ServerInput::Logout) => assert!(!session.is_logged_in()),
                Ok(ServerInput::Nothing) => {}
                Err(error) => {
                    assert!(!error.kind().is_empty() && !error.to_string().is_empty());
                    return;
                }
            }
        }
    });
}

#[test]
fn server_packets() {
    let login = LoginRequest {
        username: Name::BLANK,
        password: Name::BLANK,
        session: Name::BLANK,
        sequence: 1,
        heartbeat_timeout_ms: None,
    };
    fuzz("server packets", SERVER_FRAMES, |mut input, noise| {
        let mut deframer = Deframer::new(PAYLOAD_BYTES_MAX);
        let mut session = ClientSession::new(0, Timing::default(), &login);
        let mut now_ns = 0;
        while let Ok(Some(frame)) = deframer.next(&mut input) {
            now_ns += noise.below(2_000_000_000);
            let Ok(packet) = ServerPacket::parse(frame) else { return };
            assert_eq!(packet.kind(), frame.kind);
            let expected = session.expected();
            match session.on_packet(now_ns, packet) {
                Ok(ClientInput::Message { sequence, payload }) => {
                    assert_eq!((sequence, session.expected()), (expected, expected + 1));
                    outbound(payload);
                }
                Ok(ClientInput::LoggedIn { next }) => {
                    assert_eq!(session.expected(), next);
                    let accepted = LoginAccepted { session: session.session(), next_sequence: next };
                    let mut out = Vec::new();
                    accepted.encode(&mut out);
                    assert_eq!(LoginAccepted::parse(&out[3..]), Ok(accepted));
                }
                Ok(ClientInput::Refused(reason)) => {
                    assert_eq!(LoginReject::parse(&[reason.code()]), Ok(reason));
                    assert!(!session.is_logged_in());
                }
                Ok(ClientInput::Unsequenced(payload)) => outbound(payload),
                Ok(ClientInput::Ended | ClientInput::Nothing) => assert_eq!(session.expected(), expected),
                Err(_) => return,
            }
        }
    });
}

fn login_comes_back(login: &LoginRequest) {
    let mut out = Vec::new();
    login.encode(&mut out);
    assert_eq!(LoginRequest::parse(&out[3..]), Ok(*login));
}

#[test]
fn logins() {
    let stock: &[&[u8]] = &[
        b"C00001",
        b"DEMO      ",
        b"    WEIR01",
        b"WEIR01\0\0\0\0",
        b"                   1",
        b"18446744073709551615",
        b"15000",
        b"     ",
    ];
    fuzz("logins", stock, |input, noise| {
        // Mostly of a valid length, because the rest would hardly be decoded.
        let length = [46, 51, input.len()][noise.place(3)];
        let mut payload = input.to_vec();
        payload.resize(length, b' ');
        if let Ok(login) = LoginRequest::parse(&payload) {
            assert!(matches!(length, 46 | 51));
            login_comes_back(&login);
            assert!(login.username.eq_ignore_case(&login.username.folded()));
            assert_eq!(login.session.as_str().parse(), Ok(login.session));
        }
    });
}

/// Invariants for any bytes decoded as an inbound message.
fn inbound(bytes: &[u8]) {
    let mut changed = bytes.to_vec();
    set_original_user_ref_num(&mut changed, 0x0a0b_0c0d);
    let is_set = set_inbound_user_ref_num(&mut changed, 0x0102_0304);
    assert_eq!(inbound_user_ref_num(&changed), is_set.then_some(0x0102_0304));
    match Inbound::decode(bytes) {
        Ok(message) => {
            let mut out = Vec::new();
            message.encode(&mut out);
            assert_eq!(out, bytes);
            assert_eq!(message.user_ref_num(), inbound_user_ref_num(bytes));
            assert_eq!(Inbound::decode(&changed).map(|changed| changed.kind()), Ok(message.kind()));
        }
        Err(error) => assert_eq!((error.bytes, error.label().starts_with("ouch_")), (bytes.len(), true)),
    }
}

/// Invariants for any bytes decoded as an outbound message.
fn outbound(bytes: &[u8]) {
    let mut changed = bytes.to_vec();
    let is_original_set = set_outbound_original_user_ref_num(&mut changed, 0x0a0b_0c0d);
    assert_eq!(outbound_original_user_ref_num(&changed), is_original_set.then_some(0x0a0b_0c0d));
    let is_set = set_outbound_user_ref_num(&mut changed, 0x0102_0304);
    assert_eq!(outbound_user_ref_num(&changed), is_set.then_some(0x0102_0304));
    match Outbound::decode(bytes) {
        Ok((message, appendage)) => {
            let mut out = Vec::new();
            message.encode_with(appendage, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(message.user_ref_num(), outbound_user_ref_num(bytes));
            let values: usize = appendage.iter().map(|(_, value)| 2 + value.len()).sum();
            assert_eq!(values, appendage.bytes().len());
        }
        Err(error) => assert_eq!((error.bytes, error.label().starts_with("ouch_")), (bytes.len(), true)),
    }
}

/// One message for each row, empty except for its type.
fn blanks(rows: &[(u8, usize, bool, Option<usize>)]) -> Vec<Vec<u8>> {
    rows.iter()
        .map(|(kind, bytes, _, _)| {
            let mut message = vec![0; *bytes];
            message[0] = *kind;
            message
        })
        .collect()
}

/// A sample message with an occasional changed byte, and tags behind it that it usually declares correctly.
fn tagged(blanks: &[Vec<u8>], input: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut message = blanks[noise.place(blanks.len())].clone();
    let mut appendage = Vec::new();
    for value in input.chunks(7).take(noise.place(4)) {
        encode_tag(noise.next() as u8, value, &mut appendage);
    }
    for _ in 0..noise.below(3) {
        if !appendage.is_empty() {
            let place = noise.place(appendage.len());
            appendage[place] = noise.next() as u8;
        }
    }
    if let Some(declared) = message.last_chunk_mut::<2>() {
        let wrong = noise.below(8) == 0;
        *declared = if wrong { noise.next() as u16 } else { appendage.len() as u16 }.to_be_bytes();
    }
    message.extend_from_slice(&appendage);
    message
}

#[test]
fn inbound_messages() {
    let blanks = blanks(&INBOUND);
    let stock: Vec<&[u8]> = blanks.iter().map(Vec::as_slice).collect();
    fuzz("inbound messages", &stock, |input, noise| {
        inbound(input);
        inbound(&tagged(&blanks, input, noise));
    });
}

#[test]
fn outbound_messages() {
    let blanks = blanks(&OUTBOUND);
    let stock: Vec<&[u8]> = blanks.iter().map(Vec::as_slice).collect();
    fuzz("outbound messages", &stock, |input, noise| {
        outbound(input);
        outbound(&tagged(&blanks, input, noise));
    });
}
