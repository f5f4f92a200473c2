//! The comparison from outside.

mod runner;
