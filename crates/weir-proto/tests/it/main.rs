//! The protocols through their public interface: HTTP/1.1 as streams of bytes in and transcripts of events out, order
//! sessions and order messages against bytes laid out by hand.
//!
//! A failed property prints its smallest input and keeps its seed in `proptest-regressions`; commit that file.
//! `PROPTEST_CASES=n` runs longer, `PROPTEST_RNG_SEED=n` runs the same inputs again.

mod arbitrary;
mod bad_input;
mod cuts;
mod fuzz;
mod limits;
mod messages;
mod orders_fuzz;
mod ouch_appendages;
mod ouch_layouts;
mod round_trip;
mod soup_frames;
mod soup_logins;
mod soup_sessions;
mod transcript;
