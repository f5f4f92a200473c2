//! Tests of trading days: random schedules, and clocks that are set forward and back.

use std::collections::BTreeSet;

use weir_trading::day::{Due, OpenOrders, Phase, Schedule, SessionTimes, Slot, Standing, due, takes_orders};

use crate::random::{Random, seeds};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
/// Where the days of the tests begin: 2026-12-01, midnight UTC.
const BEGIN: i64 = 20_788 * DAY;

/// One to four sessions on some days of the week, with a few holidays.
fn any_schedule(random: &mut Random) -> Schedule {
    let offset_s = (random.below(27) as i64 - 12) * HOUR / 2;
    let mut weekdays = [(); 7].map(|()| random.below(4) > 0);
    weekdays[random.below(7) as usize] = true;
    let holidays = (0..3).map(|_| BEGIN / DAY + random.below(20) as i64).collect::<BTreeSet<_>>();
    let count = 1 + random.below(4) as i64;
    // The last one may go on behind midnight.
    let width = 24 * 60 / count;
    let first = random.below(width as u64 / 2) as i64;
    let session = |place: i64, random: &mut Random| {
        let begins = first + place * width;
        let ends = begins + 1 + random.below(width as u64) as i64;
        let open_orders =
            [OpenOrders::Cancel, OpenOrders::Expire, OpenOrders::Carry][random.below(3) as usize];
        SessionTimes { name: format!("s{place}"), begins_s: begins * 60, ends_s: ends * 60, open_orders }
    };
    let sessions = (0..count).map(|place| session(place, random)).collect();
    Schedule::new(offset_s, weekdays, holidays, sessions).expect("it is right")
}

/// What carries days out, and what a journal has of it.
#[derive(Clone)]
struct Runner<'s> {
    schedule: &'s Schedule,
    standing: Option<Standing>,
    generation: u16,
    /// The sessions that were begun and ended, in order, and the dates whose session with clients was.
    begun: Vec<Slot>,
    ended: Vec<Slot>,
    over: Vec<i64>,
}

impl<'s> Runner<'s> {
    fn new(schedule: &'s Schedule) -> Self {
        Self { schedule, standing: None, generation: 0, begun: vec![], ended: vec![], over: vec![] }
    }

    fn due(&self, now: i64) -> Due {
        due(self.schedule, self.standing.as_ref(), self.generation, now)
    }

    fn note(&mut self, slot: Slot, phase: Phase) {
        self.standing = Some(Standing { slot, phase, generation: self.generation });
    }

    /// Carries one step out. False: none is due.
    fn step(&mut self, now: i64) -> bool {
        match self.due(now) {
            Due::Nothing => return false,
            Due::Open(slot) => {
                assert_eq!(self.schedule.open_at(now).as_ref(), Some(&slot), "it is open at {now}");
                self.begun.push(slot.clone());
                self.note(slot, Phase::Open);
            }
            Due::Close(slot) => {
                assert!(slot.has_ended(now), "{slot:?} has not ended at {now}");
                self.ended.push(slot.clone());
                self.note(slot, Phase::Closed);
            }
            Due::EndDay(slot) => {
                assert!(self.schedule.is_over(slot.date, now), "{slot:?} at {now}");
                self.note(slot, Phase::Over);
            }
            Due::EndSession => {
                self.over.push(self.standing.as_ref().expect("a day was begun").slot.date);
                self.generation += 1;
            }
        }
        true
    }

    fn look(&mut self, now: i64) {
        // At most: the end of a session, of its day, of the session with clients, and the begin of the next one.
        for _ in 0..4 {
            if !self.step(now) {
                break;
            }
        }
        assert_eq!(self.due(now), Due::Nothing, "all is done at {now}: {:?}", self.standing);
    }

    fn takes_orders(&self, now: i64) -> bool {
        takes_orders(self.schedule, self.standing.as_ref(), now)
    }

    /// What must hold whatever the clock does: no session comes twice or is left without its end, and no day.
    fn check(&self) {
        let begins: Vec<i64> = self.begun.iter().map(|slot| slot.begins_at).collect();
        assert!(begins.is_sorted_by(|earlier, later| earlier < later), "{:?}", self.begun);
        let open = usize::from(self.standing.as_ref().is_some_and(|standing| standing.phase == Phase::Open));
        assert_eq!(self.ended, self.begun[..self.begun.len() - open]);
        assert!(self.over.is_sorted_by(|earlier, later| earlier < later), "{:?}", self.over);
    }
}

