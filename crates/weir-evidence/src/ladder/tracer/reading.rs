//! Reading the tables of the programs.

use std::io;

use weir_record::observation::total;

use super::{KernelCounts, Tracer, monotonic_ns};
use crate::ladder::{
    Group,
    tables::{
        self, CALLS_MAX, Counter, OPERATIONS_MAX, ProbeTime, SIDES, SOFTIRQS_MAX, Side, Table, TracedCall,
        TracedDescriptor, TracedSoftirq, TracedThread, TracedWake, URING_EVENTS,
    },
};

impl Tracer {
    /// The current sums of the first side.
    pub fn read(&self) -> io::Result<KernelCounts> {
        self.read_side(Side::First)
    }

    /// The current sums of a side. The other side's activity on the machine counts as elsewhere; what found no room
    /// is for both sides.
    pub fn read_side(&self, side: Side) -> io::Result<KernelCounts> {
        let mut counts = KernelCounts { at_ns: monotonic_ns(), ..KernelCounts::default() };
        self.read_calls(side, &mut counts)?;
        self.read_threads(side, &mut counts)?;
        self.read_counters(side, &mut counts)?;
        self.read_softirqs(side, &mut counts)?;
        self.read_errors(side, &mut counts)?;
        self.read_operations(side, &mut counts)?;
        counts.misses = total(self.programs.iter().map(|it| it.program.misses().unwrap_or_default()));
        Ok(counts)
    }

    /// Number of opens by file name, since the programs were loaded. Reading them takes two system calls per name, so
    /// it is done at the end.
    pub fn opened(&self, side: Side) -> io::Result<Vec<(String, u64)>> {
        let table = self.table(Table::Opened);
        let mut value = vec![0; table.read_bytes()];
        let mut opened = Vec::new();
        for key in table.keys()? {
            let (of_side, name) = tables::decode_name(&key);
            if of_side == side && table.read(&key, &mut value)? {
                opened.push((name, tables::decode_counter(&value)));
            }
        }
        Ok(opened)
    }

    /// One kind of call of the first side.
    pub(in crate::ladder) fn read_call(&self, number: u32) -> io::Result<TracedCall> {
        self.call_of(Side::First, number)
    }

    fn read_calls(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        for number in 0..CALLS_MAX {
            let sum = self.call_of(side, number)?;
            if sum != TracedCall::default() {
                counts.calls.insert(number, sum);
            }
        }
        Ok(())
    }

    /// A kind of call over all CPUs.
    fn call_of(&self, side: Side, number: u32) -> io::Result<TracedCall> {
        let table = self.table(Table::Calls);
        let mut values = vec![0; table.read_bytes()];
        let stride = (table.shape().value_bytes as usize).next_multiple_of(8);
        table.read(&(side as u32 * CALLS_MAX + number).to_ne_bytes(), &mut values)?;
        let each = values.chunks_exact(stride).map(TracedCall::decode);
        Ok(each.fold(TracedCall::default(), |sum, it| sum.combined(&it, u64::saturating_add)))
    }

    fn read_threads(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let threads = self.table(Table::Threads);
        let mut value = vec![0; threads.read_bytes()];
        for key in threads.keys()? {
            // A thread that ended since the keys were listed is in the sums of ended threads.
            if threads.read(&key, &mut value)? {
                counts.threads.push(TracedThread::decode(&value));
            }
        }
        // A new thread has no number before its first return from the kernel, and the first thread of a process has
        // none after its end.
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
        counts.wakes.sort_by_key(|wake| (wake.sleeper_tid, wake.waker_tid, wake.context));
        Ok(())
    }

