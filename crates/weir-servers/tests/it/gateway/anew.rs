//! An exchange that begins another session: the open orders of the previous one expire, each once, and none of them
//! is sent again.

use weir_engine::{Config, Driver, Runtime};
use weir_proto::{
    ouch::{
        BrokenTrade, Canceled, Executed, Inbound, Outbound, Rejected, codes::cancel_reason,
        inbound_user_ref_num, reject_reason,
    },
    soup::LoginReject,
};
use weir_servers::{
    exchange::Mode,
    gateway::GatewayServer,
    journal::{self, Journal, JournalConfig, Level},
};
use weir_trading::Route;

use super::rig::{
    Folder, Script, Scripted, Trader, beside_each_other, counted, drivers, end_exchange, end_gateway,
    eventually, exchange_in, gateway, line_with, loopback, order, server, strict,
};

/// The client is informed that the rest of its order has expired.
pub fn expect_expired(trader: &mut Trader, number: u32, left: u32) {
    let Outbound::Canceled(Canceled { user_ref_num, quantity, reason, .. }) = trader.next() else {
        panic!("it has expired")
    };
    assert_eq!((user_ref_num, quantity, reason), (number, left, cancel_reason::TIMEOUT));
}

/// The client is informed that its order was never accepted.
pub fn expect_refused(trader: &mut Trader, number: u32) {
    let Outbound::Rejected(Rejected { user_ref_num, reason, .. }) = trader.next() else {
        panic!("it is refused")
    };
    assert_eq!((user_ref_num, reason), (number, reject_reason::DESTINATION_CLOSED));
}

pub fn expect_accepted(trader: &mut Trader, number: u32) {
    let next = trader.next();
    let Outbound::Accepted(accepted) = next else { panic!("{next:?} instead of {number} being accepted") };
    assert_eq!(accepted.user_ref_num, number);
}

/// The client's stream has no further messages.
pub fn expect_nothing_more(trader: &mut Trader) {
    trader.send(&[Inbound::AccountQuery]);
    let next = trader.next();
    assert!(matches!(next, Outbound::AccountQueryResponse { .. }), "{next:?}");
}

/// A gateway with four orders of one client: the first is open, the second has 60 shares left, the third is
/// unanswered, and there was no room for the fourth. The exchange gave them numbers from 41 on, and is gone.
fn with_open_orders(driver: Driver, venue: &Script, folder: &Folder) -> (GatewayServer, Trader) {
    let mut config = strict(1, venue.address(), folder);
    config.venues[0].limits.open_max = 3;
    let starting = std::thread::spawn(move || gateway(driver, 1, config));
    let mut session = venue.accept_session("FIRST", 1, 41);
    let gateway = starting.join().expect("it starts");
    let mut trader = Trader::login(&gateway, "C00001", 1);
    trader.send(&[1, 2, 3, 4].map(|number| order(number, 100)));
    assert!(matches!(trader.next(), Outbound::Rejected(rejected) if rejected.user_ref_num == 4));
    let raws = [0; 3].map(|_| session.next());
    raws[..2].iter().for_each(|raw| session.accept_order(raw));
    session.say(&executed(42, 40, 1));
    expect_accepted(&mut trader, 1);
    expect_accepted(&mut trader, 2);
    assert!(matches!(trader.next(), Outbound::Executed(executed) if executed.user_ref_num == 2));
    (gateway, trader)
}

/// The exchange refuses the requested session. Returns the probe for the session that it has.
fn look(venue: &Script) -> Scripted {
    let session = venue.accept();
    assert_eq!((session.login.session.as_str(), session.login.sequence), ("FIRST", 5));
    session.refuse(LoginReject::SessionNotAvailable);
    let look = venue.accept();
    assert_eq!((look.login.session.as_str(), look.login.sequence), ("", 0));
    look
}

