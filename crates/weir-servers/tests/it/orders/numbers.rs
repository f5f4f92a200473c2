//! Tests of the rule of order numbers, and of the echoing exchange's answers to invalid orders.

use weir_proto::{
    ouch::{Appendage, Enter, Inbound, Outbound, reject_reason},
    soup::LOGOUT_FRAME,
};

use super::{
    client::{accepted, cancel, enter, order},
    rig::{config, on_every_driver_and_seed},
};

#[test]
fn a_number_that_does_not_rise_is_a_retransmission_and_is_ignored() {
    on_every_driver_and_seed(&config(2), async |network| {
        let mut client = network.enter("C00001").await;
        for number in [1, 1, 5, 5, 3, 1, 6] {
            client.send(&enter(number)).await;
        }
        for number in [1, 5, 6] {
            assert_eq!(accepted(&client.message().await), number);
        }
        client.write(LOGOUT_FRAME).await;
        client.expect_end().await;
        network.until(|stats| stats.sessions_open == 0).await;
        let mut again = network.enter("C00001").await;
        again.send(&enter(6)).await;
        again.send(&Inbound::AccountQuery).await;
        match again.message().await {
            Outbound::AccountQueryResponse { next_user_ref_num, .. } => assert_eq!(next_user_ref_num, 7),
            other => panic!("{other:?} instead of an answer"),
        }
        let stats = network.stats();
        assert_eq!((stats.orders, stats.duplicates_ignored), (3, 5));
    });
}

#[test]
fn numbers_end_and_do_not_begin_again() {
    on_every_driver_and_seed(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        client.send(&enter(u32::MAX)).await;
        assert_eq!(accepted(&client.message().await), u32::MAX);
        client.send(&enter(1)).await;
        match client.message().await {
            Outbound::Rejected(rejected) => {
                assert_eq!((rejected.user_ref_num, rejected.reason), (1, reject_reason::PROCESSING_ERROR));
            }
            other => panic!("{other:?} instead of a refusal"),
        }
        assert_eq!(network.stats().rejects.values().sum::<u64>(), 1);
    });
}

#[test]
fn every_message_has_one_answer_and_the_answers_keep_their_order() {
    on_every_driver_and_seed(&config(2), async |network| {
        let mut client = network.enter("C00002").await;
        let mut expected = Vec::new();
        for number in 1..=100 {
            client.send(&enter(number)).await;
            expected.push((b'A', number));
            if number % 3 == 0 {
                client.send(&cancel(number)).await;
                expected.push((b'C', number));
            }
        }
        for (index, (kind, number)) in expected.iter().enumerate() {
            let message = client.message().await;
            assert_eq!((message.kind(), message.user_ref_num()), (*kind, Some(*number)), "answer {index}");
        }
        let stats = network.stats();
        assert_eq!((stats.received, stats.sent), (expected.len() as u64, expected.len() as u64));
    });
}

type Spoil = fn(&mut Enter);

#[test]
fn an_order_that_is_wrong_is_refused_with_its_reason() {
    on_every_driver_and_seed(&config(1), async |network| {
        let mut client = network.enter("C00001").await;
        let wrong: [(Spoil, u16); 5] = [
            (|order| order.quantity = 0, reject_reason::INVALID_QUANTITY),
            (|order| order.quantity = 1_000_000, reject_reason::INVALID_QUANTITY),
            (|order| order.price = 0, reject_reason::INVALID_PRICE),
            (|order| order.price = u64::MAX, reject_reason::INVALID_PRICE),
            (|order| order.side = b'Z', reject_reason::INVALID_SIDE),
        ];
        for (number, (spoil, reason)) in (1..).zip(wrong) {
            let mut order = order(number);
            spoil(&mut order);
            client.send(&Inbound::Enter(order, Appendage::EMPTY)).await;
            match client.message().await {
                Outbound::Rejected(rejected) => {
                    assert_eq!((rejected.user_ref_num, rejected.reason), (number, reason));
                }
                other => panic!("{other:?} instead of a refusal"),
            }
        }
        assert_eq!(network.stats().rejects.values().sum::<u64>(), 5);
    });
}
