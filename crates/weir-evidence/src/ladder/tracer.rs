//! Loads and attaches the programs, and reads their tables.
//!
//! While a [`Tracer`] counts, every system call and every switch of the whole machine runs a few dozen extra
//! instructions. Programs and tables stay in the kernel while counting is stopped, where nothing runs them, because
//! loading them costs more than most of what is observed. Nothing is sampled and no events are copied to user space:
//! the kernel keeps sums, and a reading returns them. Dropping the tracer, or the end of the process, removes
//! everything from the kernel.

mod reading;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
};

use weir_sys::{
    bpf::{Attachment, Map, Program, Refused},
    process_stat::{self, ProcessStat},
};

use super::{
    assembler::Assembled,
    cost,
    kernel::Kernel,
    programs::{self, Group},
    rung,
    tables::{
        MEMBERS_IN_WORD, PID_LIMIT, ProbeTime, Side, Table, TracedCall, TracedSoftirq, TracedThread,
        TracedWake,
    },
};
use crate::process::family_of;

/// Why counting is impossible.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    /// A table or a program was refused.
    #[error("the kernel refuses {what}{}", words(.log))]
    Refused {
        /// The table's or the tracepoint's name.
        what: String,
        /// The verifier's log.
        log: String,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// A process number that the kernel never uses.
    #[error("no process has the number {0}")]
    NoSuchProcess(u32),
    /// Kernel programs see other process numbers than this program.
    #[error("processes have other numbers in this PID namespace than the kernel's programs see")]
    PidNamespace,
}

impl TracerError {
    fn of(what: &str, refused: Refused) -> Self {
        Self::Refused { what: what.to_owned(), log: refused.log, error: refused.error }
    }
}

fn words(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(": {log}") }
}

/// A requested group that does not run.
#[derive(Debug)]
pub struct LeftOut {
    /// The group.
    pub group: Group,
    /// The tracepoint that failed.
    pub tracepoint: &'static str,
    /// Why.
    pub error: io::Error,
}

/// Loaded programs, counting or stopped.
#[derive(Debug)]
pub struct Tracer {
    tables: HashMap<&'static str, Map>,
    /// In the order of attachment; those of the calls are last.
    programs: Vec<Loaded>,
    attached: Vec<Attachment>,
    /// Requested groups that are complete.
    groups: Vec<Group>,
    left_out: Vec<LeftOut>,
    run_ns: f64,
    kernel: Kernel,
}

#[derive(Debug)]
struct Loaded {
    /// `None` for programs that every group needs.
    group: Option<Group>,
    tracepoint: &'static str,
    program: Program,
}

/// Scheduling first, because a call's time is not split by unseen switches, and calls last.
const ORDER: [Group; 5] =
    [Group::Scheduling, Group::Softirqs, Group::Uring, Group::Descriptors, Group::Calls];

/// Passes over the table of threads until it is empty; a second one finds nothing unless threads are being created.
const FORGET_PASSES_MAX: usize = 16;

/// Passes over families until no new members are found; a third one finds nothing unless unmarked processes have
/// children.
const MARK_PASSES_MAX: usize = 16;

