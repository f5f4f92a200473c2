//! Frames and packets: bytes from the specification's table, for any division of the stream.

use proptest::prelude::*;
use weir_proto::soup::{
    CLIENT_HEARTBEAT_FRAME, ClientPacket, Deframer, END_OF_SESSION_FRAME, Frame, LOGOUT_FRAME, LoginReject,
    PAYLOAD_BYTES_MAX, ProtocolError, SERVER_HEARTBEAT_FRAME, ServerPacket, encode_frame, header,
};

/// Type and payload of every frame, and the error that ended the stream.
pub type Seen = (Vec<(u8, Vec<u8>)>, Option<ProtocolError>);

/// The frames of a stream that arrives in these reads.
///
/// Also asserts, at every step, that at most one allowed frame is held, that a call without a frame has used up its
/// input, and that an error stays.
pub fn deframe<'a>(payload_bytes_max: usize, reads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut deframer = Deframer::new(payload_bytes_max);
    let mut frames = Vec::new();
    let mut given_bytes = 0;
    for mut input in reads {
        given_bytes += input.len();
        loop {
            match deframer.next(&mut input) {
                Ok(Some(Frame { kind, payload })) => {
                    assert!(payload.len() <= payload_bytes_max);
                    frames.push((kind, payload.to_vec()));
                    assert!(3 * frames.len() <= given_bytes, "a frame is given once");
                    assert!(deframer.is_empty() && deframer.held_bytes() == 0);
                }
                Ok(None) => {
                    assert!(input.is_empty());
                    assert!(deframer.held_bytes() < payload_bytes_max + 3);
                    assert_eq!(deframer.is_empty(), deframer.held_bytes() == 0);
                    break;
                }
                Err(error) => {
                    assert_eq!(deframer.next(&mut &b"\0\x01R"[..]), Err(error));
                    assert!(deframer.is_empty());
                    return (frames, Some(error));
                }
            }
        }
    }
    (frames, None)
}

fn client(stream: &[u8]) -> Result<ClientPacket<'_>, ProtocolError> {
    ClientPacket::parse(only(stream))
}

fn server(stream: &[u8]) -> Result<ServerPacket<'_>, ProtocolError> {
    ServerPacket::parse(only(stream))
}

/// The only frame of a stream.
fn only(stream: &[u8]) -> Frame<'_> {
    let [_, _, kind, payload @ ..] = stream else { panic!("a header") };
    assert_eq!(deframe(PAYLOAD_BYTES_MAX, [stream]), (vec![(*kind, payload.to_vec())], None));
    Frame { kind: *kind, payload }
}

#[test]
fn every_packet_of_a_client_is_its_golden_bytes() {
    assert_eq!(client(b"\0\x01R"), Ok(ClientPacket::Heartbeat));
    assert_eq!(client(b"\0\x01O"), Ok(ClientPacket::Logout));
    assert_eq!(client(b"\0\x06+hello"), Ok(ClientPacket::Debug(b"hello")));
    assert_eq!(client(b"\0\x02UQ"), Ok(ClientPacket::Unsequenced(b"Q")));
    assert_eq!(client(b"\0\x01U"), Ok(ClientPacket::Unsequenced(b"")));
    assert_eq!(CLIENT_HEARTBEAT_FRAME, *b"\0\x01R");
    assert_eq!(LOGOUT_FRAME, *b"\0\x01O");
}

#[test]
fn every_packet_of_a_server_is_its_golden_bytes() {
    assert_eq!(server(b"\0\x01H"), Ok(ServerPacket::Heartbeat));
    assert_eq!(server(b"\0\x01Z"), Ok(ServerPacket::EndOfSession));
    assert_eq!(server(b"\0\x06+hello"), Ok(ServerPacket::Debug(b"hello")));
    assert_eq!(server(b"\0\x04SABC"), Ok(ServerPacket::Sequenced(b"ABC")));
    assert_eq!(server(b"\0\x04UABC"), Ok(ServerPacket::Unsequenced(b"ABC")));
    assert_eq!(server(b"\0\x02JA"), Ok(ServerPacket::LoginRejected(LoginReject::NotAuthorised)));
    assert_eq!(server(b"\0\x02JS"), Ok(ServerPacket::LoginRejected(LoginReject::SessionNotAvailable)));
    assert_eq!(SERVER_HEARTBEAT_FRAME, *b"\0\x01H");
    assert_eq!(END_OF_SESSION_FRAME, *b"\0\x01Z");
}

#[test]
fn every_type_from_the_wrong_side_and_every_unknown_one_is_a_fault() {
    for kind in 0..=u8::MAX {
        let frame = Frame { kind, payload: b"" };
        let client = ClientPacket::parse(frame).map(|packet| packet.kind());
        let server = ServerPacket::parse(frame).map(|packet| packet.kind());
        match kind {
            b'U' | b'+' => assert_eq!((client, server), (Ok(kind), Ok(kind))),
            b'R' | b'O' => assert_eq!((client, server), (Ok(kind), Err(ProtocolError::WrongDirection(kind)))),
            b'S' | b'H' | b'Z' => {
                assert_eq!((client, server), (Err(ProtocolError::WrongDirection(kind)), Ok(kind)))
            }
            b'L' => {
                assert_eq!(
                    (client, server),
                    (Err(ProtocolError::LoginLength(1)), Err(ProtocolError::WrongDirection(kind)))
                );
            }
            b'A' | b'J' => {
                assert_eq!(client, Err(ProtocolError::WrongDirection(kind)));
                assert_eq!(server, Err(ProtocolError::PayloadLength { kind, bytes: 0 }));
            }
            _ => {
                let unknown = Err(ProtocolError::UnknownType(kind));
                assert_eq!((client, server), (unknown, unknown));
            }
        }
    }
}