#[test]
fn orders_of_a_session_that_is_over_expire_and_the_next_one_begins_with_the_first_number() {
    let found = [("FIRST", 1), ("FIRST", 2), ("SECOND", 1), ("SECOND", 9)];
    let all = drivers().into_iter().flat_map(|driver| found.map(|found| (driver, found)));
    beside_each_other(all, |(driver, (name, next))| {
        println!("{driver}: {name}, {next}");
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut trader) = with_open_orders(driver, &venue, &folder);
        let notices = gateway.control().events().expect("nobody has them");
        let mut session = look(&venue);
        session.let_in(name, next);
        session.answer_query(1);
        expect_expired(&mut trader, 1, 100);
        expect_expired(&mut trader, 2, 60);
        expect_refused(&mut trader, 3);
        line_with(&notices, &format!("session {name} after FIRST; 3 orders expired"));
        let upstream = gateway.control().upstreams().remove(0);
        assert_eq!(upstream.session.as_deref(), Some(name));
        assert_eq!((upstream.times_begun_anew, upstream.orders_expired), (1, 3));
        let stats = gateway.control().node_stats();
        assert_eq!((stats.upstreams_begun_anew, stats.orders_expired), (1, 3));
        // The client may have a message before the gateway has noticed that it is sent.
        eventually("nothing waits any more", || gateway.control().node_stats().backlog == 0);
        // Clients are informed as soon as the session has changed; orders are sent when its numbers are known.
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        // Their places are free, and their numbers too.
        for number in 5..=7 {
            trader.send(&[order(number, 100)]);
            let raw = session.next();
            assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(number - 4)));
            session.accept_order(&raw);
            expect_accepted(&mut trader, number);
        }
        expect_nothing_more(&mut trader);
        end_gateway(gateway);
    });
}

#[test]
fn an_exchange_that_knows_numbers_of_the_session_before_is_told_to_cancel_them() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let (gateway, mut trader) = with_open_orders(driver, &venue, &folder);
        let mut session = look(&venue);
        // It has lost the end of its journal.
        session.let_in("FIRST", 3);
        session.answer_query(42);
        let cancel = session.next();
        assert_eq!((cancel[0], inbound_user_ref_num(&cancel)), (b'X', Some(41)));
        expect_expired(&mut trader, 1, 100);
        expect_expired(&mut trader, 2, 60);
        expect_refused(&mut trader, 3);
        // Its answer has no addressee: the client already has one.
        session.say(&Outbound::Canceled(Canceled {
            timestamp_ns: 1,
            user_ref_num: 41,
            quantity: 100,
            reason: cancel_reason::USER,
        }));
        trader.send(&[order(5, 100)]);
        let raw = session.next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(42)));
        session.accept_order(&raw);
        expect_accepted(&mut trader, 5);
        end_gateway(gateway);
    });
}

/// The sessions of two workers, which first request the previous one.
fn in_next_session(venue: &Script) -> Vec<Scripted> {
    let mut sessions = Vec::new();
    while sessions.len() < 2 {
        let mut session = venue.accept();
        if session.login.session.is_blank() {
            session.let_in("NEXT", 1);
            session.answer_query(1);
            sessions.push(session);
        } else {
            session.refuse(LoginReject::SessionNotAvailable);
        }
    }
    sessions
}

#[test]
fn what_expired_is_told_once_however_often_the_gateway_is_started() {
    // The sending worker, whose journal is read first, is the client's own, a later one and an earlier one.
    let cases = [
        (Route::Own, "C00001", "G00001"),
        (Route::Other, "C00001", "G00002"),
        (Route::Other, "C00002", "G00001"),
    ];
    let all = drivers().into_iter().flat_map(|driver| cases.map(|case| (driver, case)));
    beside_each_other(all, |(driver, (route, client, user))| {
        println!("{driver}, {route}, {client}");
        let (venue, folder) = (Script::new(), Folder::new());
        let start = || {
            let mut config = strict(2, venue.address(), &folder);
            config.route = route;
            std::thread::spawn(move || gateway(driver, 2, config))
        };
        let is_it = |session: &Scripted| session.login.username.as_str() == user;
        let starting = start();
        let mut sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        sessions.sort_by_key(|session| !is_it(session));
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, client, 1);
        trader.send(&[order(5, 100), order(6, 100)]);
        let answered = sessions[0].next();
        sessions[0].next();
        sessions[0].accept_order(&answered);
        expect_accepted(&mut trader, 5);
        drop(trader);
        end_gateway(first);
        drop(sessions);

        let starting = start();
        let mut sessions = in_next_session(&venue);
        sessions.sort_by_key(|session| !is_it(session));
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, client, 1);
        expect_accepted(&mut trader, 5);
        expect_expired(&mut trader, 5, 100);
        expect_refused(&mut trader, 6);
        trader.send(&[order(7, 100)]);
        let raw = sessions[0].next();
        assert_eq!((raw[0], inbound_user_ref_num(&raw)), (b'O', Some(1)));
        sessions[0].accept_order(&raw);
        expect_accepted(&mut trader, 7);
        drop(trader);
        end_gateway(second);
        drop(sessions);

        let starting = start();
        let sessions = [0; 2].map(|_| {
            let mut session = venue.accept();
            assert_eq!(session.login.session.as_str(), "NEXT");
            assert_eq!(session.login.sequence, if is_it(&session) { 3 } else { 1 });
            let sequence = session.login.sequence;
            session.let_in("NEXT", sequence);
            session.answer_query(2);
            session
        });
        let third = starting.join().expect("it starts");
        let mut trader = Trader::login(&third, client, 1);
        expect_accepted(&mut trader, 5);
        expect_expired(&mut trader, 5, 100);
        expect_refused(&mut trader, 6);
        expect_accepted(&mut trader, 7);
        expect_nothing_more(&mut trader);
        drop((trader, sessions));
        end_gateway(third);
    });
}

