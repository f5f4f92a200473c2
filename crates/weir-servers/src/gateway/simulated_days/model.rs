//! Compares the messages of clients and of venues: no order is executed twice, no answer is lost, nothing is reported
//! that did not happen, no stopped account trades, and no limit is exceeded.
//!
//! A venue's messages that the gateway does not hear, in a session that another one follows, are not available later.
//! Only these are excused, and it is recorded when the gateway has heard which session: see [`Truth::hear`].

use std::collections::{BTreeMap, BTreeSet};

use weir_proto::ouch::{Outbound, codes::cancel_reason, original_user_ref_num, reject_reason};

use super::parties::Client;

/// A venue and one of its sessions.
type Place = (usize, usize);
/// An order: an account of the session, and the number there.
type Number = (Place, u32, u32);

/// A message arrives within this time, and is stored.
const ARRIVES_NS: u64 = 250_000_000;
/// The price of every order with a limit and of every trade, in units of the currency.
const UNITS_PER_SHARE: f64 = 10.0;

/// An event of an order at a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// It is accepted with this many shares.
    Live(u32),
    Filled(u32, u64),
    Less(u32),
    /// It has this many shares now.
    Left(u32),
    Over,
}

/// One message of a venue.
#[derive(Clone, Debug)]
struct Said {
    t_ns: u64,
    place: Place,
    /// The worker whose session it was sent in.
    worker: u32,
    name: String,
    event: Event,
}

impl Said {
    /// The account of its order.
    fn account(&self) -> Option<u32> {
        self.name.split('-').next()?.parse().ok()
    }
}

/// The limits of every account, in units of the currency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// For open and executed orders together.
    pub(super) exposure_max: f64,
    /// For one order.
    pub(super) notional_max: f64,
}

impl Bounds {
    /// No account is limited.
    pub(super) const NONE: Self = Self { exposure_max: f64::INFINITY, notional_max: f64::INFINITY };
}

/// The messages of the venues, and the actions on them and on the gateway.
#[derive(Default)]
pub(super) struct Truth {
    names: BTreeMap<Number, String>,
    /// In order of time, for each session.
    said: Vec<Said>,
    ended_ns: BTreeMap<Place, u64>,
    /// By session and worker: moments at which the gateway had an open line to it, and a working journal.
    heard_ns: BTreeMap<(Place, u32), Vec<u64>>,
    /// Starts with other routes than before, or without an account: the affected open orders are given up.
    moved_ns: Vec<(u64, Option<u32>)>,
    /// Who was stopped or released; all accounts if none is given.
    kills: Vec<(u64, Option<u32>, bool)>,
    /// When sessions of the trading day began, and when they ended; none: there are no such sessions.
    sessions: Vec<(u64, bool)>,
    /// The names of replaces that the gateway has sent, according to its journals, and of those that arrived at a
    /// venue.
    pub(super) sent_on: BTreeSet<String>,
    pub(super) arrived: BTreeSet<String>,
}

impl Truth {
    pub(super) fn take(&mut self, place: Place, worker: u32, t_ns: u64, message: &[u8]) {
        let (message, _) = Outbound::decode(message).expect("a message");
        let Some(number) = message.user_ref_num() else { return };
        let live = |state: u8, quantity| if state == b'L' { Event::Live(quantity) } else { Event::Over };
        let say = |name: String, event| Said { t_ns, place, worker, name, event };
        let event = match &message {
            Outbound::Accepted(accepted) => {
                let name = accepted.client_order_id.as_str().trim_end().to_owned();
                self.names.insert((place, worker, number), name);
                live(accepted.order_state, accepted.quantity)
            }
            Outbound::Replaced(replaced) => {
                let name = replaced.client_order_id.as_str().trim_end().to_owned();
                self.names.insert((place, worker, number), name);
                let original = self.names.get(&(place, worker, replaced.original_user_ref_num));
                self.said.extend(original.map(|original| say(original.clone(), Event::Over)));
                live(replaced.order_state, replaced.quantity)
            }
            Outbound::Executed(executed) => Event::Filled(executed.quantity, executed.match_number),
            Outbound::Canceled(canceled) => Event::Less(canceled.quantity),
            Outbound::Modified(modified) => Event::Left(modified.quantity),
            _ => return,
        };
        let name = self.names.get(&(place, worker, number));
        self.said.extend(name.map(|name| say(name.clone(), event)));
    }

