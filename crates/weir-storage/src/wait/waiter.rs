//! One wait: from operations in flight to at least one that is complete.
//!
//! With one operation in flight a hybrid wait is: sleep as planned, check once (this check is the first measurement
//! point), and poll until it is complete. With more in flight, each has its own plan: the thread sleeps until the
//! first of them is due, and polls only while a due one is not complete. An operation found complete before it was
//! due counts as one whose sleep was too long.

use std::{fmt, io, time::Duration};

use crate::{
    engine::{Completed, Engine, Operation, OperationKind},
    measure::Measured,
    predict::{Costs, Direction, Issued, Outcome, Plan, Predictor},
    wait::time::Time,
};

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// The submitted operation.
    pub operation: Operation,
    /// The start intended by the job's rate; otherwise the same as `started_ns`.
    pub intended_ns: u64,
    /// Just before it was submitted.
    pub started_ns: u64,
    /// Just after it was submitted.
    pub handed_ns: u64,
    /// The plan of its wait.
    pub plan: Plan,
    /// Operations of the thread in flight when it was submitted, including itself.
    pub in_flight: u32,
    /// End of the last sleep while it was in flight.
    pub woken_ns: Option<u64>,
}

impl InFlight {
    /// When the thread must start polling: at once for a polled operation, never for one left to the interrupt.
    fn due_ns(&self) -> u64 {
        match self.plan {
            Plan::Poll => 0,
            Plan::Sleep { ns } => self.handed_ns.saturating_add(ns),
            Plan::Interrupt => u64::MAX,
        }
    }

    fn direction(&self) -> Direction {
        match self.operation.kind {
            OperationKind::Read => Direction::Read,
            OperationKind::Write | OperationKind::Fsync | OperationKind::Fdatasync => Direction::Write,
        }
    }
}

/// The operations of one thread that are in flight, by slot.
#[derive(Debug)]
pub struct InFlightTable {
    slots: Vec<Option<InFlight>>,
    count: u32,
}

impl InFlightTable {
    /// Room for `depth` operations.
    pub fn new(depth: u32) -> Self {
        Self { slots: vec![None; depth as usize], count: 0 }
    }

    /// Operations in flight.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Inserts an operation into its slot, which must be free.
    #[inline]
    pub fn insert(&mut self, flight: InFlight) {
        let before = self.slots[flight.operation.slot as usize].replace(flight);
        debug_assert!(before.is_none(), "slot {} was in flight", flight.operation.slot);
        self.count += 1;
    }

    /// Removes the operation of a slot; `None` if the slot was free.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<InFlight> {
        let flight = self.slots.get_mut(slot as usize)?.take()?;
        self.count -= 1;
        Some(flight)
    }

    /// When the first of them is due.
    fn due_ns(&self) -> u64 {
        self.slots.iter().flatten().map(InFlight::due_ns).min().unwrap_or(u64::MAX)
    }

    /// Notes the end of a sleep for all.
    fn woke(&mut self, woken_ns: u64) {
        for flight in self.slots.iter_mut().flatten() {
            flight.woken_ns = Some(woken_ns);
        }
    }
}

/// How completions are waited for.
pub enum Method {
    /// The thread sleeps until the interrupt.
    Interrupt,
    /// The thread polls.
    Poll,
    /// The thread sleeps as predicted, then polls.
    Hybrid {
        /// Decides the length.
        predictor: Box<dyn Predictor>,
        /// The completion ends the sleep too.
        armed: bool,
    },
}

impl fmt::Debug for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Interrupt => "Interrupt",
            Self::Poll => "Poll",
            Self::Hybrid { armed: false, .. } => "Hybrid",
            Self::Hybrid { armed: true, .. } => "Hybrid, armed",
        })
    }
}

/// The outcome of one wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When the thread noticed the completions, or gave up at its limit.
    pub noticed_ns: u64,
    /// Whether they were complete when a sleep of this wait ended.
    pub at_wake: bool,
}

/// Waits for the operations of one thread.
#[derive(Debug)]
pub struct Waiter<T> {
    /// Clocks and sleep.
    pub time: T,
    method: Method,
    costs: Costs,
}

impl<T: Time> Waiter<T> {
    /// A waiter. `costs` are used to tell a predictor the cost of an operation.
    pub fn new(time: T, method: Method, costs: Costs) -> Self {
        Self { time, method, costs }
    }

    /// Plans the wait for an operation that was just submitted.
    #[inline]
    pub fn plan(&mut self, flight: &mut InFlight) {
        flight.plan = match &mut self.method {
            Method::Interrupt => Plan::Interrupt,
            Method::Poll => Plan::Poll,
            // A predictor cannot learn from the time of a sync.
            Method::Hybrid { .. } if !flight.operation.kind.transfers() => Plan::Interrupt,
            Method::Hybrid { predictor, .. } => predictor.plan(&Issued {
                now_ns: flight.handed_ns,
                bytes: flight.operation.bytes,
                direction: flight.direction(),
                in_flight: flight.in_flight,
                in_flight_others: None,
            }),
        };
    }

    /// Waits until something is complete, or until `limit_ns` if given. `now_ns` is a recent reading of the clock.
    #[inline]
    pub fn wait(
        &mut self,
        engine: &mut dyn Engine,
        flights: &mut InFlightTable,
        now_ns: u64,
        limit_ns: Option<u64>,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        match self.method {
            Method::Interrupt => self.interrupt(engine, now_ns, limit_ns, completed),
            Method::Poll => self.spin(engine, limit_ns, completed),
            Method::Hybrid { armed, .. } => {
                let due_ns = flights.due_ns();
                if due_ns == u64::MAX {
                    return self.interrupt(engine, now_ns, limit_ns, completed);
                }
                if due_ns > now_ns {
                    let end_ns = limit_ns.map_or(due_ns, |limit_ns| limit_ns.clamp(now_ns, due_ns));
                    let wait = self.sleep(engine, flights, end_ns - now_ns, armed, completed)?;
                    if !completed.is_empty() || end_ns < due_ns {
                        return Ok(wait);
                    }
                }
                self.spin(engine, limit_ns, completed)
            }
        }
    }

