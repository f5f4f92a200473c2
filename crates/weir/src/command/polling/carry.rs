//! Carries a sweep over a model or a trace through, with progress for whoever waits.

use std::{
    io::IsTerminal,
    num::NonZeroUsize,
    path::Path,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Instant,
};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use weir_record::sweep::{SweepPart, SweepPlan};
use weir_storage::sweep::{
    self, SweepError, SweepHands, SweepProgress, results_file::ResultsFileError, world::World,
};

use crate::{exit::UsageError, output};

/// Parts at a time, at most: more would leave no CPU to whoever else works here.
const WORKERS_MAX: usize = 2;
/// Lines of progress where there is no terminal.
const LINES: usize = 20;

/// What was done.
pub(crate) struct Carried {
    pub(crate) parts: Vec<SweepPart>,
    pub(crate) interrupted: bool,
}

/// Carries a plan through. With a file, what is in it already is not done again where `resume` says so.
pub(crate) fn carry(
    plan: &SweepPlan,
    world: &World,
    file: Option<&Path>,
    resume: bool,
    interrupt: &AtomicBool,
    quiet: bool,
) -> Result<Carried> {
    let display = Display::new(plan, quiet);
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(WORKERS_MAX);
    let hands = SweepHands {
        file,
        resume,
        workers: NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN),
        interrupt,
        progress: &|progress| display.show(progress),
    };
    let done =
        sweep::run(plan, &|method, seed| world.measure(plan, method, seed), &hands).map_err(explained)?;
    display.end();
    Ok(Carried { parts: done.parts, interrupted: done.interrupted })
}

/// What to do with a sweep that was interrupted.
pub(crate) fn way_on(file: Option<&Path>) -> String {
    match file {
        Some(file) => format!("interrupted; finished parts are in {}: go on with --resume", file.display()),
        None => "interrupted; with --out FILE finished parts would have been kept".to_owned(),
    }
}

fn explained(error: SweepError) -> anyhow::Error {
    match error {
        SweepError::File(ResultsFileError::Io { .. } | ResultsFileError::Busy { .. }) => error.into(),
        SweepError::File(_) | SweepError::Empty(_) | SweepError::Twice(_) => {
            UsageError(error.to_string()).into()
        }
    }
}

/// A bar on a terminal, some lines elsewhere.
struct Display {
    bar: Option<ProgressBar>,
    quiet: bool,
    source: String,
    began: Instant,
    told: AtomicUsize,
}

impl Display {
    fn new(plan: &SweepPlan, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style =
                ProgressStyle::with_template("{elapsed_precise} [{bar:32}] {pos}/{len} {prefix}  {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(plan.source.clone());
            bar
        });
        let (source, told) = (plan.source.clone(), AtomicUsize::new(0));
        Self { bar, quiet, source, began: Instant::now(), told }
    }

    fn show(&self, progress: &SweepProgress<'_>) {
        let SweepProgress { done, planned, part } = *progress;
        if let Some(bar) = &self.bar {
            bar.set_length(planned as u64);
            bar.set_position(done as u64);
            if let Some(part) = part {
                bar.set_message(format!("{} seed {}", part.method, part.seed));
            }
        } else if !self.quiet {
            let step = done * LINES / planned.max(1);
            if part.is_none() || step > self.told.fetch_max(step, Ordering::Relaxed) {
                let seconds = self.began.elapsed().as_secs();
                output::tell(&format!("{seconds:>5} s  {}: {done} of {planned} runs", self.source));
            }
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