    /// Records that another session followed this one.
    pub(super) fn end(&mut self, place: Place, at_ns: u64) {
        self.ended_ns.insert(place, at_ns);
    }

    /// Records that a worker now hears this session's messages and stores them.
    pub(super) fn hear(&mut self, place: Place, worker: u32, now_ns: u64) {
        self.heard_ns.entry((place, worker)).or_default().push(now_ns);
    }

    /// Symbols are routed elsewhere from now on; orders open at the former venue are given up.
    pub(super) fn move_routes(&mut self, now_ns: u64) {
        self.moved_ns.push((now_ns, None));
    }

    /// An account is missing from now on; its open orders are given up.
    pub(super) fn remove(&mut self, now_ns: u64, account: u32) {
        self.moved_ns.push((now_ns, Some(account)));
    }

    /// Records that an account, or all accounts, are stopped or released.
    pub(super) fn kill(&mut self, now_ns: u64, account: Option<u32>, is_on: bool) {
        self.kills.push((now_ns, account, is_on));
    }

    /// Records that a session of the trading day begins or ends.
    pub(super) fn turn_session(&mut self, now_ns: u64, is_open: bool) {
        self.sessions.push((now_ns, is_open));
    }

    /// Since when no session of the trading day is open at a time.
    pub(super) fn closed_since(&self, t_ns: u64) -> Option<u64> {
        let until = self.sessions.iter().filter(|(at_ns, _)| *at_ns <= t_ns);
        until.fold(None, |since: Option<u64>, (at_ns, is_open)| (!is_open).then(|| since.unwrap_or(*at_ns)))
    }

    /// Whether one has begun or ended so recently that it may not have been stored.
    pub(super) fn has_just_turned(&self, now_ns: u64) -> bool {
        self.sessions.last().is_some_and(|(at_ns, _)| at_ns + ARRIVES_NS >= now_ns)
    }

    /// Since when an account, or all accounts, are stopped by their own switch at a time.
    pub(super) fn switched_since(&self, account: Option<u32>, t_ns: u64) -> Option<u64> {
        let own = self.kills.iter().filter(|(at_ns, of, _)| *at_ns <= t_ns && *of == account);
        own.fold(None, |since: Option<u64>, (at_ns, _, is_on)| is_on.then(|| since.unwrap_or(*at_ns)))
    }

    /// Whether that switch was turned, on or off, so recently that it may not have been stored.
    pub(super) fn has_just_switched(&self, account: Option<u32>, now_ns: u64) -> bool {
        self.kills.iter().any(|(at_ns, of, _)| *of == account && at_ns + ARRIVES_NS >= now_ns)
    }

    fn stopped_since(&self, account: u32, t_ns: u64) -> Option<u64> {
        let switches = [None, Some(account)].into_iter().filter_map(|of| self.switched_since(of, t_ns));
        switches.chain(self.closed_since(t_ns)).min()
    }

    /// Whether the gateway must have heard a message: because the session continues, or because it was hearing it
    /// when the order was given up, or when the session ended.
    fn is_heard(&self, said: &Said, given_up_ns: Option<u64>) -> bool {
        if given_up_ns.is_none() && !self.ended_ns.contains_key(&said.place) {
            return true;
        }
        let within = said.t_ns + ARRIVES_NS..=given_up_ns.unwrap_or(u64::MAX);
        let moments = self.heard_ns.get(&(said.place, said.worker));
        moments.is_some_and(|moments| moments.iter().any(|at_ns| within.contains(at_ns)))
    }

    /// The open shares, by order.
    fn open(&self) -> BTreeMap<(Place, &str), u32> {
        let mut open = BTreeMap::new();
        for said in &self.said {
            apply(open.entry((said.place, said.name.as_str())).or_default(), said.event);
        }
        open.retain(|(place, _), shares| *shares > 0 && !self.ended_ns.contains_key(place));
        open
    }

    /// Whether a client's numbered message needs no answer: it is a replace that a venue has ignored, or one whose
    /// original ended before it was sent. In both cases it was sent, because the gateway refuses by name whatever it
    /// does not send; and its original had ended by the time when everything had long been sent.
    fn needs_no_answer(&self, account: u32, name: &str, raw: &[u8]) -> bool {
        let original = original_user_ref_num(raw).map(|original| format!("{account}-{original}"));
        let Some(original) = original.filter(|_| raw[0] == b'U') else { return false };
        self.arrived.contains(name) || self.sent_on.contains(name) && !self.is_live_at_the_end(&original)
    }

