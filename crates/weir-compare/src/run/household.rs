//! The processes of a run: which ones live, and how all of them are ended. The launcher adopts orphans.

use std::{
    collections::{HashMap, HashSet},
    fs,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open},
};
use weir_evidence::process::family_of;
use weir_sys::{
    launched::{Reaped, Reaping, reap},
    process_stat::{self, ProcessStat},
};

use super::{LEAVE_MAX, NAMES_LEFT_MAX, RunError, cpu_group::RunGroup, outputs::Outputs};

/// How long killed processes may take to disappear. A process that waits for a disk may need this long.
const KILL_MAX: Duration = Duration::from_secs(5);

/// Between two rounds of killing: a process may be born during the first.
const KILL_ROUND: Duration = Duration::from_millis(20);

/// Most processes that are ended at a time.
const BELOW_MAX: usize = 4_096;

/// The use of the processes that were reaped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) memory_bytes_max: u64,
    pub(super) faults_minor: u64,
    pub(super) faults_major: u64,
    pub(super) switches_voluntary: u64,
    pub(super) switches_involuntary: u64,
}

impl Used {
    /// Adds a process, with the children that it waited for.
    pub(super) fn add(&mut self, reaped: &Reaped) {
        self.user_ns += reaped.user_ns;
        self.system_ns += reaped.system_ns;
        self.memory_bytes_max = self.memory_bytes_max.max(reaped.memory_bytes_max);
        self.faults_minor += reaped.faults_minor;
        self.faults_major += reaped.faults_major;
        self.switches_voluntary += reaped.switches_voluntary;
        self.switches_involuntary += reaped.switches_involuntary;
    }
}

/// Processes that the command left, and that were killed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) count: u32,
    pub(super) names: Vec<String>,
}

/// Reaps the processes that the command left, for as long as they may take to end by themselves; then kills them. What
/// they write meanwhile is read.
pub(super) fn end_those_left(
    used: &mut Used,
    group: Option<&RunGroup>,
    outputs: &mut Outputs,
) -> Result<Left, RunError> {
    if all_end_within(used, LEAVE_MAX, outputs)? {
        return Ok(Left::default());
    }
    let living: Vec<u32> = living(group).into_iter().filter(|pid| !has_ended(*pid)).collect();
    let names = living.iter().filter_map(|pid| name(*pid)).take(NAMES_LEFT_MAX).collect();
    let left = Left { count: u32::try_from(living.len()).unwrap_or(u32::MAX), names };
    kill_all(used, group, outputs)?;
    Ok(left)
}

/// Kills every process of a run and reaps it.
pub(super) fn kill_all(
    used: &mut Used,
    group: Option<&RunGroup>,
    outputs: &mut Outputs,
) -> Result<(), RunError> {
    let deadline = Instant::now() + KILL_MAX;
    loop {
        kill(group);
        if all_end_within(used, KILL_ROUND, outputs)? {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let names: Vec<String> = living(group)
                .into_iter()
                .take(NAMES_LEFT_MAX)
                .map(|pid| format!("{pid} ({})", name(pid).unwrap_or_default()))
                .collect();
            return Err(RunError::Unkillable(names.join(", ")));
        }
    }
}

