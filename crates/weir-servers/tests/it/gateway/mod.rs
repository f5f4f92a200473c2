//! The order gateway between clients and exchanges, real and scripted ones.

mod changes;
mod ending;
mod faults;
mod lines;
mod orders;
mod recovery;
pub mod rig;
mod rules;
mod upstream;
mod world;
