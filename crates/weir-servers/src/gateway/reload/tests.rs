//! What a reload changes, and what it refuses.

use super::*;
use crate::{
    gateway::{DropCopyConfig, account_limits::symbol},
    orders::{LoginLimits, accounts_named, demo_accounts},
};

fn running() -> InForce {
    let mut config = GatewayConfig::demo(2, "127.0.0.1:9101".parse().expect("an address"));
    config.venues.push(VenueConfig { name: "OTHER".into(), ..config.venues[0].clone() });
    config.symbols = vec![(symbol("A").expect("a symbol"), 0), (symbol("B").expect("a symbol"), 1)];
    InForce { config, listeners: Listeners::default() }
}

/// Accounts as a start has numbered them: a third one left, and the journal has a fourth one.
fn planned(change: impl FnOnce(&mut InForce)) -> Result<Plan, Vec<String>> {
    let running = running();
    let mut wanted = running.clone();
    change(&mut wanted);
    let number = |name: &Name<6>| {
        let number: u32 = name.as_str().strip_prefix('C')?.parse().ok()?;
        (number <= 3).then(|| AccountId(number - 1))
    };
    let known = Known {
        account: &number,
        is_in_journal: &|name| name.as_str() == "C00004",
        empty: (AccountId(4), 2),
    };
    plan(&running, &wanted, &known)
}

fn refused(change: impl FnOnce(&mut InForce)) -> Vec<String> {
    planned(change).map(|plan| plan.lines).expect_err("it cannot change")
}

fn add(wanted: &mut InForce, accounts: impl IntoIterator<Item = AccountConfig>) {
    wanted.config.accounts.extend(accounts);
    wanted.config.account_limits.resize(wanted.config.accounts.len(), None);
}

fn account(number: usize) -> AccountConfig {
    demo_accounts(10).remove(number - 1)
}

#[test]
fn the_same_configuration_changes_nothing_and_neither_does_another_order() {
    let plan = planned(|wanted| {
        wanted.config.accounts.reverse();
        wanted.config.venues.reverse();
        wanted.config.symbols =
            vec![(symbol("A").expect("a symbol"), 1), (symbol("B").expect("a symbol"), 0)];
        wanted.config.default_venue = Some(1);
    })
    .expect("nothing is refused");
    assert_eq!(plan.lines, Vec::<String>::new());
    assert!(plan.changed.is_empty() && plan.added.is_empty() && plan.of_workers.removed.is_empty());
    assert!(plan.of_workers.routes.is_none() && plan.of_workers.venues.is_empty());
}

#[test]
fn accounts_are_added_changed_removed_and_come_back() {
    let plan = planned(|wanted| {
        wanted.config.accounts[0].password_hash = "another".into();
        wanted.config.accounts.remove(1);
        wanted.config.account_limits.remove(1);
        add(wanted, [account(3), account(5)]);
        wanted.config.account_limits[2] = Some(Limits { shares_max: Some(5), ..Limits::default() });
        wanted.config.limits.shares_max = Some(9);
    })
    .expect("nothing is refused");
    let ids: Vec<u32> = plan.changed.iter().map(|(id, _)| id.0).collect();
    assert_eq!((ids, plan.added[0].name.to_string()), (vec![0, 2], "C00005".to_owned()));
    assert_eq!(plan.of_workers.removed, [(AccountId(1), account(2).name)]);
    let limited: Vec<(u32, bool)> =
        plan.limits.1.iter().map(|(id, limits)| (id.0, limits.is_some())).collect();
    assert_eq!((limited, plan.limits.0.shares_max), (vec![(0, false), (2, false), (4, true)], Some(9)));
    assert_eq!(
        plan.lines,
        [
            "accounts added: C00005",
            "accounts back: C00003",
            "accounts removed: C00002",
            "accounts with another password or other options: C00001",
            "other common limits",
            "accounts with other separate limits: C00005",
        ]
    );
}