/// Asks every process of a run to end, each once: some processes treat a second request differently.
pub(super) fn ask_to_end(group: Option<&RunGroup>, asked: &mut HashSet<u32>) {
    for process in living(group) {
        if let Some(pid) = pid(process).filter(|_| asked.insert(process)) {
            // Fails only for a process that has ended, or is not ours; the latter is noticed because it stays.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// Sends the signal to every process of a run, once.
pub(super) fn kill(group: Option<&RunGroup>) {
    // A process that left the group is still below the launcher.
    let all_at_once = group.is_some_and(RunGroup::kill);
    let members = if all_at_once { below() } else { living(group) };
    for pid in members.into_iter().filter_map(pid) {
        // Fails only for a process that has ended, or is not ours; the latter is noticed because it stays.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Reaps children until there are none, or the time is over, and reads their outputs meanwhile. Says whether there are
/// none.
pub(super) fn all_end_within(
    used: &mut Used,
    longest: Duration,
    outputs: &mut Outputs,
) -> Result<bool, RunError> {
    let deadline = Instant::now() + longest;
    loop {
        match reap(None).map_err(|error| RunError::Launcher(format!("cannot reap: {error}")))? {
            Reaping::Ended(reaped) => used.add(&reaped),
            Reaping::Childless => return Ok(true),
            Reaping::Running => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(false);
                }
                await_an_end(left, outputs);
            }
        }
    }
}

/// Waits until a process below this one ends, at most this long, and reads what they write.
fn await_an_end(longest: Duration, outputs: &mut Outputs) {
    let deadline = Instant::now() + longest;
    let pids = below().into_iter().filter_map(pid);
    let lives: Vec<_> = pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ends: Vec<PollFd> = lives.iter().map(|life| PollFd::new(life, PollFlags::IN)).collect();
        ends.extend(outputs.wait_for().map(|output| PollFd::from_borrowed_fd(output, PollFlags::IN)));
        let timeout = Timespec::try_from(left).ok();
        let is_output = poll(&mut ends, timeout.as_ref()).is_ok_and(|ready| ready > 0)
            && ends[..lives.len()].iter().all(|life| life.revents().is_empty());
        outputs.read();
        // Whatever else ends the wait, the caller looks again.
        if !is_output || left.is_zero() {
            return;
        }
    }
}

/// Processes of a run: those in its group, and those below this process.
fn living(group: Option<&RunGroup>) -> Vec<u32> {
    let mut all = group.map(RunGroup::processes).unwrap_or_default();
    all.extend(below());
    all.sort_unstable();
    all.dedup();
    all
}

/// Processes below this one; if there are more than the limit, as many as are ended at a time.
fn below() -> Vec<u32> {
    let own = std::process::id();
    match family_of(own) {
        Ok(family) => family.into_iter().skip(1).collect(),
        Err(_) => some_below(own, &parents()),
    }
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let one = |entry: fs::DirEntry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        Some((process, ProcessStat::parse(&process_stat::read(process)?)?.parent()?))
    };
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(one).collect()
}

/// The nearest processes below one, at most [`BELOW_MAX`]. Once they are killed, those below them become children of
/// this one.
fn some_below(root: u32, parents: &[(u32, u32)]) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for (process, parent) in parents {
        children.entry(*parent).or_default().push(*process);
    }
    let (mut found, mut next, mut parent) = (Vec::new(), 0, Some(root));
    while let Some(of) = parent.filter(|_| found.len() < BELOW_MAX) {
        // Each is removed, so that reused process numbers make no cycle.
        found.extend(children.remove(&of).unwrap_or_default());
        parent = found.get(next).copied();
        next += 1;
    }
    found.truncate(BELOW_MAX);
    found
}

/// Whether the process is gone, or is a zombie.
fn has_ended(process: u32) -> bool {
    process_stat::read(process).as_deref().and_then(ProcessStat::parse).is_none_or(|stat| stat.has_ended())
}

fn name(process: u32) -> Option<String> {
    fs::read(format!("/proc/{process}/comm"))
        .ok()
        .map(|name| String::from_utf8_lossy(&name).trim().to_owned())
}

pub(super) fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use std::{io, process::Command};

    use super::*;
    use crate::run::digest::{Keep, Stream};

    #[test]
    fn of_more_processes_than_anybody_counts_the_nearest_are_ended_first() {
        let chain = [(11, 10), (12, 11), (13, 12), (99, 1)];
        assert_eq!(some_below(10, &chain), [11, 12, 13]);
        assert_eq!(some_below(10, &[(11, 10), (10, 11)]), [11, 10], "a circle ends");
        let bomb: Vec<(u32, u32)> = (0..6_000).map(|number| (100 + number, 10 + number / 4_000)).collect();
        let found = some_below(10, &bomb);
        assert_eq!((found.len(), found[0]), (4_000, 100), "those below them come in the next round");
        let wide: Vec<(u32, u32)> = (100..9_000).map(|number| (number, 10)).collect();
        assert_eq!(some_below(10, &wide).len(), BELOW_MAX);
    }

    #[test]
    fn what_a_process_writes_while_its_end_is_awaited_is_read() {
        const BYTES: u64 = 8_000_000;
        let (reader, writer) = io::pipe().expect("a pipe");
        let stream = Stream::new(reader, Keep::End).expect("it can be made non-blocking");
        let mut outputs = Outputs::new([Some(stream), None]);
        let mut head = Command::new("head");
        // Many times what a pipe takes: it ends only if somebody reads.
        head.args(["-c", &BYTES.to_string(), "/dev/zero"]).stdout(writer);
        let mut child = head.spawn().expect("coreutils are everywhere");
        // The command holds the writing end.
        drop(head);
        while child.try_wait().expect("it is ours").is_none() {
            await_an_end(Duration::from_secs(60), &mut outputs);
        }
        let [written, errors] = outputs.finish();
        assert_eq!((written.bytes, errors.bytes), (BYTES, 0));
    }

    #[test]
    fn a_process_is_below_its_parent() {
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        assert!(parents().contains(&(own, parent)));
    }
}
