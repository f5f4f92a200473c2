//! `weir storage`.

use anyhow::Result;

use crate::{
    args::{Storage, StorageTask},
    exit::Exit,
    signals,
};

mod capture;
mod run;
mod run_job;
mod run_outputs;
mod run_table;
mod simulate;

pub(crate) fn run(storage: &Storage) -> Result<Exit> {
    signals::outlive_file_limit()?;
    match &storage.task {
        StorageTask::Run(arguments) => run::run(arguments),
        StorageTask::Simulate(arguments) => simulate::run(arguments),
        StorageTask::Capture(arguments) => capture::run(arguments),
    }
}
