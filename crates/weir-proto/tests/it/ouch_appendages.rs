//! Tags behind messages: read to their end, never beyond it.

use weir_proto::ouch::{Appendage, DecodeErrorKind, Inbound, Outbound, encode_tag};

/// An enter order whose fields are all `x`, with this declared length and these bytes behind it.
fn enter(declared: u16, appendage: &[u8]) -> Vec<u8> {
    [&b"O"[..], &[b'x'; 44], &declared.to_be_bytes(), appendage].concat()
}

fn kind(message: &[u8]) -> Option<DecodeErrorKind> {
    Inbound::decode(message).err().map(|error| error.kind)
}

#[test]
fn tags_come_in_order_and_unknown_ones_are_kept() {
    let bytes = b"\x02\x06H\x05\x04\0\0\0\x01\x01\xee\x02\x06Z";
    let message = enter(14, bytes);
    let Ok(Inbound::Enter(_, tags)) = Inbound::decode(&message) else { panic!("well formed") };
    let expected: [(u8, &[u8]); 4] = [(6, b"H"), (4, b"\0\0\0\x01"), (0xee, b""), (6, b"Z")];
    assert_eq!(tags.iter().collect::<Vec<_>>(), expected);
    assert_eq!(
        (tags.value(6), tags.value(0xee), tags.bytes()),
        (Some(&b"H"[..]), Some(&b""[..]), &bytes[..])
    );
}

#[test]
fn a_declared_length_beyond_the_message_is_refused() {
    for declared in [1, 2, 255, 256, u16::MAX] {
        assert_eq!(kind(&enter(declared, b"")), Some(DecodeErrorKind::Appendage), "{declared}");
    }
    assert_eq!(kind(&enter(4, b"\x02\x06H")), Some(DecodeErrorKind::Appendage));
}

#[test]
fn a_declared_length_short_of_the_message_leaves_trailing_bytes_and_is_refused() {
    assert_eq!(kind(&enter(0, b" ")), Some(DecodeErrorKind::Length));
    assert_eq!(kind(&enter(3, b"\x02\x06H\x01\x07")), Some(DecodeErrorKind::Length));
}

#[test]
fn a_tag_of_length_zero_is_refused() {
    assert_eq!(kind(&enter(1, b"\0")), Some(DecodeErrorKind::Appendage));
    assert_eq!(kind(&enter(2, b"\0\x06")), Some(DecodeErrorKind::Appendage));
    assert_eq!(kind(&enter(4, b"\x02\x06H\0")), Some(DecodeErrorKind::Appendage));
}

#[test]
fn a_tag_that_reaches_beyond_the_appendage_is_refused() {
    assert_eq!(kind(&enter(1, b"\x01")), Some(DecodeErrorKind::Appendage));
    assert_eq!(kind(&enter(3, b"\x03\x06H")), Some(DecodeErrorKind::Appendage));
    assert_eq!(kind(&enter(3, b"\xff\x06H")), Some(DecodeErrorKind::Appendage));
    assert_eq!(kind(&enter(6, b"\x02\x06H\x05\x04\0")), Some(DecodeErrorKind::Appendage));
    let error = Appendage::parse(b"\xff").expect_err("too short");
    assert_eq!((error.kind, error.label()), (DecodeErrorKind::Appendage, "ouch_appendage"));
}

#[test]
fn the_same_holds_for_every_message_with_an_appendage() {
    for (kind, bytes, has_appendage, _) in crate::ouch_layouts::OUTBOUND {
        let mut message = vec![0; bytes];
        message[0] = kind;
        if has_appendage {
            message[bytes - 1] = 3;
        }
        message.extend_from_slice(b"\x02\x06H");
        assert_eq!(Outbound::decode(&message).is_ok(), has_appendage, "{}", char::from(kind));
        message.pop();
        assert!(Outbound::decode(&message).is_err());
        message.extend_from_slice(b"HH");
        assert!(Outbound::decode(&message).is_err());
    }
}

#[test]
fn the_longest_tag_and_the_longest_appendage_pass() {
    let mut bytes = Vec::new();
    for _ in 0..255 {
        encode_tag(9, &[7; 254], &mut bytes);
    }
    encode_tag(8, &[7; 253], &mut bytes);
    assert_eq!(bytes.len(), 65_535);
    let tags = Appendage::parse(&bytes).expect("well formed");
    assert_eq!((tags.iter().count(), tags.value(8).map(<[u8]>::len), tags.value(7)), (256, Some(253), None));
    assert_eq!(kind(&enter(u16::MAX, &bytes)), None);
    encode_tag(1, b"", &mut bytes);
    assert!(Appendage::parse(&bytes).is_err(), "two bytes cannot say its length");
}

#[test]
fn an_appendage_is_shown_as_its_tags() {
    let tags = Appendage::parse(b"\x02\x06H\x01\x07").expect("two tags");
    assert_eq!(format!("{tags:?}"), "{6: [72], 7: []}");
    assert_eq!((tags.bytes(), tags.is_empty()), (&b"\x02\x06H\x01\x07"[..], false));
    assert!(Appendage::default().is_empty() && Appendage::EMPTY.into_iter().next().is_none());
}