#[test]
fn a_session_that_keeps_its_name_is_questioned_also_where_other_clients_have_had_nothing() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let start = || {
            // The first worker sends for clients of both.
            let mut config = strict(4, venue.address(), &folder);
            config.route = Route::Modulo;
            std::thread::spawn(move || gateway(driver, 2, config))
        };
        let is_first = |session: &Scripted| session.login.username.as_str() == "G00001";
        let starting = start();
        let mut sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        sessions.sort_by_key(|session| !is_first(session));
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = sessions[0].next();
        sessions[0].accept_order(&raw);
        expect_accepted(&mut trader, 1);
        drop(trader);
        end_gateway(first);
        drop(sessions);

        let starting = start();
        let mut sessions = Vec::new();
        while sessions.len() < 2 {
            let mut session = venue.accept();
            let asked = (session.login.session.as_str(), session.login.sequence);
            assert!(asked != ("DAY", 1) || !is_first(&session), "a new session has that too");
            if asked == ("DAY", 3) {
                session.refuse(LoginReject::SessionNotAvailable);
                continue;
            }
            session.let_in("DAY", 1);
            session.answer_query(1);
            sessions.push(session);
        }
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_expired(&mut trader, 1, 100);
        expect_nothing_more(&mut trader);
        drop((trader, sessions));
        end_gateway(second);
    });
}

/// Two workers; the first sends for clients of both, so after a restart everything is requested again.
fn start_shared(
    driver: weir_engine::Driver,
    venue: &Script,
    folder: &Folder,
) -> std::thread::JoinHandle<GatewayServer> {
    let mut config = strict(4, venue.address(), folder);
    config.route = Route::Modulo;
    std::thread::spawn(move || gateway(driver, 2, config))
}

/// The first worker's session of a restarted gateway: other connections are let in at what they request, until that
/// worker requests this.
fn next_of_first(venue: &Script, others: &mut Vec<Scripted>, asked: (&str, u64)) -> Scripted {
    loop {
        let mut session = venue.accept();
        if session.login.username.as_str() == "G00001" {
            assert_eq!((session.login.session.as_str(), session.login.sequence), asked);
            return session;
        }
        session.let_in("DAY", session.login.sequence);
        session.answer_query(1);
        others.push(session);
    }
}

#[test]
fn a_session_that_begins_anew_after_it_was_questioned_is_seen_before_anything_is_sent_in_it() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let starting = start_shared(driver, &venue, &folder);
        let mut sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        sessions.sort_by_key(|session| session.login.username.as_str() != "G00001");
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let raws = [sessions[0].next(), sessions[0].next()];
        sessions[0].accept_order(&raws[0]);
        expect_accepted(&mut trader, 1);
        drop(trader);
        end_gateway(first);
        drop(sessions);

        let starting = start_shared(driver, &venue, &folder);
        let mut others = Vec::new();
        let mut session = next_of_first(&venue, &mut others, ("DAY", 3));
        session.let_in("DAY", 3);
        assert_eq!(session.try_next(), None, "it is the one that is known, and asked for less");
        // Its journal is lost now.
        let mut session = next_of_first(&venue, &mut others, ("DAY", 1));
        session.let_in("DAY", 1);
        session.answer_query(1);
        session.beat();
        session.beat();
        assert_eq!(session.try_next(), None, "what has no answer is not sent again in another session");
        next_of_first(&venue, &mut others, ("DAY", 3)).refuse(LoginReject::SessionNotAvailable);
        // This could be the last message of the known session: the next one is requested once more.
        let mut session = next_of_first(&venue, &mut others, ("", 0));
        session.let_in("DAY", 2);
        assert!(
            session.is_left(),
            "nothing is sent in it, and the next login is not refused because of this one"
        );
        next_of_first(&venue, &mut others, ("DAY", 3)).refuse(LoginReject::SessionNotAvailable);
        let mut session = next_of_first(&venue, &mut others, ("", 0));
        session.let_in("DAY", 2);
        session.answer_query(1);
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_expired(&mut trader, 1, 100);
        expect_refused(&mut trader, 2);
        trader.send(&[order(3, 100)]);
        let raw = session.next();
        assert_eq!(inbound_user_ref_num(&raw), Some(1));
        session.accept_order(&raw);
        expect_accepted(&mut trader, 3);
        expect_nothing_more(&mut trader);
        drop((trader, session, others));
        end_gateway(second);
    });
}

