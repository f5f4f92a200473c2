//! From what `weir export` prints of a study to a recording. Pure.
//!
//! The JSON is read by the names of its fields, which docs/formats/study-export.schema.json lists: fields that a later
//! version adds are no reason to change this file, and one that an older version lacks is zero.

use std::collections::BTreeMap;

use serde_json::Value;
use weir_stats::recording::{RecordedCell, RecordedRound, RecordedRun, RecordedSlice, Recording};

/// The rounds of a study, and how many were left out: those with a trial that is in no comparison, or without a slice.
pub struct Stored {
    pub cells: Vec<RecordedCell>,
    pub left_out: usize,
    /// Whether the schedule was run to its end.
    pub is_complete: bool,
    /// What the study's fingerprint says of the machine.
    pub machine: Vec<(String, String)>,
}

/// Reads a study.
pub fn read(json: &str) -> Result<Stored, String> {
    let study: Value = serde_json::from_str(json).map_err(|error| format!("the export: {error}"))?;
    let result = &study["result"];
    let trials = study["trials"].as_array().ok_or("the export has no trials")?;
    let spec = &result["spec"];
    let arms: Vec<&str> = list(&spec["arms"]).filter_map(|arm| arm["name"].as_str()).collect();
    let (mut cells, mut left_out) = (Vec::new(), 0);
    for cell in list(&spec["cells"]) {
        let (cell, without) = recorded_cell(cell, &arms, trials)?;
        left_out += without;
        if !cell.rounds.is_empty() {
            cells.push(cell);
        }
    }
    let machine = machine(&result["fingerprint"]);
    Ok(Stored { cells, left_out, is_complete: result["complete"] == true, machine })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// What a fingerprint says of the machine.
pub fn machine(fingerprint: &Value) -> Vec<(String, String)> {
    let text = |key: &str| {
        let value = &fingerprint[key];
        value.as_str().map_or_else(|| value.as_u64().map(|it| it.to_string()), |it| Some(it.to_owned()))
    };
    let keys = [
        ("cpu", "cpu_model"),
        ("cpus", "cpus_online"),
        ("hypervisor", "hypervisor"),
        ("kernel", "kernel_release"),
        ("distribution", "distribution"),
        ("build", "build"),
    ];
    keys.into_iter().filter_map(|(name, key)| Some((name.to_owned(), text(key)?))).collect()
}

/// The rounds of one cell, and how many were left out.
fn recorded_cell(cell: &Value, arms: &[&str], trials: &[Value]) -> Result<(RecordedCell, usize), String> {
    let id = cell["id"].as_str().ok_or("a cell has no identifier")?;
    let arms_of_cell: Vec<&str> = list(&cell["arms"]).filter_map(Value::as_str).collect();
    let runs_here = |arm: &&&str| arms_of_cell.is_empty() || arms_of_cell.contains(*arm);
    let mut runs: Vec<RecordedRun> = arms
        .iter()
        .filter(runs_here)
        .map(|arm| RecordedRun { arm: (*arm).to_owned(), is_repeat: false })
        .collect();
    if let Some(baseline) = runs.first().cloned() {
        runs.insert(1, RecordedRun { is_repeat: true, ..baseline });
    }
    let mut attempts: BTreeMap<(u64, u64), Vec<&Value>> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial["cell_id"] == id) {
        attempts.entry((whole(&trial["block"]), whole(&trial["attempt"]))).or_default().push(trial);
    }
    let all = attempts.len();
    let mut rounds: Vec<RecordedRound> =
        attempts.iter().filter_map(|((block, _), trials)| round(*block, &runs, trials)).collect();
    rounds.sort_by_key(|round| round.started_ms);
    let left_out = all - rounds.len();
    let rate_per_second = cell["load"]["open"]["rate_per_second"].as_f64();
    Ok((RecordedCell { id: id.to_owned(), rate_per_second, runs, rounds }, left_out))
}

/// One round; `None` where a run has no trial, an exclusion, or another number of slices than the first.
fn round(number: u64, runs: &[RecordedRun], trials: &[&Value]) -> Option<RecordedRound> {
    let of_run = |run: &RecordedRun| {
        let is_it = |trial: &Value| {
            trial["arm"] == run.arm.as_str() && trial["repeat"].as_bool().unwrap_or(false) == run.is_repeat
        };
        trials.iter().copied().find(|trial| is_it(trial))
    };
    let found: Vec<&Value> = runs.iter().map(of_run).collect::<Option<_>>()?;
    if found.iter().any(|trial| list(&trial["exclusions"]).next().is_some()) {
        return None;
    }
    let slices: Vec<Vec<RecordedSlice>> = found.iter().map(|trial| slices(trial)).collect::<Option<_>>()?;
    let permutations = slices.first()?.len();
    if slices.iter().any(|of_run| of_run.is_empty() || of_run.len() != permutations) {
        return None;
    }
    let trip = |name: &str| found[0][name]["round_trip_ns"].as_f64().unwrap_or_default().round() as u64;
    let started_ns = found.iter().map(|trial| whole(&trial["started_ns"])).min()?;
    Some(RecordedRound {
        number: u32::try_from(number).ok()?,
        started_ms: started_ns / 1_000_000,
        round_trips_ns: [trip("reading_before"), trip("reading_after")],
        slices,
    })
}

