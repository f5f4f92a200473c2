//! One run, in the launcher: it is started, its outputs are read, it ends or is ended, and its cost is summed up.

use std::{
    env,
    ffi::{CString, OsStr},
    fs::{self, File, OpenOptions},
    io::{self, Read, stderr, stdout},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, OpenOptionsExt},
        },
    },
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};
use weir_sys::{
    child_counter::ChildCounter,
    launched::{
        BeforeExec, Launch, LaunchFailure, Membership, Reaped, Reaping, Step, launch, launch_sharing, now_ns,
        reap,
    },
};

use super::{
    LaunchCost, OutputTo, RunCost, RunEnd, RunError, RunOutcome, RunSpec,
    cpu_group::{Groups, RunGroup},
    digest::{Keep, Stream},
    household::{self, Used},
    outputs::Outputs,
    program::program_path,
    wire::{Channel, Request},
};

/// How long a killed command may take to disappear.
const KILL_MAX: Duration = Duration::from_secs(5);

/// The status with which shells report a command that SIGKILL killed.
const STATUS_KILLED: i32 = 128 + 9;

/// A run that can be started: everything that it needs is open or built.
pub(super) struct Prepared {
    /// `None` for a run that does nothing.
    program: Option<CString>,
    words: Vec<CString>,
    environment: Vec<CString>,
    folder: Option<CString>,
    input: OwnedFd,
    outputs: [OwnedFd; 2],
    streams: [Option<Stream>; 2],
    limit: Duration,
    start: Start,
}

/// How a process of a run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With a copy of the launcher's memory, which its exec releases.
    Copy,
    /// With that memory itself.
    Sharing,
}

impl Prepared {
    /// Opens and builds everything that a run needs.
    pub(super) fn of(spec: &RunSpec) -> Result<Self, RunError> {
        let program = program_path(spec)?;
        let [stdout, stderr] = outputs(&spec.output)?;
        Ok(Self {
            program: Some(text(program.as_os_str())?),
            words: spec.words.iter().map(|word| text(word)).collect::<Result<_, _>>()?,
            environment: environment(spec)?,
            folder: spec.folder.as_ref().map(|folder| text(folder.as_os_str())).transpose()?,
            input: input(spec.input.as_deref())?,
            outputs: [stdout.0, stderr.0],
            streams: [stdout.1, stderr.1],
            limit: spec.limit,
            start: Start::Copy,
        })
    }

    /// A run that does nothing: a process that ends where others become the command.
    pub(super) fn nothing() -> Result<Self, RunError> {
        let [stdout, stderr] = outputs(&OutputTo::Digest)?;
        Ok(Self {
            program: None,
            words: Vec::new(),
            environment: Vec::new(),
            folder: None,
            input: input(None)?,
            outputs: [stdout.0, stderr.0],
            streams: [stdout.1, stderr.1],
            limit: KILL_MAX,
            start: Start::Copy,
        })
    }

    /// A run of a program that does nothing.
    pub(super) fn program_alone(program: CString, start: Start) -> Result<Self, RunError> {
        let words = vec![program.clone()];
        Ok(Self { program: Some(program), words, start, ..Self::nothing()? })
    }

    pub(super) fn launch(
        &self,
        group: Option<&RunGroup>,
        held: impl FnOnce(Pid),
    ) -> Result<(Pid, BeforeExec), LaunchFailure> {
        let launched = Launch {
            program: self.program.as_deref(),
            words: &self.words,
            environment: &self.environment,
            folder: self.folder.as_deref(),
            input: self.input.as_fd(),
            output: self.outputs[0].as_fd(),
            errors: self.outputs[1].as_fd(),
            group: group.map_or(Membership::Inherited, RunGroup::membership),
        };
        match self.start {
            Start::Copy => launch(&launched, held),
            Start::Sharing => launch_sharing(&launched),
        }
    }

