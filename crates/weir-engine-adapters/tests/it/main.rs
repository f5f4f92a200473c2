//! The adapters on every driver: one body of each case, and a test of it for each driver.
//!
//! `WEIR_REQUIRE_DRIVERS=uring,epoll` makes a driver that the kernel refuses a failure, `WEIR_TEST_SEED=n` replays a
//! run, and `-- --nocapture` shows each seed and why a case does not run. The cases of TLS need `--features tls`.

#[macro_use]
mod rig;

mod family;
mod http;
mod streams;
#[cfg(feature = "tls")]
mod tls;

#[path = "../../../weir-engine/tests/it/random.rs"]
mod random;
