//! The end of a gateway in good order.

use weir_proto::soup::END_OF_SESSION;
use weir_servers::{gateway::GatewayConfig, journal::Level};

use super::rig::{Folder, Script, Trader, drivers, gateway, order};

#[test]
fn a_drain_tells_clients_that_the_session_is_over_leaves_the_exchange_and_cannot_be_joined_again() {
    for driver in drivers() {
        let (venue, folder) = (Script::new(), Folder::new());
        let config = GatewayConfig {
            journal: Some((folder.0.clone(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..GatewayConfig::demo(2, venue.address())
        };
        let again = config.clone();
        let starting = std::thread::spawn(move || gateway(driver, 1, config));
        let mut session = venue.accept_session("DAY", 1, 1);
        let first = starting.join().expect("it starts");
        let mut traders = ["C00001", "C00002"].map(|client| Trader::login(&first, client, 1));
        traders[0].send(&[order(1, 100)]);
        let raw = session.next();
        // What is under way comes to its end first.
        first.drain();
        session.accept_order(&raw);
        traders[0].next();
        for trader in &mut traders {
            assert_eq!(trader.rest(), [(END_OF_SESSION, Vec::new())]);
        }
        assert!(session.is_left());
        drop((traders, session));
        first.join();

        let starting = std::thread::spawn(move || gateway(driver, 1, again));
        let mut session = venue.accept();
        let next = session.login.sequence;
        session.let_in("DAY", next);
        session.answer_query(2);
        let second = starting.join().expect("it starts");
        assert_eq!(Trader::try_login_to(&second, "WEIRGW0001", "C00001", 2).err(), Some(b'S'));
        let trader = Trader::try_login_to(&second, "WEIRGW0002", "C00001", 1);
        assert_eq!(trader.map(|trader| trader.expected).ok(), Some(1), "messages begin anew");
        second.drain();
        second.join();
    }
}