/// Sums since the tracer started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// Time of the reading, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// By number; calls that were never made are absent.
    pub calls: BTreeMap<u32, TracedCall>,
    /// Number of opens by file name. Only in some readings, see [`Tracer::opened`].
    pub opened: Vec<(String, u64)>,
    /// Number of failures, by number of the call and of the error.
    pub errors: BTreeMap<(u32, u32), u64>,
    /// Calls whose end was seen and whose start was not.
    pub calls_cut: u64,
    /// Followed threads.
    pub threads: Vec<TracedThread>,
    /// Number of threads that ended; their times follow.
    pub threads_ended: u64,
    /// Time asleep of ended threads.
    pub ended_blocked_ns: u64,
    /// Their time waiting for a CPU.
    pub ended_queued_ns: u64,
    /// Time of our own programs on them.
    pub ended_probe: ProbeTime,
    /// Their time on a CPU.
    pub ended_ran_ns: u64,
    /// Number of their sleeps.
    pub ended_sleeps: u64,
    /// Number of their preemptions.
    pub ended_preemptions: u64,
    /// Switches that the kernel did not report, as far as later events reveal them. What their threads did in between
    /// counts as time without a CPU.
    pub switches_missed: u64,
    /// Wakes by waker and sleeper.
    pub wakes: Vec<TracedWake>,
    /// By kind: while an observed thread had the CPU, and otherwise.
    pub softirqs: BTreeMap<u32, [TracedSoftirq; 2]>,
    /// By event: in observed threads, and elsewhere on the machine.
    pub uring: BTreeMap<&'static str, (u64, u64)>,
    /// By kind of io_uring operation, for observed threads: submitted, and given to the kernel's workers.
    pub operations: BTreeMap<u32, (u64, u64)>,
    /// Threads that could not be followed because there were [`super::tables::THREADS_MAX`].
    pub threads_lost: u64,
    /// Wakes that found no room among [`super::tables::WAKES_MAX`].
    pub wakes_lost: u64,
    /// Events at which a program could not run.
    pub misses: u64,
}

impl Tracer {
    /// Starts counting what these processes and their future children do.
    ///
    /// Groups that the kernel does not support are left out and named, except for the calls, which are required.
    pub fn start(members: &[u32], groups: &[Group]) -> Result<Self, TracerError> {
        let mut tracer = Self::load(groups)?;
        tracer.add_members(members, Side::First)?;
        tracer.attach(groups)?;
        Ok(tracer)
    }

