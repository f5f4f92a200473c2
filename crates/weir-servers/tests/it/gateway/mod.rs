//! The order gateway between clients and exchanges, real and scripted ones.

mod changes;
mod ending;
mod faults;
mod kill;
mod lines;
mod orders;
mod recovery;
pub mod rig;
mod rules;
mod stuck;
mod upstream;
mod world;
