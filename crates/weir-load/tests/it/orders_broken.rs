//! Exchanges with one defect each, and the class their failures must get.

use std::{net::SocketAddr, time::Duration};

use weir_load::{LoadError, LoadSpec, OrderMix};
use weir_proto::{
    ouch::{Outbound, Rejected, codes::side, reject_reason},
    soup::LoginReject,
};
use weir_record::failure::FailureCounts;

use crate::{
    orders_host::{Habits, Host, Tamper},
    orders_servers::{exchange, exchange_of, lock, report, spec, with},
    servers::{run, serve},
};

/// A limit that an exchange which never answers passes, and a right one keeps, also on a busy machine.
const SOON: Duration = Duration::from_secs(1);
const NONE: FailureCounts = FailureCounts {
    refused: 0,
    reset: 0,
    connect_timeout: 0,
    response_timeout: 0,
    short: 0,
    wrong_bytes: 0,
    wrong_status: 0,
    malformed: 0,
    cut_off_at_end: 0,
    local_limit: 0,
    unexplained: 0,
};

/// An exchange that changes its messages in answer to request 20.
fn says_wrong(change: impl Fn(&mut Vec<Vec<u8>>) + Send + 'static) -> SocketAddr {
    let messages = move |number: u64, said: &mut Vec<Vec<u8>>| {
        if number == 20 {
            change(said);
        }
    };
    let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
    exchange(Habits { tamper, ..Habits::default() }).0
}

/// An exchange that changes the bytes of its answer to request 20.
fn sends_wrong(change: impl Fn(&mut Vec<u8>) + Send + 'static) -> SocketAddr {
    let wire = move |number: u64, bytes: &mut Vec<u8>| {
        if number == 20 {
            change(bytes);
        }
    };
    let tamper = Tamper { wire: Box::new(wire), ..Tamper::default() };
    exchange(Habits { tamper, ..Habits::default() }).0
}

/// Changes an acceptance.
fn in_acceptance(change: impl Fn(&mut weir_proto::ouch::Accepted)) -> impl Fn(&mut Vec<Vec<u8>>) {
    move |said| {
        let Ok((Outbound::Accepted(mut accepted), _)) = Outbound::decode(&said[0]) else {
            panic!("an acceptance")
        };
        change(&mut accepted);
        said[0].clear();
        Outbound::Accepted(accepted).encode(&mut said[0]);
    }
}

/// Every order of the run was answered right, or has a class.
fn expect(spec: &LoadSpec, expected: FailureCounts) -> weir_record::orders::OrdersLoadReport {
    let (report, orders) = report(spec);
    assert_eq!(report.failures, expected);
    assert_eq!(Some(report.messages + expected.errors()), spec.messages);
    orders
}

#[test]
fn a_wrong_field_fails_its_own_order_alone() {
    let changes: [fn(&mut weir_proto::ouch::Accepted); 7] = [
        |accepted| accepted.client_order_id.0[13] ^= 1,
        |accepted| accepted.side = if accepted.side == side::BUY { side::SELL } else { side::BUY },
        |accepted| accepted.quantity += 1,
        |accepted| accepted.price -= 1,
        |accepted| accepted.symbol.0[0] = b'X',
        |accepted| accepted.time_in_force = b'3',
        |accepted| accepted.order_state = b'?',
    ];
    for change in changes {
        for depth in [1, 4] {
            let address = says_wrong(in_acceptance(change));
            let spec = LoadSpec { depth, ..spec(address, 1, 100) };
            let orders = expect(&spec, FailureCounts { wrong_bytes: 1, ..NONE });
            assert_eq!((orders.received["A"], orders.inversions), (100, 0));
        }
    }
}

