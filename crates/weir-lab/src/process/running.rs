//! Servers that ran before the study: finds their processes and checks whether they still run. Nothing here starts,
//! pins or ends them.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_evidence::{
    control_group::ControlGroup,
    fingerprint::program_of,
    listener::{Listener, listener},
    process::{cpus_allowed, is_above},
};
use weir_record::{
    machine::RunningProcess,
    spec::{RunningServer, StudySpec},
};
use weir_sys::process_stat::{self, ProcessStat};

use super::{group::Refusal, server_cpu::ServerCpu};
use crate::launch::{LaunchError, TrialFailure};

/// Longest wait for a connection that shows that a server accepts.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// The servers of a study's arms that ran before it, as they were found when its session began.
#[derive(Debug, Default)]
pub(crate) struct RunningServers(BTreeMap<String, Result<Found, Refusal>>);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(super) address: SocketAddr,
    pub(super) cpu: ServerCpu,
    /// Start time of its process, which distinguishes it from a later process with the same number.
    started_ticks: Option<u64>,
    record: RunningProcess,
}

impl RunningServers {
    pub(super) fn find(spec: &StudySpec) -> Self {
        let running = spec.arms.iter().filter_map(|arm| Some((arm.name.clone(), find(arm.running()?))));
        Self(running.collect())
    }

    /// Refuses a study if the server of an arm was not found.
    pub(super) fn check(&self, spec: &StudySpec) -> Result<(), LaunchError> {
        let mut refusals =
            spec.arms.iter().filter_map(|arm| Some(self.0.get(&arm.name)?.as_ref().err()?.about(&arm.name)));
        refusals.next().map_or(Ok(()), |refusal| Err(refusal.into()))
    }

    /// The process that was found for each arm, or why it would be refused.
    pub(super) fn looked_for(&self) -> Vec<(String, Result<RunningProcess, String>)> {
        let one = |found: &Result<Found, Refusal>| match found {
            Ok(found) => Ok(found.record.clone()),
            Err(refusal) => Err(refusal.reason().to_owned()),
        };
        self.0.iter().map(|(arm, found)| (arm.clone(), one(found))).collect()
    }

    /// The server of an arm, held so that its end is noticed.
    pub(super) fn hold(&self, arm: &str) -> Result<Held, TrialFailure> {
        let gone = |reason: String| TrialFailure::Server { reason };
        match self.0.get(arm) {
            Some(Ok(found)) => Held::new(found).ok_or_else(|| gone(ended(&found.cpu))),
            Some(Err(refusal)) => Err(gone(refusal.reason().to_owned())),
            None => Err(gone("it was not looked for".to_owned())),
        }
    }
}

/// A server that ran before the study, whose end is noticed.
pub(crate) struct Held {
    pub(super) found: Found,
    end: Option<OwnedFd>,
}

impl Held {
    /// `None` if it is gone, or another process has its number.
    fn new(found: &Found) -> Option<Self> {
        let end = match found.cpu {
            ServerCpu::Group(_) => None,
            ServerCpu::Process(pid) => {
                let end = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
                (started_ticks(pid) == found.started_ticks).then_some(())?;
                Some(end)
            }
        };
        let held = Self { found: found.clone(), end };
        (!held.has_ended()).then_some(held)
    }

