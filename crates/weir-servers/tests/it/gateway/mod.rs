//! Tests of the order gateway between clients and exchanges, real and scripted ones.

mod address;
mod anew;
mod changes;
mod client_page;
mod drop_copy;
mod elsewhere;
mod ending;
mod events;
mod faults;
mod kill;
mod limits;
mod lines;
mod listings;
mod moved;
mod notices;
mod orders;
mod overflow;
mod recovery;
mod reload;
pub mod rig;
mod rules;
mod stale;
mod stalled;
mod unreachable;
mod upstream;
mod world;