    /// Whether an order was open when all accounts were stopped for good.
    fn is_live_at_the_end(&self, name: &str) -> bool {
        let stopped_ns = self.kills.last().map_or(u64::MAX, |(at_ns, ..)| *at_ns);
        let goes_on = |said: &&Said| said.t_ns <= stopped_ns && !self.ended_ns.contains_key(&said.place);
        let mut shares = 0;
        for said in self.said.iter().filter(|said| said.name == name).filter(goes_on) {
            apply(&mut shares, said.event);
        }
        shares > 0
    }

    /// The sides of trades that venues have reported.
    pub(super) fn fills(&self) -> u64 {
        self.said.iter().filter(|said| matches!(said.event, Event::Filled(..))).count() as u64
    }

    /// An order that is open in a continuing session.
    pub(super) fn live(&self) -> Option<String> {
        self.open().first_key_value().map(|(order, shares)| format!("{order:?} with {shares} shares"))
    }
}

fn apply(shares: &mut u32, event: Event) {
    *shares = match event {
        Event::Live(live) | Event::Left(live) => live,
        Event::Filled(less, _) | Event::Less(less) => shares.saturating_sub(less),
        Event::Over => 0,
    };
}

/// One order, from its client's messages.
#[derive(Default)]
struct Heard {
    answers: u32,
    fills: BTreeMap<(u32, u64), i32>,
    left: i64,
    has_expired: bool,
    /// The gateway has refused it itself.
    is_refused: bool,
    /// Trades reported after the gateway had ended the order itself: an unreachable venue may have executed them.
    late: BTreeSet<u64>,
}

fn heard(client: &Client) -> Result<BTreeMap<u32, Heard>, String> {
    let mut orders: BTreeMap<u32, Heard> = BTreeMap::new();
    for raw in client.stream() {
        let (message, _) = Outbound::decode(raw).expect("a message");
        let Some(number) = message.user_ref_num() else { continue };
        if let Outbound::Replaced(replaced) = &message {
            orders.entry(replaced.original_user_ref_num).or_default().left = 0;
        }
        let order = orders.entry(number).or_default();
        match &message {
            Outbound::Accepted(accepted) => {
                (order.answers, order.left) = (order.answers + 1, accepted.quantity.into());
            }
            Outbound::Replaced(replaced) => {
                (order.answers, order.left) = (order.answers + 1, replaced.quantity.into());
            }
            Outbound::Rejected(rejected) => {
                order.answers += 1;
                let of_gateway = [reject_reason::DESTINATION_CLOSED, reject_reason::HALTED];
                order.is_refused = of_gateway.contains(&rejected.reason);
            }
            Outbound::Executed(executed) => {
                if order.has_expired || order.is_refused {
                    order.late.insert(executed.match_number);
                } else {
                    order.left -= i64::from(executed.quantity);
                }
                *order.fills.entry((executed.quantity, executed.match_number)).or_default() += 1;
            }
            Outbound::Canceled(canceled) => {
                order.left -= i64::from(canceled.quantity);
                order.has_expired |= canceled.reason == cancel_reason::TIMEOUT;
            }
            Outbound::Modified(modified) => order.left = modified.quantity.into(),
            _ => {}
        }
        if order.left < 0 {
            let all = client.stream().iter().filter_map(|raw| Some(Outbound::decode(raw).ok()?.0));
            let of_it: Vec<_> = all.filter(|message| message.user_ref_num() == Some(number)).collect();
            return Err(format!("client {}: more shares than order {number} had: {of_it:?}", client.account));
        }
    }
    Ok(orders)
}

/// Trades that clients were informed of after the gateway had ended the order itself.
pub(super) fn late_fills(clients: &[Client]) -> u64 {
    let orders = clients.iter().filter_map(|client| heard(client).ok()).flat_map(BTreeMap::into_values);
    orders.map(|order| order.late.len() as u64).sum()
}