    pub(super) fn has_ended(&self) -> bool {
        match (&self.found.cpu, &self.end) {
            // A group that cannot be listed has more processes than the limit.
            (ServerCpu::Group(group), _) => group.pids().is_ok_and(|pids| pids.is_empty()),
            (ServerCpu::Process(_), Some(end)) => {
                let mut ends = [PollFd::new(end, PollFlags::IN)];
                poll(&mut ends, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
            }
            (ServerCpu::Process(_), None) => true,
        }
    }

    /// Why it no longer runs.
    pub(super) fn exit_reason(&self) -> String {
        ended(&self.found.cpu)
    }
}

fn ended(cpu: &ServerCpu) -> String {
    match cpu {
        ServerCpu::Process(pid) => format!("process {pid}, which ran before the study, has ended"),
        ServerCpu::Group(group) => {
            format!("the control group {} has no process any more", group.folder().display())
        }
    }
}

fn find(server: &RunningServer) -> Result<Found, Refusal> {
    let address = own_address(&server.address)?;
    let (cpu, found_by_port) = match (&server.cgroup, server.pid) {
        (Some(name), _) => (ServerCpu::Group(group(name)?), false),
        (None, Some(pid)) => (ServerCpu::Process(named(pid, address)?), false),
        (None, None) => (ServerCpu::Process(by_port(address)?), true),
    };
    let (pid, cgroup) = match &cpu {
        ServerCpu::Process(pid) => (Some(*pid), None),
        ServerCpu::Group(group) => (None, Some(group.folder().display().to_string())),
    };
    let (program, program_hash) = pid.and_then(program_of).unwrap_or_default();
    let record = RunningProcess {
        address: address.to_string(),
        pid,
        cgroup,
        found_by_port,
        program,
        program_hash,
        cpus_allowed: pid.and_then(cpus_allowed).unwrap_or_default(),
    };
    Ok(Found { address, cpu, started_ticks: pid.and_then(started_ticks), record })
}

/// An address of this machine on which a server accepts connections.
fn own_address(text: &str) -> Result<SocketAddr, Refusal> {
    let resolved = text.to_socket_addrs();
    let all: Vec<SocketAddr> =
        resolved.map_err(|error| Refusal::Environment(format!("{text} has no address: {error}")))?.collect();
    let own: Vec<SocketAddr> = all.into_iter().filter(|it| TcpListener::bind((it.ip(), 0)).is_ok()).collect();
    if own.is_empty() {
        return Err(Refusal::Usage(format!(
            "{text} is another machine's, and the CPU of its server cannot be read here; name a server of this machine, \
             or run the study there"
        )));
    }
    let mut refused = None;
    for address in own {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(_) => return Ok(address),
            Err(error) => refused = Some(error),
        }
    }
    let error = refused.map(|error| format!(" ({error})")).unwrap_or_default();
    Err(Refusal::Environment(format!(
        "no server accepts connections at {text}{error}; start the server first"
    )))
}

fn group(name: &str) -> Result<ControlGroup, Refusal> {
    let group = ControlGroup::find(name).map_err(|error| Refusal::Usage(error.to_string()))?;
    let pids = group.pids().map_err(|error| {
        Refusal::Usage(format!("{error}; name the group of the server's own processes below it"))
    })?;
    if pids.is_empty() {
        return Err(Refusal::Environment(format!(
            "the control group {name} has no process that is seen here; start the server first, and run weir in the PID \
             namespace of its processes or in one above it"
        )));
    }
    if pids.contains(&std::process::id()) {
        return Err(Refusal::Usage(format!(
            "the laboratory itself is in the control group {name}; name the server's alone"
        )));
    }
    Ok(group)
}

/// The process that listens there.
fn by_port(address: SocketAddr) -> Result<u32, Refusal> {
    const NAME_IT: &str =
        "name it with --arm-pid NAME=PID or --arm-cgroup NAME=PATH (in a file `pid` or `cgroup`)";
    let refused = |why: String| {
        Refusal::Usage(format!("{why}, and without its process nothing can be said of its CPU; {NAME_IT}"))
    };
    match listener(address) {
        Listener::One(pid) => apart(pid),
        Listener::Several(pids) => {
            let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
            Err(refused(format!("processes {} listen at {address}, none below another", pids.join(", "))))
        }
        Listener::Unseen => Err(refused(format!("the process that listens at {address} cannot be seen"))),
        Listener::None => Err(refused(format!("no process seen here listens at {address}"))),
    }
}

/// The process of this number, if it serves that address as far as can be seen: all listeners must be the process
/// itself or below it, so that its CPU includes theirs.
fn named(pid: u32, address: SocketAddr) -> Result<u32, Refusal> {
    if started_ticks(pid).is_none() {
        return Err(Refusal::Environment(format!("there is no process {pid}")));
    }
    let listeners = match listener(address) {
        Listener::One(pid) => vec![pid],
        Listener::Several(pids) => pids,
        Listener::Unseen | Listener::None => Vec::new(),
    };
    match first_elsewhere(pid, &listeners, is_above) {
        Some(other) => Err(not_above(pid, other, address, &listeners)),
        None => apart(pid),
    }
}

/// The first of these processes that is neither the given one nor below it.
fn first_elsewhere(pid: u32, listeners: &[u32], is_above: impl Fn(u32, u32) -> bool) -> Option<u32> {
    listeners.iter().copied().find(|other| !is_above(pid, *other))
}

