//! Comparison of two or more commands that end, or of servers under a load. Their runs take turns in random order, and
//! a verdict has its interval.
//!
//! [`asked`] is the request for a comparison, [`session`] runs it, [`run`] is one run of a command. [`servers`] are up
//! together while a load takes turns between them, and [`load`] reads the work that the load reports. The record is
//! `weir_record::commands`. `weir_judge::commands` decides, by the rule that decides studies.

pub mod asked;
pub mod load;
pub mod machine;
pub mod run;
pub mod servers;
pub mod session;

mod calls;
mod files;
mod parting;
mod private_folder;
mod recorded;

use schemars::generate::SchemaSettings;
use weir_record::commands::{COMPARISON_VERSION, CommandReport};

/// JSON Schema (draft 2020-12) of the record of comparisons, generated from the types that are written.
///
/// # Errors
/// When the types cannot be described, which is a mistake in them.
pub fn schema() -> Result<String, serde_json::Error> {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<CommandReport>();
    schema.insert("$id".to_owned(), format!("urn:weir:comparison-of-commands:{COMPARISON_VERSION}").into());
    serde_json::to_string_pretty(&schema)
}
