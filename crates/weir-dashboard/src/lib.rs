//! Stored studies in a browser: a list of a results folder, each study's report, the study that runs as it is stored,
//! and the charts of document 000, which other pages may frame.
//!
//! It reads and never writes: stores are opened read-only (SQLite itself may place its shared index beside one),
//! sessions that run are found without touching their locks, and no request changes anything. What is shown is judged
//! and drawn by `weir-judge` and `weir-report`, as `weir report` does it; nothing is computed here. It measures
//! nothing, and runs on a thread of its own runtime that no server of Weir and no laboratory shares.
//!
//! Everything that a peer can make grow has a maximum: [`CONNECTIONS_MAX`], [`FOLDERS_MAX`], [`LISTED_MAX`],
//! [`JUDGED_MAX`], [`WATCHERS_MAX`], and the length of a request's head.

mod counters;
mod errors;
mod folder;
mod live;
mod pages;
mod query;
mod server;
mod shelf;
mod words;

pub use errors::DashboardError;
pub use folder::{FOLDERS_MAX, LISTED_MAX};
pub use live::WATCHERS_MAX;
pub use query::accepted;
pub use server::{CONNECTIONS_MAX, Dashboard, Settings, Stop};
pub use shelf::JUDGED_MAX;