    /// What a failure means for the caller.
    pub(super) fn explain(&self, failure: &LaunchFailure) -> RunError {
        let shown =
            |text: Option<&CString>| text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
        let reason = failure.source.to_string();
        match failure.step {
            Step::Exec => RunError::NotStarted {
                program: shown(self.program.as_ref()),
                reason: match failure.source.raw_os_error() {
                    Some(libc::ENOEXEC) => {
                        "it is no program; a script needs #! and its interpreter in the first line".to_owned()
                    }
                    Some(libc::ENOENT) => "the interpreter that it names is not there".to_owned(),
                    _ => reason,
                },
            },
            Step::Folder => {
                RunError::File { flag: "--dir".to_owned(), path: shown(self.folder.as_ref()), reason }
            }
            Step::Fork | Step::Session | Step::Group | Step::Streams => {
                RunError::Launcher(format!("cannot start a process: {reason}"))
            }
        }
    }
}

/// How the wait for a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// It ended by itself.
    Ended,
    /// Its time was over.
    Overran,
    /// It was stopped, or the other end is gone.
    Stopped,
}

/// A command that runs.
struct Running<'a> {
    life: OwnedFd,
    outputs: Outputs,
    group: Option<&'a RunGroup>,
}

/// Counters for runs, opened once for all of them.
pub(super) struct Clocks {
    /// None where CPU comes from `wait4`.
    pub(super) groups: Option<Groups>,
    /// None where the machine does not count.
    pub(super) instructions: Option<ChildCounter>,
}

impl Clocks {
    fn instructions(&mut self) -> Option<u64> {
        self.instructions.as_mut()?.count()
    }
}

/// Starts a prepared run and waits until all of it is gone. The other end may stop it.
pub(super) fn run(
    mut prepared: Prepared,
    clocks: &mut Clocks,
    channel: Option<&mut Channel>,
) -> Result<RunOutcome, RunError> {
    let group = clocks.groups.as_mut().map(Groups::for_next_run).transpose();
    let group = group.map_err(|error| RunError::Launcher(format!("cannot make a control group: {error}")))?;
    let kills_before = kills_for_memory();
    let instructions_before = clocks.instructions();
    let forked_at_ns = now_ns();
    let mut bytes = None;
    let started = prepared.launch(group.as_ref(), |main| bytes = ByteCounts::of(main));
    let (main, before) = started.map_err(|failure| prepared.explain(&failure))?;
    let mut used = Used::default();
    let life = match pidfd_open(main, PidfdFlags::empty()) {
        Ok(life) => life,
        Err(error) => {
            household::kill_all(&mut used, group.as_ref(), &mut Outputs::none())?;
            return Err(RunError::Launcher(format!("cannot watch a process: {error}")));
        }
    };
    let outputs = Outputs::new(prepared.streams.each_mut().map(Option::take));
    let limit = prepared.limit;
    // From now on only the command holds the writing ends: they end with it.
    drop(prepared);
    let mut running = Running { life, outputs, group: group.as_ref() };
    let waited = running.wait(limit, channel);
    if waited != Waited::Ended {
        running.kill();
    }
    let ended_at_ns = now_ns();
    let bytes = bytes.and_then(|mut counts| counts.read(&before));
    let reaped = match reap(Some(main)) {
        Ok(Reaping::Ended(reaped)) => reaped,
        Ok(_) => return Err(RunError::Unkillable(format!("{}", main.as_raw_nonzero()))),
        Err(error) => return Err(RunError::Launcher(format!("cannot reap: {error}"))),
    };
    used.add(&reaped);
    let mut outputs = running.outputs;
    let left = match waited {
        Waited::Ended => household::end_those_left(&mut used, group.as_ref(), &mut outputs)?,
        Waited::Overran | Waited::Stopped => {
            household::kill_all(&mut used, group.as_ref(), &mut outputs)?;
            household::Left::default()
        }
    };
    if waited == Waited::Stopped {
        return Err(RunError::Stopped);
    }
    let [stdout, stderr] = outputs.finish();
    let cpu = cpu(&used, group.as_ref(), &before)?;
    let instructions = clocks.instructions().zip(instructions_before);
    Ok(RunOutcome {
        cost: RunCost {
            wall_ns: ended_at_ns.saturating_sub(before.at_ns),
            instructions: instructions.map(|(after, before)| after.saturating_sub(before)),
            ..cost(&used, cpu, bytes, &before)
        },
        end: end(waited, &reaped, kills_before, kills_for_memory()),
        stdout,
        stderr,
        children_left: left.count,
        children_left_names: left.names,
        launch: LaunchCost { wall_ns: before.at_ns.saturating_sub(forked_at_ns), cpu_ns: before.cpu_ns },
    })
}