    /// Polls until something is complete, or until `limit_ns`, whatever the method.
    pub fn look_until(
        &mut self,
        engine: &mut dyn Engine,
        limit_ns: u64,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        self.spin(engine, Some(limit_ns), completed)
    }

    /// Sleeps, and checks once.
    fn sleep(
        &mut self,
        engine: &mut dyn Engine,
        flights: &mut InFlightTable,
        length_ns: u64,
        armed: bool,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        if armed {
            engine.wait_at_most(Duration::from_nanos(length_ns), completed)?;
        } else {
            self.time.sleep(engine, length_ns)?;
        }
        let woken_ns = self.time.now_ns();
        flights.woke(woken_ns);
        if armed {
            return Ok(Wait { noticed_ns: woken_ns, at_wake: true });
        }
        engine.poll(completed)?;
        let noticed_ns = if completed.is_empty() { woken_ns } else { self.time.now_ns() };
        Ok(Wait { noticed_ns, at_wake: true })
    }

    fn interrupt(
        &mut self,
        engine: &mut dyn Engine,
        now_ns: u64,
        limit_ns: Option<u64>,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        match limit_ns {
            None => engine.wait(completed)?,
            Some(limit_ns) => {
                engine.wait_at_most(Duration::from_nanos(limit_ns.saturating_sub(now_ns)), completed)?;
            }
        }
        Ok(Wait { noticed_ns: self.time.now_ns(), at_wake: true })
    }

    fn spin(
        &mut self,
        engine: &mut dyn Engine,
        limit_ns: Option<u64>,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        loop {
            engine.poll(completed)?;
            // The clock is read once, after the completion was seen, unless there is a limit to watch.
            if !completed.is_empty() || limit_ns.is_some() {
                let noticed_ns = self.time.now_ns();
                if !completed.is_empty() || limit_ns.is_some_and(|limit_ns| noticed_ns >= limit_ns) {
                    return Ok(Wait { noticed_ns, at_wake: false });
                }
            }
        }
    }

    /// Reports how the wait for `flight` went, and lets the predictor learn from it if the operation succeeded.
    #[inline]
    pub fn complete(&mut self, flight: &InFlight, wait: Wait, succeeded: bool) -> Measured {
        let mut measured = Measured {
            issued_ns: flight.handed_ns,
            plan: flight.plan,
            woken_ns: flight.woken_ns,
            complete_at_wake: false,
            woken_early: false,
            noticed_ns: wait.noticed_ns,
            device_done_ns: None,
            cpu_ns: 0,
        };
        if flight.plan == Plan::Interrupt {
            measured.woken_ns = Some(wait.noticed_ns);
        }
        if let Method::Hybrid { predictor, armed } = &mut self.method {
            let outcome = outcome(flight, wait, *armed, &self.costs, &mut measured);
            if succeeded && flight.operation.kind.transfers() {
                predictor.observe(&outcome);
            }
        }
        measured
    }
}

/// The outcome for a predictor, and the fields that a hybrid wait adds to the measurement.
fn outcome(flight: &InFlight, wait: Wait, armed: bool, costs: &Costs, measured: &mut Measured) -> Outcome {
    let due_ns = flight.due_ns();
    let mut found_early = false;
    if let Plan::Sleep { .. } = flight.plan {
        let woken_ns = flight.woken_ns.filter(|_| wait.at_wake || wait.noticed_ns >= due_ns);
        measured.woken_ns = woken_ns;
        measured.complete_at_wake = wait.at_wake && !armed && woken_ns.is_some();
        measured.woken_early = wait.at_wake && armed && woken_ns.is_some_and(|woken_ns| woken_ns < due_ns);
        // Noticed while the thread was polling for another one.
        found_early = woken_ns.is_none() && wait.noticed_ns < due_ns;
    }
    let elapsed_ns = wait.noticed_ns.saturating_sub(flight.handed_ns);
    let cpu_ns = match (flight.plan, measured.woken_ns) {
        // With several in flight the thread's time is shared by all of them.
        _ if flight.in_flight > 1 => 0,
        (Plan::Interrupt, _) => costs.submit_ns + costs.interrupt_cpu_ns,
        (Plan::Sleep { .. }, Some(woken_ns)) => {
            costs.submit_ns + costs.sleep_cpu_ns + wait.noticed_ns.saturating_sub(woken_ns)
        }
        (Plan::Sleep { .. } | Plan::Poll, _) => costs.submit_ns + elapsed_ns,
    };
    let wake_lag_ns = match flight.plan {
        Plan::Sleep { .. } => measured.woken_ns.map_or(0, |woken_ns| woken_ns.saturating_sub(due_ns)),
        Plan::Poll | Plan::Interrupt => 0,
    };
    Outcome {
        now_ns: wait.noticed_ns,
        bytes: flight.operation.bytes,
        direction: flight.direction(),
        plan: flight.plan,
        elapsed_ns,
        complete_at_wake: measured.complete_at_wake,
        woken_early: measured.woken_early || found_early,
        wake_lag_ns,
        cpu_ns,
    }
}

#[cfg(test)]
mod tests;
