//! What clients and venues have said, held against each other: no order is executed twice, no answer is lost, nobody is
//! told of what did not happen, and no limit is passed.

use std::collections::{BTreeMap, BTreeSet};

use weir_proto::ouch::{Outbound, codes::cancel_reason, reject_reason};

use super::parties::Client;

/// A venue and which of its sessions.
type Place = (usize, usize);
/// Which one of the session's accounts has an order, and its number there.
type Number = (Place, u32, u32);

/// What became of an order at a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// It is open with so many shares.
    Live(u32),
    Filled(u32, u64),
    Less(u32),
    Over,
}

/// What the venues have said.
#[derive(Default)]
pub(super) struct Truth {
    names: BTreeMap<Number, String>,
    /// In the order of times.
    events: Vec<(u64, Place, String, Event)>,
    ended_ns: BTreeMap<Place, u64>,
}

impl Truth {
    pub(super) fn take(&mut self, place: Place, account: u32, t_ns: u64, message: &[u8]) {
        let (message, _) = Outbound::decode(message).expect("a message");
        let Some(number) = message.user_ref_num() else { return };
        let live = |state: u8, quantity| if state == b'L' { Event::Live(quantity) } else { Event::Over };
        let event = match &message {
            Outbound::Accepted(accepted) => {
                let name = accepted.client_order_id.as_str().trim_end().to_owned();
                self.names.insert((place, account, number), name);
                live(accepted.order_state, accepted.quantity)
            }
            Outbound::Replaced(replaced) => {
                let name = replaced.client_order_id.as_str().trim_end().to_owned();
                self.names.insert((place, account, number), name);
                if let Some(original) = self.names.get(&(place, account, replaced.original_user_ref_num)) {
                    self.events.push((t_ns, place, original.clone(), Event::Over));
                }
                live(replaced.order_state, replaced.quantity)
            }
            Outbound::Executed(executed) => Event::Filled(executed.quantity, executed.match_number),
            Outbound::Canceled(canceled) => Event::Less(canceled.quantity),
            _ => return,
        };
        if let Some(name) = self.names.get(&(place, account, number)) {
            self.events.push((t_ns, place, name.clone(), event));
        }
    }

    /// Another session followed this one.
    pub(super) fn end(&mut self, place: Place, at_ns: u64) {
        self.ended_ns.insert(place, at_ns);
    }

    /// The shares that are open, by order.
    fn open(&self) -> BTreeMap<(Place, &str), u32> {
        let mut open = BTreeMap::new();
        for (_, place, name, event) in &self.events {
            apply(open.entry((*place, name.as_str())).or_default(), *event);
        }
        open.retain(|(place, _), shares| *shares > 0 && !self.ended_ns.contains_key(place));
        open
    }

    /// An order that is open in a session that goes on.
    pub(super) fn live(&self) -> Option<String> {
        self.open().first_key_value().map(|(order, shares)| format!("{order:?} with {shares} shares"))
    }
}

fn apply(shares: &mut u32, event: Event) {
    *shares = match event {
        Event::Live(live) => live,
        Event::Filled(less, _) | Event::Less(less) => shares.saturating_sub(less),
        Event::Over => 0,
    };
}

