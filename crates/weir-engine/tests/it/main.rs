//! The engine's behaviour, checked to be the same on every driver: one binary of integration tests.
//!
//! `conformance.rs` lists the cases, the drivers each applies to and the reason for every exception; the bodies are
//! in the folder `cases`. `WEIR_REQUIRE_DRIVERS=uring,epoll` makes a driver that the kernel refuses a failure,
//! `WEIR_SLOW_TESTS=1` runs the full forms, `WEIR_TEST_SEED=n` replays a run, and `-- --nocapture` shows each seed
//! and why a case does not apply. The last line of every run counts the outcomes.

mod cases;
mod conformance;

mod board;
mod handoff;
mod kernel;
mod outcome;
mod peer;
mod random;
mod rig;
mod scratch;
mod subject;