    /// Loads the programs into the kernel, without attaching them.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn load(groups: &[Group]) -> Result<Self, TracerError> {
        if !rung::knows_numbers() {
            return Err(TracerError::PidNamespace);
        }
        let kernel = if groups.contains(&Group::Uring) { Kernel::here() } else { Kernel::numbering() };
        let mut tables = HashMap::new();
        let is_needed = |table: &Table| {
            !table.is_of_runs() && (!table.is_of_descriptors() || groups.contains(&Group::Descriptors))
        };
        for table in Table::ALL.into_iter().filter(is_needed) {
            let map = Map::new(table.name(), table.shape());
            let what = || format!("a table ({})", table.name());
            let map =
                map.map_err(|error| TracerError::Refused { what: what(), log: String::new(), error })?;
            tables.insert(table.name(), map);
        }
        let mut tracer = Self {
            tables,
            programs: Vec::new(),
            attached: Vec::new(),
            groups: Vec::new(),
            left_out: Vec::new(),
            run_ns: 0.0,
            kernel,
        };
        for (tracepoint, program) in programs::family(kernel) {
            tracer.take_in(None, tracepoint, &program)?;
        }
        for group in ORDER.into_iter().filter(|group| groups.contains(group)) {
            for (tracepoint, program) in group.programs(kernel) {
                tracer.take_in(Some(group), tracepoint, &program)?;
            }
        }
        tracer.run_ns = cost::of_run_ns().map_err(|refused| TracerError::of("a program", refused))?;
        Ok(tracer)
    }

    /// Starts counting with these of the loaded groups. Known threads are forgotten; sums continue, so that only
    /// differences of readings are meaningful.
    ///
    /// # Errors
    /// Fails when calls cannot be counted, or the tables cannot be written.
    pub fn attach(&mut self, groups: &[Group]) -> Result<(), TracerError> {
        self.stop();
        self.clear().map_err(|error| TracerError::of("a table", Refused { error, log: String::new() }))?;
        for index in 0..self.programs.len() {
            let Loaded { group, tracepoint, program } = &self.programs[index];
            if group.is_some_and(|group| !groups.contains(&group)) {
                continue;
            }
            match program.attach(tracepoint) {
                Ok(attachment) => self.attached.push(attachment),
                Err(error) => self.leave_out(*group, tracepoint, Refused { error, log: String::new() })?,
            }
        }
        let is_whole = |group: &Group| !self.left_out.iter().any(|it| it.group == *group);
        self.groups = groups.iter().copied().filter(is_whole).collect();
        Ok(())
    }

    /// Whether this group counts, or did until the programs were stopped.
    pub fn counts(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// Whether io_uring operations are counted by kind: not every kernel describes them.
    pub fn knows_operations(&self) -> bool {
        self.kernel.opcode_offset.is_some()
    }

    /// Time of a program's run that the program cannot measure itself.
    pub fn run_ns(&self) -> f64 {
        self.run_ns
    }

    /// The requested groups that do not run, or only partly.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The kernel's ids of the programs.
    pub fn program_ids(&self) -> Vec<u32> {
        self.programs.iter().filter_map(|it| it.program.id().ok()).collect()
    }

    /// Number and total nanoseconds of each program's runs, while the kernel counts them
    /// ([`weir_sys::bpf::count_runs`]), by tracepoint.
    pub fn runs(&self) -> Vec<(&'static str, u64, u64)> {
        let of_program = |it: &Loaded| {
            let (count, ns) = it.program.runs().unwrap_or_default();
            (it.tracepoint, count, ns)
        };
        self.programs.iter().map(of_program).collect()
    }

    /// Adds processes with all their descendants, and returns all of them.
    ///
    /// A child that is created after its parent was listed and before it was marked is in no list and inherits no
    /// mark, and neither do its own children. So the families are listed again. A zombie gets no mark: it does
    /// nothing any more, nothing would clear its mark, and a later process with its number would be mistaken for it.
    pub fn add_families(&self, roots: &[(u32, Side)]) -> Result<Vec<u32>, TracerError> {
        let mut found: BTreeSet<u32> = BTreeSet::new();
        until_nobody_is_new(|| {
            let mut has_new = false;
            for &(root, side) in roots {
                let mut members = family_of(root).map_err(|_| TracerError::NoSuchProcess(root))?;
                members.retain(|member| *member == root || !is_over(*member));
                has_new |= self.add_members(&members, side)?;
                // Members that ended before they were marked.
                for member in members.iter().filter(|member| is_over(**member)) {
                    let refused = |error| TracerError::Refused {
                        what: "a member".to_owned(),
                        log: String::new(),
                        error,
                    };
                    self.unmark(*member).map_err(refused)?;
                }
                found.extend(members);
            }
            Ok(has_new)
        })?;
        Ok(found.into_iter().collect())
    }

    /// Adds processes; what they did before is unknown. Returns whether one of them had no mark, or the other side's.
    ///
    /// Running programs clear marks in the same words, each atomically. User space has no such atomic operation: a
    /// mark that they clear between the reading and the writing of its word reappears. So a word is written only if
    /// that changes something. A mark that reappears belongs to an ended process, and matters only when the kernel
    /// reuses its number.
    pub fn add_members(&self, members: &[u32], side: Side) -> Result<bool, TracerError> {
        let table = self.table(Table::Members);
        let refused = |error| TracerError::Refused { what: "a member".to_owned(), log: String::new(), error };
        // The earlier state of a number says nothing about the process that has it now.
        let mut bits: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
        for &member in members {
            if member == 0 || member >= PID_LIMIT {
                return Err(TracerError::NoSuchProcess(member));
            }
            let (index, place) = place_of(member);
            let (mask, new) = bits.entry(index).or_default();
            *mask |= 3 << place;
            *new |= (side as u64 + 1) << place;
        }
        let mut has_new = false;
        for (index, (mask, new)) in bits {
            let key = index.to_ne_bytes();
            let mut value = [0_u8; 8];
            table.read(&key, &mut value).map_err(refused)?;
            let word = u64::from_ne_bytes(value);
            if word & mask != new {
                table.write(&key, &(word & !mask | new).to_ne_bytes()).map_err(refused)?;
                has_new = true;
            }
        }
        Ok(has_new)
    }

    /// Removes a process, with all data about its threads.
    pub fn forget(&self, member: u32) -> io::Result<()> {
        self.unmark(member)?;
        self.forget_threads(|thread| thread.pid == member).map(|_| ())
    }

    /// Removes processes and every known thread. A thread that is created meanwhile does not know its process yet, so
    /// this repeats until no thread is found.
    pub fn forget_all(&self, members: &[u32]) -> io::Result<()> {
        for _ in 0..FORGET_PASSES_MAX {
            members.iter().try_for_each(|member| self.unmark(*member))?;
            if self.forget_threads(|_| true)? == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("threads are born faster than they can be forgotten"))
    }

    fn unmark(&self, member: u32) -> io::Result<()> {
        let members = self.table(Table::Members);
        let (index, place) = place_of(member);
        let key = index.to_ne_bytes();
        let mut value = [0_u8; 8];
        members.read(&key, &mut value)?;
        let word = u64::from_ne_bytes(value);
        let without = word & !(3 << place);
        // As in `add_members`: a word that is not written loses nothing.
        if without == word { Ok(()) } else { members.write(&key, &without.to_ne_bytes()) }
    }

    /// Returns the number of removed threads.
    fn forget_threads(&self, is_meant: impl Fn(&TracedThread) -> bool) -> io::Result<usize> {
        let threads = self.table(Table::Threads);
        let mut value = vec![0; threads.read_bytes()];
        let mut forgotten = 0;
        for key in threads.keys()? {
            if threads.read(&key, &mut value)? && is_meant(&TracedThread::decode(&value)) {
                threads.remove(&key)?;
                forgotten += 1;
            }
        }
        Ok(forgotten)
    }

    /// The processes of all known threads, including ended ones whose number is gone.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        let threads = self.table(Table::Threads);
        let mut value = vec![0; threads.read_bytes()];
        let mut pids = Vec::new();
        for key in threads.keys()? {
            if threads.read(&key, &mut value)? {
                pids.push(TracedThread::decode(&value).pid);
            }
        }
        pids.retain(|pid| *pid > 0);
        Ok(pids)
    }

    /// Stops counting and returns the sums. Calls still in progress are in [`KernelCounts::threads`].
    pub fn finish(mut self) -> io::Result<KernelCounts> {
        self.stop();
        self.read()
    }

    /// Stops counting; the sums can still be read.
    pub fn stop(&mut self) {
        // No call may start unseen while ends are still traced: the last attached program is the one at the start of
        // calls, and is detached first.
        while self.attached.pop().is_some() {}
    }

    /// Forgets all threads and their wakers.
    fn clear(&self) -> io::Result<()> {
        for table in [Table::Threads, Table::Wakes].map(|table| self.table(table)) {
            for key in table.keys()? {
                table.remove(&key)?;
            }
        }
        Ok(())
    }

    fn table(&self, table: Table) -> &Map {
        &self.tables[table.name()]
    }

    fn take_in(
        &mut self,
        group: Option<Group>,
        tracepoint: &'static str,
        program: &Assembled,
    ) -> Result<(), TracerError> {
        let instructions = program.linked(|table| self.table(table).number());
        match Program::load(&format!("weir_{tracepoint}"), &instructions) {
            Ok(program) => {
                self.programs.push(Loaded { group, tracepoint, program });
                Ok(())
            }
            Err(refused) => self.leave_out(group, tracepoint, refused),
        }
    }

    /// Continues without a program, if possible, and notes that once.
    fn leave_out(
        &mut self,
        group: Option<Group>,
        tracepoint: &'static str,
        refused: Refused,
    ) -> Result<(), TracerError> {
        let Some(group) = group.filter(|group| *group != Group::Calls) else {
            return Err(TracerError::of(&format!("a program at {tracepoint}"), refused));
        };
        if !self.left_out.iter().any(|it| it.tracepoint == tracepoint) {
            self.left_out.push(LeftOut { group, tracepoint, error: refused.error });
        }
        Ok(())
    }
}

