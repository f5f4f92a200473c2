//! Compares every OUCH message with bytes laid out by hand from the specification's tables, and checks rules that
//! hold for all.

use proptest::prelude::*;
use weir_proto::ouch::{
    Accepted, AiqCanceled, Appendage, BrokenTrade, Cancel, CancelPending, CancelReject, Canceled,
    ClientOrderId, DecodeError, DecodeErrorKind, Enter, Executed, Inbound, Modified, Modify, Outbound,
    PRICE_MARKET, PRICE_MAX, PriorityUpdate, QUANTITY_MAX, Rejected, Replace, Replaced, Restated, Symbol,
    TextError, encode_tag, inbound_user_ref_num, original_user_ref_num, outbound_original_user_ref_num,
    outbound_user_ref_num, reject_reason, set_inbound_user_ref_num, set_original_user_ref_num,
    set_outbound_original_user_ref_num, set_outbound_user_ref_num,
};

/// Type, bytes with an empty appendage, whether there is an appendage, and the offset of the order's number.
type Row = (u8, usize, bool, Option<usize>);

pub const INBOUND: [Row; 5] = [
    (b'O', 47, true, Some(1)),
    (b'U', 40, true, Some(5)),
    (b'X', 9, false, Some(1)),
    (b'M', 10, false, Some(1)),
    (b'Q', 1, false, None),
];

pub const OUTBOUND: [Row; 14] = [
    (b'S', 10, false, None),
    (b'A', 64, true, Some(9)),
    (b'U', 68, true, Some(13)),
    (b'C', 18, false, Some(9)),
    (b'D', 32, false, Some(9)),
    (b'E', 36, true, Some(9)),
    (b'B', 36, false, Some(9)),
    (b'J', 29, false, Some(9)),
    (b'P', 13, false, Some(9)),
    (b'I', 13, false, Some(9)),
    (b'T', 30, false, Some(9)),
    (b'M', 18, false, Some(9)),
    (b'R', 16, true, Some(9)),
    (b'Q', 13, false, None),
];

/// In nanoseconds since midnight: half past nine.
const TIMESTAMP_NS: u64 = 34_200_000_000_000;
const TIMESTAMP: &[u8] = &[0, 0, 0x1f, 0x1a, 0xce, 0xd9, 0xf0, 0];

/// 150.2500
const PRICE: &[u8] = &[0, 0, 0, 0, 0, 0x16, 0xed, 0x24];

const REFERENCE: &[u8] = &[1, 2, 3, 4, 5, 6, 7, 8];

const ID: &[u8; 14] = b"W0000000000001";

#[track_caller]
fn inbound(parts: &[&[u8]], expected: Inbound<'_>) {
    let golden = parts.concat();
    assert_eq!(Inbound::decode(&golden), Ok(expected));
    let mut out = Vec::new();
    expected.encode(&mut out);
    assert_eq!(out, golden);
    assert_eq!(inbound_user_ref_num(&golden), expected.user_ref_num());
    assert_eq!(golden[0], expected.kind());
}

#[track_caller]
fn outbound(parts: &[&[u8]], expected: Outbound) {
    let golden = parts.concat();
    assert_eq!(Outbound::decode(&golden), Ok((expected, Appendage::EMPTY)));
    let mut out = Vec::new();
    expected.encode(&mut out);
    assert_eq!(out, golden);
    assert_eq!(outbound_user_ref_num(&golden), expected.user_ref_num());
    assert_eq!(golden[0], expected.kind());
}

