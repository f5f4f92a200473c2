//! The laboratory: plans a study, runs it block by block, and judges what was measured.
//!
//! In the order a study passes through: [`file`], [`quick`], [`http`], [`survey`], [`storage`] and [`gateway`]
//! say what is asked, [`plan`] in which order it runs, [`run`] runs it through a [`launch::Launcher`] and stores
//! every finished block, [`progress`] says how far it is, [`taint`] and [`gate`] say which trials may be
//! compared, [`judge`] compares them, [`exit`] and [`export`] hand the result on.
//!
//! Planning, gating and judging are pure: the same spec, seed and trials give the same order and the same verdict,
//! on any machine and at any time. Measured code never runs in this process; [`process`] starts it as child processes
//! that cannot outlive it. Nothing here prints, exits or reads the environment.

pub mod file;
pub mod gateway;
pub mod http;
pub mod quick;
pub mod storage;
pub mod survey;
pub mod validate;
pub mod ways;

pub mod alternation;
pub mod plan;

pub mod launch;

pub mod process;

pub mod supervise;

pub mod fake;

pub mod run;

pub mod progress;

pub mod taint;

pub mod gate;

pub mod judge;

pub mod exit;
pub mod export;

mod attribution;
mod check;
mod equal_rate;
mod handoff;
mod histogram;
mod listening;
mod published;
mod summary;
mod units;
