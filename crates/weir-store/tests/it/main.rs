//! The store on a real file system: what is written comes back, and faults are named.

mod faults;
mod fixture;
mod round_trip;
