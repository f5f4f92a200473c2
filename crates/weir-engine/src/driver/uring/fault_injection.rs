//! Disorder between a ring and its driver, in tests: behaviour that a kernel may show and seldom does.
//!
//! The seed delays and reorders completions, ends requests at once with an interruption or a shortage of buffers or
//! memory, cancels waiting receives, and shortens waiting sends. All of this is transient, so a connection must
//! deliver every byte.
//!
//! The kernel's guarantees remain: completions of one request keep their order, and if a request skips the completion
//! on success, its failure can be reaped as soon as the request is consumed.

use std::cell::Cell;

use io_uring::{opcode, squeue::Entry};

use super::{CQE_MORE, ring::Completion, token::Kind};
use crate::driver::sim::random::Random;

/// Completions that come late, of 1000.
const LATE_PER_MILLE: u16 = 150;
/// Most turns that a late completion waits.
const LATE_TURNS_MAX: usize = 4;
/// Requests that end before the kernel has seen them, of 1000.
const REFUSED_PER_MILLE: u16 = 50;
/// Turns in which a receive is cancelled, of 1000.
const CANCELLED_PER_MILLE: u16 = 30;
/// Waiting sends that take less, of 1000.
const SHORTENED_PER_MILLE: u16 = 300;

/// How often each fault was injected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    pub(super) late: u64,
    pub(super) swapped: u64,
    pub(super) refused: u64,
    pub(super) cancelled: u64,
    pub(super) shortened: u64,
}

/// A bug that the driver could contain, planted to see whether disorder finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plant {
    /// The rest of a short send is continued one byte too late.
    RestFromWrongPlace,
    /// A receive that ended without bytes counts as still in flight.
    EndedReceiveStaysArmed,
    /// A send that was interrupted counts as done.
    RefusedSendIsLost,
}

thread_local! {
    static PLANTED: Cell<Option<Plant>> = const { Cell::new(None) };
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
    static DONE: Cell<Done> = Cell::new(Done::default());
}

/// Drivers that this thread starts from now on get this seed's disorder, or none.
pub(super) fn install(seed: Option<u64>) {
    SEED.set(seed);
}

/// The faults injected on this thread since the last call.
pub(super) fn take_done() -> Done {
    DONE.take()
}

/// Plants a bug in this thread's drivers, or removes it.
pub(super) fn plant(fault: Option<Plant>) {
    PLANTED.set(fault);
}

pub(super) fn is_planted(fault: Plant) -> bool {
    PLANTED.get() == Some(fault)
}

fn count(add: impl FnOnce(&mut Done)) {
    let mut done = DONE.get();
    add(&mut done);
    DONE.set(done);
}

/// The disorder of one ring.
pub(super) struct Disorder {
    random: Random,
    /// A send may be tried, without a completion on success.
    tries_sends: bool,
    /// Completions that come late, oldest first, with the turns that each still waits.
    late: Vec<(usize, Completion)>,
    /// Requests that the kernel did not see: their tokens and results.
    refused: Vec<(u64, i32)>,
    /// Receives in flight, by their tokens.
    receives: Vec<u64>,
}

impl Disorder {
    /// The disorder installed on this thread.
    pub(super) fn installed(tries_sends: bool) -> Option<Self> {
        let random = Random::new(SEED.get()?);
        Some(Self { random, tries_sends, late: Vec::new(), refused: Vec::new(), receives: Vec::new() })
    }

    /// The request that the kernel gets: unchanged, or replaced by a no-op.
    pub(super) fn submitted(&mut self, entry: Entry) -> Entry {
        let token = entry.get_user_data();
        let (kind, _) = Kind::split(token);
        let errors: &[i32] = match kind {
            Some(Kind::Receive(_)) => &[libc::EINTR, libc::ENOBUFS],
            Some(Kind::Send) => &[libc::EINTR, libc::ENOBUFS, libc::ENOMEM],
            Some(Kind::Readable | Kind::Room) => &[libc::EINTR],
            Some(Kind::Accept) => &[libc::EINTR, libc::ECONNABORTED],
            _ => return entry,
        };
        if self.random.chance(REFUSED_PER_MILLE) {
            self.refused.push((token, -errors[self.random.below(errors.len())]));
            count(|done| done.refused += 1);
            return opcode::Nop::new().build().user_data(token);
        }
        if matches!(kind, Some(Kind::Receive(_))) {
            self.receives.push(token);
        }
        entry
    }

