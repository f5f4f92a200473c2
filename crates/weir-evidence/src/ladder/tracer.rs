//! Programs at work: loading them, attaching them, reading their tables.
//!
//! While a [`Tracer`] lives, every system call and every switch of the whole machine runs a few dozen instructions
//! more. Nothing is sampled and nothing is copied out for each event: the kernel keeps the sums, and a reading takes
//! them as they are. Dropping the tracer, or dying, takes everything out of the kernel.

use std::{
    collections::{BTreeMap, HashMap},
    io,
};

use weir_sys::bpf::{Attachment, Map, Program, Refused};

use super::{
    programs::{self, Group},
    rung,
    tables::{
        self, CALLS_MAX, Counter, MEMBERS_IN_WORD, PID_LIMIT, SIDES, SOFTIRQS_MAX, Side, Table, TracedCall,
        TracedThread, TracedWake, URING_EVENTS,
    },
};

/// Why nothing can be counted.
#[derive(Debug, thiserror::Error)]
pub enum TracerError {
    /// A table or a program was refused.
    #[error("the kernel refuses {what}{}", words(.log))]
    Refused {
        /// The table's or the tracepoint's name.
        what: String,
        /// What the verifier said.
        log: String,
        /// The kernel's error.
        #[source]
        error: io::Error,
    },
    /// A process number that no kernel gives out.
    #[error("no process has the number {0}")]
    NoSuchProcess(u32),
    /// The kernel's programs see other numbers of processes than this program does.
    #[error("processes have other numbers in this PID namespace than the kernel's programs see")]
    PidNamespace,
}

fn words(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(": {log}") }
}

/// A group that does not run, although it was asked for.
#[derive(Debug)]
pub struct LeftOut {
    /// The group.
    pub group: Group,
    /// The tracepoint that could not be had.
    pub tracepoint: &'static str,
    /// Why.
    pub error: io::Error,
}

/// Programs that count.
#[derive(Debug)]
pub struct Tracer {
    tables: HashMap<&'static str, Map>,
    /// In the order in which they were attached; those of the calls are last.
    attached: Vec<(&'static str, Program, Attachment)>,
    left_out: Vec<LeftOut>,
}

/// Sums since the tracer began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelCounts {
    /// When they were read, on CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// By number; calls that were never made are absent.
    pub calls: BTreeMap<u32, TracedCall>,
    /// Calls whose end was seen and whose beginning was not.
    pub calls_cut: u64,
    /// Threads that are followed.
    pub threads: Vec<TracedThread>,
    /// Threads that ended, and what they had slept and waited.
    pub threads_ended: u64,
    /// Time threads that ended had slept.
    pub ended_blocked_ns: u64,
    /// Time they had waited for a CPU.
    pub ended_queued_ns: u64,
    /// Who woke whom.
    pub wakes: Vec<TracedWake>,
    /// By kind: count and time while an observed thread had the CPU, count and time elsewhere.
    pub softirqs: BTreeMap<u32, [(u64, u64); 2]>,
    /// By event: in observed threads, elsewhere on the machine.
    pub uring: BTreeMap<&'static str, (u64, u64)>,
    /// Times a thread could not be followed because [`tables::THREADS_MAX`] were.
    pub threads_lost: u64,
    /// Wakes without room among [`tables::WAKES_MAX`].
    pub wakes_lost: u64,
    /// Events at which a program could not run.
    pub misses: u64,
}

