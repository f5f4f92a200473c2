//! The maximum of undelivered messages from one worker of a gateway to another. One message more would end the
//! process, so no peer may be able to cause that.
//!
//! Requests are bounded where they are queued (`overflow`). Responses can accumulate from the moment when something
//! is undelivered until everything is delivered again. They consist of:
//!
//! * Answers of exchanges. After each receive a session waits until everything is delivered
//!   (`Gateway::after_receive`), and one receive contains at most half of [`ANSWERS_MAX`]. If there are still that
//!   many, because of other undelivered messages, the session is ended before its next message is accepted
//!   (`Gateway::is_full`), and the exchange has to send it again.
//! * Expiries: from a session that begins anew, a kill switch, disconnected clients. However many tasks send them,
//!   each share waits until everything is delivered (`Gateway::expire`).
//! * Released numbers of replaces that had no effect. They are released before the answer that shows it, all at once:
//!   at most those already owed plus the open ones, each limited to the maximum of open orders.
//! * The outcomes of requests that were on their way: each is refused, or becomes an order that ends later. From the
//!   first undelivered answer on, clients whose orders come here are not read (`Gateway::fall_behind`).
//! * One message that there is room.

use super::{config::GatewayConfig, unsolicited_cancels};
use crate::overflow::Bounds;

/// Answers of one exchange: twice as many of the smallest ones as fit into the engine's largest buffer. While some
/// are undelivered nothing more is received; if a session still brings more, the exchange has to send them again.
pub(super) const ANSWERS_MAX: usize = 2 * (128 << 10) / 16;

pub(super) fn of(config: &GatewayConfig, (workers, accounts): (usize, usize)) -> Bounds {
    let answers = ANSWERS_MAX * config.venues.len();
    let given_back: usize = config.venues.iter().map(|venue| 2 * venue.limits.open_max).sum();
    // Rings are rounded up, and if a whole queue is taken at once the next one fills meanwhile.
    let queue = 2 * config.handoff.ring_slots.next_power_of_two() + config.handoff.overflow_max;
    // The same number again: senders notice a moment later that they have to stop.
    let on_their_way = 2 * workers * (queue + accounts);
    Bounds { accounts, responses: answers + given_back + on_their_way + unsolicited_cancels::SHARE_MAX + 1 }
}
