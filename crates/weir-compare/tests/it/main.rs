//! The comparison from outside.

mod calls;
mod runner;
mod servers;