impl Tracer {
    /// Begins to count what these processes and the children they will have do.
    ///
    /// Groups that the kernel cannot give are left out and named, but for the calls, without which there is nothing.
    pub fn start(members: &[u32], groups: &[Group]) -> Result<Self, TracerError> {
        if !rung::is_first_pid_namespace() {
            return Err(TracerError::PidNamespace);
        }
        let mut tables = HashMap::new();
        for table in Table::ALL {
            let map = Map::new(table.name(), table.shape());
            let what = || format!("a table ({})", table.name());
            let map =
                map.map_err(|error| TracerError::Refused { what: what(), log: String::new(), error })?;
            tables.insert(table.name(), map);
        }
        let mut tracer = Self { tables, attached: Vec::new(), left_out: Vec::new() };
        tracer.observe(members, Side::First)?;
        tracer.attach(programs::family()).map_err(|(error, _)| error)?;
        let order = [Group::Scheduling, Group::Softirqs, Group::Uring, Group::Calls];
        for group in order.into_iter().filter(|group| groups.contains(group)) {
            for (tracepoint, program) in group.programs() {
                match tracer.attach((tracepoint, program)) {
                    Ok(()) => {}
                    Err((error, _)) if group == Group::Calls => return Err(error),
                    Err((_, error)) => tracer.left_out.push(LeftOut { group, tracepoint, error }),
                }
            }
        }
        Ok(tracer)
    }

    /// The groups that were asked for and do not run, or not whole.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// The kernel's numbers of the programs.
    pub fn program_ids(&self) -> Vec<u32> {
        self.attached.iter().filter_map(|(_, program, _)| program.id().ok()).collect()
    }

    /// Adds processes; what they did before is not known.
    pub fn observe(&self, members: &[u32], side: Side) -> Result<(), TracerError> {
        let table = self.table(Table::Members);
        let refused = |error| TracerError::Refused { what: "a member".to_owned(), log: String::new(), error };
        // What a number was before says nothing of the process that has it now.
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
        for (index, (mask, new)) in bits {
            let key = index.to_ne_bytes();
            let mut value = [0_u8; 8];
            table.read(&key, &mut value).map_err(refused)?;
            let word = u64::from_ne_bytes(value) & !mask | new;
            table.write(&key, &word.to_ne_bytes()).map_err(refused)?;
        }
        Ok(())
    }

    /// Takes a process out again, with all that is known of its threads.
    pub(super) fn forget(&self, member: u32) -> io::Result<()> {
        let members = self.table(Table::Members);
        let (index, place) = place_of(member);
        let key = index.to_ne_bytes();
        let mut value = [0_u8; 8];
        members.read(&key, &mut value)?;
        let word = u64::from_ne_bytes(value) & !(3 << place);
        members.write(&key, &word.to_ne_bytes())?;
        let threads = self.table(Table::Threads);
        let mut value = vec![0; threads.read_bytes()];
        for key in threads.keys()? {
            if threads.read(&key, &mut value)? && TracedThread::decode(&value).pid == member {
                threads.remove(&key)?;
            }
        }
        Ok(())
    }

    /// The sums now, of the first side.
    pub fn read(&self) -> io::Result<KernelCounts> {
        self.read_side(Side::First)
    }

    /// The sums now. What the other side did on the machine is elsewhere; what found no room is of both.
    pub fn read_side(&self, side: Side) -> io::Result<KernelCounts> {
        let mut counts = KernelCounts { at_ns: monotonic_ns(), ..KernelCounts::default() };
        self.read_calls(side, &mut counts)?;
        self.read_threads(side, &mut counts)?;
        self.read_counters(side, &mut counts)?;
        self.read_softirqs(side, &mut counts)?;
        counts.misses =
            self.attached.iter().map(|(_, program, _)| program.misses().unwrap_or_default()).sum();
        Ok(counts)
    }

    /// Stops counting and gives the sums. Calls that are still going on are in [`KernelCounts::threads`].
    pub fn finish(mut self) -> io::Result<KernelCounts> {
        self.stop();
        self.read()
    }

    /// Stops counting; the sums can still be read.
    pub fn stop(&mut self) {
        // No call may begin unseen while ends are still looked at: the last one attached is where they begin.
        while self.attached.len() > 1 {
            self.attached.pop();
        }
    }

    fn table(&self, table: Table) -> &Map {
        &self.tables[table.name()]
    }

