//! The order sessions as clients meet them, with the echoing exchange behind: one script, every driver.

mod client;
mod ending;
mod logins;
mod numbers;
mod replay;
mod restart;
mod rig;
mod timing;
mod wire;
