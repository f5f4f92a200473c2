//! Who is ahead: the figures of a sweep, judged. Pure.
//!
//! Every comparison is paired: two methods met the same seed, so what the seed made easy or hard cancels out, and the
//! interval is that of the median of the differences. [`pareto`] knows points and volumes, [`figures`] puts parts in
//! order and pairs them, [`rows`] holds what the candidate must show against each ratio, [`gain`] says where a gain is
//! from and what the interrupt's price is, [`observe`] puts the paper's findings beside the measured ones, and
//! [`judge`] joins all of it.

pub mod figures;
pub mod gain;
pub mod judge;
pub mod observe;
pub mod pareto;
pub mod rows;

pub use judge::judge;
