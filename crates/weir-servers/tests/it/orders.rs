//! The order sessions as clients meet them, with an exchange behind: one script, every driver.

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
