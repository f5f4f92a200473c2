//! Stored studies in a browser: a list of a results folder, each study's report, two of them side by side, results of
//! studies and stored comparisons of commands by commit, the running study as it is stored, and the charts of document
//! 000, which other pages may frame. With the settings for them: running servers, and live and recorded observations.
//!
//! It reads and never writes: stores are opened read-only (SQLite itself may place its shared index beside one). It
//! finds running sessions without touching their locks, except for the moment before a study is started. `weir-judge`
//! and `weir-report` judge and draw, as in `weir report`; the dashboard computes nothing. It measures nothing, and runs
//! on a thread of its own runtime that no server of Weir and no laboratory shares.
//!
//! No request changes anything, unless there is a token ([`ControlSettings`]): then readers with the token may start a
//! study, which is a child process that ends with the dashboard, and stop it.
//!
//! Everything that a peer can make grow has a maximum: [`CONNECTIONS_MAX`], [`CONNECTIONS_ADDRESS_MAX`],
//! [`FOLDERS_MAX`], [`NAMES_MAX`], [`LISTED_MAX`], [`JUDGED_MAX`], [`WATCHERS_MAX`], [`WATCHERS_ADDRESS_MAX`],
//! [`SESSIONS_MAX`], [`FAILURES_MAX`], [`FAILURES_ALL_MAX`], [`FORM_BYTES_MAX`], [`OFFERED_MAX`], [`RECORDS_MAX`],
//! [`OBSERVED_MAX`], [`SAID_BYTES_MAX`], [`UNSENT_BYTES_MAX`], [`UNSENT_ADDRESS_BYTES_MAX`], and the length of a
//! request's head. One study runs at a time.

mod actions;
mod app;
mod auth;
mod charts_page;
mod choice;
mod compare_page;
mod connections;
mod control;
mod counters;
mod errors;
mod folder;
mod forms;
mod history_cache;
mod history_page;
mod list_page;
mod live;
mod observed;
mod observer;
mod offered;
mod origin;
mod packed;
mod pages;
mod query;
mod reader;
mod runner;
mod running_study;
mod server;
mod sorting;
mod study_cache;
mod token;
mod top;
mod top_history;
mod top_page;
mod top_table;
mod turned_away;
mod unsent;
mod words;

pub use actions::FORM_BYTES_MAX;
pub use app::Settings;
pub use auth::{FAILURES_ALL_MAX, FAILURES_MAX, SESSIONS_MAX};
pub use connections::CONNECTIONS_ADDRESS_MAX;
pub use control::ControlSettings;
pub use errors::DashboardError;
pub use folder::{FOLDERS_MAX, LISTED_MAX, NAMES_MAX};
pub use live::{WATCHERS_ADDRESS_MAX, WATCHERS_MAX};
pub use observed::RECORDS_MAX;
pub use observer::OBSERVED_MAX;
pub use offered::OFFERED_MAX;
pub use origin::Origin;
pub use query::accepted;
pub use runner::SAID_BYTES_MAX;
pub use server::{CONNECTIONS_MAX, Dashboard, Stop};
pub use study_cache::JUDGED_MAX;
pub use token::{TOKEN_BYTES_MAX, TOKEN_BYTES_MIN, Token, TokenError};
pub use unsent::{UNSENT_ADDRESS_BYTES_MAX, UNSENT_BYTES_MAX};