    /// In some turns, a request to cancel a receive.
    pub(super) fn cancellation(&mut self) -> Option<Entry> {
        if self.receives.is_empty() || !self.random.chance(CANCELLED_PER_MILLE) {
            return None;
        }
        let token = self.receives[self.random.below(self.receives.len())];
        count(|done| done.cancelled += 1);
        let (_, id) = Kind::split(token);
        Some(opcode::AsyncCancel::new(token).build().user_data(Kind::Cancel.token(id)))
    }

    /// How many of `bytes` a waiting send is offered.
    pub(super) fn offered(&mut self, bytes: u32) -> u32 {
        if bytes < 2 || !self.random.chance(SHORTENED_PER_MILLE) {
            return bytes;
        }
        count(|done| done.shortened += 1);
        1 + self.random.below(bytes as usize - 1) as u32
    }

    /// Whether there are completions that the driver has not seen.
    pub(super) fn holds_any(&self) -> bool {
        !self.late.is_empty()
    }

    /// The completions of a turn, as the driver sees them.
    pub(super) fn completed(&mut self, completions: &mut Vec<Completion>) {
        for (turns, _) in &mut self.late {
            *turns = turns.saturating_sub(1);
        }
        for mut completion in std::mem::take(completions) {
            if let Some(place) = self.refused.iter().position(|(token, _)| *token == completion.token) {
                completion.result = self.refused.swap_remove(place).1;
            }
            if completion.flags & CQE_MORE == 0 {
                self.receives.retain(|token| *token != completion.token);
            }
            let follows = self.late.iter().any(|(_, other)| other.token == completion.token);
            if follows || self.may_wait(completion.token) && self.random.chance(LATE_PER_MILLE) {
                count(|done| done.late += 1);
                self.late.push((1 + self.random.below(LATE_TURNS_MAX), completion));
            } else {
                completions.push(completion);
            }
        }
        self.show_late(completions);
        self.shuffle(completions);
    }

    /// A failure that replaces a success without a completion comes at once.
    fn may_wait(&self, token: u64) -> bool {
        match Kind::split(token).0 {
            Some(Kind::Send) => !self.tries_sends,
            Some(Kind::Message) | None => false,
            Some(_) => true,
        }
    }

    /// Adds late completions whose time has come, each behind earlier ones of its request.
    fn show_late(&mut self, completions: &mut Vec<Completion>) {
        let mut waiting: Vec<(usize, Completion)> = Vec::new();
        for (turns, completion) in std::mem::take(&mut self.late) {
            if turns > 0 || waiting.iter().any(|(_, other)| other.token == completion.token) {
                waiting.push((turns, completion));
            } else {
                completions.push(completion);
            }
        }
        self.late = waiting;
    }

    /// Changes the order, except among the completions of one request.
    fn shuffle(&mut self, completions: &mut [Completion]) {
        let before = completions.to_vec();
        let mut tokens: Vec<u64> = before.iter().map(|completion| completion.token).collect();
        for place in (1..tokens.len()).rev() {
            tokens.swap(place, self.random.below(place + 1));
        }
        let mut left: Vec<Option<Completion>> = before.into_iter().map(Some).collect();
        for (place, token) in completions.iter_mut().zip(tokens) {
            count(|done| done.swapped += u64::from(place.token != token));
            let next = left.iter_mut().find(|next| next.is_some_and(|next| next.token == token));
            if let Some(next) = next.and_then(Option::take) {
                *place = next;
            }
        }
    }
}
