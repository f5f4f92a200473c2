//! System calls by kind of the commands that a launcher starts, from their exec on, with everything below them. A run
//! meets a few dozen instructions more in each call, and nothing else: it is not stopped as under `strace`.

use std::{collections::BTreeMap, io};

use weir_record::observation::total;
use weir_sys::{
    bpf::{Attachment, Map, Program, Refused},
    syscalls,
};

use super::{
    kernel::Kernel,
    programs::run_calls,
    rung,
    tables::{self, CALLS_BEYOND, CALLS_MAX, CALLS_OF_32_BITS, RUN_LOST, Table},
    tracer::TracerError,
};

/// Calls of a run, by their name.
pub type CallsByName = BTreeMap<String, u64>;

/// The programs, which rest between runs. They leave the kernel when this is dropped.
#[derive(Debug)]
pub struct RunCalls {
    threads: Map,
    calls: Map,
    programs: Vec<(&'static str, Program)>,
    attached: Vec<Attachment>,
    /// What the tables held when the run began.
    before: Sums,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sums {
    by_place: Vec<u64>,
    /// Events at which a program could not run.
    misses: u64,
}

impl RunCalls {
    /// Lets the programs into the kernel, for the children of this process.
    ///
    /// # Errors
    /// When the kernel takes no programs from this user, or numbers processes otherwise than they are seen here.
    pub fn load(launcher: u32) -> Result<Self, TracerError> {
        if !rung::knows_numbers() {
            return Err(TracerError::PidNamespace);
        }
        let table = |table: Table| {
            Map::new(table.name(), table.shape()).map_err(|error| TracerError::Refused {
                what: format!("a table ({})", table.name()),
                log: String::new(),
                error,
            })
        };
        let (threads, calls) = (table(Table::RunThreads)?, table(Table::RunCalls)?);
        let mut programs = Vec::new();
        for (tracepoint, program) in run_calls::all(Kernel::numbering(), launcher) {
            let number_of =
                |table| if table == Table::RunThreads { threads.number() } else { calls.number() };
            let refused = |refused: Refused| TracerError::Refused {
                what: format!("a program at {tracepoint}"),
                log: refused.log,
                error: refused.error,
            };
            let program = Program::load("weir_run_calls", &program.linked(number_of)).map_err(refused)?;
            programs.push((tracepoint, program));
        }
        Ok(Self { threads, calls, programs, attached: Vec::new(), before: Sums::default() })
    }

    /// Begins to count: the launcher starts one command before [`Self::end`].
    ///
    /// # Errors
    /// When the kernel does not run the programs.
    pub fn begin(&mut self) -> io::Result<()> {
        for key in self.threads.keys()? {
            self.threads.remove(&key)?;
        }
        self.before = self.sums()?;
        for (tracepoint, program) in &self.programs {
            match program.attach(tracepoint) {
                Ok(attachment) => self.attached.push(attachment),
                Err(error) => {
                    self.stop();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Stops, and gives the calls that returned.
    ///
    /// # Errors
    /// When the tables cannot be read, or some calls were not seen.
    pub fn end(&mut self) -> io::Result<CallsByName> {
        self.stop();
        let now = self.sums()?;
        if now.misses > self.before.misses || place(&now, RUN_LOST) > place(&self.before, RUN_LOST) {
            return Err(io::Error::other("some calls of the run were not seen"));
        }
        Ok(named(&self.before, &now))
    }

    fn stop(&mut self) {
        // As in `Tracer::stop`: no call may begin unseen while ends are still looked at.
        while self.attached.pop().is_some() {}
    }

    fn sums(&self) -> io::Result<Sums> {
        let mut values = vec![0; self.calls.read_bytes()];
        let mut by_place = Vec::with_capacity(CALLS_MAX as usize + 1);
        for number in 0..=CALLS_MAX {
            self.calls.read(&number.to_ne_bytes(), &mut values)?;
            by_place.push(total(values.chunks_exact(8).map(tables::decode_counter)));
        }
        let misses = total(self.programs.iter().map(|(_, program)| program.misses().unwrap_or_default()));
        Ok(Sums { by_place, misses })
    }
}

fn place(sums: &Sums, number: u32) -> u64 {
    sums.by_place.get(number as usize).copied().unwrap_or(0)
}

/// What was added, by name.
fn named(before: &Sums, now: &Sums) -> CallsByName {
    let added =
        (0..CALLS_MAX).map(|number| (number, place(now, number).saturating_sub(place(before, number))));
    added.filter(|(_, count)| *count > 0).map(|(number, count)| (name(number), count)).collect()
}

fn name(number: u32) -> String {
    match number {
        CALLS_OF_32_BITS => "calls of 32 bits".to_owned(),
        CALLS_BEYOND => "other calls".to_owned(),
        known => syscalls::name(known).map_or_else(|| format!("call {known}"), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_names_and_those_that_were_not_made_are_absent() {
        let sums = |exec: u64, unknown: u64| {
            let mut by_place = vec![7; CALLS_MAX as usize + 1];
            by_place[syscalls::EXECVE as usize] = exec;
            by_place[500] = unknown;
            by_place[CALLS_OF_32_BITS as usize] = unknown;
            Sums { by_place, misses: 0 }
        };
        let found = named(&sums(1, 7), &sums(3, 9));
        let expected = [("calls of 32 bits", 2), ("call 500", 2), ("execve", 2)];
        assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }
}
