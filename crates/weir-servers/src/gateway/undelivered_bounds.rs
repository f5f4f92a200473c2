//! How much may be undelivered on the way from one worker of a gateway to another. One message more would end
//! the process, so that nothing a peer does may bring it.
//!
//! Requests are bounded where they are kept (`overflow`). Responses begin to pile up when nothing is
//! undelivered, and until nothing is any more there are these:
//!
//! * Answers of exchanges. After each receive a session waits until nothing is undelivered
//!   (`Gateway::after_receive`), and a receive has half of [`ANSWERS_MAX`] at most. Should there be as many
//!   all the same, because of what else is undelivered, the session is ended by name before its next message
//!   is taken in (`Gateway::is_full`), and has to say it again.
//! * Expiries: of a session that begins anew, of a kill switch, of clients that are gone. However many tell them, each
//!   share of them waits until nothing is undelivered (`Gateway::expire`).
//! * Numbers of replaces that came to nothing. They are given back before the answer that shows it, all at once: no
//!   more than are owed already and than are open, either of which is at most what may be open.
//! * What becomes of requests that were on their way: each is refused, or is an order that ends later. From the first
//!   answer on that is undelivered no client is read whose orders come here (`Gateway::fall_behind`).
//! * One word that there is room.

use super::{config::GatewayConfig, unsolicited_cancels};
use crate::overflow::Bounds;

/// Answers of one exchange: twice as many as the largest buffer of the engine has of the smallest ones. While some are
/// undelivered nothing more is received; a session that brings more all the same has to say it again.
pub(super) const ANSWERS_MAX: usize = 2 * (128 << 10) / 16;

pub(super) fn of(config: &GatewayConfig, workers: usize) -> Bounds {
    let accounts = config.accounts.len();
    let answers = ANSWERS_MAX * config.venues.len();
    let given_back: usize = config.venues.iter().map(|venue| 2 * venue.limits.open_max).sum();
    // Rings are rounded up, and where a whole queue is taken at once the next one fills meanwhile.
    let queue = 2 * config.handoff.ring_slots.next_power_of_two() + config.handoff.overflow_max;
    // Once more as many: who sends sees a moment later that it has to stop.
    let on_their_way = 2 * workers * (queue + accounts);
    Bounds { accounts, responses: answers + given_back + on_their_way + unsolicited_cancels::SHARE_MAX + 1 }
}