impl KernelCounts {
    /// The difference to an earlier reading of the same tracer. Threads are the current ones, with their earlier
    /// values subtracted.
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = TracedCall::default();
        let mut later = self.clone();
        for (number, call) in &mut later.calls {
            let before = earlier.calls.get(number).unwrap_or(&nothing);
            *call = call.combined(before, u64::saturating_sub);
        }
        later.calls.retain(|_, call| *call != nothing);
        for (error, count) in &mut later.errors {
            *count = count.saturating_sub(earlier.errors.get(error).copied().unwrap_or_default());
        }
        later.errors.retain(|_, count| *count > 0);
        let threads: HashMap<_, _> = earlier.threads.iter().map(|it| ((it.pid, it.tid), it)).collect();
        for thread in &mut later.threads {
            if let Some(before) = threads.get(&(thread.pid, thread.tid)) {
                thread.calls = thread.calls.saturating_sub(before.calls);
                thread.ran_ns = thread.ran_ns.saturating_sub(before.ran_ns);
                thread.switch_probe_ns = thread.switch_probe_ns.saturating_sub(before.switch_probe_ns);
                thread.blocked_ns = thread.blocked_ns.saturating_sub(before.blocked_ns);
                thread.queued_ns = thread.queued_ns.saturating_sub(before.queued_ns);
                thread.softirq_ns = thread.softirq_ns.saturating_sub(before.softirq_ns);
                thread.probe = thread.probe.combined(&before.probe, u64::saturating_sub);
                thread.in_calls = thread.in_calls.combined(&before.in_calls, u64::saturating_sub);
                thread.sleeps = thread.sleeps.saturating_sub(before.sleeps);
                thread.preemptions = thread.preemptions.saturating_sub(before.preemptions);
            }
        }
        let key = |wake: &TracedWake| (wake.waker_pid, wake.waker_tid, wake.sleeper_tid, wake.context);
        let wakes: HashMap<_, _> = earlier.wakes.iter().map(|it| (key(it), it)).collect();
        for wake in &mut later.wakes {
            if let Some(before) = wakes.get(&key(wake)) {
                wake.count = wake.count.saturating_sub(before.count);
                wake.blocked_ns = wake.blocked_ns.saturating_sub(before.blocked_ns);
            }
        }
        later.wakes.retain(|wake| wake.count > 0);
        for (kind, sums) in &mut later.softirqs {
            let before = earlier.softirqs.get(kind).copied().unwrap_or_default();
            for (sum, before) in sums.iter_mut().zip(before) {
                *sum = sum.combined(&before, u64::saturating_sub);
            }
        }
        for (name, sum) in &mut later.uring {
            let before = earlier.uring.get(name).copied().unwrap_or_default();
            *sum = (sum.0.saturating_sub(before.0), sum.1.saturating_sub(before.1));
        }
        for (kind, sum) in &mut later.operations {
            let before = earlier.operations.get(kind).copied().unwrap_or_default();
            *sum = (sum.0.saturating_sub(before.0), sum.1.saturating_sub(before.1));
        }
        later.operations.retain(|_, sum| *sum != (0, 0));
        later.subtract_counters(earlier);
        later
    }

    fn subtract_counters(&mut self, earlier: &Self) {
        for (later, earlier) in [
            (&mut self.calls_cut, earlier.calls_cut),
            (&mut self.threads_ended, earlier.threads_ended),
            (&mut self.ended_blocked_ns, earlier.ended_blocked_ns),
            (&mut self.ended_queued_ns, earlier.ended_queued_ns),
            (&mut self.ended_probe.ns, earlier.ended_probe.ns),
            (&mut self.ended_probe.runs, earlier.ended_probe.runs),
            (&mut self.ended_ran_ns, earlier.ended_ran_ns),
            (&mut self.ended_sleeps, earlier.ended_sleeps),
            (&mut self.ended_preemptions, earlier.ended_preemptions),
            (&mut self.switches_missed, earlier.switches_missed),
            (&mut self.threads_lost, earlier.threads_lost),
            (&mut self.wakes_lost, earlier.wakes_lost),
            (&mut self.misses, earlier.misses),
        ] {
            *later = later.saturating_sub(earlier);
        }
    }
}

