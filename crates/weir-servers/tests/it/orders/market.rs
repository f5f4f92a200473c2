//! Tests of the exchange that trades: accounts and symbols on different workers, conservation of shares, and books
//! that are empty after a crash.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weir_engine::{
    Config, Driver,
    serve::{AcceptMode, ServerConfig},
};
use weir_proto::ouch::{
    Appendage, Inbound, Outbound, Replace,
    codes::{broken_trade_reason, cancel_reason},
};
use weir_servers::{
    exchange::{self, Mode},
    journal::{self, Level},
    orders::{AccountConfig, OrdersConfig},
};
use weir_stats::random::Random;

use super::{
    client::{Client, cancel, framed, order},
    replay::{Folder, journaled},
    rig::{Network, config, on_kernel, on_market, on_markets, on_sim_market},
};
use crate::random::{between, seed};

fn limit(number: u32, side: u8, symbol: usize, price: u64, quantity: u32) -> Inbound<'static> {
    let symbol = format!("S{symbol}").parse().expect("a symbol");
    Inbound::Enter(
        weir_proto::ouch::Enter { side, symbol, price, quantity, ..order(number) },
        Appendage::EMPTY,
    )
}

#[test]
fn two_accounts_trade_in_every_symbol_wherever_it_is_traded() {
    on_markets(&config(2), async |network| {
        let mut seller = network.enter("C00001").await;
        let mut buyer = network.enter("C00002").await;
        for number in 1..=30 {
            let symbol = number as usize;
            seller.send(&limit(number, b'S', symbol, 10_000, 100)).await;
            assert_eq!(seller.message().await.kind(), b'A');
            buyer.send(&limit(number, b'B', symbol, 10_000, 40)).await;
            // The acceptance comes before the execution, even by way of another worker.
            assert_eq!(buyer.message().await.kind(), b'A');
            let (Outbound::Executed(bought), Outbound::Executed(sold)) =
                (buyer.message().await, seller.message().await)
            else {
                panic!("no execution in symbol {symbol}")
            };
            assert_eq!((bought.quantity, bought.price), (40, 10_000));
            assert_eq!((bought.match_number, bought.quantity), (sold.match_number, sold.quantity));
            seller.send(&cancel(number)).await;
            match seller.message().await {
                Outbound::Canceled(rest) => assert_eq!((rest.user_ref_num, rest.quantity), (number, 60)),
                other => panic!("{other:?} instead of a cancellation"),
            }
        }
        let stats = network.stats();
        let handoff = stats.handoff.expect("there are two workers");
        assert_eq!(handoff.orders, 90);
        assert!((20..70).contains(&handoff.orders_handed_off), "{handoff:?}");
        assert_eq!(handoff.wakes_recovered, 0);
    });
}

#[test]
fn messages_of_a_client_take_effect_in_the_order_in_which_they_came() {
    const ROUNDS: u32 = 200;
    on_markets(&config(2), async |network| {
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            // All at once, for symbols on both workers, with cancels right behind their orders.
            let mut expected = Vec::new();
            let mut bytes = Vec::new();
            for number in 1..=ROUNDS {
                bytes.extend(framed(&limit(number, b'B', number as usize % 7, 10_000, 100)));
                expected.push((b'A', Some(number)));
                if number % 3 == 0 {
                    bytes.extend(framed(&cancel(number)));
                    expected.push((b'C', Some(number)));
                }
            }
            client.write(bytes).await;
            for (index, expected) in expected.iter().enumerate() {
                let message = client.message().await;
                assert_eq!((message.kind(), message.user_ref_num()), *expected, "{account}, answer {index}");
            }
            client.send(&Inbound::AccountQuery).await;
            assert_eq!(client.message().await.kind(), b'Q');
        }
    });
}

