//! Whole studies on the fake machine, in virtual time, with a real store.

mod fixture;

mod built_in;
mod choices;
mod contrasts;
mod follow;
mod http;
mod judging;
mod latency;
mod older_records;
mod own_servers;
mod published;
mod rungs;
mod sessions;
mod storage;
mod study_file;
#[path = "../../../weir-report/tests/it/weight.rs"]
mod weight;