/// One order as its client has heard of it.
#[derive(Default)]
struct Heard {
    answers: u32,
    fills: BTreeMap<(u32, u64), i32>,
    left: i64,
    has_expired: bool,
    /// The gateway has refused it by itself.
    is_refused: bool,
    /// Trades after the gateway had ended it by itself: a venue that could not be reached may have them.
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
                (order.answers, order.left) = (order.answers + 1, accepted.quantity.into())
            }
            Outbound::Replaced(replaced) => {
                (order.answers, order.left) = (order.answers + 1, replaced.quantity.into())
            }
            Outbound::Rejected(rejected) => {
                order.answers += 1;
                order.is_refused = rejected.reason == reject_reason::DESTINATION_CLOSED;
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

/// What is wrong, if anything is. Where routes have changed, what they do not reach any more was given up on demand:
/// what becomes of it nobody hears. Where a home's journal has lost records, an order that it had refused may have no
/// answer: a later one, whose sender has a record, is known, and lower numbers are ignored from then on.
pub(super) fn check(
    truth: &Truth,
    clients: &[Client],
    exposure_max: f64,
    have_routes_changed: bool,
    has_lost_records: bool,
) -> Result<(), String> {
    if let Some(live) = truth.live() {
        return Err(format!("everybody is stopped, and an order is open: {live}"));
    }
    let mut places: BTreeMap<&str, BTreeSet<Place>> = BTreeMap::new();
    let mut fills: BTreeMap<&str, BTreeMap<(u32, u64), i32>> = BTreeMap::new();
    for (_, place, name, event) in &truth.events {
        match event {
            Event::Filled(quantity, match_number) => {
                let of_order = fills.entry(name).or_default();
                *of_order.entry((*quantity, *match_number)).or_default() += 1;
            }
            Event::Live(_) => _ = places.entry(name).or_default().insert(*place),
            Event::Less(_) | Event::Over => {}
        }
    }
    if let Some((name, places)) = places.iter().find(|(_, places)| places.len() > 1) {
        return Err(format!("order {name} was taken more than once: {places:?}"));
    }
    for client in clients {
        let orders = heard(client)?;
        for (number, name, raw) in &client.sent {
            let order = orders.get(number);
            let answers = order.map_or(0, |order| order.answers);
            if answers > 1 || answers == 0 && raw[0] == b'O' && !has_lost_records {
                return Err(format!("order {name} has {answers} answers"));
            }
            if let Some(left) = order.map(|order| order.left).filter(|left| *left > 0) {
                return Err(format!(
                    "everybody is stopped, and the client knows of {left} shares of order {name}"
                ));
            }
            let nothing = BTreeMap::new();
            let (happened, told) =
                (fills.get(name.as_str()).unwrap_or(&nothing), order.map_or(&nothing, |order| &order.fills));
            let of_lost = places
                .get(name.as_str())
                .into_iter()
                .flatten()
                .any(|place| truth.ended_ns.contains_key(place));
            let is_given_up = |order: &Heard| order.has_expired || order.is_refused && have_routes_changed;
            let is_excused = of_lost || order.is_some_and(is_given_up);
            let is_all = told.iter().all(|(fill, count)| happened.get(fill).is_some_and(|all| count <= all));
            if !is_all || told.len() < happened.len() && !is_excused {
                let events: Vec<_> = truth.events.iter().filter(|(_, _, of, _)| of == name).collect();
                let heard: Vec<_> =
                    client.stream().iter().filter_map(|raw| Outbound::decode(raw).ok()).collect();
                return Err(format!(
                    "order {name}: the venues say {events:?}, and its client has heard {heard:?}"
                ));
            }
        }
    }
    check_exposure(truth, clients, exposure_max)
}

/// The value of what an account had open and had executed, at any time, as far as it can be known.
fn check_exposure(truth: &Truth, clients: &[Client], exposure_max: f64) -> Result<(), String> {
    const UNITS_PER_SHARE: f64 = 10.0;
    let mut told: BTreeSet<(String, u64)> = BTreeSet::new();
    for client in clients {
        for (number, order) in heard(client)? {
            // What the gateway had ended counted for nothing any more.
            let in_time = order.fills.keys().filter(|(_, number_of)| !order.late.contains(number_of));
            told.extend(in_time.map(|(_, number_of)| (format!("{}-{number}", client.account), *number_of)));
        }
    }
    let mut events: Vec<_> = truth.events.iter().collect();
    events.sort_by_key(|(t_ns, ..)| *t_ns);
    let (mut open, mut executed) = (BTreeMap::<(&str, Place), u32>::new(), BTreeMap::<&str, u64>::new());
    for (t_ns, place, name, event) in events {
        apply(open.entry((name, *place)).or_default(), *event);
        open.retain(|(_, of), _| truth.ended_ns.get(of).is_none_or(|ended_ns| ended_ns > t_ns));
        let account = name.split('-').next().unwrap_or_default();
        if let Event::Filled(quantity, number) = event
            && told.contains(&(name.clone(), *number))
        {
            *executed.entry(account).or_default() += u64::from(*quantity);
        }
        let is_own = |of: &str| of.split('-').next() == Some(account);
        let shares: u64 =
            open.iter().filter(|((of, _), _)| is_own(of)).map(|(_, shares)| u64::from(*shares)).sum();
        let value = (shares + executed.get(account).copied().unwrap_or(0)) as f64 * UNITS_PER_SHARE;
        if value > exposure_max {
            return Err(format!(
                "account {account} has {value} open and executed when {name} came to {event:?}"
            ));
        }
    }
    Ok(())
}