/// The slices of a trial by permutation, each of which it has once; of a whole trial one, the trial itself.
fn slices(trial: &Value) -> Option<Vec<RecordedSlice>> {
    let mut found: Vec<(u64, RecordedSlice)> = list(&trial["slices"])
        .map(|slice| {
            let recorded = RecordedSlice {
                place: u32::try_from(whole(&slice["place"])).ok()?,
                messages: whole(&slice["messages"]),
                missed: whole(&slice["missed_starts"]),
                server_cpu_ns: whole(&slice["server_cpu_ns"]),
                length_ns: whole(&slice["length_ns"]),
            };
            Some((whole(&slice["permutation"]), recorded))
        })
        .collect::<Option<_>>()?;
    if found.is_empty() {
        let load = &trial["load"];
        let of_whole = RecordedSlice {
            place: u32::try_from(whole(&trial["position"])).ok()?,
            messages: load["messages"].as_u64()?,
            missed: 0,
            server_cpu_ns: load["observed"]["cpu_ns"].as_u64()?,
            length_ns: whole(&load["window_ns"]),
        };
        return Some(vec![of_whole]);
    }
    found.sort_by_key(|(permutation, _)| *permutation);
    let is_whole = (0_u64..).zip(&found).all(|(place, (permutation, _))| *permutation == place);
    is_whole.then(|| found.into_iter().map(|(_, slice)| slice).collect())
}

/// A recording of what is stored, with facts that the study does not have before those it has.
pub fn recording(facts: &[(&str, String)], stored: Stored) -> Recording {
    let own = facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    let complete = if stored.is_complete { "yes" } else { "no" };
    let schedule = [("complete", complete.to_owned()), ("rounds-left-out", stored.left_out.to_string())];
    let schedule = schedule.map(|(key, value)| (key.to_owned(), value));
    Recording { facts: own.chain(stored.machine).chain(schedule).collect(), cells: stored.cells }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(permutation: u32, place: u32) -> Value {
        json!({"permutation": permutation, "place": place, "messages": 10, "server_cpu_ns": 500, "length_ns": 9})
    }

    fn trial(arm: &str, repeat: bool, block: u32, slices: &[Value]) -> Value {
        json!({"cell_id": "c", "block": block, "attempt": 0, "arm": arm, "repeat": repeat, "exclusions": [],
            "started_ns": 7_000_000 + u64::from(block), "position": 2, "reading_before": {"round_trip_ns": 71.6},
            "reading_after": {"round_trip_ns": 73.2}, "slices": slices,
            "load": {"messages": 99, "window_ns": 1_000, "observed": {"cpu_ns": 777}}})
    }

    fn study(trials: &[Value]) -> String {
        let spec = json!({"arms": [{"name": "epoll"}, {"name": "uring"}],
            "cells": [{"id": "c", "load": {"open": {"rate_per_second": 50.5}}}]});
        let fingerprint = json!({"cpu_model": "a CPU", "cpus_online": 2, "hypervisor": null});
        json!({"result": {"spec": spec, "fingerprint": fingerprint, "complete": true}, "trials": trials})
            .to_string()
    }

    fn round_of(block: u32, slices: &[Value]) -> Vec<Value> {
        let runs = [("uring", false), ("epoll", true), ("epoll", false)];
        runs.map(|(arm, repeat)| trial(arm, repeat, block, slices)).to_vec()
    }

    #[test]
    fn a_round_has_the_slices_of_every_run_by_permutation() {
        let mut late = slice(1, 0);
        late["missed_starts"] = json!(3);
        let stored = read(&study(&round_of(0, &[late, slice(0, 2)]))).expect("a study");
        let cell = &stored.cells[0];
        let names: Vec<String> = cell.runs.iter().map(RecordedRun::to_string).collect();
        assert_eq!((names.join(" ").as_str(), cell.rate_per_second), ("epoll epoll* uring", Some(50.5)));
        let round = &cell.rounds[0];
        assert_eq!((round.started_ms, round.round_trips_ns), (7, [72, 73]));
        let found: Vec<(u32, u64)> = round.slices[2].iter().map(|it| (it.place, it.missed)).collect();
        assert_eq!(found, [(2, 0), (0, 3)], "an export without missed starts has none");
        assert_eq!((stored.left_out, stored.is_complete), (0, true));
        let text = recording(&[("condition", "quiet".to_owned())], stored).to_text().expect("sound names");
        assert!(text.contains("# condition: quiet\n# cpu: a CPU\n# cpus: 2\n# complete: yes\n"), "{text}");
    }

    #[test]
    fn a_whole_trial_is_one_slice() {
        let stored = read(&study(&round_of(0, &[]))).expect("a study");
        let slice = stored.cells[0].rounds[0].slices[0][0];
        assert_eq!((slice.place, slice.messages, slice.server_cpu_ns, slice.length_ns), (2, 99, 777, 1_000));
    }

    #[test]
    fn a_round_that_is_in_no_comparison_is_left_out_and_counted() {
        let whole = [slice(0, 0), slice(1, 1)];
        let mut trials = round_of(0, &whole);
        let mut failed = round_of(1, &whole);
        failed[2]["exclusions"] = json!([{"kind": "errors", "count": 1}]);
        let without_run = round_of(2, &whole)[..2].to_vec();
        let mut uneven = round_of(3, &whole);
        uneven[1]["slices"] = json!([slice(0, 0)]);
        let mut twice = round_of(4, &whole);
        twice[0]["slices"] = json!([slice(0, 0), slice(0, 1)]);
        trials.extend([failed, without_run, uneven, twice].concat());
        let stored = read(&study(&trials)).expect("a study");
        assert_eq!((stored.cells[0].rounds.len(), stored.left_out), (1, 4));
    }

    #[test]
    fn what_is_no_study_is_an_error() {
        assert!(read("{").is_err_and(|error| error.starts_with("the export: ")));
        assert!(read("{}").is_err_and(|error| error == "the export has no trials"));
    }
}