/// Repeats a pass over families that returns whether it found new members. Members that are still new after the last
/// pass are children of marked ones: these are followed from their creation on, without marks.
fn until_nobody_is_new(mut pass: impl FnMut() -> Result<bool, TracerError>) -> Result<(), TracerError> {
    for _ in 0..MARK_PASSES_MAX {
        if !pass()? {
            break;
        }
    }
    Ok(())
}

/// Whether a process has ended, with all its threads, reaped or not.
fn is_over(pid: u32) -> bool {
    const THREADS: usize = 20;
    let line = process_stat::read(pid);
    let stat = line.as_deref().and_then(ProcessStat::parse);
    stat.is_none_or(|stat| stat.has_ended() && stat.number(THREADS).is_none_or(|threads| threads <= 1))
}

/// The word of a process in the members table, and the position of its two bits.
fn place_of(member: u32) -> (u32, u32) {
    (member / MEMBERS_IN_WORD, member % MEMBERS_IN_WORD * 2)
}

/// The clock that the kernel's programs read.
pub(super) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_born_between_a_list_and_its_marks_are_found_by_the_next_list() {
        let (mut living, mut marked) = (vec![1_u32], BTreeSet::<u32>::new());
        let mut lists = 0;
        let pass = || {
            let listed = living.clone();
            lists += 1;
            if living.len() < 3 {
                living.push(living.len() as u32 + 1);
            }
            let count_before = marked.len();
            marked.extend(listed);
            Ok(marked.len() > count_before)
        };
        until_nobody_is_new(pass).expect("no list fails");
        assert_eq!((marked.into_iter().collect::<Vec<_>>(), lists), (vec![1, 2, 3], 4));
    }

    #[test]
    fn families_in_which_somebody_is_always_new_are_listed_so_often_and_an_error_ends_it() {
        let mut lists = 0;
        let always = || {
            lists += 1;
            Ok(true)
        };
        until_nobody_is_new(always).expect("no list fails");
        assert_eq!(lists, MARK_PASSES_MAX);
        let failed = until_nobody_is_new(|| Err(TracerError::NoSuchProcess(7)));
        assert!(matches!(failed, Err(TracerError::NoSuchProcess(7))));
    }

    #[test]
    fn counters_that_fell_count_nothing() {
        let thread = |calls| TracedThread { tid: 1, calls, blocked_ns: calls, ..TracedThread::default() };
        let reading = |count: u64| KernelCounts {
            calls: BTreeMap::from([(0, TracedCall { count, on_cpu_ns: count, ..TracedCall::default() })]),
            errors: BTreeMap::from([((0, 2), count)]),
            calls_cut: count,
            threads: vec![thread(count)],
            wakes: vec![TracedWake { count, blocked_ns: count, ..TracedWake::default() }],
            softirqs: BTreeMap::from([(3, [TracedSoftirq { count, ns: count, ..Default::default() }; 2])]),
            uring: BTreeMap::from([("io_uring_complete", (count, count))]),
            ..KernelCounts::default()
        };
        let fell = reading(2).since(&reading(u64::MAX));
        assert!(fell.calls.is_empty() && fell.errors.is_empty() && fell.wakes.is_empty(), "{fell:?}");
        assert_eq!((fell.calls_cut, fell.threads[0].calls, fell.threads[0].blocked_ns), (0, 0, 0));
        assert_eq!(
            (fell.softirqs[&3], fell.uring["io_uring_complete"]),
            ([TracedSoftirq::default(); 2], (0, 0))
        );
        assert_eq!(reading(u64::MAX).since(&reading(1)).calls[&0].count, u64::MAX - 1);
    }
}
