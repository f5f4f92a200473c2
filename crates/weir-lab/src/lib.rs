//! The laboratory: says what a study asks, runs it block by block, and has it judged.
//!
//! In the order a study passes through: [`file`], [`quick`], [`http`], [`survey`], [`storage`] and [`gateway`] say what
//! is asked, [`validate`] what may be asked, [`alternation`] which arms take turns; [`run`] runs it through a
//! [`launch::Launcher`] in the order of [`weir_judge::plan`] and stores every finished block, `weir-judge` judges it,
//! [`exit`] and [`export`] hand the result on.
//!
//! Measured code never runs in this process; [`process`] starts it as child processes that cannot outlive it. Nothing
//! here prints, exits or reads the environment.

pub mod alternation;
pub mod exit;
pub mod export;
pub mod fake;
pub mod file;
pub mod gateway;
pub mod http;
pub mod launch;
pub mod process;
pub mod quick;
pub mod run;
pub mod storage;
pub mod supervise;
pub mod survey;
pub mod validate;
pub mod ways;

mod published;