#[test]
fn inbound_messages_are_their_golden_bytes() {
    let enter = Enter {
        user_ref_num: 0x0102_0304,
        side: b'B',
        quantity: 100,
        symbol: Symbol(*b"WEIR    "),
        price: 1_502_500,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'P',
        intermarket_sweep: b'N',
        cross_type: b'C',
        client_order_id: ClientOrderId(*ID),
    };
    let fields: &[&[u8]] =
        &[b"O", &[1, 2, 3, 4], b"B", &[0, 0, 0, 100], b"WEIR    ", PRICE, b"0", b"Y", b"P", b"N", b"C", ID];
    let untagged: &[&[u8]] = &[&[0, 0]];
    inbound(&[fields, untagged].concat(), Inbound::Enter(enter, Appendage::EMPTY));
    let tags = Appendage::parse(b"\x02\x06H\x05\x04\0\0\0\x01").expect("two tags");
    let tagged: &[&[u8]] = &[&[0, 9], b"\x02\x06H\x05\x04\0\0\0\x01"];
    inbound(&[fields, tagged].concat(), Inbound::Enter(enter, tags));

    let replace = Replace {
        original_user_ref_num: 7,
        user_ref_num: 8,
        quantity: 0x000f_423f,
        price: 1_502_500,
        time_in_force: b'3',
        display: b'N',
        intermarket_sweep: b'Y',
        client_order_id: ClientOrderId(*ID),
    };
    let fields: &[&[u8]] =
        &[b"U", &[0, 0, 0, 7], &[0, 0, 0, 8], &[0, 0x0f, 0x42, 0x3f], PRICE, b"3", b"N", b"Y", ID, &[0, 0]];
    inbound(fields, Inbound::Replace(replace, Appendage::EMPTY));

    let cancel = Cancel { user_ref_num: 0xffff_ffff, quantity: 256 };
    inbound(&[b"X", &[0xff; 4], &[0, 0, 1, 0]], Inbound::Cancel(cancel));
    let modify = Modify { user_ref_num: 9, side: b'T', quantity: 3 };
    inbound(&[b"M", &[0, 0, 0, 9], b"T", &[0, 0, 0, 3]], Inbound::Modify(modify));
    inbound(&[b"Q"], Inbound::AccountQuery);
}

#[test]
fn answers_to_orders_are_their_golden_bytes() {
    let accepted = Accepted {
        timestamp_ns: TIMESTAMP_NS,
        user_ref_num: 7,
        side: b'S',
        quantity: 100,
        symbol: Symbol(*b"WEIR.A  "),
        price: 1_502_500,
        time_in_force: b'0',
        display: b'Y',
        order_reference: 0x0102_0304_0506_0708,
        capacity: b'A',
        intermarket_sweep: b'N',
        cross_type: b'O',
        order_state: b'L',
        client_order_id: ClientOrderId(*ID),
    };
    outbound(
        &[
            b"A",
            TIMESTAMP,
            &[0, 0, 0, 7],
            b"S",
            &[0, 0, 0, 100],
            b"WEIR.A  ",
            PRICE,
            b"0",
            b"Y",
            REFERENCE,
            b"A",
            b"N",
            b"O",
            b"L",
            ID,
            &[0, 0],
        ],
        Outbound::Accepted(accepted),
    );
    let rejected = Rejected {
        timestamp_ns: TIMESTAMP_NS,
        user_ref_num: 7,
        reason: reject_reason::RISK_DUPLICATE_MESSAGE_RATE,
        client_order_id: ClientOrderId(*ID),
    };
    outbound(&[b"J", TIMESTAMP, &[0, 0, 0, 7], &[0, 0x2a], ID], Outbound::Rejected(rejected));
    let query = Outbound::AccountQueryResponse { timestamp_ns: TIMESTAMP_NS, next_user_ref_num: 258 };
    outbound(&[b"Q", TIMESTAMP, &[0, 0, 1, 2]], query);
}

#[test]
fn a_replacement_is_its_golden_bytes() {
    let replaced = Replaced {
        timestamp_ns: TIMESTAMP_NS,
        original_user_ref_num: 7,
        user_ref_num: 8,
        side: b'S',
        quantity: 400,
        symbol: Symbol(*b"WEIR.A  "),
        price: 1_502_500,
        time_in_force: b'5',
        display: b'A',
        order_reference: 0x0102_0304_0506_0708,
        capacity: b'R',
        intermarket_sweep: b'Y',
        cross_type: b'N',
        order_state: b'D',
        client_order_id: ClientOrderId(*ID),
    };
    outbound(
        &[
            b"U",
            TIMESTAMP,
            &[0, 0, 0, 7],
            &[0, 0, 0, 8],
            b"S",
            &[0, 0, 1, 0x90],
            b"WEIR.A  ",
            PRICE,
            b"5",
            b"A",
            REFERENCE,
            b"R",
            b"Y",
            b"N",
            b"D",
            ID,
            &[0, 0],
        ],
        Outbound::Replaced(replaced),
    );
}