#[test]
fn a_replacement_of_an_order_that_is_gone_does_not_use_its_number_up() {
    on_markets(&config(2), async |network| {
        for account in ["C00001", "C00002"] {
            let mut client = network.enter(account).await;
            for symbol in 0..4 {
                let first = symbol as u32 * 10 + 1;
                let replace = Replace {
                    original_user_ref_num: first,
                    user_ref_num: first + 1,
                    quantity: 200,
                    price: 20_000,
                    time_in_force: b'0',
                    display: b'Y',
                    intermarket_sweep: b'N',
                    client_order_id: "R".parse().expect("an identifier"),
                };
                // There is no such order: no answer, and the number is free.
                client.send(&Inbound::Replace(replace, Appendage::EMPTY)).await;
                client.send(&limit(first, b'B', symbol, 10_000, 100)).await;
                assert_eq!(client.message().await.kind(), b'A', "{account}, symbol {symbol}");
                client.send(&Inbound::Replace(replace, Appendage::EMPTY)).await;
                match client.message().await {
                    Outbound::Replaced(replaced) => {
                        assert_eq!((replaced.user_ref_num, replaced.quantity), (first + 1, 200));
                    }
                    other => panic!("{other:?} instead of a replacement"),
                }
                client.send(&cancel(first)).await;
                client.send(&cancel(first + 1)).await;
                match client.message().await {
                    Outbound::Canceled(gone) => {
                        assert_eq!((gone.user_ref_num, gone.quantity), (first + 1, 200))
                    }
                    other => panic!("{other:?} instead of a cancellation"),
                }
            }
        }
    });
}

/// Shares of each order of one client, according to its answers.
#[derive(Default)]
struct Account {
    live: BTreeMap<u32, u32>,
    entered: u64,
    executed: u64,
    cancelled: u64,
}

impl Account {
    fn take(&mut self, message: &Outbound, matches: &mut BTreeMap<u64, Vec<u32>>) {
        match message {
            Outbound::Accepted(accepted) => {
                self.entered += u64::from(accepted.quantity);
                assert!(self.live.insert(accepted.user_ref_num, accepted.quantity).is_none());
            }
            Outbound::Executed(executed) => {
                self.executed += u64::from(executed.quantity);
                *self.live.get_mut(&executed.user_ref_num).expect("it was accepted before") -=
                    executed.quantity;
                matches.entry(executed.match_number).or_default().push(executed.quantity);
            }
            Outbound::Canceled(cancelled) => {
                self.cancelled += u64::from(cancelled.quantity);
                *self.live.get_mut(&cancelled.user_ref_num).expect("it was accepted before") -=
                    cancelled.quantity;
            }
            other => panic!("{other:?} was not expected"),
        }
    }
}

async fn take_until_query(
    client: &mut Client,
    account: &mut Account,
    matches: &mut BTreeMap<u64, Vec<u32>>,
) -> u32 {
    loop {
        match client.message().await {
            Outbound::AccountQueryResponse { next_user_ref_num, .. } => return next_user_ref_num,
            message => account.take(&message, matches),
        }
    }
}

#[test]
fn shares_are_neither_made_nor_lost() {
    const ORDERS: u32 = 2000;
    let seed = seed();
    on_markets(&config(4), async |network| {
        let mut random = Random::seeded(seed);
        let mut clients = Vec::new();
        for account in 1..=4 {
            clients.push((network.enter(&format!("C0000{account}")).await, Account::default()));
        }
        let mut matches = BTreeMap::new();
        for number in 1..=ORDERS {
            for (client, account) in &mut clients {
                let side = if random.below(2) == 0 { b'B' } else { b'S' };
                let price = between(&mut random, 9_900, 10_100) as u64 * 100;
                let quantity = between(&mut random, 1, 500) as u32;
                client.send(&limit(number, side, random.below(8) as usize, price, quantity)).await;
                if random.below(4) == 0 {
                    client.send(&cancel(between(&mut random, 1, number as usize) as u32)).await;
                }
                if number % 50 == 0 {
                    client.send(&Inbound::AccountQuery).await;
                    assert_eq!(take_until_query(client, account, &mut matches).await, number + 1);
                }
            }
        }
        // Orders of all accounts are cancelled; when a second query is answered after a cancel of every order, the
        // books are empty.
        for (client, _) in &mut clients {
            for number in 1..=ORDERS {
                client.send(&cancel(number)).await;
            }
        }
        for (client, account) in &mut clients {
            while account.live.len() < ORDERS as usize || account.live.values().any(|shares| *shares > 0) {
                let message = client.message().await;
                account.take(&message, &mut matches);
            }
            assert_eq!(account.entered, account.executed + account.cancelled);
        }
        assert!(matches.len() > 100, "they trade");
        for (number, sides) in &matches {
            assert!(sides.len() == 2 && sides[0] == sides[1], "match {number}: {sides:?}");
        }
    });
}

