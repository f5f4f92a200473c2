//! The order gateway between clients and exchanges, real and scripted ones.

mod changes;
mod orders;
mod recovery;
mod rig;
mod upstream;