#[test]
fn what_happens_to_orders_is_its_golden_bytes() {
    let (timestamp_ns, user_ref_num) = (TIMESTAMP_NS, 7);
    let number: &[u8] = &[0, 0, 0, 7];
    let canceled = Canceled { timestamp_ns, user_ref_num, quantity: 60, reason: b'U' };
    outbound(&[b"C", TIMESTAMP, number, &[0, 0, 0, 60], b"U"], Outbound::Canceled(canceled));
    let prevented = AiqCanceled {
        timestamp_ns,
        user_ref_num,
        quantity: 60,
        reason: b'Q',
        quantity_prevented: 50,
        price: 1_502_500,
        liquidity: b'R',
        strategy: b'D',
    };
    outbound(
        &[b"D", TIMESTAMP, number, &[0, 0, 0, 60], b"Q", &[0, 0, 0, 50], PRICE, b"R", b"D"],
        Outbound::AiqCanceled(prevented),
    );
    let executed = Executed {
        timestamp_ns,
        user_ref_num,
        quantity: 40,
        price: 1_502_500,
        liquidity: b'A',
        match_number: 513,
    };
    let trade: &[u8] = &[0, 0, 0, 0, 0, 0, 2, 1];
    outbound(
        &[b"E", TIMESTAMP, number, &[0, 0, 0, 40], PRICE, b"A", trade, &[0, 0]],
        Outbound::Executed(executed),
    );
    let broken = BrokenTrade {
        timestamp_ns,
        user_ref_num,
        match_number: 513,
        reason: b'E',
        client_order_id: ClientOrderId(*ID),
    };
    outbound(&[b"B", TIMESTAMP, number, trade, b"E", ID], Outbound::BrokenTrade(broken));
    outbound(
        &[b"P", TIMESTAMP, number],
        Outbound::CancelPending(CancelPending { timestamp_ns, user_ref_num }),
    );
    outbound(&[b"I", TIMESTAMP, number], Outbound::CancelReject(CancelReject { timestamp_ns, user_ref_num }));
    let update =
        PriorityUpdate { timestamp_ns, user_ref_num, price: 1_502_500, display: b'Y', order_reference: 513 };
    outbound(&[b"T", TIMESTAMP, number, PRICE, b"Y", trade], Outbound::PriorityUpdate(update));
    let modified = Modified { timestamp_ns, user_ref_num, side: b'E', quantity: 30 };
    outbound(&[b"M", TIMESTAMP, number, b"E", &[0, 0, 0, 30]], Outbound::Modified(modified));
    let restated = Restated { timestamp_ns, user_ref_num, reason: b'R' };
    outbound(&[b"R", TIMESTAMP, number, b"R", &[0, 0]], Outbound::Restated(restated));
    outbound(&[b"S", TIMESTAMP, b"E"], Outbound::SystemEvent { timestamp_ns, event: b'E' });
}

#[test]
fn every_other_type_is_unknown() {
    let error = |kind, message: &[u8]| DecodeError {
        kind,
        message_type: message.first().copied().unwrap_or_default(),
        bytes: message.len(),
    };
    for kind in 0..=u8::MAX {
        let message = [kind; 100];
        let unknown = error(DecodeErrorKind::UnknownType, &message);
        if !INBOUND.iter().any(|row| row.0 == kind) {
            let is_known = matches!(kind, b'C' | b'D' | b'E');
            let unsupported = error(DecodeErrorKind::Unsupported, &message);
            assert_eq!(Inbound::decode(&message), Err(if is_known { unsupported } else { unknown }));
            assert_eq!(inbound_user_ref_num(&message), None);
        }
        if !OUTBOUND.iter().any(|row| row.0 == kind) {
            assert_eq!(Outbound::decode(&message), Err(unknown));
            assert_eq!(outbound_user_ref_num(&message), None);
        }
    }
    let empty = error(DecodeErrorKind::Empty, b"");
    assert_eq!(Inbound::decode(b""), Err(empty));
    assert_eq!(Outbound::decode(b""), Err(empty));
    assert_eq!(empty.label(), "ouch_empty");
    // A message without a number cannot be refused by number.
    assert_eq!(Inbound::decode(b"C\0\0\0"), Err(error(DecodeErrorKind::Length, b"C\0\0\0")));
    assert_eq!(
        Inbound::decode(b"Z!").expect_err("unknown").to_string(),
        "an unknown message type: type 0x5a, 2 bytes"
    );
}

#[test]
fn a_byte_less_or_more_is_no_message() {
    for (kind, bytes, _, _) in INBOUND {
        let message = blank(kind, bytes + 1);
        for length in (1..bytes).chain([bytes + 1]) {
            let error = Inbound::decode(&message[..length]).expect_err("not one message");
            assert_eq!((error.kind, error.bytes), (DecodeErrorKind::Length, length), "{}", char::from(kind));
        }
        assert!(Inbound::decode(&message[..bytes]).is_ok());
    }
    for (kind, bytes, _, _) in OUTBOUND {
        let message = blank(kind, bytes + 1);
        for length in (1..bytes).chain([bytes + 1]) {
            let error = Outbound::decode(&message[..length]).expect_err("not one message");
            assert_eq!((error.kind, error.bytes), (DecodeErrorKind::Length, length), "{}", char::from(kind));
        }
        assert!(Outbound::decode(&message[..bytes]).is_ok());
    }
}