#[test]
fn an_account_of_the_journal_and_too_many_new_ones_need_a_start() {
    let errors = refused(|wanted| add(wanted, [account(4)].into_iter().chain(accounts_named('D', 3))));
    assert!(
        errors.len() == 2 && errors[0].starts_with("account C00004: the journal has records"),
        "{errors:?}"
    );
    assert!(errors[1].starts_with("3 accounts are new, and there is room for 2"), "{errors:?}");
}

#[test]
fn everything_that_only_a_start_changes_is_named_at_once() {
    let errors = refused(|wanted| {
        wanted.listeners.orders = Some("127.0.0.1:1".into());
        wanted.config.session = "OTHER00001".parse().expect("a name");
        wanted.config.numbers_restart = true;
        wanted.config.logins = LoginLimits::OFF;
        wanted.config.hop_times = false;
        wanted.config.journal = Some(("j".into(), crate::journal::Level::Os));
        wanted.config.drop_copy = Some(DropCopyConfig {
            listen: "127.0.0.1:2".parse().expect("an address"),
            session: "OTHER00001".parse().expect("a name"),
            directory: None,
            firms: Vec::new(),
        });
        wanted.config.references = vec![(symbol("A").expect("a symbol"), 5)];
        wanted.config.venues[0].limits.open_max = 5;
        wanted.config.venues[1].name = "NEW".into();
    });
    let begins = ["listen.orders: ", "session: ", "numbers: ", "logins: ", "hop_times: ", "journal: "];
    let begins = begins.into_iter().chain(["drop_copy: ", "[[reference]]: "]);
    let venues = [
        "venue OTHER: only a start removes",
        "venue DEMO: open_orders_max: ",
        "venue NEW: only a start adds",
    ];
    let begins: Vec<&str> = begins.chain(venues).collect();
    assert_eq!(errors.len(), begins.len(), "{errors:?}");
    assert!(errors.iter().zip(begins).all(|(error, begin)| error.starts_with(begin)), "{errors:?}");
}

#[test]
fn a_venue_moves_with_its_session_or_is_left() {
    let step = |change: fn(&mut VenueConfig)| {
        let plan = planned(|wanted| change(&mut wanted.config.venues[1])).expect("nothing is refused");
        let [VenueChange { venue: 1, step, .. }] = plan.of_workers.venues.as_slice() else {
            panic!("{plan:?}")
        };
        (*step, plan.lines.clone(), plan.of_workers.leaves_venues())
    };
    let (is, lines, leaves) = step(|venue| venue.password = "SECRET".parse().expect("a password"));
    assert!(is == VenueStep::Stay && !leaves && !lines[0].contains("SECRET"), "{lines:?}");
    let (is, lines, leaves) = step(|venue| {
        venue.moved_from = vec![venue.address.clone()];
        venue.address = "127.0.0.1:9102".parse().expect("an address");
    });
    let expected = "venue OTHER: moved from 127.0.0.1:9101 to 127.0.0.1:9102; its session continues";
    assert_eq!((is, lines, leaves), (VenueStep::Move, vec![expected.to_owned()], false));
    let (is, _, leaves) = step(|venue| venue.address = "127.0.0.1:9102".parse().expect("an address"));
    assert_eq!((is, leaves), (VenueStep::Leave, true));
}

#[test]
fn the_venue_that_a_symbol_leaves_is_known_whatever_its_case() {
    let plan = planned(|wanted| {
        wanted.config.symbols =
            vec![(symbol("b").expect("a symbol"), 1), (symbol("C").expect("a symbol"), 0)];
        wanted.config.default_venue = Some(1);
    })
    .expect("nothing is refused");
    let routes = plan.of_workers.routes.expect("they change");
    let left = |name: &str| routes.left_by(&symbol(name).expect("a symbol").canonical());
    // A goes to the other venue now, like every symbol without a route; C has one that keeps it.
    assert_eq!([left("A"), left("Z"), left("C")], [Some(0), Some(0), None]);
    // One of two spellings of B leaves the venue.
    assert_eq!(left("B"), Some(0));
    let stays = planned(|wanted| wanted.config.default_venue = None).expect("nothing is refused");
    let routes = stays.of_workers.routes.expect("they change");
    assert_eq!(routes.left_by(&symbol("B").expect("a symbol").canonical()), None);
}
