//! Tests of the wire format: frames split anywhere, many at once, and everything that is not a frame.

use weir_proto::{
    ouch::{Outbound, reject_reason},
    soup::{
        CLIENT_HEARTBEAT_FRAME, DEBUG, END_OF_SESSION_FRAME, LOGOUT_FRAME, SERVER_HEARTBEAT_FRAME,
        UNSEQUENCED, encode_frame, header,
    },
};

use super::{
    client::{Packet, accepted, cancel, encoded, enter, framed, login},
    rig::{Network, config, on_every_driver, on_every_driver_and_seed, on_kernel_drivers},
};

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_frame(kind, payload, &mut bytes);
    bytes
}

#[test]
fn frames_that_are_cut_anywhere_mean_what_whole_ones_mean() {
    on_every_driver(&config(4), async |network| {
        let mut number = 0;
        let whole = {
            let orders = [framed(&enter(1)), framed(&enter(2)), framed(&cancel(1))].concat();
            [encoded(&login("C00002", 0)), CLIENT_HEARTBEAT_FRAME.to_vec(), orders].concat()
        };
        for cut in 1..whole.len() {
            let mut client = network.connect().await;
            // Numbers rise across all connections of an account.
            let orders =
                [framed(&enter(number + 1)), framed(&enter(number + 2)), framed(&cancel(number + 1))];
            let bytes =
                [encoded(&login("C00002", 0)), CLIENT_HEARTBEAT_FRAME.to_vec(), orders.concat()].concat();
            client.write(&bytes[..cut]).await;
            client.write(&bytes[cut..]).await;
            assert!(matches!(client.packet().await, Packet::Accepted { .. }), "cut at {cut}");
            assert_eq!(accepted(&client.message().await), number + 1);
            assert_eq!(accepted(&client.message().await), number + 2);
            assert!(matches!(client.message().await, Outbound::Canceled(_)));
            number += 2;
            client.write(LOGOUT_FRAME).await;
            client.expect_end().await;
            network.until(|stats| stats.sessions_open == 0).await;
        }
        assert_eq!(network.stats().protocol_errors.len(), 0);
    });
}

#[test]
fn a_thousand_frames_in_one_segment_are_answered_in_order_and_in_few_sends() {
    const ORDERS: u32 = 1000;
    on_kernel_drivers(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        let before = network.engine();
        client.write((1..=ORDERS).map(|number| framed(&enter(number))).collect::<Vec<_>>().concat()).await;
        for number in 1..=ORDERS {
            assert_eq!(accepted(&client.message().await), number);
        }
        let sends = network.engine().sends - before.sends;
        assert!(sends < 100, "{}: {sends} sends for {ORDERS} answers", network.driver);
        let stats = network.stats();
        assert_eq!((stats.received, stats.sent, stats.orders), (1000, 1000, 1000));
    });
}

/// Sends bytes after a login, or before one, and expects that the connection ends with an error of this kind.
async fn expect_fault(network: &Network, after_login: bool, bytes: &[u8], kind: &str) {
    let counted = |network: &Network| network.stats().protocol_errors.get(kind).copied().unwrap_or_default();
    let before = counted(network);
    let mut client = if after_login { network.enter("C00001").await } else { network.connect().await };
    client.write(bytes).await;
    client.expect_cut_off(kind).await;
    network.until(|stats| stats.protocol_errors.get(kind).copied().unwrap_or_default() == before + 1).await;
    network.until(|stats| stats.sessions_open == 0).await;
}