/// A message whose every field is zeros.
fn blank(kind: u8, bytes: usize) -> Vec<u8> {
    let mut message = vec![0; bytes];
    message[0] = kind;
    message
}

#[test]
fn numbers_are_changed_in_place_and_nothing_else_is() {
    for (kind, bytes, _, place) in INBOUND {
        let mut message = blank(kind, bytes);
        assert_eq!(set_inbound_user_ref_num(&mut message, 0x0a0b_0c0d), place.is_some());
        assert_eq!(message, with_number(kind, bytes, place));
        assert_eq!(inbound_user_ref_num(&message), place.map(|_| 0x0a0b_0c0d));
    }
    for (kind, bytes, _, place) in OUTBOUND {
        let mut message = blank(kind, bytes);
        assert_eq!(set_outbound_user_ref_num(&mut message, 0x0a0b_0c0d), place.is_some());
        assert_eq!(message, with_number(kind, bytes, place));
        assert_eq!(outbound_user_ref_num(&message), place.map(|_| 0x0a0b_0c0d));
    }
}

fn with_number(kind: u8, bytes: usize, place: Option<usize>) -> Vec<u8> {
    let mut message = blank(kind, bytes);
    if let Some(place) = place {
        message[place..place + 4].copy_from_slice(&[10, 11, 12, 13]);
    }
    message
}

#[test]
fn the_original_of_a_replacement_is_changed_in_place() {
    for (kind, bytes, _, _) in INBOUND {
        let place = (kind == b'U').then_some(1);
        let mut message = blank(kind, bytes);
        assert_eq!(set_original_user_ref_num(&mut message, 0x0a0b_0c0d), place.is_some());
        assert_eq!(message, with_number(kind, bytes, place));
        assert_eq!(original_user_ref_num(&message), place.map(|_| 0x0a0b_0c0d));
    }
    for (kind, bytes, _, _) in OUTBOUND {
        let place = (kind == b'U').then_some(9);
        let mut message = blank(kind, bytes);
        assert_eq!(set_outbound_original_user_ref_num(&mut message, 0x0a0b_0c0d), place.is_some());
        assert_eq!(message, with_number(kind, bytes, place));
        assert_eq!(outbound_original_user_ref_num(&message), place.map(|_| 0x0a0b_0c0d));
    }
}

#[test]
fn a_message_without_room_for_a_number_is_left_as_it_is() {
    for length in 0..5 {
        let mut message = b"OXXXX"[..length].to_vec();
        assert!(!set_inbound_user_ref_num(&mut message, 1) && !set_original_user_ref_num(&mut message, 1));
        assert_eq!((message.as_slice(), inbound_user_ref_num(&message)), (&b"OXXXX"[..length], None));
    }
    let mut message = *b"UXXXXXXXXXXX";
    assert!(
        !set_outbound_user_ref_num(&mut message, 1) && !set_outbound_original_user_ref_num(&mut message, 1)
    );
    assert_eq!(message, *b"UXXXXXXXXXXX");
}