#[test]
fn every_session_of_weeks_is_begun_and_ended_once_and_so_is_every_day() {
    for seed in seeds(20) {
        let schedule = any_schedule(&mut Random::new(seed));
        let mut runner = Runner::new(&schedule);
        for minute in 0..20 * 24 * 60 {
            let now = BEGIN + minute * 60;
            runner.look(now);
            assert_eq!(runner.takes_orders(now), schedule.open_at(now).is_some(), "seed {seed}, {now}");
        }
        runner.check();
        let until = BEGIN + 20 * DAY - 60;
        let dates = BEGIN / DAY - 2..=schedule.date_at(until);
        let all = dates.flat_map(|date| schedule.slots_of(date));
        let expected: Vec<Slot> =
            all.filter(|slot| slot.begins_at <= until && !slot.has_ended(BEGIN)).collect();
        assert_eq!(runner.begun, expected, "seed {seed}");
        let dates: BTreeSet<i64> = expected.iter().map(|slot| slot.date).collect();
        let over = dates.into_iter().filter(|date| schedule.is_over(*date, until));
        assert_eq!(runner.over, over.collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_clock_that_is_set_forward_and_back_repeats_nothing_and_leaves_no_end_out() {
    for seed in seeds(400) {
        let mut random = Random::new(seed);
        let schedule = any_schedule(&mut random);
        let mut runner = Runner::new(&schedule);
        let mut now = BEGIN;
        for _ in 0..300 {
            now += match random.below(10) {
                0 => -(random.below(2 * DAY as u64) as i64),
                1 => -(random.below(2 * HOUR as u64) as i64),
                2 => random.below(3 * DAY as u64) as i64,
                _ => random.below(HOUR as u64) as i64,
            };
            runner.look(now);
            runner.check();
            // A session is open until its end: a clock that was set back changes nothing about that.
            let is_open = runner.takes_orders(now);
            let last = runner.begun.last();
            assert!(!is_open || last.is_some_and(|last| !last.has_ended(now)), "seed {seed}, {now}");
        }
    }
}

#[test]
fn a_start_at_any_time_is_where_a_run_without_a_break_is() {
    for seed in seeds(60) {
        let mut random = Random::new(seed);
        let schedule = any_schedule(&mut random);
        let mut whole = Runner::new(&schedule);
        let (down_from, length) = (random.below(5 * DAY as u64) as i64, random.below(3 * DAY as u64) as i64);
        let (down_from, up_again) = (BEGIN + down_from, BEGIN + down_from + length);
        (BEGIN..down_from).step_by(60).for_each(|now| whole.look(now));
        let (mut broken, had_begun) = (whole.clone(), whole.standing.is_some());
        let mut fresh = Runner::new(&schedule);
        (down_from..=up_again).step_by(60).for_each(|now| whole.look(now));
        whole.look(up_again);
        // The process may end again between any two steps: what was done is in its journal.
        (0..random.below(3)).for_each(|_| _ = broken.step(up_again));
        broken.look(up_again);
        broken.check();
        fresh.look(up_again);
        let open = |runner: &Runner<'_>| {
            let standing = runner.standing.clone().filter(|standing| standing.phase == Phase::Open);
            standing.map(|standing| standing.slot)
        };
        assert_eq!(open(&broken), open(&whole), "seed {seed}");
        assert_eq!(open(&fresh), open(&whole), "seed {seed}");
        // A day that was missed whole has no end, but one that was begun has.
        let ends = |runner: &Runner<'_>| runner.over.first().copied();
        assert!(
            !had_begun || ends(&broken) == ends(&whole),
            "seed {seed}: {:?}, {:?}",
            broken.over,
            whole.over
        );
    }
}

#[test]
fn a_session_with_clients_that_was_ended_by_hand_is_followed_by_one_that_ends_with_the_day() {
    let sessions = |ends_s| {
        let session =
            SessionTimes { name: "day".into(), begins_s: 9 * HOUR, ends_s, open_orders: OpenOrders::Cancel };
        Schedule::new(0, [true; 7], BTreeSet::new(), vec![session]).expect("it is right")
    };
    let schedule = sessions(16 * HOUR);
    let mut runner = Runner::new(&schedule);
    runner.look(BEGIN + 10 * HOUR);
    runner.generation += 1;
    // The record follows, and orders are taken all the time.
    assert!(runner.takes_orders(BEGIN + 11 * HOUR));
    assert!(runner.step(BEGIN + 11 * HOUR));
    assert_eq!(
        runner.standing.as_ref().map(|standing| (standing.phase, standing.generation)),
        Some((Phase::Open, 1))
    );
    runner.look(BEGIN + 16 * HOUR);
    assert_eq!((runner.generation, runner.over.len()), (2, 1));
    // Another one has to end after its day is over: none does.
    runner.generation += 1;
    assert_eq!(runner.due(BEGIN + 17 * HOUR), Due::Nothing);
}

#[test]
fn the_end_of_a_session_that_is_open_may_be_changed() {
    let schedule = |ends_s| {
        let session =
            SessionTimes { name: "day".into(), begins_s: 9 * HOUR, ends_s, open_orders: OpenOrders::Carry };
        Schedule::new(0, [true; 7], BTreeSet::new(), vec![session]).expect("it is right")
    };
    let (early, late) = (schedule(15 * HOUR), schedule(16 * HOUR));
    let mut runner = Runner::new(&early);
    runner.look(BEGIN + 10 * HOUR);
    let now = BEGIN + 15 * HOUR;
    assert_eq!(due(&late, runner.standing.as_ref(), 0, now), Due::Nothing);
    assert!(takes_orders(&late, runner.standing.as_ref(), now));
    assert!(matches!(runner.due(now), Due::Close(_)) && !runner.takes_orders(now));
    // Without sessions in the file the recorded end holds.
    assert!(matches!(due(&Schedule::default(), runner.standing.as_ref(), 0, now), Due::Close(_)));
    // What an operator has begun has no end in any schedule.
    let mut by_hand = runner.standing.clone().expect("it is open");
    by_hand.slot.ends_at = None;
    assert_eq!(due(&early, Some(&by_hand), 0, now + DAY), Due::Nothing);
}
