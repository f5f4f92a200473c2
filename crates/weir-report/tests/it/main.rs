//! Readable output, tested on hand-made studies: snapshots of the texts, properties of the page.

mod account;
mod alone;
mod answer;
mod budget;
mod documents;
mod every_study;
mod evidence;
mod findings;
mod fixture;
mod frontier;
mod jitter;
mod latency_map;
mod map;
mod orders;
mod overview;
mod page;
mod run_pair;
mod run_pool;
mod running;
mod texts;
mod waiting;
mod weight;
mod when;