#[test]
fn what_is_no_frame_ends_the_connection_and_is_counted_by_kind() {
    on_every_driver_and_seed(&config(1), async |network| {
        for after_login in [false, true] {
            expect_fault(network, after_login, &[0, 0], "len0").await;
            // Detected from the length alone: nothing of the payload comes.
            expect_fault(network, after_login, &[0xff, 0xff], "too_long").await;
            expect_fault(network, after_login, &[2, 2], "too_long").await;
            expect_fault(network, after_login, &frame(b'?', b""), "unknown_type").await;
            for wrong in [frame(b'S', b"x"), SERVER_HEARTBEAT_FRAME.into(), END_OF_SESSION_FRAME.into()] {
                expect_fault(network, after_login, &wrong, "wrong_direction").await;
            }
            expect_fault(network, after_login, &frame(b'R', b"x"), "payload_unexpected").await;
        }
        expect_fault(network, false, &framed(&enter(1)), "before_login").await;
        expect_fault(network, false, &CLIENT_HEARTBEAT_FRAME, "before_login").await;
        expect_fault(network, true, &encoded(&login("C00001", 0)), "second_login").await;
        for length in [46_usize, 48, 51, 53] {
            let payload = vec![b' '; length - 1];
            expect_fault(network, false, &frame(b'L', &payload), "login_length").await;
        }
        assert_eq!(network.stats().orders, 0);
    });
}

#[test]
fn the_largest_frame_is_taken_and_one_byte_more_is_not() {
    on_every_driver_and_seed(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        client.write(frame(DEBUG, &[b'x'; 512])).await;
        client.send(&enter(1)).await;
        assert_eq!(accepted(&client.message().await), 1);
        client.write(header(DEBUG, 513)).await;
        client.expect_cut_off("too_long").await;
    });
}

#[test]
fn what_is_no_message_ends_the_connection_and_is_never_read_beyond_its_frame() {
    on_every_driver_and_seed(&config(1), async |network| {
        let whole = framed(&enter(1))[3..].to_vec();
        let mut appendage_too_long = whole.clone();
        appendage_too_long[45..47].copy_from_slice(&100_u16.to_be_bytes());
        let mut tag_of_nothing = whole.clone();
        tag_of_nothing[45..47].copy_from_slice(&1_u16.to_be_bytes());
        tag_of_nothing.push(0);
        let trailing = [&framed(&cancel(1))[3..], &[0]].concat();
        let cut = whole[..46].to_vec();
        for (raw, kind) in [
            (Vec::new(), "ouch_empty"),
            (b"?".to_vec(), "ouch_unknown_type"),
            (b"C\0\0\0".to_vec(), "ouch_length"),
            (cut, "ouch_length"),
            (trailing, "ouch_length"),
            (appendage_too_long, "ouch_appendage"),
            (tag_of_nothing, "ouch_appendage"),
        ] {
            let mut client = network.enter("C00001").await;
            client.write(frame(UNSEQUENCED, &raw)).await;
            client.expect_cut_off(kind).await;
            network.until(|stats| stats.sessions_open == 0).await;
        }
        let stats = network.stats();
        assert_eq!(stats.protocol_errors.values().sum::<u64>(), 7, "{:?}", stats.protocol_errors);
        assert_eq!(stats.orders, 0);
    });
}

#[test]
fn mass_cancels_and_disabled_order_entry_are_refused_by_their_numbers_and_orders_go_on() {
    on_every_driver_and_seed(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        for (kind, number) in [(b'C', 1_u32), (b'D', 2), (b'E', 3)] {
            let raw = [&[kind][..], &number.to_be_bytes(), b"FIRM", b"WEIR    ", &[0, 0]].concat();
            client.write(frame(UNSEQUENCED, &raw)).await;
            let Outbound::Rejected(rejected) = client.message().await else { panic!("it is refused") };
            assert_eq!((rejected.user_ref_num, rejected.reason), (number, reject_reason::OTHER));
        }
        // The number is used up, as an order's is.
        client.write([framed(&enter(3)), framed(&enter(4))].concat()).await;
        assert_eq!(accepted(&client.message().await), 4);
        assert_eq!(network.stats().protocol_errors.len(), 0);
    });
}

#[test]
fn debug_packets_are_ignored_at_any_time() {
    on_every_driver_and_seed(&config(1), async |network| {
        let mut client = network.connect().await;
        client.write(frame(DEBUG, b"before")).await;
        client.log_in("C00001", 1).await.expect("it is let in");
        client.write([frame(DEBUG, b""), framed(&enter(1)), frame(DEBUG, b"after")].concat()).await;
        assert_eq!(accepted(&client.message().await), 1);
        assert_eq!(network.stats().received, 1);
    });
}