impl Running<'_> {
    /// Reads what the command writes until it ends, its time is over, or it is stopped.
    fn wait(&mut self, limit: Duration, mut channel: Option<&mut Channel>) -> Waited {
        let deadline = Instant::now().checked_add(limit);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (has_ended, is_spoken_to) = self.poll(left, channel.as_deref());
            if has_ended {
                return Waited::Ended;
            }
            if is_spoken_to
                && let Some(channel) = channel.as_deref_mut()
                && is_stopped(channel)
            {
                return Waited::Stopped;
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Waited::Overran;
            }
            self.outputs.read();
        }
    }

    /// Waits for an event, at most this long. Says whether the command has ended, and whether a message came.
    fn poll(&self, longest: Option<Duration>, channel: Option<&Channel>) -> (bool, bool) {
        let mut ends = Vec::with_capacity(4);
        ends.push(PollFd::new(&self.life, PollFlags::IN));
        ends.extend(channel.map(|channel| PollFd::from_borrowed_fd(channel.waits_for(), PollFlags::IN)));
        ends.extend(self.outputs.wait_for().map(|stream| PollFd::from_borrowed_fd(stream, PollFlags::IN)));
        // A length of time too long for the kernel's type waits without limit. A signal ends the wait early, and the
        // caller looks again.
        let timeout = longest.and_then(|longest| Timespec::try_from(longest).ok());
        let _ = poll(&mut ends, timeout.as_ref());
        let has_ended = !ends[0].revents().is_empty();
        (has_ended, channel.is_some() && !ends[1].revents().is_empty())
    }

    /// Kills the whole run and waits until its first process is gone.
    fn kill(&mut self) {
        let deadline = Instant::now() + KILL_MAX;
        loop {
            household::kill(self.group);
            let left = deadline.saturating_duration_since(Instant::now());
            let (has_ended, _) = self.poll(Some(left.min(Duration::from_millis(100))), None);
            if has_ended || left.is_zero() {
                return;
            }
            // A killed process writes no more, so this ends.
            self.outputs.read();
        }
    }
}

/// Whether the other end asked for an end, or is gone. It sends nothing else while a run goes on.
fn is_stopped(channel: &mut Channel) -> bool {
    !matches!(channel.receive::<Request>(Some(Duration::ZERO)), Ok(None))
}

/// User and system time of a run, without the part before the exec.
fn cpu(used: &Used, group: Option<&RunGroup>, before: &BeforeExec) -> Result<(u64, u64), RunError> {
    let Some(group) = group else {
        let total_ns = (used.user_ns + used.system_ns).saturating_sub(before.cpu_ns);
        return Ok(divide(total_ns, used.user_ns, used.system_ns));
    };
    let read = group.cpu().map_err(|error| RunError::Launcher(format!("cannot read CPU: {error}")))?;
    let inside_ns = before.cpu_ns.saturating_sub(before.cpu_ns_outside);
    Ok(divide(read.total_ns.saturating_sub(inside_ns), read.user, read.system))
}

/// Divides an exact sum by a sampled ratio. Without a sample all is user time, as the kernel does it.
pub(super) fn divide(total_ns: u64, user: u64, system: u64) -> (u64, u64) {
    let whole = u128::from(user) + u128::from(system);
    if whole == 0 {
        return (total_ns, 0);
    }
    let system_ns = u128::from(total_ns) * u128::from(system) / whole;
    let system_ns = u64::try_from(system_ns).unwrap_or(total_ns).min(total_ns);
    (total_ns - system_ns, system_ns)
}

/// The bound above which a peak of memory is the run's own: a quarter above the memory that the launcher leaves in
/// every process. The kernel's count is not exact to the page.
fn memory_floor(bytes_of_launcher: u64) -> u64 {
    bytes_of_launcher.saturating_add(bytes_of_launcher / 4)
}

/// A peak of memory that is the run's own.
fn peak(bytes: u64, bytes_of_launcher: u64) -> Option<u64> {
    (bytes > memory_floor(bytes_of_launcher)).then_some(bytes)
}

/// The upper bound of the run's own peak where the launcher's peak hides it.
fn peak_below(bytes: u64, bytes_of_launcher: u64) -> Option<u64> {
    let is_hidden = bytes > 0 && peak(bytes, bytes_of_launcher).is_none();
    is_hidden.then(|| memory_floor(bytes_of_launcher).saturating_add(1))
}

