//! A dashboard over real sockets on loopback, and stores of studies that ran on a simulated machine.

mod bounds;
mod client;
mod compare;
mod control;
mod history;
mod list;
mod live;
mod packed;
mod pages;
mod refusals;
mod results;