#[test]
fn a_session_that_proves_itself_again_after_a_pause_goes_on() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let starting = start_shared(driver, &venue, &folder);
        let mut sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        sessions.sort_by_key(|session| session.login.username.as_str() != "G00001");
        let first = starting.join().expect("it starts");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 100)]);
        let raws = [sessions[0].next(), sessions[0].next()];
        sessions[0].accept_order(&raws[0]);
        expect_accepted(&mut trader, 1);
        drop(trader);
        end_gateway(first);
        drop(sessions);

        let starting = start_shared(driver, &venue, &folder);
        let mut others = Vec::new();
        for next in [1, 2] {
            next_of_first(&venue, &mut others, ("DAY", 3)).let_in("DAY", 3);
            let mut session = next_of_first(&venue, &mut others, ("DAY", next));
            session.let_in("DAY", next);
            if next == 1 {
                session.answer_query(1);
                session.beat();
                session.beat();
                continue;
            }
            session.accept_order(&raws[0]);
            session.answer_query(2);
            assert_eq!(session.next(), raws[1], "it has no answer, and is sent again");
            session.accept_order(&raws[1]);
            others.push(session);
        }
        let second = starting.join().expect("it starts");
        let mut trader = Trader::login(&second, "C00001", 1);
        expect_accepted(&mut trader, 1);
        expect_accepted(&mut trader, 2);
        expect_nothing_more(&mut trader);
        drop((trader, others));
        end_gateway(second);
    });
}

#[test]
fn an_exchange_that_is_started_without_its_journal_has_begun_another_session() {
    for driver in drivers() {
        let (venue, folder) = (exchange_in(Mode::Match, driver, loopback()), Folder::new());
        let address = venue.address().clone();
        let gateway = gateway(driver, 1, strict(1, address.clone(), &folder));
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100), order(2, 50)]);
        expect_accepted(&mut trader, 1);
        expect_accepted(&mut trader, 2);
        end_exchange(venue);
        let venue = exchange_in(Mode::Match, driver, address);
        expect_expired(&mut trader, 1, 100);
        expect_expired(&mut trader, 2, 50);
        eventually("it is up again", || gateway.control().upstreams()[0].is_open);
        trader.send(&[order(3, 100)]);
        expect_accepted(&mut trader, 3);
        expect_nothing_more(&mut trader);
        drop(trader);
        end_gateway(gateway);
        end_exchange(venue);
    }
}

/// An exchange's message that this many shares of an order were executed.
pub fn executed(user_ref_num: u32, quantity: u32, match_number: u64) -> Outbound {
    let (timestamp_ns, price, liquidity) = (1, 10_000, b'A');
    Outbound::Executed(Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number })
}

fn broken(user_ref_num: u32, match_number: u64) -> Outbound {
    let client_order_id = "ORDER".parse().expect("an id");
    let (timestamp_ns, reason) = (1, b'E');
    Outbound::BrokenTrade(BrokenTrade { timestamp_ns, user_ref_num, match_number, reason, client_order_id })
}