/// Why a process is refused: some or all of the server's CPU would be missing.
fn not_above(pid: u32, other: u32, address: SocketAddr, listeners: &[u32]) -> Refusal {
    const GROUP: &str = "--arm-cgroup NAME=PATH (in a file `cgroup`)";
    let program = program_of(other).map(|(program, _)| format!(" ({program})")).unwrap_or_default();
    let way_out = match listeners {
        [_] => format!("name {other}, or the control group of all that serve with {GROUP}"),
        _ => format!("name the process above all that listen, or their control group with {GROUP}"),
    };
    Refusal::Usage(format!(
        "process {other}{program} listens at {address}, and {pid} is neither it nor above it, so that CPU of the server \
         would not be counted; {way_out}"
    ))
}

/// Refuses a process that is an ancestor of the laboratory.
fn apart(pid: u32) -> Result<u32, Refusal> {
    if is_above(pid, std::process::id()) {
        return Err(Refusal::Usage(format!(
            "the laboratory itself is below process {pid}, and would count as the server; name the server's alone"
        )));
    }
    Ok(pid)
}

/// Start time of a process, in ticks since boot; `None` if it is gone.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = process_stat::read(pid)?;
    let stat = ProcessStat::parse(&stat).filter(|stat| !stat.has_ended())?;
    stat.number(22)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn reason(server: RunningServer) -> String {
        find(&server).expect_err("it is wrong").reason().to_owned()
    }

    #[test]
    fn what_is_no_server_here_is_refused_with_the_way_out() {
        let at = |address: &str| RunningServer { address: address.to_owned(), ..RunningServer::default() };
        // TEST-NET-1 (RFC 5737) is assigned to no host.
        let other = reason(at("192.0.2.1:80"));
        assert!(other.contains("another machine's") && other.contains("run the study there"), "{other}");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one");
        let closed = reason(at(&free.to_string()));
        assert!(
            closed.contains("no server accepts") && closed.contains("start the server first"),
            "{closed}"
        );
    }

    #[test]
    fn a_named_process_is_above_all_that_listen() {
        // A master with two workers, and a process that started the master and a third.
        let parents = BTreeMap::from([(11, 10), (12, 10), (10, 5), (13, 5), (5, 1)]);
        let is_above = |above: u32, pid: u32| {
            std::iter::successors(Some(pid), |pid| parents.get(pid).copied()).any(|pid| pid == above)
        };
        let elsewhere = |pid: u32, listeners: &[u32]| first_elsewhere(pid, listeners, is_above);
        assert_eq!([elsewhere(10, &[10]), elsewhere(5, &[10]), elsewhere(10, &[11, 12])], [None; 3]);
        assert_eq!(elsewhere(11, &[10]), Some(10), "a worker of the one that listens");
        assert_eq!(elsewhere(11, &[11, 12]), Some(12), "one of several");
        assert_eq!((elsewhere(10, &[11, 13]), elsewhere(5, &[11, 13])), (Some(13), None));
        assert_eq!(elsewhere(99, &[]), None, "nobody is seen who listens");
        let several = not_above(11, 12, SocketAddr::from(([127, 0, 0, 1], 80)), &[11, 12]);
        assert!(several.reason().contains("the process above all that listen"), "{}", several.reason());
    }

    #[test]
    fn the_laboratory_is_no_server_of_its_own() {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("it has one").to_string();
        let own = std::process::id();
        for pid in [None, Some(own), Some(std::os::unix::process::parent_id())] {
            let refused = reason(RunningServer { address: address.clone(), pid, cgroup: None });
            assert!(refused.contains("the laboratory itself"), "{refused}");
        }
        // A worker below the process that listens has only a part of its CPU.
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("it starts");
        let pid = Some(child.id());
        let worker = reason(RunningServer { address: address.clone(), pid, cgroup: None });
        for words in [&format!("process {own} "), "neither it nor above it", "--arm-cgroup NAME=PATH"] {
            assert!(worker.contains(words), "no {words:?}: {worker}");
        }
        let found = Found {
            address: socket.local_addr().expect("it has one"),
            cpu: ServerCpu::Process(child.id()),
            started_ticks: started_ticks(child.id()),
            record: RunningProcess::default(),
        };
        let held = Held::new(&found).expect("it runs");
        assert!(!held.has_ended());
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
        assert!(held.has_ended() && Held::new(&found).is_none());
        assert_eq!(
            held.exit_reason(),
            format!("process {}, which ran before the study, has ended", child.id())
        );
        let gone = reason(RunningServer { address, pid, cgroup: None });
        assert_eq!(gone, format!("there is no process {}", child.id()));
    }
}