#[test]
fn a_refused_order_fails_alone() {
    let address = says_wrong(|said| {
        let Ok((Outbound::Accepted(accepted), _)) = Outbound::decode(&said[0]) else {
            panic!("an acceptance")
        };
        said[0].clear();
        let rejected = Rejected {
            timestamp_ns: accepted.timestamp_ns,
            user_ref_num: accepted.user_ref_num,
            reason: reject_reason::DESTINATION_CLOSED,
            client_order_id: accepted.client_order_id,
        };
        Outbound::Rejected(rejected).encode(&mut said[0]);
    });
    let orders = expect(&spec(address, 1, 100), FailureCounts { wrong_status: 1, ..NONE });
    assert_eq!((orders.received["A"], orders.received["J"]), (99, 1));
}

#[test]
fn an_answer_that_nobody_waits_for_ends_the_stream_and_a_new_one_begins() {
    // For another order, twice, and in an invalid form.
    let foreign = says_wrong(in_acceptance(|accepted| accepted.user_ref_num += 7));
    let doubled = says_wrong(|said| said.push(said[0].clone()));
    let no_message = says_wrong(|said| said[0].truncate(20));
    let unknown = says_wrong(|said| said[0][0] = b'!');
    for address in [foreign, no_message, unknown] {
        expect(&spec(address, 1, 100), FailureCounts { malformed: 1, ..NONE });
    }
    let (report, orders) = report(&spec(doubled, 1, 100));
    // The second answer follows the first: either nothing is in flight, or the next order.
    assert_eq!(report.failures, FailureCounts { malformed: 1, ..NONE });
    assert!(report.messages >= 99 && orders.received["A"] >= 100);
}

#[test]
fn a_message_sent_twice_under_one_number_is_told() {
    let address = sends_wrong(|bytes| bytes.extend_from_within(..));
    let (report, _) = report(&spec(address, 1, 100));
    assert_eq!(report.failures, FailureCounts { malformed: 1, ..NONE });
}

#[test]
fn an_answer_that_never_comes_is_a_timeout_and_its_order_goes_on_to_be_missed() {
    for address in [says_wrong(Vec::clear), sends_wrong(Vec::clear)] {
        let spec = LoadSpec { response_timeout: SOON, ..spec(address, 1, 100) };
        let orders = expect(&spec, FailureCounts { response_timeout: 1, ..NONE });
        assert_eq!(orders.inversions, 0);
        assert!(orders.shares.is_conserved());
    }
}

#[test]
fn answers_in_another_order_are_inversions() {
    let mut held: Vec<Vec<u8>> = Vec::new();
    let messages = move |number: u64, said: &mut Vec<Vec<u8>>| match number {
        20 => held = std::mem::take(said),
        21 => said.append(&mut held),
        _ => {}
    };
    let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
    let (address, _) = exchange(Habits { tamper, ..Habits::default() });
    let spec = LoadSpec { depth: 4, ..spec(address, 1, 100) };
    let orders = expect(&spec, FailureCounts { wrong_bytes: 1, ..NONE });
    assert_eq!((orders.inversions, orders.received["A"]), (1, 100));
}

#[test]
fn a_connection_that_ends_in_the_middle_of_a_message_is_short_and_its_answers_are_replayed() {
    // The server stops in the middle of a frame and closes.
    for kept in [0, 1, 2, 30, 66] {
        let (answered, host) = exchange(Habits::default());
        let address = serve(move |number, client| {
            let server = std::net::TcpStream::connect(answered).expect("the exchange is there");
            server.set_nodelay(true).expect("a TCP socket");
            forward(&client, &server, (number == 0).then_some(33 + 16 + 67 * 20 + kept));
        });
        let (report, orders) = report(&LoadSpec { depth: 4, ..spec(address, 1, 100) });
        let short = report.failures.short;
        assert_eq!(report.failures, FailureCounts { short, ..NONE });
        assert!((1..=4).contains(&short) && report.messages + short == 100, "{:?}", report.failures);
        // Answers to failed orders arrive with the replay, unless the orders never arrived.
        let host = lock(&host);
        let live = &host.account("C00001").live;
        assert_eq!(orders.received["A"], live.len() as u64);
        assert_eq!(orders.shares.live, live.values().map(|order| u64::from(order.left)).sum::<u64>());
    }
}

