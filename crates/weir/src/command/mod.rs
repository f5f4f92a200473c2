//! One file for each command: arguments to specification, then run.

pub(crate) mod ctl;
pub(crate) mod doctor;
pub(crate) mod engine;
pub(crate) mod export;
mod journal;
pub(crate) mod load;
mod load_http;
mod load_http_table;
mod load_orders;
pub(crate) mod load_slices;
mod load_text;
pub(crate) mod manual;
pub(crate) mod observe;
pub(crate) mod report;
pub(crate) mod serve;
mod serve_echo;
mod serve_exchange;
mod serve_gateway;
mod serve_http;
pub(crate) mod storage;
pub(crate) mod study;
mod study_launcher;
mod study_plan;
mod study_storage;
pub(crate) mod supervise;
pub(crate) mod top;
