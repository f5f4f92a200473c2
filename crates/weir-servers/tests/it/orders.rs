//! Tests of order sessions from a client's side, with an exchange behind them: one script, every driver.

pub mod client;
mod ending;
mod faults;
mod lines;
mod logins;
mod market;
mod numbers;
pub mod replay;
mod restart;
pub mod rig;
mod slow;
pub mod timing;
mod wire;