#[test]
fn orders_of_a_client_that_has_gone_leave_every_book() {
    let mut careful = config(2);
    let accounts = careful
        .accounts
        .iter()
        .zip(0..)
        .map(|(account, index)| AccountConfig { cancel_on_disconnect: index == 0, ..account.clone() });
    careful.accounts = Arc::new(accounts.collect());
    on_markets(&careful, async |network| {
        let mut client = network.enter("C00001").await;
        for number in 1..=20 {
            client.send(&limit(number, b'S', number as usize, 10_000, 100)).await;
            assert_eq!(client.message().await.kind(), b'A');
        }
        client.reset();
        network.until(|stats| stats.cancels_on_disconnect == 20).await;
        let mut buyer = network.enter("C00002").await;
        for number in 1..=20 {
            buyer.send(&limit(number, b'B', number as usize, 10_000, 100)).await;
            assert_eq!(buyer.message().await.kind(), b'A');
        }
        buyer.send(&Inbound::AccountQuery).await;
        assert_eq!(buyer.message().await.kind(), b'Q', "nothing was there to trade with");
    });
}

#[test]
fn orders_that_were_live_at_a_crash_are_cancelled_and_their_owners_told() {
    let folder = Folder::new("lost");
    let config: OrdersConfig = journaled(&folder, Level::Os, 2);
    on_sim_market(config.clone(), async |network| {
        let mut client = network.enter("C00001").await;
        for number in 1..=5 {
            client.send(&limit(number, b'S', 1, 10_000 + u64::from(number), 100)).await;
            assert_eq!(client.message().await.kind(), b'A');
        }
        client.send(&cancel(2)).await;
        assert_eq!(client.message().await.kind(), b'C');
        let mut buyer = network.enter("C00002").await;
        buyer.send(&limit(1, b'B', 1, 10_001, 30)).await;
        assert_eq!((buyer.message().await.kind(), buyer.message().await.kind()), (b'A', b'E'));
        assert_eq!(client.message().await.kind(), b'E');
    });
    for _ in 0..2 {
        on_sim_market(config.clone(), async |network| {
            let mut client = network.connect().await;
            client.log_in("C00001", 8).await.expect("it is let in");
            let mut lost = Vec::new();
            for _ in 0..4 {
                match client.message().await {
                    Outbound::Canceled(cancelled) => {
                        assert_eq!(cancelled.reason, cancel_reason::SYSTEM);
                        lost.push((cancelled.user_ref_num, cancelled.quantity));
                    }
                    other => panic!("{other:?} instead of a cancellation"),
                }
            }
            // Once: the second start finds that they were reported.
            assert_eq!(lost, [(1, 70), (3, 100), (4, 100), (5, 100)]);
            assert_eq!(network.stats().sessions[0].sequence_last, 11);
        });
    }
}

/// A crash before the last execution in a worker's journal was written: it and the following records are removed.
fn lose_last_execution(folder: &Folder, worker: u16) {
    let mut last = None;
    let recovered = journal::recover(folder.path(), worker, &mut |record, position| {
        if record.kind == 1 && record.payload[24] == b'E' {
            last = Some(position);
        }
        Ok(())
    });
    recovered.expect("it is whole");
    let position = last.expect("there is one");
    let path = folder.path().join(format!("worker-{worker:05}-{:010}.journal", position.segment));
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[position.offset as usize..].fill(0);
    std::fs::write(&path, bytes).expect("it can be written");
}

/// The messages after those that a client already has.
async fn behind(network: &Network, account: &str, next: u64, count: usize) -> Vec<Outbound> {
    let mut client = network.connect().await;
    client.log_in(account, next).await.expect("it is let in");
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(client.message().await);
    }
    client.send(&Inbound::AccountQuery).await;
    let last = client.message().await;
    assert_eq!(last.kind(), b'Q', "{account}: {last:?} behind {found:?}");
    found
}