/// Returns the first error, if any.
pub(super) fn check(truth: &Truth, clients: &[Client], bounds: Bounds) -> Result<(), String> {
    if let Some(live) = truth.live() {
        return Err(format!("everybody is stopped, and an order is open: {live}"));
    }
    let mut of_orders: BTreeMap<&str, Vec<&Said>> = BTreeMap::new();
    for said in &truth.said {
        of_orders.entry(&said.name).or_default().push(said);
    }
    for (name, said) in &of_orders {
        let live = said.iter().filter(|said| matches!(said.event, Event::Live(_)));
        let places: BTreeSet<Place> = live.map(|said| said.place).collect();
        if places.len() > 1 {
            return Err(format!("order {name} was taken more than once: {places:?}"));
        }
    }
    for client in clients {
        let orders = heard(client)?;
        for (number, name, raw) in &client.sent {
            let nothing = Heard::default();
            let order = orders.get(number).unwrap_or(&nothing);
            let is_missing = order.answers == 0 && !truth.needs_no_answer(client.account, name, raw);
            if order.answers > 1 || is_missing {
                let (is_sent_on, has_arrived) = (truth.sent_on.contains(name), truth.arrived.contains(name));
                let original = original_user_ref_num(raw).filter(|_| raw[0] == b'U');
                return Err(format!(
                    "order {name} has {} answers; it replaces {original:?}, a journal has it as sent: {is_sent_on}, a \
                     venue was given it: {has_arrived}",
                    order.answers
                ));
            }
            let said = of_orders.get(name.as_str()).map_or(&[][..], Vec::as_slice);
            check_order(truth, order, said).map_err(|wrong| {
                let of_it = |raw: &Vec<u8>| Some(Outbound::decode(raw).ok()?.0);
                let of_it = client.stream().iter().filter_map(of_it);
                let heard: Vec<_> = of_it.filter(|message| message.user_ref_num() == Some(*number)).collect();
                format!("order {name} {wrong}: the venues say {said:?}, and its client has heard {heard:?}")
            })?;
        }
    }
    check_kills(truth)?;
    check_bounds(truth, clients, bounds)
}

/// Compares the venues' messages about an order with those to its client.
fn check_order(truth: &Truth, order: &Heard, said: &[&Said]) -> Result<(), String> {
    if order.left > 0 {
        return Err(format!("is over, and its client knows of {} shares", order.left));
    }
    let is_given_up = order.has_expired || order.is_refused;
    let first_ns = said.first().map_or(u64::MAX, |said| said.t_ns);
    let account = said.first().and_then(|said| said.account());
    let concerns_it = |of: &Option<u32>| of.is_none() || *of == account;
    let mut moved = truth.moved_ns.iter().filter(|(at_ns, of)| *at_ns >= first_ns && concerns_it(of));
    let moved_ns = moved.next().map(|(at_ns, _)| *at_ns).filter(|_| is_given_up);
    let is_left = said.iter().any(|said| truth.ended_ns.contains_key(&said.place));
    let is_closed = truth.sessions.iter().any(|(at_ns, is_open)| *at_ns >= first_ns && !is_open);
    if order.has_expired && !is_left && !is_closed && moved_ns.is_none() {
        return Err("has expired, and nothing has ended its session".into());
    }
    let mut happened: BTreeMap<(u32, u64), i32> = BTreeMap::new();
    let mut missing: Vec<&Said> = Vec::new();
    for said in said {
        match said.event {
            Event::Filled(quantity, number) => {
                *happened.entry((quantity, number)).or_default() += 1;
                let is_told = order.fills.contains_key(&(quantity, number));
                missing.extend((!is_told && truth.is_heard(said, moved_ns)).then_some(*said));
            }
            Event::Live(_) if order.answers == 0 || order.is_refused => {
                missing.extend(truth.is_heard(said, moved_ns).then_some(*said));
            }
            Event::Live(_) | Event::Less(_) | Event::Left(_) | Event::Over => {}
        }
    }
    if let Some(missing) = missing.first() {
        return Err(format!("has {:?}, which the gateway has heard and its client has not", missing.event));
    }
    let is_so = |(fill, count): (&(u32, u64), &i32)| happened.get(fill).is_some_and(|all| count <= all);
    if order.fills.iter().all(is_so) { Ok(()) } else { Err("was not filled so".into()) }
}

/// No venue accepts an order of a stopped account, except those that were on their way.
fn check_kills(truth: &Truth) -> Result<(), String> {
    let live = truth.said.iter().filter(|said| matches!(said.event, Event::Live(_)));
    for said in live {
        let since = said.account().and_then(|account| truth.stopped_since(account, said.t_ns));
        if let Some(since_ns) = since.filter(|since_ns| since_ns + ARRIVES_NS < said.t_ns) {
            return Err(format!(
                "its account was stopped at {since_ns} ns, and a venue has taken it: {said:?}"
            ));
        }
    }
    Ok(())
}

