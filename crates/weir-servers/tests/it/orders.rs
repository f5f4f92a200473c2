//! The order sessions as clients meet them, with an exchange behind: one script, every driver.

mod client;
mod ending;
mod logins;
mod market;
mod numbers;
mod replay;
mod restart;
mod rig;
mod timing;
mod wire;