/// The number of the broken trade, and of its order.
fn broken(message: &Outbound) -> (u64, u32) {
    match message {
        Outbound::BrokenTrade(broken) => {
            assert_eq!(broken.reason, broken_trade_reason::SUPERVISORY);
            assert_eq!(broken.client_order_id, order(broken.user_ref_num).client_order_id);
            (broken.match_number, broken.user_ref_num)
        }
        other => panic!("{other:?} instead of a broken trade"),
    }
}

fn cancelled(message: &Outbound) -> (u32, u32) {
    match message {
        Outbound::Canceled(cancelled) => (cancelled.user_ref_num, cancelled.quantity),
        other => panic!("{other:?} instead of a cancellation"),
    }
}

/// Two trades, of 30 and of 40 shares; returns the second one's number.
async fn trade_twice(network: &Network) -> u64 {
    let (mut seller, mut buyer) = (network.enter("C00001").await, network.enter("C00002").await);
    seller.send(&limit(1, b'S', 1, 10_000, 100)).await;
    assert_eq!(seller.message().await.kind(), b'A');
    let mut number = 0;
    for (order, shares) in [(1, 30), (2, 40)] {
        buyer.send(&limit(order, b'B', 1, 10_000, shares)).await;
        assert_eq!(buyer.message().await.kind(), b'A');
        let (Outbound::Executed(bought), Outbound::Executed(sold)) =
            (buyer.message().await, seller.message().await)
        else {
            panic!("no execution")
        };
        assert_eq!((bought.match_number, bought.quantity), (sold.match_number, shares));
        number = bought.match_number;
    }
    number
}

#[test]
fn a_trade_of_which_a_crash_has_left_one_side_is_broken_for_who_was_told_of_it() {
    // The buyer's side of the second trade is lost, and then the seller's.
    for lost in [1, 0] {
        let folder = Folder::new(&format!("one-sided-{lost}"));
        let config: OrdersConfig = journaled(&folder, Level::Os, 2);
        let number = RefCell::new(0);
        on_market(Driver::Poll, config.clone(), async |network| {
            number.replace(trade_twice(network).await);
        });
        lose_last_execution(&folder, lost);
        for life in 0..2 {
            let (mut seller_next, mut buyer_next) = (4, 5);
            if lost == 1 {
                buyer_next -= 1
            } else {
                seller_next -= 1
            }
            // Each earlier life ended with the answer to a query.
            let told = |next: u64, count: u64| if life == 0 { next } else { next + count + 1 };
            on_market(Driver::Poll, config.clone(), async |network| {
                let of_life = |count: usize| if life == 0 { count } else { 0 };
                if lost == 1 {
                    let of_seller = behind(network, "C00001", told(seller_next, 2), of_life(2)).await;
                    let of_buyer = behind(network, "C00002", told(buyer_next, 1), of_life(1)).await;
                    if life == 0 {
                        assert_eq!(broken(&of_seller[0]), (*number.borrow(), 1));
                        assert_eq!((cancelled(&of_seller[1]), cancelled(&of_buyer[0])), ((1, 30), (2, 40)));
                    }
                } else {
                    let of_seller = behind(network, "C00001", told(seller_next, 1), of_life(1)).await;
                    let of_buyer = behind(network, "C00002", told(buyer_next, 1), of_life(1)).await;
                    if life == 0 {
                        assert_eq!(broken(&of_buyer[0]), (*number.borrow(), 2));
                        assert_eq!(cancelled(&of_seller[0]), (1, 70));
                    }
                }
            });
        }
    }
}