    /// The error twice: told, and as the kernel had it.
    fn attach(
        &mut self,
        (tracepoint, program): (&'static str, super::assembler::Assembled),
    ) -> Result<(), (TracerError, io::Error)> {
        let instructions = program.linked(|table| self.table(table).number());
        let program = Program::load(&format!("weir_{tracepoint}"), &instructions);
        let attached = program.and_then(|program| match program.attach(tracepoint) {
            Ok(attachment) => Ok((tracepoint, program, attachment)),
            Err(error) => Err(Refused { error, log: String::new() }),
        });
        let refused = |refused: Refused| {
            let own = refused
                .error
                .raw_os_error()
                .map_or_else(|| io::Error::other(refused.error.to_string()), io::Error::from_raw_os_error);
            let what = format!("a program at {tracepoint}");
            (TracerError::Refused { what, log: refused.log, error: refused.error }, own)
        };
        self.attached.push(attached.map_err(refused)?);
        Ok(())
    }

    fn read_calls(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let table = self.table(Table::Calls);
        let mut values = vec![0; table.read_bytes()];
        let stride = (table.shape().value_bytes as usize).next_multiple_of(8);
        for number in 0..CALLS_MAX {
            table.read(&(side as u32 * CALLS_MAX + number).to_ne_bytes(), &mut values)?;
            let each = values.chunks_exact(stride).map(TracedCall::decode);
            let sum = each.fold(TracedCall::default(), |sum, it| sum.combined(&it, |one, other| one + other));
            if sum != TracedCall::default() {
                counts.calls.insert(number, sum);
            }
        }
        Ok(())
    }

    fn read_threads(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let threads = self.table(Table::Threads);
        let mut value = vec![0; threads.read_bytes()];
        for key in threads.keys()? {
            // One that ended since the keys were listed is in the sums of the ended.
            if threads.read(&key, &mut value)? {
                counts.threads.push(TracedThread::decode(&value));
            }
        }
        // A new thread has no number before it first comes back from the kernel.
        counts.threads.retain(|thread| thread.tid > 0 && thread.side == side);
        counts.threads.sort_by_key(|thread| (thread.pid, thread.tid));
        let wakes = self.table(Table::Wakes);
        let mut value = vec![0; wakes.read_bytes()];
        for key in wakes.keys()? {
            if wakes.read(&key, &mut value)? {
                counts.wakes.push(TracedWake::decode(&key, &value));
            }
        }
        counts.wakes.retain(|wake| wake.side == side);
        counts.wakes.sort_by_key(|wake| (wake.sleeper_tid, wake.waker_tid, wake.softirq));
        Ok(())
    }

    fn read_counters(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let own = |first: Counter| self.counter(first as u32 + side as u32);
        counts.calls_cut = own(Counter::Cut)?;
        counts.threads_ended = own(Counter::ThreadsEnded)?;
        counts.ended_blocked_ns = own(Counter::EndedBlockedNs)?;
        counts.ended_queued_ns = own(Counter::EndedQueuedNs)?;
        counts.threads_lost = self.counter(Counter::ThreadsLost as u32)?;
        counts.wakes_lost = self.counter(Counter::WakesLost as u32)?;
        for (index, name) in (0..).zip(URING_EVENTS) {
            let first = Counter::Uring as u32 + (1 + SIDES) * index;
            let all = (0..=SIDES).map(|place| self.counter(first + place)).sum::<io::Result<u64>>()?;
            let own = self.counter(first + 1 + side as u32)?;
            if all > 0 {
                counts.uring.insert(name, (own, all.saturating_sub(own)));
            }
        }
        Ok(())
    }

    fn counter(&self, index: u32) -> io::Result<u64> {
        let table = self.table(Table::Counters);
        let mut values = vec![0; table.read_bytes()];
        table.read(&index.to_ne_bytes(), &mut values)?;
        Ok(values.chunks_exact(8).map(tables::decode_counter).sum())
    }

    fn read_softirqs(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let table = self.table(Table::Softirqs);
        let stride = table.shape().value_bytes as usize;
        let mut values = vec![0; table.read_bytes()];
        for index in 0..(1 + SIDES) * SOFTIRQS_MAX {
            table.read(&index.to_ne_bytes(), &mut values)?;
            let each = values.chunks_exact(stride).map(tables::decode_softirq);
            let sum = each.fold((0, 0), |sum, (count, ns)| (sum.0 + count, sum.1 + ns));
            if sum.0 > 0 {
                let kind = counts.softirqs.entry(index % SOFTIRQS_MAX).or_default();
                let place = &mut kind[usize::from(index / SOFTIRQS_MAX != 1 + side as u32)];
                *place = (place.0 + sum.0, place.1 + sum.1);
            }
        }
        Ok(())
    }
}

impl KernelCounts {
    /// What was added since an earlier reading of the same tracer. Threads are those of now, less what they had.
    pub fn since(&self, earlier: &Self) -> Self {
        let nothing = TracedCall::default();
        let mut later = self.clone();
        for (number, call) in &mut later.calls {
            let before = earlier.calls.get(number).unwrap_or(&nothing);
            *call = call.combined(before, u64::saturating_sub);
        }
        later.calls.retain(|_, call| *call != nothing);
        let threads: HashMap<_, _> = earlier.threads.iter().map(|it| ((it.pid, it.tid), it)).collect();
        for thread in &mut later.threads {
            if let Some(before) = threads.get(&(thread.pid, thread.tid)) {
                thread.calls = thread.calls.saturating_sub(before.calls);
                thread.blocked_ns = thread.blocked_ns.saturating_sub(before.blocked_ns);
                thread.queued_ns = thread.queued_ns.saturating_sub(before.queued_ns);
                thread.sleeps = thread.sleeps.saturating_sub(before.sleeps);
                thread.preemptions = thread.preemptions.saturating_sub(before.preemptions);
            }
        }
        let key = |wake: &TracedWake| (wake.waker_pid, wake.waker_tid, wake.sleeper_tid, wake.softirq);
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
                *sum = (sum.0.saturating_sub(before.0), sum.1.saturating_sub(before.1));
            }
        }
        for (name, sum) in &mut later.uring {
            let before = earlier.uring.get(name).copied().unwrap_or_default();
            *sum = (sum.0.saturating_sub(before.0), sum.1.saturating_sub(before.1));
        }
        later.subtract_counters(earlier);
        later
    }

    fn subtract_counters(&mut self, earlier: &Self) {
        for (later, earlier) in [
            (&mut self.calls_cut, earlier.calls_cut),
            (&mut self.threads_ended, earlier.threads_ended),
            (&mut self.ended_blocked_ns, earlier.ended_blocked_ns),
            (&mut self.ended_queued_ns, earlier.ended_queued_ns),
            (&mut self.threads_lost, earlier.threads_lost),
            (&mut self.wakes_lost, earlier.wakes_lost),
            (&mut self.misses, earlier.misses),
        ] {
            *later = later.saturating_sub(earlier);
        }
    }
}

