//! Rounds whose servers run on another host, while the generator runs here.

use std::{collections::BTreeMap, path::Path};

use weir_evidence::network;
use weir_record::{
    finding::NoTurns,
    machine::{CrossCoreReading, LinkCounters, NetworkCounters},
    spec::{CellSpec, StudySpec},
};

use super::{
    Deadlines, RemoteHost,
    files::Files,
    hosted::{NoAnswer, Serving, Stopped},
    is_job,
    remote::{RoundStarted, ServersThere},
    server_round::Round,
};
use crate::{
    alternation,
    launch::{LaunchError, RoundOutcome, RoundRequest, TrialFailure},
};

/// The parts of a round on this machine.
pub(super) struct Lab<'a> {
    pub(super) weir: &'a Path,
    pub(super) deadlines: &'a Deadlines,
    pub(super) files: &'a mut Files,
}

/// Refuses a study that cannot run with its servers on another host: in one sentence that names a cell, why, and the
/// way out.
pub(super) fn check(spec: &StudySpec) -> Result<(), LaunchError> {
    let cells: Vec<&CellSpec> = spec.cells.iter().filter(|cell| cell.blocks > 0).collect();
    let refused: Vec<_> = cells.iter().filter_map(|cell| Some((*cell, obstacle(spec, cell)?))).collect();
    let Some((CellSpec { id, .. }, reason)) = refused.first() else { return Ok(()) };
    let whole = "run the whole study there with --hosts FILE, a file that names that host";
    Err(LaunchError::Usage(if refused.len() == cells.len() {
        format!("study {} cannot have its servers on another host: in cell {id} {reason}; {whole}", spec.name)
    } else {
        let (some, all) = (refused.len(), cells.len());
        format!(
            "{some} of {all} cells of study {} cannot have their servers on another host: in cell {id} {reason}; leave \
             such cells out, or {whole}",
            spec.name
        )
    }))
}

/// Why the servers of a cell cannot run on another host; `None` if they can.
fn obstacle(spec: &StudySpec, cell: &CellSpec) -> Option<String> {
    if is_job(cell) {
        return Some("a job works on a disk, and there is no server".to_owned());
    }
    if cell.alternation.is_none() {
        let [why, ..] = alternation::obstacle(spec, cell).unwrap_or(NoTurns::Asked).words();
        return Some(format!("the arms do not take turns ({why})"));
    }
    let has_neighbours = !cell.neighbours.is_empty();
    has_neighbours.then(|| "neighbours load the servers from the servers' own host".to_owned())
}

/// Why a cell cannot be run with servers on another host. [`check`] refuses it before anything runs.
pub(super) fn whole_trial(cell: &CellSpec) -> LaunchError {
    LaunchError::Usage(format!(
        "the arms of cell {} do not take turns, and only where they do may servers run on another host",
        cell.id
    ))
}

/// Runs a round. If the host is lost, all arms of the round fail, and the next round connects again.
pub(super) fn run_round(
    host: &mut RemoteHost,
    lab: Lab<'_>,
    request: &RoundRequest<'_>,
    number: u64,
) -> Result<RoundOutcome, LaunchError> {
    host.reconnect(request.interrupt)?;
    let files = lab.files.of_generator(request.cell)?;
    let serving = Serving::of(request, number);
    let interface = host.interface().map(str::to_owned);
    let counters = network::read_with_link(interface.as_deref());
    let RoundStarted { servers: started, programs } = match host.start(&serving, request.interrupt) {
        Ok(started) => started,
        Err(NoAnswer::Stop(error)) => return Err(error),
        Err(NoAnswer::Lost(reason)) => return Ok(lost(request, &reason)),
    };
    let round = Round { weir: lab.weir, request, deadlines: lab.deadlines, files: &files };
    let mut servers = ServersThere::of(host, &serving, request.interrupt);
    let (arms, Stopped { network: there, .. }) = round.run(&mut servers, started)?;
    let here = network::read_with_link(interface.as_deref()).since(&counters);
    // Counters of one namespace count once.
    let network = if host.shares_network() { here } else { both(&here, &there) };
    let unread = CrossCoreReading::default();
    Ok(RoundOutcome { reading_before: unread, reading_after: unread, network, programs, arms })
}

/// The outcome of a round whose host was lost before it began.
fn lost(request: &RoundRequest<'_>, reason: &str) -> RoundOutcome {
    let failure = || Err(TrialFailure::Host { reason: reason.to_owned() });
    let unread = CrossCoreReading::default();
    RoundOutcome {
        reading_before: unread,
        reading_after: unread,
        network: NetworkCounters::default(),
        programs: request.arms.iter().map(|_| BTreeMap::new()).collect(),
        arms: request.arms.iter().map(|_| failure()).collect(),
    }
}

/// The sum of the kernel's counters of both ends.
fn both(here: &NetworkCounters, there: &NetworkCounters) -> NetworkCounters {
    NetworkCounters {
        listen_overflows: here.listen_overflows + there.listen_overflows,
        listen_drops: here.listen_drops + there.listen_drops,
        tcp_retransmits: here.tcp_retransmits + there.tcp_retransmits,
        syn_retransmits: here.syn_retransmits + there.syn_retransmits,
        link: LinkCounters {
            packets: here.link.packets + there.link.packets,
            drops: here.link.drops + there.link.drops,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, host_defaults::HostDefaults};

    fn said(study: builtin::BuiltIn) -> Option<String> {
        let spec = study.study(&HostDefaults::default()).expect("it is right").spec;
        check(&spec).err().map(|error| error.to_string())
    }

    #[test]
    fn every_built_in_study_runs_elsewhere_or_says_in_a_sentence_why_not() {
        let all = || builtin::ALL.into_iter().chain(builtin::OF_OPTIONS);
        let of = |name: &str| said(all().find(|study| study.name == name).expect("it is built in"));
        for name in ["quick", "why", "peers-echo"] {
            assert_eq!(of(name), None, "{name}");
        }
        for (name, reason) in [
            ("http", "(a connection for each message leaves work in the kernel for the next slice)"),
            ("peers-http", "(a connection for each message"),
            ("http-confounders", "(a connection for each message"),
            ("survey", "the arms do not take turns ("),
            ("survey-storage", "a job works on a disk, and there is no server"),
            ("polling", "a job works on a disk"),
            ("gateway", "(a gateway has an exchange behind it, and sessions that go on)"),
        ] {
            let text = of(name).expect("its servers are here");
            assert!(text.contains(reason), "{text}");
        }
        let whole = "run the whole study there with --hosts FILE, a file that names that host";
        for (name, text) in all().filter_map(|study| Some((study.name, said(study)?))) {
            let about =
                [format!("study {name} cannot have its"), format!("of study {name} cannot have their")];
            assert!(about.iter().any(|about| text.contains(about)) && text.ends_with(whole), "{text}");
            assert!(text.contains("servers on another host: in cell "), "{text}");
        }
    }
}
