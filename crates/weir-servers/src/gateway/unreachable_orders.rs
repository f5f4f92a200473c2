//! Open orders of earlier starts that the configuration cannot reach. If they were resent, they would be executed
//! elsewhere. If they were ignored, nobody would be informed of their outcome. So a gateway does not start with such
//! orders, unless it is configured to let them expire.

use std::{collections::BTreeSet, fmt};

use weir_proto::ouch::Symbol;
use weir_trading::{AccountId, Origin};

use super::config::GatewayConfig;

/// Most orders that are listed individually.
const LISTED_MAX: usize = 10;

/// An order that is open, or may be, where this configuration cannot reach it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stranded {
    pub(super) account: AccountId,
    pub(super) user_ref_num: u32,
    /// Its venue.
    pub(super) venue: String,
    pub(super) why: Why,
}

/// An order that was sent where its worker no longer logs in.
pub(super) fn left_behind(order: Origin, venue: &str, why: &Why) -> Stranded {
    let Origin { account, user_ref_num, .. } = order;
    Stranded { account, user_ref_num, venue: venue.to_owned(), why: why.clone() }
}

/// The part that the configuration lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The venue.
    Venue,
    /// The worker whose session it is in.
    Worker(usize),
    /// The account.
    Account,
    /// The session with clients, after which order numbers begin with 1.
    Session,
    /// The route of this symbol to the venue.
    Route(Symbol),
    /// The venue's address.
    Address {
        /// The former address.
        from: String,
        /// The configured address.
        to: String,
    },
    /// The login name of the worker whose session it is in.
    Login {
        /// The former name.
        from: String,
        /// The configured name.
        to: String,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Venue => formatter.write_str("the venue is not configured"),
            Self::Account => formatter.write_str("the account is not configured"),
            Self::Session => formatter
                .write_str("its session with clients has ended, and order numbers begin with 1 again"),
            Self::Worker(worker) => write!(formatter, "there is no worker {worker}"),
            Self::Route(symbol) => write!(formatter, "{symbol} has another route"),
            Self::Address { from, to } => write!(formatter, "the venue was at {from} and is at {to} now"),
            Self::Login { from, to } => write!(formatter, "the login name there was {from} and is {to} now"),
        }
    }
}

/// Why a gateway does not start with them, in words.
pub(super) fn refusal(stranded: &[Stranded], config: &GatewayConfig) -> String {
    format!(
        "the journal has open orders that this configuration does not reach: {} ({} in all); start with the accounts, \
         workers, venues and routes they were sent with until they have ended, or let them expire with \
         --expire-unreachable{}",
        list(stranded, config),
        stranded.len(),
        confirmations(stranded)
    )
}

/// How to confirm that exchanges are the same at other addresses.
fn confirmations(stranded: &[Stranded]) -> String {
    let mut said = BTreeSet::new();
    for Stranded { venue, why, .. } in stranded {
        if let Why::Address { from, .. } = why {
            said.insert(format!(
                "; if {venue} is the same exchange as at {from}, with the same sessions, confirm that with \
                 moved_from = [{from:?}] at this venue"
            ));
        }
    }
    said.into_iter().collect()
}

/// The notice of a gateway that starts anyway.
pub(super) fn notice(stranded: &[Stranded], config: &GatewayConfig) -> String {
    format!(
        "orders that this configuration does not reach have expired: {}; what a venue that is not configured makes of \
         them from now on, nobody hears",
        list(stranded, config)
    )
}

fn list(stranded: &[Stranded], config: &GatewayConfig) -> String {
    let one = |it: &Stranded| {
        let Stranded { account, user_ref_num, venue, why } = it;
        let name = config.accounts.get(account.0 as usize).map_or("?", |account| account.name.as_str());
        format!("order {user_ref_num} of {name} at {venue} ({why})")
    };
    let mut listed: Vec<String> = stranded.iter().take(LISTED_MAX).map(one).collect();
    let rest = stranded.len() - listed.len();
    listed.extend((rest > 0).then(|| format!("and {rest} more")));
    listed.join(", ")
}
