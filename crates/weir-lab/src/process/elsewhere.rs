//! Rounds whose servers run on another host, while the generator runs here.

use std::{collections::BTreeMap, path::Path};

use weir_evidence::network;
use weir_record::{
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
use crate::launch::{LaunchError, RoundOutcome, RoundRequest, TrialFailure};

/// The parts of a round on this machine.
pub(super) struct Lab<'a> {
    pub(super) weir: &'a Path,
    pub(super) deadlines: &'a Deadlines,
    pub(super) files: &'a mut Files,
}

/// Refuses a study that cannot run with its servers on another host.
pub(super) fn check(spec: &StudySpec) -> Result<(), LaunchError> {
    let cells = || spec.cells.iter().filter(|cell| cell.blocks > 0);
    if let Some(cell) = cells().find(|cell| is_job(cell)) {
        return Err(LaunchError::Usage(format!(
            "cell {} works on a disk and serves nobody; run its study on the host that has the disk",
            cell.id
        )));
    }
    if let Some(cell) = cells().find(|cell| cell.alternation.is_none()) {
        return Err(whole_trial(cell));
    }
    match cells().find(|cell| !cell.neighbours.is_empty()) {
        Some(cell) => Err(LaunchError::Usage(format!(
            "cell {} has neighbours, which load the servers from their own host; leave it out, or run the study on one \
             host",
            cell.id
        ))),
        None => Ok(()),
    }
}

/// Why a cell cannot be run with servers on another host.
pub(super) fn whole_trial(cell: &CellSpec) -> LaunchError {
    LaunchError::Usage(format!(
        "the arms of cell {} do not take turns, and only where they do may servers run on another host; leave it out, \
         or run the study on one host",
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