/// Forwards bytes between two sockets; closes both after `limit` bytes from the server.
fn forward(client: &std::net::TcpStream, server: &std::net::TcpStream, limit: Option<usize>) {
    use std::io::{Read, Write};
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = (&*client).read(&mut bytes) {
                if (&*server).write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
            let _ = server.shutdown(std::net::Shutdown::Both);
        });
        let (mut bytes, mut passed) = ([0; 4096], 0);
        while let Ok(count @ 1..) = (&*server).read(&mut bytes) {
            let count = limit.map_or(count, |limit| count.min(limit - passed));
            passed += count;
            if (&*client).write_all(&bytes[..count]).is_err() || limit == Some(passed) {
                break;
            }
        }
        let _ = client.shutdown(std::net::Shutdown::Write);
        let _ = server.shutdown(std::net::Shutdown::Both);
    });
}

#[test]
fn garbage_is_malformed() {
    for garbage in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], &[0, 0], &[0xff; 100], b"\0\x01R", b"\0\x02H!"]
    {
        let address = sends_wrong(move |bytes| *bytes = garbage.to_vec());
        expect(&spec(address, 1, 100), FailureCounts { malformed: 1, ..NONE });
    }
}

#[test]
fn an_exchange_that_never_answers_the_login_is_a_timeout() {
    let address = serve(|_, mut stream| {
        let mut bytes = [0; 100];
        while matches!(std::io::Read::read(&mut stream, &mut bytes), Ok(1..)) {}
    });
    let error = run(&LoadSpec { response_timeout: SOON, ..spec(address, 2, 10) }).expect_err("no login");
    let LoadError::Unreachable { reason, failures, .. } = error else { panic!("{error}") };
    assert!(reason.contains("was not logged in within 1s"), "{reason}");
    assert_eq!(failures.response_timeout, 2);
}

#[test]
fn a_refused_login_says_of_whom_and_why() {
    for (reject, words) in [
        (LoginReject::NotAuthorised, "the login of C00001 was refused: not authorised"),
        (LoginReject::SessionNotAvailable, "the login of C00001 was refused: session not available"),
    ] {
        let (address, _) = exchange(Habits { refuses: Some(reject), ..Habits::default() });
        let error = run(&spec(address, 1, 10)).expect_err("refused");
        let LoadError::Unreachable { reason, failures, .. } = error else { panic!("{error}") };
        assert_eq!((reason.as_str(), failures.refused), (words, 1));
    }
}

#[test]
fn an_account_whose_numbers_are_used_up_is_a_local_limit() {
    let host = Host::default().with_past("C00001", u32::MAX - 3, Vec::new());
    let (address, _) = exchange_of(host);
    let spec = LoadSpec { duration: Duration::from_secs(1), ..spec(address, 1, 10) };
    let (report, _) = report(&spec);
    assert_eq!(report.messages, 3);
    assert!(report.failures.local_limit > 0, "{:?}", report.failures);
}

#[test]
fn a_cancel_of_more_or_less_than_an_order_has_breaks_the_balance() {
    for change in [1_u32, u32::MAX] {
        let messages = move |_, said: &mut Vec<Vec<u8>>| {
            for message in said {
                if let Ok((Outbound::Canceled(mut canceled), _)) = Outbound::decode(message) {
                    canceled.quantity = canceled.quantity.wrapping_add(change).max(1);
                    message.clear();
                    Outbound::Canceled(canceled).encode(message);
                }
            }
        };
        let tamper = Tamper { messages: Box::new(messages), ..Tamper::default() };
        let (address, _) = exchange(Habits { tamper, ..Habits::default() });
        let mix = OrderMix { enter: 1, replace: 0, cancel: 1 };
        let (report, orders) = report(&with(spec(address, 1, 100), |orders| orders.mix = mix));
        assert!(report.failures.wrong_bytes > 30, "{:?}", report.failures);
        assert!(!orders.shares.is_conserved(), "{:?}", orders.shares);
    }
}
