//! One wait: from operations in flight to at least one that is complete.
//!
//! With one operation in flight a hybrid wait is: sleep as planned, look once (that look is the first measurement
//! point), and look again and again until it is complete. With more in flight, each has a plan of its own: the thread
//! sleeps until the first of them is due, and looks again and again only while one that is due is not complete. One
//! that is found complete before it was due counts as one whose sleep was too long.

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
    /// What the kernel was given.
    pub operation: Operation,
    /// When it was to begin, by the job's rate; else the same as `started_ns`.
    pub intended_ns: u64,
    /// Just before it was handed over.
    pub started_ns: u64,
    /// When it had been handed over.
    pub handed_ns: u64,
    /// How it is to be waited for.
    pub plan: Plan,
    /// Operations of the thread in flight when it was handed over, itself included.
    pub in_flight: u32,
    /// When the last sleep ended that was slept while it was in flight.
    pub woken_ns: Option<u64>,
}

impl InFlight {
    /// When the thread has to look for it: at once for a polled one, never for one left to the interrupt.
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

    /// Puts an operation into its slot, which must be free.
    #[inline]
    pub fn insert(&mut self, flight: InFlight) {
        let before = self.slots[flight.operation.slot as usize].replace(flight);
        debug_assert!(before.is_none(), "slot {} was in flight", flight.operation.slot);
        self.count += 1;
    }

    /// Takes the operation that was in a slot; nothing when none was.
    #[inline]
    pub fn remove(&mut self, slot: u32) -> Option<InFlight> {
        let flight = self.slots.get_mut(slot as usize)?.take()?;
        self.count -= 1;
        Some(flight)
    }

    /// When the first of them has to be looked for.
    fn due_ns(&self) -> u64 {
        self.slots.iter().flatten().map(InFlight::due_ns).min().unwrap_or(u64::MAX)
    }

    /// Notes for all that a sleep ended.
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
    /// The thread looks again and again.
    Poll,
    /// The thread sleeps as predicted, then looks again and again.
    Hybrid {
        /// Says how long.
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

/// How one wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When the thread saw what is complete, or gave up at its limit.
    pub noticed_ns: u64,
    /// What is complete was so when a sleep of this wait ended.
    pub at_wake: bool,
}

/// Waits for one thread's operations.
#[derive(Debug)]
pub struct Waiter<T> {
    /// Clocks and sleep.
    pub time: T,
    method: Method,
    costs: Costs,
}

impl<T: Time> Waiter<T> {
    /// A waiter. `costs` serve to tell a predictor what an operation cost.
    pub fn new(time: T, method: Method, costs: Costs) -> Self {
        Self { time, method, costs }
    }

    /// Decides how an operation that has just been handed over is waited for.
    #[inline]
    pub fn plan(&mut self, flight: &mut InFlight) {
        flight.plan = match &mut self.method {
            Method::Interrupt => Plan::Interrupt,
            Method::Poll => Plan::Poll,
            // Not an operation whose time a predictor could learn from.
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

    /// Waits until something is complete, or until `limit_ns` when that is given. `now_ns` is a recent reading of the
    /// clock.
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

    /// Looks again and again until something is complete, or until `limit_ns`, whatever the method is.
    pub fn look_until(
        &mut self,
        engine: &mut dyn Engine,
        limit_ns: u64,
        completed: &mut Vec<Completed>,
    ) -> io::Result<Wait> {
        self.spin(engine, Some(limit_ns), completed)
    }

    /// Sleeps, and looks once.
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

    /// Says how the wait for `flight` went, and lets the predictor learn from it when the operation succeeded.
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

/// What a predictor is told, and with it what a hybrid wait adds to the measurement.
fn outcome(flight: &InFlight, wait: Wait, armed: bool, costs: &Costs, measured: &mut Measured) -> Outcome {
    let due_ns = flight.due_ns();
    let mut found_early = false;
    if let Plan::Sleep { .. } = flight.plan {
        let woken_ns = flight.woken_ns.filter(|_| wait.at_wake || wait.noticed_ns >= due_ns);
        measured.woken_ns = woken_ns;
        measured.complete_at_wake = wait.at_wake && !armed && woken_ns.is_some();
        measured.woken_early = wait.at_wake && armed && woken_ns.is_some_and(|woken_ns| woken_ns < due_ns);
        // Seen while the thread was looking for another one.
        found_early = woken_ns.is_none() && wait.noticed_ns < due_ns;
    }
    let elapsed_ns = wait.noticed_ns.saturating_sub(flight.handed_ns);
    let cpu_ns = match (flight.plan, measured.woken_ns) {
        // With others in flight the thread's time belongs to all of them.
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
