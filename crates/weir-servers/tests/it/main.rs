//! Tests of the servers from a client's side: one script, every driver, including the simulated one.
//!
//! A driver that the kernel refuses is reported as skipped, and is a failure when `WEIR_REQUIRE_DRIVERS` names it.
//! `WEIR_TEST_SEED=n` replays a run; `-- --nocapture` shows each seed. Scripts that run on many simulations use
//! `WEIR_SEEDS=n` of them, and `WEIR_SIM_SEED=n` replays one.

#![expect(clippy::print_stdout, reason = "tests say their seed and what they skip")]

mod access_log;
mod admission;
mod bad_input;
mod cable;
mod client;
mod endings;
mod exchange;
mod file_cache;
mod files;
mod gateway;
mod hanging;
mod journal;
mod methods;
mod orders;
mod panics;
mod pipelines;
mod precompressed;
mod random;
mod rig;
mod seeds;
mod timeouts;
