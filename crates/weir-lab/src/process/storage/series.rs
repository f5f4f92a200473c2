//! A job that goes on while the background load changes in steps.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use weir_record::spec::StorageCell;

use super::{Deadlines, Job, Moment, Seen, Tool, background, beside, finish};
use crate::{
    launch::{LaunchError, TrialFailure, TrialRequest},
    process::generator::Loaded,
};

/// Lets the job run through all steps. A step's load starts at its beginning and stops at its end; the time to start
/// and stop it is part of the step.
pub(super) fn measure(
    weir: &Path,
    mut tool: Tool,
    data: &Path,
    request: &TrialRequest<'_>,
    storage: &StorageCell,
    (job, deadlines): (&Job<'_>, &Deadlines),
) -> Result<Loaded, LaunchError> {
    if !tool.go_on(request, job.ramp)? {
        return tool.refusal(request).map(Err);
    }
    let first = match Moment::read(&tool, None) {
        Ok(moment) => moment,
        Err(failure) => return Ok(Err(failure)),
    };
    let begin = Instant::now();
    let mut end = Duration::ZERO;
    for cores in &storage.core_steps {
        end += Duration::from_nanos(request.cell.window_ns);
        let load = match cores * storage.background_depth {
            0 => None,
            background_depth => {
                let of_step = StorageCell { background_depth, ..storage.clone() };
                match background(weir, data, request, &of_step, deadlines)? {
                    Ok(load) => Some(load),
                    Err(failure) => return Ok(Err(beside(failure))),
                }
            }
        };
        let goes_on = tool.go_on(request, end.saturating_sub(begin.elapsed()))?;
        let has_ended = load.as_ref().is_some_and(|load| load.group.has_ended());
        if let Some(load) = load {
            load.stop(deadlines);
        }
        if !goes_on {
            return tool.refusal(request).map(Err);
        }
        if has_ended {
            let reason = "the background load ended before its step did".to_owned();
            return Ok(Err(TrialFailure::Load { reason }));
        }
    }
    let last = match Moment::read(&tool, None) {
        Ok(moment) => moment,
        Err(failure) => return Ok(Err(failure)),
    };
    finish(tool, request, job, Seen::between(&first, &last), deadlines)
}