/// Checks the value of an account's open and executed orders at any time, as far as it can be known, and that of each
/// of its orders.
fn check_bounds(truth: &Truth, clients: &[Client], bounds: Bounds) -> Result<(), String> {
    if bounds == Bounds::NONE {
        return Ok(());
    }
    let mut told: BTreeSet<(String, u64)> = BTreeSet::new();
    for client in clients {
        for (number, order) in heard(client)? {
            let name = format!("{}-{number}", client.account);
            // Orders that the gateway had ended no longer counted.
            let in_time = order.fills.keys().filter(|(_, number_of)| !order.late.contains(number_of));
            told.extend(in_time.map(|(_, number_of)| (name.clone(), *number_of)));
        }
    }
    let mut all: Vec<&Said> = truth.said.iter().collect();
    all.sort_by_key(|said| said.t_ns);
    let (mut open, mut executed) = (BTreeMap::<(&str, Place), u32>::new(), BTreeMap::<u32, u64>::new());
    for said in all {
        let Said { t_ns, place, name, event, .. } = said;
        if let Event::Live(shares) = event
            && f64::from(*shares) * UNITS_PER_SHARE > bounds.notional_max
        {
            return Err(format!("one order is worth too much: {said:?}"));
        }
        apply(open.entry((name.as_str(), *place)).or_default(), *event);
        open.retain(|(_, of), _| truth.ended_ns.get(of).is_none_or(|ended_ns| ended_ns > t_ns));
        let Some(account) = said.account() else { continue };
        if let Event::Filled(quantity, number) = event
            && told.contains(&(name.clone(), *number))
        {
            *executed.entry(account).or_default() += u64::from(*quantity);
        }
        let is_own = |of: &str| of.split('-').next().and_then(|of| of.parse().ok()) == Some(account);
        let shares: u64 =
            open.iter().filter(|((of, _), _)| is_own(of)).map(|(_, shares)| u64::from(*shares)).sum();
        let value = (shares + executed.get(&account).copied().unwrap_or(0)) as f64 * UNITS_PER_SHARE;
        if value > bounds.exposure_max {
            return Err(format!("account {account} has {value} open and executed at {said:?}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_proto::ouch::{Canceled, Executed};

    use super::*;
    use crate::gateway::test_messages;

    const PLACE: Place = (0, 0);
    const BOUNDS: Bounds = Bounds { exposure_max: 1_500.0, notional_max: 1_000.0 };
    const SECOND_NS: u64 = 1_000_000_000;

    fn said(at_s: u64, event: Event) -> Said {
        Said { t_ns: at_s * SECOND_NS, place: PLACE, worker: 0, name: "0-1".into(), event }
    }

    /// An order of a hundred shares that is accepted in the first second, filled in the second and cancelled in the
    /// third.
    fn filled() -> Truth {
        let events = [(1, Event::Live(100)), (2, Event::Filled(40, 7)), (3, Event::Less(60))];
        Truth { said: events.map(|(at_s, event)| said(at_s, event)).into(), ..Truth::default() }
    }

    /// Its client, without any messages.
    fn deaf() -> Client {
        let mut client = Client::new(0);
        client.sent.push((1, "0-1".into(), b"O".to_vec()));
        client
    }

    /// Its client, which has received these fills, each with its match number, and an end for this reason.
    fn client_after(fills: &[(u32, u64)], reason: u8) -> Client {
        let (mut client, mut left) = (deaf(), 100);
        let mut hear = |message: &Outbound| {
            let mut raw = Vec::new();
            message.encode(&mut raw);
            client.hear(raw);
        };
        let (timestamp_ns, user_ref_num) = (1, 1);
        hear(&Outbound::decode(&test_messages::accepted(user_ref_num, b'L')).expect("a message").0);
        for (quantity, match_number) in fills.iter().copied() {
            left -= quantity;
            let (price, liquidity) = (100_000, b'A');
            let executed = Executed { timestamp_ns, user_ref_num, quantity, price, liquidity, match_number };
            hear(&Outbound::Executed(executed));
        }
        hear(&Outbound::Canceled(Canceled { timestamp_ns, user_ref_num, quantity: left, reason }));
        client
    }

    fn client(fills: &[(u32, u64)]) -> Client {
        client_after(fills, cancel_reason::USER)
    }

    fn wrong(truth: &Truth, client: Client) -> String {
        check(truth, &[client], BOUNDS).expect_err("it is found")
    }

    #[test]
    fn what_was_heard_has_to_be_told_also_of_a_session_that_has_ended() {
        let mut truth = filled();
        assert_eq!(check(&truth, &[client(&[(40, 7)])], BOUNDS), Ok(()));
        assert!(wrong(&truth, client(&[])).contains("which the gateway has heard"), "it goes on");
        assert!(wrong(&truth, client(&[(40, 7), (40, 7)])).contains("was not filled so"));
        truth.end(PLACE, 4 * SECOND_NS);
        assert_eq!(check(&truth, &[client(&[])], BOUNDS), Ok(()), "nobody has heard it");
        truth.hear(PLACE, 1, 3 * SECOND_NS);
        truth.hear(PLACE, 0, 2 * SECOND_NS);
        assert_eq!(check(&truth, &[client(&[])], BOUNDS), Ok(()), "it may have been on its way");
        truth.hear(PLACE, 0, 3 * SECOND_NS);
        assert!(wrong(&truth, client(&[])).contains("which the gateway has heard"));
        assert!(wrong(&truth, client(&[(40, 8)])).contains("which the gateway has heard"));
    }

    #[test]
    fn other_routes_excuse_what_comes_behind_them_alone() {
        let expired = |fills: &[(u32, u64)]| client_after(fills, cancel_reason::TIMEOUT);
        let mut truth = filled();
        assert!(wrong(&truth, expired(&[(40, 7)])).contains("nothing has ended its session"));
        truth.remove(4 * SECOND_NS, 1);
        assert!(wrong(&truth, expired(&[(40, 7)])).contains("nothing has ended its session"), "another one");
        truth.hear(PLACE, 0, 5 * SECOND_NS);
        truth.move_routes(4 * SECOND_NS);
        assert_eq!(check(&truth, &[expired(&[])], BOUNDS), Ok(()), "it is heard behind the change");
        assert!(wrong(&truth, client(&[])).contains("which the gateway has heard"), "it has not expired");
        truth.hear(PLACE, 0, 3 * SECOND_NS);
        assert!(wrong(&truth, expired(&[])).contains("which the gateway has heard"));
    }

    #[test]
    fn nobody_who_is_stopped_trades_and_no_bound_is_passed() {
        let mut truth = filled();
        truth.kill(SECOND_NS / 2, Some(1), true);
        assert_eq!(check(&truth, &[client(&[(40, 7)])], BOUNDS), Ok(()), "it was another one");
        truth.kill(SECOND_NS / 2, None, true);
        assert!(wrong(&truth, client(&[(40, 7)])).contains("its account was stopped"));
        truth.kill(SECOND_NS / 2 + 1, None, false);
        assert_eq!(check(&truth, &[client(&[(40, 7)])], BOUNDS), Ok(()), "it was released");
        let passes = |bounds: Bounds, what: &str| {
            let error = check(&truth, &[client(&[(40, 7)])], bounds).expect_err("it is worth 1000");
            assert!(error.contains(what), "{error}");
        };
        passes(Bounds { notional_max: 999.0, ..BOUNDS }, "one order is worth too much");
        passes(Bounds { exposure_max: 999.0, ..BOUNDS }, "account 0 has 1000 open and executed");
    }

    #[test]
    fn an_order_has_an_answer_and_so_has_a_replace_that_was_not_ignored_or_too_late_on_its_way() {
        let mut truth = Truth::default();
        assert!(wrong(&truth, deaf()).contains("0 answers"));
        let replaces = || {
            let (mut client, mut raw) = (deaf(), Vec::new());
            test_messages::replace(2, 1).encode(&mut raw);
            client.sent[0].2 = raw;
            client
        };
        let is_right = |truth: &Truth| check(truth, &[replaces()], BOUNDS);
        assert!(wrong(&truth, replaces()).contains("0 answers"), "it was not sent on");
        truth.sent_on.insert("0-1".into());
        assert_eq!(is_right(&truth), Ok(()), "it may have had nothing to replace any more");
        let original = |at_s, event| Said { name: "0-2".into(), ..said(at_s, event) };
        truth.said.extend([original(1, Event::Live(100)), original(9, Event::Over)]);
        assert_eq!(is_right(&truth), Ok(()));
        truth.kill(5 * SECOND_NS, None, true);
        assert!(wrong(&truth, replaces()).contains("0 answers"), "its original was open to the end");
        truth.arrived.insert("0-1".into());
        assert_eq!(is_right(&truth), Ok(()), "a venue has ignored it");
        truth.said.extend([said(1, Event::Live(100)), said(2, Event::Over)]);
        assert!(wrong(&truth, replaces()).contains("which the gateway has heard"), "it was taken");
    }
}