#[test]
fn a_write_that_a_crash_has_cut_between_the_sides_of_a_trade_breaks_it_too() {
    let folder = Folder::new("one-write");
    let config: OrdersConfig = journaled(&folder, Level::Os, 2);
    let number = RefCell::new(0);
    on_sim_market(config.clone(), async |network| {
        number.replace(trade_twice(network).await);
    });
    lose_last_execution(&folder, 0);
    let recovered = exchange::recover(&config, Mode::Match).expect("the journal is whole");
    assert_eq!(recovered.one_sided_trades(), 1);
    drop(recovered);
    on_sim_market(config.clone(), async |network| {
        let mut told = Vec::new();
        for (account, next) in [("C00001", 3), ("C00002", 4)] {
            let mut client = network.connect().await;
            client.log_in(account, next).await.expect("it is let in");
            // The stored execution, if it is this one's, and its consequences.
            loop {
                let message = client.message().await;
                told.push((account, message.kind()));
                match message {
                    Outbound::Executed(_) => {}
                    Outbound::BrokenTrade(broken) => assert_eq!(broken.match_number, *number.borrow()),
                    Outbound::Canceled(_) => break,
                    other => panic!("{other:?}"),
                }
                if told.ends_with(&[("C00002", b'E'), ("C00002", b'B')]) {
                    break;
                }
            }
        }
        assert_eq!(told.iter().filter(|(_, kind)| *kind == b'B').count(), 1, "{told:?}");
        assert_eq!(told.iter().filter(|(_, kind)| *kind == b'E').count(), 1, "{told:?}");
    });
    let recovered = exchange::recover(&config, Mode::Match).expect("the journal is whole");
    assert_eq!(recovered.one_sided_trades(), 0, "it is told once");
}

#[test]
fn what_a_session_that_was_ended_has_left_is_told_in_no_later_one() {
    let folder = Folder::new("left-behind");
    let config: OrdersConfig = journaled(&folder, Level::Os, 2);
    on_sim_market(config.clone(), async |network| {
        trade_twice(network).await;
    });
    lose_last_execution(&folder, 0);
    let mut recovered = exchange::recover(&config, Mode::Match).expect("the journal is whole");
    recovered.end_session();
    let listen = "127.0.0.1:0".parse().expect("an address");
    let server = ServerConfig { workers: 1, ..ServerConfig::new(Config::with_driver(Driver::Poll), listen) };
    let server = exchange::start_recovered(server, config.clone(), recovered, Mode::Match);
    let server = server.expect("poll runs everywhere");
    server.drain();
    server.join();
    on_sim_market(config.clone(), async |network| {
        for account in ["C00001", "C00002"] {
            assert!(behind(network, account, 1, 0).await.is_empty());
        }
    });
}

#[test]
fn the_side_of_an_account_that_is_not_configured_any_more_is_a_side() {
    let folder = Folder::new("removed-side");
    let config: OrdersConfig = journaled(&folder, Level::Os, 2);
    on_sim_market(config.clone(), async |network| {
        trade_twice(network).await;
    });
    let one = OrdersConfig { accounts: Arc::new(config.accounts[..1].to_vec()), ..config };
    let recovered = exchange::recover(&one, Mode::Match).expect("the journal is whole");
    assert_eq!(recovered.one_sided_trades(), 0);
}

async fn next_number(client: &mut Client) -> u32 {
    client.send(&Inbound::AccountQuery).await;
    match client.message().await {
        Outbound::AccountQueryResponse { next_user_ref_num, .. } => next_user_ref_num,
        other => panic!("{other:?} instead of the next number"),
    }
}

/// One order trades with so many that more messages result than fit into the queues between workers, and more than
/// the journal accepts from clients.
async fn trade_with_all(network: &Network, symbol: usize, orders_count: u32) {
    const AT_ONCE: u32 = 500;
    let mut seller = network.enter("C00001").await;
    let first = next_number(&mut seller).await;
    for begin in (first..first + orders_count).step_by(AT_ONCE as usize) {
        let orders = (begin..begin + AT_ONCE).map(|number| framed(&limit(number, b'S', symbol, 10_000, 1)));
        seller.write(orders.collect::<Vec<_>>().concat()).await;
        assert_eq!(seller.messages(AT_ONCE as usize).await.len(), AT_ONCE as usize);
    }
    let mut buyer = network.enter("C00002").await;
    let number = next_number(&mut buyer).await;
    buyer.send(&limit(number, b'B', symbol, 10_000, orders_count)).await;
    assert_eq!(buyer.message().await.kind(), b'A');
    for index in 0..orders_count {
        for (client, number) in [(&mut buyer, number), (&mut seller, first + index)] {
            match client.message().await {
                Outbound::Executed(executed) => {
                    assert_eq!((executed.user_ref_num, executed.quantity), (number, 1));
                }
                other => panic!("{other:?} instead of execution {index} in S{symbol}"),
            }
        }
    }
    let stats = network.stats();
    assert!(!stats.journal.expect("there is one").failed);
    assert_eq!(stats.sessions_open, 2);
    drop((seller, buyer));
    network.until(|stats| stats.sessions_open == 0).await;
}

