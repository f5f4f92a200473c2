//! A gateway that is started again knows what it has sent and what its clients have.

use weir_proto::ouch::{Outbound, inbound_user_ref_num};
use weir_servers::{gateway::GatewayConfig, journal::Level};
use weir_trading::Route;

use super::rig::{Folder, Script, Trader, drivers, end_gateway, gateway, order};

fn config(venue: &Script, folder: &Folder, route: Route) -> GatewayConfig {
    GatewayConfig {
        journal: Some((folder.0.clone(), Level::Os)),
        route,
        ..GatewayConfig::demo(2, venue.address())
    }
}

#[test]
fn an_order_without_an_answer_is_sent_again_and_an_answer_is_not_asked_for_twice() {
    for (driver, route) in
        drivers().into_iter().flat_map(|driver| [(driver, Route::Own), (driver, Route::Other)])
    {
        println!("{driver}, {route}");
        let (venue, folder) = (Script::new(), Folder::new());
        let first_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, first_config));
        let sessions = [venue.accept_session("DAY", 1, 1), venue.accept_session("DAY", 1, 1)];
        let first_gateway = starting.join().expect("it starts");
        let user = if route == Route::Own { "G00001" } else { "G00002" };
        let is_it = |session: &super::rig::Scripted| session.login.username.as_str() == user;
        let [mut session, other]: [_; 2] = {
            let mut sessions = sessions;
            sessions.sort_by_key(|session| !is_it(session));
            sessions
        };
        let mut trader = Trader::login(&first_gateway, "C00001", 1);
        trader.send(&[order(5, 100), order(6, 100)]);
        let answered = session.next();
        let unanswered = session.next();
        session.accept_order(&answered);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 5));
        drop(trader);
        end_gateway(first_gateway);
        drop((session, other));

        let second_config = config(&venue, &folder, route);
        let starting = std::thread::spawn(move || gateway(driver, 2, second_config));
        let mut sessions = vec![venue.accept(), venue.accept()];
        sessions.sort_by_key(|session| !is_it(session));
        let mut other = sessions.pop().expect("two");
        let mut session = sessions.pop().expect("two");
        // The query's answer was the first message, the order's the second.
        assert_eq!((session.login.session.as_str(), session.login.sequence), ("DAY", 3));
        other.let_in("DAY", other.login.sequence);
        other.answer_query(1);
        session.let_in("DAY", 3);
        session.answer_query(2);
        assert_eq!(session.next(), unanswered, "the same, with the same number");
        session.accept_order(&unanswered);
        let second_gateway = starting.join().expect("it starts");
        let mut trader = Trader::login(&second_gateway, "C00001", 1);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 6));
        // What was taken in before is not taken in twice.
        trader.send(&[order(5, 100), order(6, 100), order(7, 100)]);
        let next = session.next();
        assert_eq!(inbound_user_ref_num(&next), Some(3));
        session.accept_order(&next);
        assert!(matches!(trader.next(), Outbound::Accepted(accepted) if accepted.user_ref_num == 7));
        drop((trader, session, other));
        end_gateway(second_gateway);
    }
}