/// The next message is about a trade of this order: returns whether it is executed or broken, and the trade's number.
fn next_trade(trader: &mut Trader, number: u32) -> (char, u64) {
    match trader.next() {
        Outbound::Executed(executed) if executed.user_ref_num == number => ('E', executed.match_number),
        Outbound::BrokenTrade(broken) if broken.user_ref_num == number => ('B', broken.match_number),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_exchange_says_about_a_trade_of_an_order_that_is_over_is_not_lost() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let start = || {
            let config = strict(1, venue.address(), &folder);
            std::thread::spawn(move || gateway(driver, 1, config))
        };
        let starting = start();
        let mut session = venue.accept_session("DAY", 1, 41);
        let first = starting.join().expect("it starts");
        let notices = first.control().events().expect("nobody has them");
        let mut trader = Trader::login(&first, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        for message in [executed(41, 100, 7), executed(41, 50, 8), broken(41, 7)] {
            session.say(&message);
        }
        assert_eq!([0; 3].map(|_| next_trade(&mut trader, 1)), [('E', 7), ('E', 8), ('B', 7)]);
        line_with(&notices, "more shares of an order than were left");
        assert_eq!(counted(&first, "weir_overfills_total"), 1, "only the second execution has too many");
        let expected = trader.expected;
        drop(trader);
        end_gateway(first);
        drop(session);

        let starting = start();
        let mut session = venue.accept();
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 6));
        session.let_in("DAY", 6);
        session.answer_query(42);
        session.say(&broken(41, 8));
        let second = starting.join().expect("it starts");
        let notices = second.control().events().expect("nobody has them");
        let mut trader = Trader::login(&second, "C00001", expected);
        assert_eq!(next_trade(&mut trader, 1), ('B', 8));
        // An order that did not come from this gateway.
        let stray = executed(40, 77, 9);
        session.say(&stray);
        line_with(&notices, "order 40, which is not known");
        expect_nothing_more(&mut trader);
        drop(trader);
        end_gateway(second);
        let mut payload = 8_u64.to_le_bytes().to_vec();
        stray.encode(&mut payload);
        let is_in = |path: std::path::PathBuf| {
            std::fs::read(path).is_ok_and(|bytes| bytes.windows(payload.len()).any(|part| part == payload))
        };
        let files = std::fs::read_dir(&folder.0).expect("it is there");
        assert!(files.flatten().any(|file| is_in(file.path())), "somebody can settle it");
    });
}

#[test]
fn an_execution_of_more_shares_than_were_left_is_passed_on_and_told() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        let config = strict(1, venue.address(), &folder);
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let gateway = starting.join().expect("it starts");
        let notices = gateway.control().events().expect("nobody has them");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 1);
        session.say(&executed(1, 150, 1));
        assert!(matches!(trader.next(), Outbound::Executed(executed) if executed.quantity == 150));
        line_with(&notices, "more shares of an order than were left");
        assert_eq!(counted(&gateway, "weir_overfills_total"), 1);
        end_gateway(gateway);
    });
}

/// The largest number of sessions that a journal can count.
const COUNTED_MAX: u16 = 8191;

/// Leaves a journal in which an exchange has begun that many, the last one with the name FIRST.
fn count_sessions(folder: &Folder) {
    let runtime = Runtime::new(&Config::with_driver(Driver::Poll)).expect("it runs everywhere");
    runtime.block_on(async {
        let recovered = journal::recover(&folder.0, 0, &mut |_, _| Ok(())).expect("it is empty");
        let config = JournalConfig::new(folder.0.clone(), 0, Level::Os);
        let config = JournalConfig { segment_bytes: 64 << 10, ..config };
        let journal = Journal::open(config, &recovered).await.expect("it can be opened");
        let payload = [&COUNTED_MAX.to_le_bytes()[..], b"FIRST     "].concat();
        journal.append(64, 0, 1, &[&payload]).expect("there is room");
        journal.close().await;
        assert!(!journal.is_failed());
    });
}

#[test]
fn a_session_that_the_journal_cannot_count_is_not_joined_and_the_way_out_is_told() {
    beside_each_other(drivers(), |driver| {
        let (venue, folder) = (Script::new(), Folder::new());
        count_sessions(&folder);
        let config = strict(1, venue.address(), &folder);
        let gateway = GatewayServer::start(server(driver, 1), config).expect("the driver runs here");
        let notices = gateway.control().events().expect("nobody has them");
        let known = venue.accept();
        assert_eq!(known.login.session.as_str(), "FIRST");
        known.refuse(LoginReject::SessionNotAvailable);
        let mut other = venue.accept();
        other.let_in("SECOND", 1);
        let line = line_with(&notices, "can count no more of them");
        assert!(line.contains("end the session with clients"), "{line}");
        assert_eq!(other.try_next(), None, "nothing is asked of it");
        let mut trader = Trader::login(&gateway, "C00001", 1);
        trader.send(&[order(1, 100)]);
        expect_refused(&mut trader, 1);
        // The last counted session can be joined as usual.
        let mut session = venue.accept_session("FIRST", 1, 1);
        eventually("it is up", || gateway.control().upstreams()[0].is_open);
        trader.send(&[order(2, 100)]);
        let raw = session.next();
        session.accept_order(&raw);
        expect_accepted(&mut trader, 2);
        end_gateway(gateway);
    });
}
