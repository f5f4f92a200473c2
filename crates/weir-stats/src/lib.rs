//! Statistics for paired experiments on noisy machines: small, cited, and never an estimate without its interval.
//!
//! Every function takes slices and returns values. Nothing here performs I/O, reads a clock or uses a global random
//! source. Random functions take a seed, and the same seed gives the same answer on every machine. Degenerate input
//! (empty, too short, not a number) gives `None`, never a panic and never NaN.
//!
//! The unit is the **log-ratio** of a pair: `ln(arm / baseline)` of one block. On that scale "twice" and "half" are
//! equally far from zero, effects add, and the arm and the baseline may change places. [`order::log_ratio`] computes
//! it, [`order::fraction`] converts it back (`0.03` for "3 % more").
//!
//! [`recording`] is the text format of recorded rounds, on which the decision rule is tested.
//!
//! This crate knows nothing of trials, metrics or reports, and it never drops an outlier. Which pairs are compared is
//! decided beforehand from the environment ([`states`]), not from their values.
//!
//! ```
//! use weir_stats::decide::{Direction, Reading, decide, estimate};
//!
//! // CPU per message, arm over baseline, in six rounds.
//! let rounds = [0.780, 0.771, 0.789, 0.776, 0.783, 0.779].map(|ratio: f64| ratio.ln());
//!
//! let found = estimate(&rounds).expect("six finite log-ratios");
//! let reading = Reading { p_value: found.p_value, margin: 1.01_f64.ln(), larger_is_better: false };
//! assert_eq!(decide(&found, &reading), Direction::Better);
//! assert!((found.high.exp() - 0.7904).abs() < 1e-3);
//! ```

pub mod decide;
pub mod false_discovery;
pub mod fisher;
pub mod holm;
pub mod long_run;
pub mod movement;
pub mod order;
pub mod proportion;
pub mod quotient;
pub mod random;
pub mod random_effects;
pub mod recording;
pub mod round;
pub mod states;
pub mod student;