#[test]
fn an_order_that_trades_with_all_others_is_told_to_all_and_nobody_is_cut_off() {
    let folder = Folder::new("all");
    let config = OrdersConfig { journal_segment_bytes: 4 << 20, ..journaled(&folder, Level::Os, 2) };
    // The seller and the buyer have different home workers, and so do the two books.
    on_markets(&config, async |network| {
        for symbol in [1, 2] {
            trade_with_all(network, symbol, 15_000).await;
        }
    });
    // More than 4 MiB in one journal.
    on_sim_market(config, async |network| trade_with_all(network, 1, 25_000).await);
}

#[test]
fn a_refusal_for_want_of_room_waits_for_its_turn() {
    // The maximum of one worker's accounts in the market; the last ones come together with refused ones.
    const LIVE_MAX: u32 = 131_072;
    const AT_ONCE: u32 = 3000;
    // They have different home workers, so the book is on another worker for one of them.
    for account in ["C00001", "C00002"] {
        on_market(Driver::Epoll, config(2), async |network| {
            let mut client = network.enter(account).await;
            for begin in (1..).step_by(AT_ONCE as usize) {
                let numbers = begin..begin + AT_ONCE;
                let orders = numbers.clone().map(|number| framed(&limit(number, b'S', 1, 10_000, 1)));
                client.write(orders.collect::<Vec<_>>().concat()).await;
                for number in numbers {
                    let answer = client.message().await;
                    let kind = if number <= LIVE_MAX { b'A' } else { b'J' };
                    assert_eq!((answer.kind(), answer.user_ref_num()), (kind, Some(number)), "{account}");
                }
                if begin + AT_ONCE > LIVE_MAX {
                    break;
                }
            }
        });
    }
}

#[test]
fn after_a_crash_no_order_reference_and_no_match_number_is_given_a_second_time() {
    let folder = Folder::new("given");
    let config = journaled(&folder, Level::Os, 2);
    let (references, matches) = (RefCell::new(BTreeSet::new()), RefCell::new(BTreeSet::new()));
    let refer = |message: Outbound| match message {
        Outbound::Accepted(accepted) => assert!(references.borrow_mut().insert(accepted.order_reference)),
        other => panic!("{other:?} instead of an acceptance"),
    };
    for life in 0..3_u32 {
        on_sim_market(config.clone(), async |network| {
            let (mut seller, mut buyer) = (network.enter("C00001").await, network.enter("C00002").await);
            for number in life * 5 + 1..=life * 5 + 5 {
                seller.send(&limit(number, b'S', 1, 10_000, 100)).await;
                refer(seller.message().await);
                buyer.send(&limit(number, b'B', 1, 10_000, 100)).await;
                refer(buyer.message().await);
                match buyer.message().await {
                    Outbound::Executed(executed) => {
                        assert!(matches.borrow_mut().insert(executed.match_number), "life {life}");
                    }
                    other => panic!("{other:?} instead of an execution"),
                }
                assert_eq!(seller.message().await.kind(), b'E');
            }
        });
    }
    assert_eq!((references.borrow().len(), matches.borrow().len()), (30, 15));
}

#[test]
fn an_exchange_that_only_accepts_gives_no_reference_a_second_time_either() {
    let folder = Folder::new("references");
    let config = journaled(&folder, Level::Os, 2);
    let references = RefCell::new(BTreeSet::new());
    for life in 0..3_u32 {
        on_kernel(Driver::Poll, AcceptMode::ReusePort, config.clone(), async |network| {
            for account in ["C00001", "C00002"] {
                let mut client = network.enter(account).await;
                for number in life * 5 + 1..=life * 5 + 5 {
                    client.send(&limit(number, b'S', 1, 10_000, 100)).await;
                    match client.message().await {
                        Outbound::Accepted(accepted) => {
                            assert!(references.borrow_mut().insert(accepted.order_reference), "life {life}");
                        }
                        other => panic!("{other:?} instead of an acceptance"),
                    }
                }
            }
        });
    }
    assert_eq!(references.borrow().len(), 30);
}
