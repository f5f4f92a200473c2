//! Arguments of `weir storage`.

use clap::{Args, Subcommand};

mod capture;
mod run;
mod simulate;

pub(crate) use capture::StorageCapture;
pub(crate) use run::{OnOff, StorageRun, Workload};
pub(crate) use simulate::StorageSimulate;

#[derive(Debug, Args)]
pub(crate) struct Storage {
    #[command(subcommand)]
    pub(crate) task: StorageTask,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StorageTask {
    /// Read or write a file with any engine and any way to wait, and measure it
    Run(Box<StorageRun>),
    /// Let completion methods wait for a modelled device or a recorded trace
    Simulate(Box<StorageSimulate>),
    /// Record a trace of device times from the kernel's block tracepoints
    Capture(Box<StorageCapture>),
}