fn cost(used: &Used, cpu: (u64, u64), bytes: Option<(u64, u64)>, before: &BeforeExec) -> RunCost {
    RunCost {
        wall_ns: 0,
        user_ns: cpu.0,
        system_ns: cpu.1,
        memory_bytes_max: peak(used.memory_bytes_max, before.memory_bytes_max),
        memory_bytes_below: peak_below(used.memory_bytes_max, before.memory_bytes_max),
        faults_minor: used.faults_minor.saturating_sub(before.faults_minor),
        faults_major: used.faults_major.saturating_sub(before.faults_major),
        switches_voluntary: used.switches_voluntary.saturating_sub(before.switches_voluntary),
        switches_involuntary: used.switches_involuntary.saturating_sub(before.switches_involuntary),
        read_bytes: bytes.map(|(read, _)| read),
        written_bytes: bytes.map(|(_, written)| written),
        instructions: None,
    }
}

fn end(waited: Waited, reaped: &Reaped, kills_before: Option<u64>, kills_after: Option<u64>) -> RunEnd {
    match waited {
        Waited::Overran => RunEnd::Overran,
        Waited::Ended | Waited::Stopped => end_by_itself(reaped, kills_before, kills_after),
    }
}

/// How a process ended that the launcher did not end.
pub(super) fn end_by_itself(reaped: &Reaped, kills_before: Option<u64>, kills_after: Option<u64>) -> RunEnd {
    let out_of_memory = kills_before.zip(kills_after).is_some_and(|(before, after)| after > before);
    match (reaped.signal, reaped.status) {
        (Some(signal), _) => {
            RunEnd::Killed { signal, out_of_memory: out_of_memory && signal == libc::SIGKILL }
        }
        // A shell that reports this of its child.
        (None, Some(STATUS_KILLED)) if out_of_memory => {
            RunEnd::Killed { signal: libc::SIGKILL, out_of_memory }
        }
        (None, status) => RunEnd::Exited(status.unwrap_or(-1)),
    }
}

/// How often the kernel has killed a process for want of memory since it booted, by a group's limit or the machine's.
pub(super) fn kills_for_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

/// The file that counts the bytes that system calls of a process read and wrote, with those of the children that it
/// waited for. It can be read until the process is reaped; it can be opened, by its owner, until the process ends.
struct ByteCounts(File);

impl ByteCounts {
    fn of(process: Pid) -> Option<Self> {
        File::open(format!("/proc/{}/io", process.as_raw_nonzero())).ok().map(Self)
    }

    fn read(&mut self, before: &BeforeExec) -> Option<(u64, u64)> {
        let mut text = String::new();
        self.0.read_to_string(&mut text).ok()?;
        bytes_in(&text, before)
    }
}

/// Bytes read and written in `/proc/PID/io`.
pub(super) fn bytes_of(text: &str) -> Option<(u64, u64)> {
    let number =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
    number("rchar:").zip(number("wchar:"))
}

fn bytes_in(text: &str, before: &BeforeExec) -> Option<(u64, u64)> {
    let (read, written) = bytes_of(text)?;
    Some((read.saturating_sub(before.read_bytes), written.saturating_sub(before.written_bytes)))
}

/// A word as the kernel takes it.
fn text(word: &OsStr) -> Result<CString, RunError> {
    CString::new(word.as_bytes()).map_err(|_| RunError::NotStarted {
        program: word.to_string_lossy().into_owned(),
        reason: "a word, a path or a variable holds a zero byte".to_owned(),
    })
}

/// This process's environment with the changes of a run.
fn environment(spec: &RunSpec) -> Result<Vec<CString>, RunError> {
    let changed = |name: &OsStr| spec.environment.iter().any(|(own, _)| own == name);
    let inherited = env::vars_os().filter(|(name, _)| !changed(name));
    let all = inherited.chain(spec.environment.iter().cloned());
    all.map(|(mut variable, value)| {
        variable.push("=");
        variable.push(value);
        text(&variable)
    })
    .collect()
}

fn input(path: Option<&Path>) -> Result<OwnedFd, RunError> {
    let named = path.unwrap_or(Path::new("/dev/null"));
    open_plain("--input", named, OpenOptions::new().read(true))
}

