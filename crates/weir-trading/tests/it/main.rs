//! Venues, translation, risk and the kill switch as their callers see them.
#![expect(clippy::print_stdout, reason = "seeds and times are for the reader of a failure")]

mod conservation;
mod day;
mod differential;
mod echo;
mod kill;
mod naive;
mod outcomes;
mod random;
mod risk;
mod support;
mod upstream_numbers;
