//! How much may be stuck on the way from one worker of a gateway to another.

use super::{
    config::{GatewayConfig, VenueConfig},
    expiry,
};
use crate::overflow::Bounds;

/// Answers of one exchange: twice as many as the largest buffer of the engine has of the smallest ones. While some are
/// stuck nothing more is received; a session that brings more all the same has to say it again.
pub(super) const ANSWERS_MAX: usize = 2 * (128 << 10) / 16;

/// Beside the answers there are replaces that their exchange has ignored, expiries, and refusals of orders that were on
/// their way when the answers to their clients were stuck.
pub(super) fn of(config: &GatewayConfig, workers: usize) -> Bounds {
    let accounts = config.accounts.len();
    let of_venue = |venue: &VenueConfig| ANSWERS_MAX + 2 * venue.limits.unanswered_max + expiry::SHARE_MAX;
    let on_their_way = workers * (config.handoff.ring_slots + config.handoff.overflow_max + accounts);
    let responses = config.venues.iter().map(of_venue).sum::<usize>() + 2 * on_their_way;
    // Expiries of an earlier start, and word that there is room.
    Bounds { accounts, responses: responses + expiry::SHARE_MAX + workers }
}