/// The word of a process in the table of members, and the place of its two bits in there.
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
    fn counters_that_fell_count_nothing() {
        let thread = |calls| TracedThread { tid: 1, calls, blocked_ns: calls, ..TracedThread::default() };
        let reading = |count: u64| KernelCounts {
            calls: BTreeMap::from([(0, TracedCall { count, wall_ns: count, ..TracedCall::default() })]),
            calls_cut: count,
            threads: vec![thread(count)],
            wakes: vec![TracedWake { count, blocked_ns: count, ..TracedWake::default() }],
            softirqs: BTreeMap::from([(3, [(count, count); 2])]),
            uring: BTreeMap::from([("io_uring_complete", (count, count))]),
            ..KernelCounts::default()
        };
        let fell = reading(2).since(&reading(u64::MAX));
        assert!(fell.calls.is_empty() && fell.wakes.is_empty(), "{fell:?}");
        assert_eq!((fell.calls_cut, fell.threads[0].calls, fell.threads[0].blocked_ns), (0, 0, 0));
        assert_eq!((fell.softirqs[&3], fell.uring["io_uring_complete"]), ([(0, 0); 2], (0, 0)));
        assert_eq!(reading(u64::MAX).since(&reading(1)).calls[&0].count, u64::MAX - 1);
    }
}
