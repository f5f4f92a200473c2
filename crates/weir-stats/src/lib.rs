//! Statistics for paired experiments on noisy machines: small, cited, and never an estimate without its interval.
//!
//! Every function takes slices and returns values. Nothing here performs I/O, reads a clock or draws from a
//! global source of randomness: what is random takes a seed, and the same seed gives the same answer on every
//! machine. Degenerate input (nothing, too little, not a number) gives `None`, never a panic and never NaN.
//!
//! The unit is the **log-ratio** of a pair: `ln(arm / baseline)` of one block. On that scale "twice" and "half"
//! are equally far from nothing, effects add, and the arm and the baseline may change places.
//! [`order::log_ratio`] goes there, [`order::fraction`] comes back (`0.03` for "3 % more").
//!
//! What this crate is not: it knows nothing of trials, metrics or reports, and it never drops an outlier. Which
//! pairs are compared is decided beforehand from the environment ([`states`]), not from their values.
//!
//! ```
//! use weir_stats::{decide, floor, interval, order};
//!
//! // CPU per message, arm over baseline, six blocks; and the baseline against itself.
//! let pairs = [0.780, 0.771, 0.789, 0.776, 0.783, 0.779].map(|ratio: f64| ratio.ln());
//! let itself = [1.004, 0.992, 1.010, 0.997, 1.001, 0.995].map(|ratio: f64| ratio.ln());
//!
//! let estimate = interval::paired_interval(&pairs, 7).expect("six finite log-ratios");
//! let direction = decide::decide(
//!     &decide::Effect { median: order::median(&pairs).expect("not empty"), interval: estimate },
//!     &decide::Limits {
//!         noise_floor: floor::noise_floor(&itself, pairs.len(), 2),
//!         smallest_effect: 1.03_f64.ln(),
//!         larger_is_better: false,
//!     },
//! );
//! assert_eq!(direction, decide::Direction::Better);
//! assert_eq!(estimate.confidence, 0.96875);
//! ```

pub mod decide;
pub mod floor;
pub mod geometric;
pub mod holm;
pub mod interval;
pub mod normal;
pub mod order;
pub mod power;
pub mod random;
pub mod signflip;
pub mod slope;
pub mod states;
pub mod student;
