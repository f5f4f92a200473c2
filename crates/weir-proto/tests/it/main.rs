//! HTTP/1.1 as its users see it: streams of bytes in, transcripts of events out.
//!
//! A failed property prints its smallest input and keeps its seed in `proptest-regressions`; commit that file.
//! `PROPTEST_CASES=n` runs longer, `PROPTEST_RNG_SEED=n` runs the same inputs again.

mod arbitrary;
mod bad_input;
mod cuts;
mod fuzz;
mod limits;
mod messages;
mod round_trip;
mod transcript;
