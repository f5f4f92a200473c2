//! Orders as values: number rules, translation, routing, venues, the book, risk. No I/O and no clock.
//!
//! Time is an argument, and results are returned; the owner of sockets, journals and sessions does the rest. A
//! **gateway** combines: [`UserRefNums`] (one for each account), [`RiskState`] and [`KillSwitch`] (one for each
//! worker), [`Route`], and an [`UpstreamNumbers`] (one for each upstream session). An **exchange** combines:
//! [`UserRefNums`] and a [`Venue`], either [`EchoVenue`] or [`MatchingVenue`].
//!
//! Every structure has a stated maximum. It is allocated when it is created (or when an account or a symbol is first
//! seen), and does not allocate afterwards. None is shared between threads.

mod account;
mod admit;
pub mod day;
mod echo;
mod key_table;
mod kill;
mod matching;
mod positions;
mod rate;
mod reply;
pub mod risk;
mod route;
mod slab;
mod upstream_numbers;
mod user_ref_nums;
mod venue;

pub use account::AccountId;
pub use echo::{EchoConfig, EchoVenue};
pub use kill::{KillScope, KillSwitch};
pub use matching::{MatchingConfig, MatchingVenue, Quote};
pub use positions::{Position, Positions, Unattributed};
pub use rate::{Rate, TokenBucket};
pub use risk::{DuplicateLimit, LiveTerms, References, Restored, RiskConfig, RiskLimits, RiskState, Trade};
pub use route::Route;
pub use upstream_numbers::{Full, LiveOrder, Origin, UpstreamNumbers, WhenFull, new_number};
pub use user_ref_nums::{NumberVerdict, UserRefNums};
pub use venue::{Emit, Handled, Venue};
