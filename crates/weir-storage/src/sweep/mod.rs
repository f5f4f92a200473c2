//! Many ways to wait over the same phases with the same seeds: what is tried ([`methods`], [`plans`]), on what
//! ([`world`], [`synthetic`]), and how it is carried through ([`run`]) so that an interruption loses nothing
//! ([`results_file`]).

pub mod methods;
pub mod plans;

pub mod synthetic;
pub mod world;

pub mod results_file;
pub mod run;

pub use run::{SweepError, SweepHands, SweepProgress, SweepRun, run};