type Output = (OwnedFd, Option<Stream>);

/// Where standard output and standard error go.
fn outputs(to: &OutputTo) -> Result<[Output; 2], RunError> {
    let system = |error: io::Error| RunError::Launcher(format!("cannot open a pipe: {error}"));
    let keep = match to {
        OutputTo::Blocks => Keep::Blocks,
        OutputTo::Block(number) => Keep::Block(*number),
        OutputTo::Digest | OutputTo::Discard | OutputTo::File(_) | OutputTo::Log(_) | OutputTo::Inherit => {
            Keep::End
        }
    };
    let digested = || -> io::Result<Output> {
        let (reader, writer) = io::pipe()?;
        Ok((OwnedFd::from(writer), Some(Stream::new(reader, keep)?)))
    };
    let to_file = |path: &Path| -> Result<Output, RunError> {
        let mut emptied = OpenOptions::new();
        emptied.write(true).create(true).truncate(true);
        Ok((open_plain("--output", path, &emptied)?, None))
    };
    let stdout = match to {
        OutputTo::Digest | OutputTo::Blocks | OutputTo::Block(_) => digested().map_err(system)?,
        OutputTo::Discard => to_file(Path::new("/dev/null"))?,
        OutputTo::File(path) => to_file(path)?,
        OutputTo::Log(path) => {
            // Both at the end of one file: neither overwrites the other. It may have secrets in it.
            let log = open_plain("log", path, OpenOptions::new().append(true).create(true).mode(0o600))?;
            let both = log.try_clone().map_err(system)?;
            return Ok([(log, None), (both, None)]);
        }
        OutputTo::Inherit => (stdout().as_fd().try_clone_to_owned().map_err(system)?, None),
    };
    let stderr = match to {
        OutputTo::Inherit => (stderr().as_fd().try_clone_to_owned().map_err(system)?, None),
        _ => digested().map_err(system)?,
    };
    Ok([stdout, stderr])
}

