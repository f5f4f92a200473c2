//! What of the days has been carried out, and what is due.

use super::{Schedule, Slot};

/// How far a session, or the day that it belongs to, has been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Orders are taken.
    Open,
    /// It has ended, and others may follow on its day.
    Closed,
    /// Its day is over. Then the session with clients ends, if none has since.
    Over,
}

/// What was carried out last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The last session that was begun.
    pub slot: Slot,
    /// How far it is.
    pub phase: Phase,
    /// The session with clients in which that was: how many had ended before.
    pub generation: u16,
}

/// A step that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// None.
    Nothing,
    /// Record that this session is open, and take orders.
    Open(Slot),
    /// Record that this session has ended, refuse orders from then on, and see to the open ones.
    Close(Slot),
    /// Record that the day of this session is over.
    EndDay(Slot),
    /// End the session with clients. The next one has the next generation.
    EndSession,
}

/// The step that is due at a time, in seconds since 1970. `generation` is that of the session with clients.
pub fn due(schedule: &Schedule, standing: Option<&Standing>, generation: u16, now: i64) -> Due {
    let Some(standing) = standing else {
        return schedule.open_at(now).map_or(Due::Nothing, Due::Open);
    };
    let slot = current(schedule, standing);
    let is_over = schedule.is_over(slot.date, now);
    match standing.phase {
        Phase::Open if slot.has_ended(now) => Due::Close(slot),
        // The record is to name the session with clients that goes on in it.
        Phase::Open if standing.generation != generation => Due::Open(slot),
        Phase::Open => Due::Nothing,
        Phase::Closed if is_over => Due::EndDay(slot),
        Phase::Over if standing.generation == generation => Due::EndSession,
        Phase::Closed | Phase::Over => {
            let is_later = |next: &Slot| match standing.phase {
                Phase::Over => next.date > slot.date,
                Phase::Open | Phase::Closed => next.begins_at > slot.begins_at,
            };
            schedule.open_at(now).filter(is_later).map_or(Due::Nothing, Due::Open)
        }
    }
}

/// Whether orders may be taken at a time, before anything that is due has been carried out.
pub fn takes_orders(schedule: &Schedule, standing: Option<&Standing>, now: i64) -> bool {
    standing
        .is_some_and(|standing| standing.phase == Phase::Open && !current(schedule, standing).has_ended(now))
}

/// The last session as the schedule has it now: its end may have been changed since it was begun.
fn current(schedule: &Schedule, standing: &Standing) -> Slot {
    let recorded = &standing.slot;
    let is_it = |slot: &Slot| slot.name == recorded.name && recorded.ends_at.is_some();
    schedule.slot_from(recorded.begins_at).filter(is_it).unwrap_or_else(|| recorded.clone())
}