#[test]
fn packets_without_payload_have_none() {
    for kind in *b"RO" {
        let frame = Frame { kind, payload: b"x" };
        assert_eq!(ClientPacket::parse(frame), Err(ProtocolError::PayloadUnexpected(kind)));
    }
    for kind in *b"HZ" {
        let frame = Frame { kind, payload: b"x" };
        assert_eq!(ServerPacket::parse(frame), Err(ProtocolError::PayloadUnexpected(kind)));
    }
}

#[test]
fn a_frame_of_length_zero_is_a_fault_on_its_second_byte() {
    assert_eq!(deframe(512, [&b"\0\0"[..]]), (vec![], Some(ProtocolError::EmptyFrame)));
    assert_eq!(deframe(512, [&b"\0"[..], b"\0"]), (vec![], Some(ProtocolError::EmptyFrame)));
    assert_eq!(deframe(512, [&b"\0\x01R\0\0R"[..]]), (vec![(b'R', vec![])], Some(ProtocolError::EmptyFrame)));
}

#[test]
fn a_frame_that_is_too_long_is_a_fault_on_its_header_and_nothing_of_it_is_kept() {
    let error = ProtocolError::TooLong { declared: 65_534, max: 512 };
    assert_eq!(deframe(512, [&b"\xff\xff"[..]]), (vec![], Some(error)));
    assert_eq!(deframe(512, [&b"\xff"[..], b"\xffU"]), (vec![], Some(error)));
    let mut longest = Vec::new();
    encode_frame(b'U', &[7; 512], &mut longest);
    assert_eq!(deframe(512, [&longest[..]]), (vec![(b'U', vec![7; 512])], None));
    assert_eq!(deframe(511, [&longest[..]]).1, Some(ProtocolError::TooLong { declared: 512, max: 511 }));
    assert_eq!(error.kind(), "too_long");
    assert_eq!(error.to_string(), "a payload of 65534 bytes is declared, at most 512 are allowed");
}

#[test]
fn the_longest_frame_there_is_passes_where_it_is_allowed() {
    let payload = vec![1; PAYLOAD_BYTES_MAX];
    let mut stream = Vec::new();
    encode_frame(b'S', &payload, &mut stream);
    assert_eq!(stream[..3], *b"\xff\xffS");
    assert_eq!(stream[..3], header(b'S', PAYLOAD_BYTES_MAX));
    let (front, back) = stream.split_at(40_000);
    assert_eq!(deframe(PAYLOAD_BYTES_MAX, [front, back]), (vec![(b'S', payload)], None));
}

#[test]
fn a_stream_cut_at_every_byte_is_the_stream_whole() {
    let stream = b"\0\x01R\0\x06+hello\0\x01U\0\x03Uab\0\x01O";
    let whole = deframe(512, [&stream[..]]);
    assert_eq!(whole.0.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), b"R+UUO");
    for place in 0..=stream.len() {
        let (front, back) = stream.split_at(place);
        assert_eq!(deframe(512, [front, back]), whole, "cut at {place}");
    }
    assert_eq!(deframe(512, stream.chunks(1)), whole);
}

#[test]
fn a_thousand_frames_in_one_read_come_in_order() {
    let mut stream = Vec::new();
    for number in 0..1_000_u32 {
        encode_frame(b'U', &number.to_be_bytes(), &mut stream);
    }
    let (frames, error) = deframe(512, [&stream[..]]);
    assert_eq!((frames.len(), error), (1_000, None));
    assert!((0..1_000_u32).zip(&frames).all(|(number, (_, payload))| *payload == number.to_be_bytes()));
}

#[test]
fn a_whole_frame_is_lent_from_the_input() {
    let stream = b"\0\x04Uabc";
    let mut input = &stream[..];
    let mut deframer = Deframer::new(512);
    let frame = deframer.next(&mut input).expect("well formed").expect("whole");
    assert!(std::ptr::eq(frame.payload, &stream[3..]));
}

proptest! {
    #[test]
    fn frames_come_back_however_the_stream_is_cut(
        frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..40)), 0..12),
        places in prop::collection::vec(0..400_usize, 0..12),
    ) {
        let mut stream = Vec::new();
        for (kind, payload) in &frames {
            encode_frame(*kind, payload, &mut stream);
        }
        prop_assert_eq!(deframe(40, crate::transcript::cut(&stream, &places)), (frames, None));
    }

    #[test]
    fn any_bytes_are_cut_alike(
        stream in prop::collection::vec(prop_oneof![3 => 0..4_u8, 1 => any::<u8>()], 0..200),
        places in prop::collection::vec(0..200_usize, 0..12),
    ) {
        let whole = deframe(300, [&stream[..]]);
        prop_assert_eq!(deframe(300, crate::transcript::cut(&stream, &places)), whole);
    }
}
