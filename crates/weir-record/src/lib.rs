//! Plain data shared by every part of Weir: what was asked (`spec`, `protocol`, `published`), what was
//! measured (`engine`, `load`, `failure`, `http`, `orders`, `gateway`, `storage`, `machine`, `kernel`,
//! `window`, `trial`, `slices`), of which commit it is (`origin`), and what was concluded: the table of effects
//! (`effect`, `verdict`, `finding`), `check`, `study` with its `answer`, `commands`, and views of them (`cpu_account`,
//! `frontier`, `grid`, `guidance`, `history`, `overview`, `run_pair`, `run_pool`). What is compared in all of them is a
//! `metric`; its row in `metric_rows` knows how the records have it. `running` is a study before it is judged.
//!
//! Nothing here does I/O or reads a clock. Field names carry their unit last (`duration_ns`). All types are
//! serialisable and none depends on a default that lives elsewhere, so a stored record still means the same
//! when the defaults of a later version differ.

pub mod added_cost;
pub mod answer;
pub mod calendar;
pub mod cause;
pub mod check;
pub mod commands;
pub mod connection_costs;
pub mod contrast;
pub mod cpu_account;
pub mod doctor;
pub mod effect;
pub mod engine;
pub mod evidence;
pub mod failure;
pub mod figure;
pub mod finding;
pub mod frontier;
pub mod gateway;
pub mod goal;
pub mod grid;
pub mod guidance;
mod histogram_encoding;
pub mod history;
pub mod http;
pub mod latency;
pub mod latency_map;
pub mod load;
pub mod machine;
pub mod metric;
pub mod metric_rows;
pub mod observation;
pub mod orders;
pub mod origin;
pub mod overview;
pub mod protocol;
pub mod published;
pub mod quantity;
pub mod run_pair;
pub mod run_pool;
pub mod running;
pub mod slices;
pub mod spec;
pub mod storage;
pub mod storage_trial;
pub mod study;
pub mod text;
pub mod threads;
pub mod trial;
pub mod verdict;
pub mod wait_series;
pub mod window;

pub use weir_engine_types::kernel;

/// The stable name of a variant without arguments, as it stands in the records.
pub fn stable_name(variant: &impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

/// Version of the serialised records; raised when a field changes its meaning or disappears.
///
/// 2: engines count every call for I/O, those that accept and `ppoll` among them, and for poll and select no calls that
/// they do not make ([`engine::EngineStats`]).
///
/// 3: what a study concludes is one table ([`effect::Effects`]) in place of lists of comparisons, answers, contrasts,
/// causes, added costs and attributions.
pub const SCHEMA_VERSION: u32 = 3;
