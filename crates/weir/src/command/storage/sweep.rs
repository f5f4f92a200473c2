//! `weir storage sweep`: many methods over the same phases with the same seeds, and who is ahead.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use weir_record::sweep::{SweepMethod, SweepResult};
use weir_storage::{
    frontier,
    simulate::HostModel,
    sweep::{
        methods, plans, synthetic,
        world::{RecordedTrace, SeedOfTrace, World},
    },
    trace,
};

use crate::{
    args::StorageSweep,
    command::{
        engine,
        polling::{
            carry::{self, Carried},
            disk,
        },
        report,
    },
    exit::{Exit, UsageError},
    output, signals,
};

/// Simulated time of a job, or time of a trial, at least and at most.
const JOB_TIME: [Duration; 2] = [Duration::from_millis(10), Duration::from_secs(3600)];
/// The same when nothing is said.
const JOB_NS: u64 = 2_000_000_000;
/// Seeds when nothing is said.
const SEEDS: u64 = 5;
/// Blocks on a disk when nothing is said: the fewest with an interval.
const BLOCKS: u64 = 6;
/// Background depths on a disk when nothing is said.
const DEPTHS: [u32; 3] = [0, 32, 128];
/// Seeds and blocks, at most.
const SEEDS_MAX: u64 = 10_000;
/// Methods on the model and on traces when nothing is said.
const METHODS: &str = "predictors ratios";
/// Methods on a disk when nothing is said.
const METHODS_DISK: &str = "disk";

pub(crate) fn run(arguments: &StorageSweep) -> Result<Exit> {
    let language = report::language(&arguments.lang)?;
    check(arguments)?;
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    signals::on_stop(move |count| {
        flag.store(true, Ordering::Relaxed);
        if count > 1 {
            std::process::exit(130);
        }
    })?;
    let (result, exit) =
        if arguments.is_disk() { on_disk(arguments, &interrupt)? } else { on_model(arguments, &interrupt)? };
    if arguments.json {
        output::print(&serde_json::to_string(&result)?)?;
    } else {
        let (width, color) = (output::width_columns(), output::has_color());
        output::print(&weir_report::sweep_terminal(&result, language, width, color))?;
        for note in &result.notes {
            output::print(&format!("\n{note}"))?;
        }
    }
    Ok(exit)
}

fn check(arguments: &StorageSweep) -> Result<()> {
    let refused = |text: &str| Err(UsageError(text.to_owned()).into());
    if arguments.trace.is_some() && !arguments.is_trace() {
        return refused("--trace belongs to --world trace");
    }
    if arguments.file.is_some() && !arguments.is_disk() {
        return refused("--file belongs to --world disk");
    }
    if !arguments.background.is_empty() && !arguments.is_disk() {
        return refused("--background belongs to --world disk; the simulator has the background of its jobs");
    }
    if arguments.job_time.is_some() && arguments.is_trace() {
        return refused("--job-time belongs to the simulator and to a disk; a trace is as long as it is");
    }
    match arguments.seeds {
        Some(seeds) if !(1..=SEEDS_MAX).contains(&seeds) => {
            refused(&format!("--seeds must be from 1 to {SEEDS_MAX}"))
        }
        _ => Ok(()),
    }
}

fn job_ns(arguments: &StorageSweep) -> Result<u64> {
    let Some(text) = &arguments.job_time else { return Ok(JOB_NS) };
    let job_time = engine::time("--job-time", text)?;
    let [shortest, longest] = JOB_TIME;
    if !(shortest..=longest).contains(&job_time) {
        return Err(UsageError("--job-time must be from 10ms to 1h".into()).into());
    }
    Ok(job_time.as_nanos() as u64)
}

fn depths(arguments: &StorageSweep) -> Vec<u32> {
    if arguments.background.is_empty() { DEPTHS.to_vec() } else { arguments.background.clone() }
}

fn methods(arguments: &StorageSweep, default: &str) -> Result<Vec<SweepMethod>> {
    let text = if arguments.methods.is_empty() { default.to_owned() } else { arguments.methods.join(" ") };
    let found = methods::parse(&text).map_err(|error| UsageError(format!("--methods: {error}")))?;
    if found.is_empty() {
        return Err(UsageError("--methods names none; leave it out, or name one".into()).into());
    }
    Ok(found)
}

fn on_model(arguments: &StorageSweep, interrupt: &AtomicBool) -> Result<(SweepResult, Exit)> {
    let (methods, job_ns) = (methods(arguments, METHODS)?, job_ns(arguments)?);
    for method in &methods {
        methods::simulated(method).map_err(|error| UsageError(format!("--methods: {error}")))?;
    }
    let seeds = plans::held_out(arguments.seeds.unwrap_or(SEEDS));
    let host = HostModel::xeon_6230();
    let interval_ns = plans::interval_ns(job_ns);
    let (world, plan) = match &arguments.trace {
        Some(path) => recorded(path, host, interval_ns, seeds, methods)?,
        None if arguments.is_trace() => {
            let plan =
                plans::of_traces(plans::SOURCE_SYNTHETIC, &synthetic::KINDS, interval_ns, seeds, methods);
            (World::Synthetic { host, interval_ns }, plan)
        }
        None => {
            let scenario = plans::scenario(job_ns);
            let plan = plans::of_scenario(&scenario, plans::SOURCE_MODEL, seeds, methods);
            (World::Model(scenario), plan)
        }
    };
    let file = arguments.out.as_deref();
    let Carried { parts, interrupted } =
        carry::carry(&plan, &world, file, arguments.resume, interrupt, arguments.json)?;
    if interrupted {
        output::tell(&carry::way_on(file));
    }
    Ok((frontier::judge(&plan, &parts), if interrupted { Exit::Interrupted } else { Exit::Ok }))
}

fn recorded(
    path: &Path,
    host: HostModel,
    interval_ns: u64,
    seeds: Vec<u64>,
    methods: Vec<SweepMethod>,
) -> Result<(World, weir_record::sweep::SweepPlan)> {
    let shown = path.display().to_string();
    let file =
        File::open(path).map_err(|error| UsageError(format!("--trace: cannot open {shown}: {error}")))?;
    let trace =
        trace::read(BufReader::new(file), &shown).map_err(|error| UsageError(format!("--trace: {error}")))?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    // Another trace of the same name is another sweep: none goes on with the results of the other.
    let source =
        format!("{name} ({} operations, fingerprint {:016x})", trace.operations.len(), trace.fingerprint());
    let plan = plans::of_traces(&source, &[&name], interval_ns, seeds, methods);
    let traces = vec![RecordedTrace { name, operations: trace.operations }];
    Ok((World::Recorded { traces, seeds: SeedOfTrace::Host, host, interval_ns }, plan))
}

fn on_disk(arguments: &StorageSweep, interrupt: &AtomicBool) -> Result<(SweepResult, Exit)> {
    let folder = arguments.out.clone().unwrap_or_else(disk::default_folder);
    let mut methods = methods(arguments, METHODS_DISK)?;
    if arguments.methods.is_empty() {
        let file = arguments.file.as_ref().map_or_else(|| disk::data_file(&folder), PathBuf::from);
        methods = disk::with_kernel_polls(methods, &file);
    }
    let asked = disk::Asked {
        methods,
        window_ns: job_ns(arguments)?,
        background_depths: depths(arguments),
        blocks: arguments.seeds.unwrap_or(BLOCKS),
        file: arguments.file.clone(),
        seed: 1,
    };
    disk::sweep(&folder, &asked, arguments.resume, interrupt, arguments.json)
}
