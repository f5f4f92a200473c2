//! One file for each command: arguments to specification, then run. `weir serve` and `weir load` are commands
//! of the protocols ([`crate::protocol`]).

pub(crate) mod agent;
pub(crate) mod compare;
mod compare_asked;
mod compare_display;
mod compare_servers;
mod compare_store;
mod compare_words;
pub(crate) mod ctl;
pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod journal;
pub(crate) mod launch_runs;
pub(crate) mod load_slices;
pub(crate) mod manual;
pub(crate) mod observe;
mod origin;
pub(crate) mod report;
pub(crate) mod storage;
pub(crate) mod study;
pub(crate) mod study_about;
mod study_arms;
mod study_baseline;
mod study_diff;
mod study_display;
mod study_host;
mod study_launcher;
mod study_plan;
mod study_pool;
mod study_power;
mod study_repeat;
mod study_storage;
pub(crate) mod supervise;
pub(crate) mod top;