#[test]
fn texts_are_checked_when_made_and_shown_without_padding() {
    let symbol: Symbol = "WEIR".parse().expect("short");
    assert_eq!((symbol, symbol.as_str()), (Symbol(*b"WEIR    "), "WEIR"));
    assert_eq!(format!("{symbol:<6}|{symbol:?}"), "WEIR  |\"WEIR\"");
    assert_eq!("TOO LONG!".parse::<Symbol>(), Err(TextError::TooLong { bytes_max: 8 }));
    assert_eq!("TAB\t".parse::<Symbol>(), Err(TextError::NotPrintable));
    let strange = Symbol(*b"\xff\0\n\0    ");
    assert_eq!((strange.as_str(), format!("{strange:?}").as_str()), ("", r#""\xff\x00\n""#));
    assert_eq!(ClientOrderId::default().as_str(), "");
}

#[test]
fn bounds_and_reasons_are_those_of_the_specification() {
    assert_eq!((PRICE_MAX, PRICE_MARKET), (0x7735_939c, 2_147_483_647));
    assert_eq!(QUANTITY_MAX, 999_999);
    let mut names: Vec<_> = (1..=0x2a).map(reject_reason::name).collect();
    assert!(!names.contains(&"unknown"));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 0x2a);
    assert_eq!((reject_reason::name(0), reject_reason::name(0x2b)), ("unknown", "unknown"));
    for (reason, number) in [
        (reject_reason::DESTINATION_CLOSED, 0x02),
        (reject_reason::FAT_FINGER, 0x06),
        (reject_reason::INVALID_SIDE, 0x09),
        (reject_reason::PROCESSING_ERROR, 0x0a),
        (reject_reason::INVALID_QUANTITY, 0x13),
        (reject_reason::INVALID_SYMBOL, 0x17),
        (reject_reason::INVALID_PRICE, 0x1d),
        (reject_reason::SHARES_EXCEED_THRESHOLD, 0x1e),
        (reject_reason::NOTIONAL_EXCEEDED, 0x1f),
        (reject_reason::RISK_AGGREGATE_EXPOSURE, 0x20),
        (reject_reason::RISK_RESTRICTED_STOCK, 0x22),
        (reject_reason::RISK_FAT_FINGER, 0x26),
        (reject_reason::RISK_SYMBOL_MESSAGE_RATE, 0x28),
        (reject_reason::RISK_PORT_MESSAGE_RATE, 0x29),
    ] {
        assert_eq!(reason, number);
    }
}

/// A whole message of this row with any fields and any tags.
fn message(row: Row) -> impl Strategy<Value = Vec<u8>> {
    let (kind, bytes, has_appendage, _) = row;
    let tags = prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..12)), 0..4);
    (prop::collection::vec(any::<u8>(), bytes - 1), tags).prop_map(move |(fields, tags)| {
        let mut message = [vec![kind], fields].concat();
        if has_appendage {
            let mut appendage = Vec::new();
            for (tag, value) in tags {
                encode_tag(tag, &value, &mut appendage);
            }
            message.truncate(bytes - 2);
            message.extend_from_slice(&u16::try_from(appendage.len()).expect("a few tags").to_be_bytes());
            message.extend_from_slice(&appendage);
        }
        message
    })
}

fn any_message(rows: &'static [Row]) -> impl Strategy<Value = (Row, Vec<u8>)> {
    prop::sample::select(rows).prop_flat_map(|row| (Just(row), message(row)))
}

proptest! {
    #[test]
    fn inbound_messages_come_back((row, bytes) in any_message(&INBOUND)) {
        let message = Inbound::decode(&bytes).expect("well formed");
        let mut out = Vec::new();
        message.encode(&mut out);
        prop_assert_eq!(&out, &bytes);
        prop_assert_eq!(message.user_ref_num(), inbound_user_ref_num(&bytes));
        prop_assert_eq!(message.user_ref_num().is_some(), row.3.is_some());
        prop_assert!((0..bytes.len()).all(|length| Inbound::decode(&bytes[..length]).is_err()));
        prop_assert!(Inbound::decode(&[&bytes[..], b" "].concat()).is_err());
    }

    #[test]
    fn outbound_messages_come_back((row, bytes) in any_message(&OUTBOUND)) {
        let (message, appendage) = Outbound::decode(&bytes).expect("well formed");
        let mut out = Vec::new();
        message.encode_with(appendage, &mut out);
        prop_assert_eq!(&out, &bytes);
        prop_assert_eq!(message.user_ref_num(), outbound_user_ref_num(&bytes));
        prop_assert_eq!(message.user_ref_num().is_some(), row.3.is_some());
        prop_assert!((0..bytes.len()).all(|length| Outbound::decode(&bytes[..length]).is_err()));
        prop_assert!(Outbound::decode(&[&bytes[..], b" "].concat()).is_err());
    }

    #[test]
    fn an_inbound_number_changed_in_place_is_what_is_decoded(
        (row, bytes) in any_message(&INBOUND),
        number: u32,
        original: u32,
    ) {
        let mut changed = bytes.clone();
        let has_number = set_inbound_user_ref_num(&mut changed, number);
        let has_original = set_original_user_ref_num(&mut changed, original);
        prop_assert_eq!((has_number, has_original), (row.3.is_some(), row.0 == b'U'));
        let message = Inbound::decode(&changed).expect("still well formed");
        prop_assert_eq!(message.user_ref_num(), has_number.then_some(number));
        if let Inbound::Replace(replace, _) = message {
            prop_assert_eq!(replace.original_user_ref_num, original);
        }
    }
}