/// Opens a file or a device. Opening a named pipe would wait for its other end.
fn open_plain(flag: &str, path: &Path, options: &OpenOptions) -> Result<OwnedFd, RunError> {
    let refused = |reason: String| RunError::File {
        flag: flag.to_owned(),
        path: path.to_string_lossy().into_owned(),
        reason,
    };
    let kind = fs::metadata(path).map(|found| found.file_type());
    if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_char_device()) {
        return Err(refused(
            "it is neither a file nor a device; name one that each run can use anew".to_owned(),
        ));
    }
    options.open(path).map(OwnedFd::from).map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_sum_is_divided_by_the_samples_and_nothing_of_it_is_lost() {
        assert_eq!(divide(1_000, 3, 1), (750, 250));
        assert_eq!(divide(1_000, 0, 0), (1_000, 0), "no tick was met");
        assert_eq!(divide(1_000, 0, 5), (0, 1_000));
        assert_eq!(divide(0, 3, 4), (0, 0));
        for (user, system) in [(1, 2), (u64::MAX, u64::MAX), (7, u64::MAX)] {
            let (in_user, in_system) = divide(u64::MAX, user, system);
            assert_eq!(in_user.checked_add(in_system), Some(u64::MAX), "{user} {system}");
        }
    }

    #[test]
    fn what_precedes_the_exec_is_in_no_figure() {
        let used = Used {
            user_ns: 5_000,
            system_ns: 5_000,
            memory_bytes_max: 1 << 20,
            faults_minor: 100,
            faults_major: 3,
            switches_voluntary: 9,
            switches_involuntary: 1,
        };
        let before = BeforeExec {
            at_ns: 7,
            cpu_ns: 2_000,
            cpu_ns_outside: 0,
            faults_minor: 60,
            faults_major: 1,
            switches_voluntary: 2,
            switches_involuntary: 4,
            memory_bytes_max: 400 << 10,
            read_bytes: 1,
            written_bytes: 64,
        };
        let cpu = cpu(&used, None, &before).expect("no group is read");
        assert_eq!(cpu, (4_000, 4_000));
        let cost = cost(&used, cpu, None, &before);
        assert_eq!((cost.faults_minor, cost.faults_major), (40, 2));
        assert_eq!((cost.switches_voluntary, cost.switches_involuntary), (7, 0));
        assert_eq!((cost.memory_bytes_max, cost.read_bytes, cost.instructions), (Some(1 << 20), None, None));
    }

    #[test]
    fn a_peak_is_not_the_launchers() {
        assert_eq!(peak(1_700, 4_000), None);
        assert_eq!((peak(5_000, 4_000), peak(5_001, 4_000)), (None, Some(5_001)));
        assert_eq!((peak(0, 0), peak(1, 0), peak(u64::MAX, u64::MAX)), (None, Some(1), None));
        assert_eq!((peak_below(5_000, 4_000), peak_below(5_001, 4_000)), (Some(5_001), None));
        assert_eq!((peak_below(0, 4_000), peak_below(u64::MAX, u64::MAX)), (None, Some(u64::MAX)));
    }

    #[test]
    fn a_kill_for_want_of_memory_is_told_from_any_other() {
        let reaped = |status, signal| Reaped {
            pid: Pid::INIT,
            status,
            signal,
            user_ns: 0,
            system_ns: 0,
            memory_bytes_max: 0,
            faults_minor: 0,
            faults_major: 0,
            switches_voluntary: 0,
            switches_involuntary: 0,
        };
        let of = |status, signal, after| end(Waited::Ended, &reaped(status, signal), Some(4), after);
        let killed = |signal, out_of_memory| RunEnd::Killed { signal, out_of_memory };
        assert_eq!(of(None, Some(9), Some(5)), killed(9, true));
        assert_eq!(of(None, Some(9), Some(4)), killed(9, false));
        assert_eq!(of(None, Some(9), None), killed(9, false), "nobody counts");
        assert_eq!(of(None, Some(11), Some(5)), killed(11, false));
        assert_eq!(of(Some(137), None, Some(5)), killed(9, true), "a shell");
        assert_eq!(of(Some(137), None, Some(4)), RunEnd::Exited(137));
        assert_eq!(of(Some(0), None, Some(5)), RunEnd::Exited(0));
        assert_eq!(end(Waited::Overran, &reaped(None, Some(9)), Some(4), Some(4)), RunEnd::Overran);
    }

    #[test]
    fn bytes_are_read_without_those_of_the_launch() {
        let text = "rchar: 1000\nwchar: 500\nsyscr: 3\nread_bytes: 4096\n";
        let before = BeforeExec { read_bytes: 1, written_bytes: 65, ..BeforeExec::default() };
        assert_eq!(bytes_in(text, &before), Some((999, 435)));
        assert_eq!(bytes_in("rchar: 1000\n", &before), None);
        assert_eq!(bytes_in("rchar: 0\nwchar: 1\n", &before), Some((0, 0)));
    }

    #[test]
    fn a_variable_of_a_run_takes_the_place_of_the_inherited_one() {
        let spec = RunSpec {
            words: vec!["true".into()],
            environment: vec![("PATH".into(), "/x".into()), ("WEIR_A".into(), "b=c".into())],
            folder: None,
            input: None,
            output: OutputTo::Digest,
            limit: Duration::ZERO,
        };
        let all = environment(&spec).expect("no zero bytes");
        let of = |name: &str| {
            let texts = all.iter().map(|text| text.to_string_lossy().into_owned());
            texts.filter(|text| text.starts_with(name)).collect::<Vec<_>>()
        };
        assert_eq!((of("PATH="), of("WEIR_A=")), (vec!["PATH=/x".to_owned()], vec!["WEIR_A=b=c".to_owned()]));
        let zero = RunSpec { environment: vec![("A".into(), "b\0".into())], ..spec };
        assert!(environment(&zero).expect_err("a zero byte").to_string().contains("zero byte"));
    }

    #[test]
    fn what_no_run_can_use_anew_is_no_input_and_no_output() {
        let said = |path: &str| match input(Some(Path::new(path))) {
            Err(error) => error.to_string(),
            Ok(_) => "it opened".to_owned(),
        };
        assert_eq!(said("/dev/null"), "it opened");
        assert!(
            said("/no/such/file").starts_with("--input /no/such/file: No such file"),
            "{}",
            said("/no/such/file")
        );
        assert!(said("/etc").contains("neither a file nor a device"), "{}", said("/etc"));
    }
}
