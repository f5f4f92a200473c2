//! The store on a real file system: round trips, and the errors of each fault.

mod faults;
mod fixture;
mod round_trip;