    fn read_counters(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let own = |first: Counter| self.counter(first as u32 + side as u32);
        counts.calls_cut = own(Counter::Cut)?;
        counts.threads_ended = own(Counter::ThreadsEnded)?;
        counts.ended_blocked_ns = own(Counter::EndedBlockedNs)?;
        counts.ended_queued_ns = own(Counter::EndedQueuedNs)?;
        let (ns, runs) = (own(Counter::EndedProbeNs)?, own(Counter::EndedProbeRuns)?);
        counts.ended_probe = ProbeTime { ns, runs };
        counts.ended_ran_ns = own(Counter::EndedRanNs)?;
        counts.ended_sleeps = own(Counter::EndedSleeps)?;
        counts.ended_preemptions = own(Counter::EndedPreemptions)?;
        counts.switches_missed = own(Counter::SwitchesMissed)?;
        counts.threads_lost = self.counter(Counter::ThreadsLost as u32)?;
        counts.wakes_lost = self.counter(Counter::WakesLost as u32)?;
        for (index, name) in (0..).zip(URING_EVENTS) {
            let first = Counter::Uring as u32 + (1 + SIDES) * index;
            let all =
                (0..=SIDES).map(|place| self.counter(first + place)).collect::<io::Result<Vec<u64>>>()?;
            let all = total(all);
            let own = self.counter(first + 1 + side as u32)?;
            if all > 0 {
                counts.uring.insert(name, (own, all.saturating_sub(own)));
            }
        }
        Ok(())
    }

    fn read_errors(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let table = self.table(Table::Errors);
        let mut value = vec![0; table.read_bytes()];
        for key in table.keys()? {
            let (of_side, call, error) = tables::decode_error(&key);
            if of_side == side && table.read(&key, &mut value)? {
                counts.errors.insert((call, error), tables::decode_counter(&value));
            }
        }
        Ok(())
    }

    fn counter(&self, index: u32) -> io::Result<u64> {
        let table = self.table(Table::Counters);
        let mut values = vec![0; table.read_bytes()];
        table.read(&index.to_ne_bytes(), &mut values)?;
        Ok(total(values.chunks_exact(8).map(tables::decode_counter)))
    }

    fn read_softirqs(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        let table = self.table(Table::Softirqs);
        let stride = table.shape().value_bytes as usize;
        let mut values = vec![0; table.read_bytes()];
        for index in 0..(1 + SIDES) * SOFTIRQS_MAX {
            table.read(&index.to_ne_bytes(), &mut values)?;
            let each = values.chunks_exact(stride).map(TracedSoftirq::decode);
            let sum = each.fold(TracedSoftirq::default(), |sum, it| sum.combined(&it, u64::saturating_add));
            if sum.count > 0 {
                let kind = counts.softirqs.entry(index % SOFTIRQS_MAX).or_default();
                let place = &mut kind[usize::from(index / SOFTIRQS_MAX != 1 + side as u32)];
                *place = place.combined(&sum, u64::saturating_add);
            }
        }
        Ok(())
    }

    fn read_operations(&self, side: Side, counts: &mut KernelCounts) -> io::Result<()> {
        if self.kernel.opcode_offset.is_none() || !self.counts(Group::Uring) {
            return Ok(());
        }
        let table = self.table(Table::Operations);
        let mut values = vec![0; table.read_bytes()];
        let stride = table.shape().value_bytes as usize;
        for kind in 0..OPERATIONS_MAX {
            table.read(&(side as u32 * OPERATIONS_MAX + kind).to_ne_bytes(), &mut values)?;
            let each = values.chunks_exact(stride).map(tables::decode_operation);
            let sum =
                each.fold((0_u64, 0_u64), |sum, it| (sum.0.saturating_add(it.0), sum.1.saturating_add(it.1)));
            if sum != (0, 0) {
                counts.operations.insert(kind, sum);
            }
        }
        Ok(())
    }

    /// Amounts moved through each descriptor since the programs were loaded, and through those without room; empty if
    /// that is not counted. Reading them takes two system calls each.
    pub fn descriptors(&self, side: Side) -> io::Result<(Vec<TracedDescriptor>, TracedDescriptor)> {
        if !self.counts(Group::Descriptors) {
            return Ok(Default::default());
        }
        let table = self.table(Table::Descriptors);
        let mut value = vec![0; table.read_bytes()];
        let mut found = Vec::new();
        for key in table.keys()? {
            if table.read(&key, &mut value)? {
                found.push(TracedDescriptor::decode(&key, &value));
            }
        }
        found.retain(|it| it.side == side);
        self.table(Table::OtherDescriptors).read(&(side as u32).to_ne_bytes(), &mut value)?;
        Ok((found, TracedDescriptor::decode(&[], &value)))
    }
}
