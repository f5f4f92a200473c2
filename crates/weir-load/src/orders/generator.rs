//! Generates orders from numbers, and encodes times in order ids. Pure except for one clock.
//!
//! The contents of an order follow from the seed, the session and its number, so only its send time must be kept. The
//! client order id, which every answer returns, contains that time: a gateway or an exchange that knows the form can
//! compute how long the order took.
//!
//! | bytes of the client order id | what |
//! | --- | --- |
//! | 0 | `W` |
//! | 1..14 | nanoseconds since midnight UTC at the client's send: 13 digits to base 36, capital letters |

use std::time::{Duration, SystemTime};

use weir_proto::ouch::{ClientOrderId, Symbol, codes::side};

use super::notes::Hop;
use crate::payload::mix;

/// Length of a day: time stamps wrap after it.
const DAY_NS: u64 = 86_400 * 1_000_000_000;
const DIGITS: u64 = 36;
/// Shares of an order, at most.
const QUANTITY_MAX: u64 = 500;
/// Middle of the prices: 100 with four decimals.
const PRICE_MIDDLE: u64 = 1_000_000;
/// Number of prices on each side of the middle, and their distance.
const PRICE_STEPS: u64 = 32;
const PRICE_STEP: u64 = 100;

/// The terms of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) side: u8,
    /// Index of the symbol.
    pub(crate) symbol: u8,
    pub(crate) quantity: u32,
    pub(crate) price: u64,
}

/// The orders of a run.
#[derive(Clone, Debug)]
pub(crate) struct OrderGenerator {
    seed: u64,
    symbols: Vec<Symbol>,
}

impl OrderGenerator {
    pub(crate) fn new(seed: u64, symbols: Vec<Symbol>) -> Self {
        Self { seed: mix(seed ^ 0x6f72_6465_7273), symbols }
    }

    /// Order `number` of a session.
    #[inline]
    pub(crate) fn terms(&self, session: u32, number: u64) -> Terms {
        let random = self.random(session, number);
        let more = mix(random);
        Terms {
            side: if random & 1 == 0 { side::BUY } else { side::SELL },
            symbol: (((random >> 32) * self.symbols.len() as u64) >> 32) as u8,
            quantity: 1 + (more % QUANTITY_MAX) as u32,
            price: PRICE_MIDDLE + (more >> 40) % (2 * PRICE_STEPS) * PRICE_STEP - PRICE_STEPS * PRICE_STEP,
        }
    }

    /// A random number that chooses the kind of request `ordinal` of a session.
    #[inline]
    pub(crate) fn choice(&self, session: u32, ordinal: u64) -> u64 {
        mix(!self.random(session, ordinal))
    }

    pub(crate) fn symbol(&self, index: u8) -> Symbol {
        self.symbols.get(usize::from(index)).copied().unwrap_or_default()
    }

    #[inline]
    fn random(&self, session: u32, number: u64) -> u64 {
        mix(self.seed ^ mix((u64::from(session) << 40) ^ number))
    }
}

/// Nanoseconds since midnight UTC, of the machine's clock.
#[inline]
pub(crate) fn since_midnight_ns() -> u64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    since_epoch.as_secs() % 86_400 * 1_000_000_000 + u64::from(since_epoch.subsec_nanos())
}

/// The client order id of an order sent at `stamp_ns`.
#[inline]
pub(crate) fn client_order_id(stamp_ns: u64) -> ClientOrderId {
    const LETTERS: &[u8; DIGITS as usize] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut id = [b'0'; 14];
    id[0] = b'W';
    let mut rest = stamp_ns;
    for place in id[1..].iter_mut().rev() {
        *place = LETTERS[(rest % DIGITS) as usize];
        rest /= DIGITS;
        if rest == 0 {
            break;
        }
    }
    ClientOrderId(id)
}

/// The two ways of a request sent at `sent_ns` whose answer, stamped `stamp_ns`, arrived at `now_ns`; all since
/// midnight.
#[inline]
pub(crate) fn hop(sent_ns: u64, stamp_ns: u64, now_ns: u64) -> Hop {
    let (out_ns, both_ns) = (passed_ns(sent_ns, stamp_ns), passed_ns(sent_ns, now_ns));
    if stamp_ns < DAY_NS && out_ns <= both_ns {
        Hop::Timed { out_ns, back_ns: both_ns - out_ns }
    } else {
        Hop::Implausible
    }
}

/// Time from one time of day to the next occurrence of another.
#[inline]
fn passed_ns(from_ns: u64, to_ns: u64) -> u64 {
    if to_ns >= from_ns { to_ns - from_ns } else { (DAY_NS + to_ns).saturating_sub(from_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_follows_from_seed_session_and_number() {
        let generator = |seed| OrderGenerator::new(seed, vec![Symbol(*b"A       "), Symbol(*b"B       ")]);
        let orders = |seed, session| (1..200).map(|k| generator(seed).terms(session, k)).collect::<Vec<_>>();
        assert_eq!(orders(1, 0), orders(1, 0));
        assert_ne!(orders(1, 0), orders(2, 0));
        assert_ne!(orders(1, 0), orders(1, 1));
        let all = orders(7, 3);
        assert!(all.iter().all(|terms| (1..=500).contains(&terms.quantity)));
        assert!(all.iter().all(|terms| (996_800..1_003_200).contains(&terms.price)));
        for side in [side::BUY, side::SELL] {
            let share = all.iter().filter(|terms| terms.side == side).count();
            assert!((60..140).contains(&share), "{share} of 199");
        }
        assert!(all.iter().any(|terms| terms.symbol == 0) && all.iter().any(|terms| terms.symbol == 1));
    }

    #[test]
    fn the_send_time_is_in_the_name_of_the_order() {
        assert_eq!(client_order_id(0).0, *b"W0000000000000");
        assert_eq!(client_order_id(35).0, *b"W000000000000Z");
        assert_eq!(client_order_id(DAY_NS - 1).as_str(), "W0000UMJM17UNZ");
        for stamp_ns in [1, 36, 45_296_000_000_001, DAY_NS - 1] {
            let id = client_order_id(stamp_ns);
            assert_eq!(u64::from_str_radix(&id.as_str()[1..], 36), Ok(stamp_ns));
        }
    }

    #[test]
    fn a_stamp_between_sending_and_receiving_tells_both_ways_also_over_midnight() {
        assert_eq!(hop(100, 140, 200), Hop::Timed { out_ns: 40, back_ns: 60 });
        assert_eq!(hop(DAY_NS - 10, 5, 8), Hop::Timed { out_ns: 15, back_ns: 3 });
        for stamp_ns in [99, 201, 0, DAY_NS - 1, u64::MAX] {
            assert_eq!(hop(100, stamp_ns, 200), Hop::Implausible, "{stamp_ns}");
        }
    }

    #[test]
    fn the_clock_tells_the_time_of_a_day() {
        assert!(since_midnight_ns() < DAY_NS);
    }
}
