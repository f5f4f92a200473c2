//! What happens in a server, for operators: each event has a kind, those it concerns, and a sentence. A thread that
//! writes to a terminal or a pipe may block. So workers leave events here, and the owner of the other end prints them.
//! Events that are not taken in time are lost. The next one reports how many; workers never wait.

use std::{
    fmt,
    net::SocketAddr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::SystemTime,
};

use serde::Serialize;
use weir_proto::soup::Name;

/// Events that may wait to be printed.
const EVENTS_WAITING_MAX: usize = 256;

/// The kinds of events. Each has a separate rate limit, so that none displaces another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A client has logged in.
    LogIn,
    /// A login was refused, or none came.
    LogInRefused,
    /// Logins are locked after too many wrong passwords.
    LogInsLocked,
    /// A client's connection has ended.
    LogOut,
    /// A login ends the earlier connection of its account.
    TakeOver,
    /// An order was refused.
    OrderRefused,
    /// A client broke the protocol.
    ProtocolBroken,
    /// A client uses numbers of a session that was ended.
    NumberUsedBefore,
    /// A client sends an order that a restart has lost.
    NumberLost,
    /// A session with an exchange is lost.
    VenueLost,
    /// It is unavailable.
    VenueUnavailable,
    /// It is unavailable until an operator acts.
    VenueUncounted,
    /// It is back.
    VenueBack,
    /// Messages of it are no longer available.
    MessagesMissing,
    /// Orders are sent again.
    OrdersResent,
    /// The exchange has begun another session.
    VenueSessionNew,
    /// Orders were too old to be sent.
    OrdersStale,
    /// More shares were executed than were left in the order.
    Overfill,
    /// An unknown order was traded.
    TradeUnknown,
    /// A message of an exchange is malformed.
    VenueMessageMalformed,
    /// Orders that the configuration does not reach have expired.
    OrdersExpired,
    /// A journal has failed.
    JournalFailed,
    /// A journal's disk does not answer.
    JournalStalled,
    /// It answers again.
    JournalRecovered,
    /// The journal's disk is nearly full.
    DiskNearlyFull,
    /// There is room again.
    DiskHasRoom,
    /// A checkpoint of the journals was not used, or not written.
    CheckpointUnused,
    /// The drop copy cannot read a journal, or can again, or a journal lacks what was copied.
    DropCopy,
    /// An operator has given a command.
    Operator,
    /// A kill switch was on at the start.
    KillSwitchOn,
    /// A limit of an operator overrides the configuration at the start.
    LimitOverride,
    /// A drain begins; the session with clients continues with the next start.
    Drain,
    /// The session with clients ends.
    SessionEnd,
    /// A session of the trading day begins or ends, or waits.
    Day,
}

impl EventKind {
    /// The number of kinds.
    pub(crate) const COUNT: usize = Self::Day as usize + 1;

    /// All of them, for checks.
    #[cfg(test)]
    const ALL: [Self; Self::COUNT] = [
        Self::LogIn,
        Self::LogInRefused,
        Self::LogInsLocked,
        Self::LogOut,
        Self::TakeOver,
        Self::OrderRefused,
        Self::ProtocolBroken,
        Self::NumberUsedBefore,
        Self::NumberLost,
        Self::VenueLost,
        Self::VenueUnavailable,
        Self::VenueUncounted,
        Self::VenueBack,
        Self::MessagesMissing,
        Self::OrdersResent,
        Self::VenueSessionNew,
        Self::OrdersStale,
        Self::Overfill,
        Self::TradeUnknown,
        Self::VenueMessageMalformed,
        Self::OrdersExpired,
        Self::JournalFailed,
        Self::JournalStalled,
        Self::JournalRecovered,
        Self::DiskNearlyFull,
        Self::DiskHasRoom,
        Self::CheckpointUnused,
        Self::DropCopy,
        Self::Operator,
        Self::KillSwitchOn,
        Self::LimitOverride,
        Self::Drain,
        Self::SessionEnd,
        Self::Day,
    ];

    /// Events of this kind that are reported in a period, and the period. Logins of all clients come within seconds.
    pub(crate) fn pace(self) -> Pace {
        match self {
            Self::LogIn | Self::LogInRefused | Self::LogInsLocked | Self::LogOut | Self::TakeOver => {
                Pace { most: 50, ..Pace::SECOND }
            }
            Self::VenueUnavailable | Self::VenueUncounted => {
                Pace { every_ns: 60 * Pace::SECOND_NS, ..Pace::SECOND }
            }
            _ => Pace::SECOND,
        }
    }
}

/// How many events are reported in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    most: u64,
    every_ns: u64,
}

impl Pace {
    pub(crate) const SECOND_NS: u64 = 1_000_000_000;
    /// One a second.
    pub(crate) const SECOND: Self = Self { most: 1, every_ns: Self::SECOND_NS };
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, in nanoseconds since 1970.
    pub t_ns: u64,
    /// Its kind.
    #[serde(rename = "event")]
    pub kind: EventKind,
    /// The worker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<usize>,
    /// The venue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub venue: Option<String>,
    /// The account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<SocketAddr>,
    /// A label: the reason of a refusal, or of an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// What happened, in words.
    pub text: String,
    /// Events of this kind that were left out before.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Events before this one that are lost, because too many waited.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Event {
    /// An event that happens now.
    pub fn new(kind: EventKind, text: impl Into<String>) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            t_ns: since.as_nanos() as u64,
            kind,
            worker: None,
            venue: None,
            account: None,
            peer: None,
            reason: None,
            text: text.into(),
            left_out: 0,
            lost: 0,
        }
    }

    pub(crate) fn at_worker(self, worker: usize) -> Self {
        Self { worker: Some(worker), ..self }
    }

    pub(crate) fn at_venue(self, venue: &str) -> Self {
        Self { venue: Some(venue.to_owned()), ..self }
    }

    pub(crate) fn of_account(self, account: Name<6>) -> Self {
        Self { account: Some(account.to_string()), ..self }
    }

    pub(crate) fn with_peer(self, peer: Option<SocketAddr>) -> Self {
        Self { peer, ..self }
    }

    pub(crate) fn because(self, reason: &'static str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    /// One JSON object.
    pub fn json(&self) -> String {
        // It is data.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl fmt::Display for Event {
    /// A sentence: the venue and the worker, what happened, and what is not reported.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.venue, self.worker) {
            (Some(venue), Some(worker)) => write!(formatter, "venue {venue}, worker {worker}: ")?,
            (Some(venue), None) => write!(formatter, "venue {venue}: ")?,
            (None, Some(worker)) => write!(formatter, "worker {worker}: ")?,
            (None, None) => {}
        }
        formatter.write_str(&self.text)?;
        if self.left_out > 0 {
            write!(formatter, "; {} lines like this one were left out before", self.left_out)?;
        }
        if self.lost > 0 {
            write!(formatter, "; {} lines before this one are lost", self.lost)?;
        }
        Ok(())
    }
}

/// The place where a server's workers leave events. Clones share it.
#[derive(Clone, Debug)]
pub struct Events(Arc<Ends>);

#[derive(Debug)]
struct Ends {
    sender: SyncSender<Event>,
    /// Until it is taken.
    receiver: Mutex<Option<Receiver<Event>>>,
    /// Events lost since the last one that found room.
    lost: AtomicU64,
    /// Events lost since the start.
    lost_total: AtomicU64,
}

impl Default for Events {
    fn default() -> Self {
        let (sender, receiver) = sync_channel(EVENTS_WAITING_MAX);
        let (lost, lost_total) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(Ends { sender, receiver: Mutex::new(Some(receiver)), lost, lost_total }))
    }
}

impl Events {
    /// Leaves an event. False: it is lost, because too many wait.
    pub(crate) fn leave(&self, event: Event) -> bool {
        let Ends { sender, lost, lost_total, .. } = &*self.0;
        let before = lost.swap(0, Ordering::Relaxed);
        let is_left = sender.try_send(Event { lost: before, ..event }).is_ok();
        if !is_left {
            lost.fetch_add(before + 1, Ordering::Relaxed);
            lost_total.fetch_add(1, Ordering::Relaxed);
        }
        is_left
    }

    /// Events that were lost since the start.
    pub(crate) fn lost_total(&self) -> u64 {
        self.0.lost_total.load(Ordering::Relaxed)
    }

    /// Takes the other end; possible once.
    pub(crate) fn take(&self) -> Option<Receiver<Event>> {
        self.0.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Rate limit for events of one kind, with a count of those omitted since the last one. Used by one thread.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// When the next period begins, and the events of this one.
    next_ns: AtomicU64,
    used: AtomicU64,
    left_out: AtomicU64,
}

impl Budget {
    /// Leaves an event, unless there were too many shortly before. False: it is left out.
    pub(crate) fn tell(
        &self,
        events: &Events,
        (now_ns, pace): (u64, Pace),
        event: impl FnOnce() -> Event,
    ) -> bool {
        if now_ns >= self.next_ns.load(Ordering::Relaxed) {
            self.next_ns.store(now_ns.saturating_add(pace.every_ns), Ordering::Relaxed);
            self.used.store(0, Ordering::Relaxed);
        }
        if self.used.load(Ordering::Relaxed) >= pace.most {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        let left_out = self.left_out.swap(0, Ordering::Relaxed);
        events.leave(Event { left_out, ..event() });
        true
    }

    /// Allows the next event at once.
    pub(crate) fn renew(&self) {
        self.next_ns.store(0, Ordering::Relaxed);
    }
}

/// The rate limits of every kind, for one worker.
#[derive(Debug)]
pub(crate) struct Budgets([Budget; EventKind::COUNT]);

impl Default for Budgets {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Budget::default()))
    }
}

impl Budgets {
    pub(crate) fn of(&self, kind: EventKind) -> &Budget {
        &self.0[kind as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: impl Into<String>) -> Event {
        Event { t_ns: 5, ..Event::new(EventKind::LogIn, text) }
    }

    #[test]
    fn so_many_wait_and_how_many_were_lost_is_told_with_the_next_one() {
        let events = Events::default();
        let printed = events.take().expect("nobody has it");
        assert!(events.clone().take().is_none());
        let left =
            (0..EVENTS_WAITING_MAX + 3).filter(|number| events.leave(event(number.to_string()))).count();
        assert_eq!((left, events.lost_total()), (EVENTS_WAITING_MAX, 3));
        assert_eq!(printed.try_iter().count(), EVENTS_WAITING_MAX);
        assert!(events.leave(event("next")) && events.leave(event("last")));
        let found: Vec<String> = printed.try_iter().map(|event| event.to_string()).collect();
        assert_eq!(found, ["next; 3 lines before this one are lost", "last"]);
        assert_eq!(events.lost_total(), 3, "one that is reported still counts");
    }

    #[test]
    fn so_many_of_a_kind_are_told_in_a_period_and_the_others_are_counted() {
        let (events, budgets) = (Events::default(), Budgets::default());
        let printed = events.take().expect("nobody has it");
        let tell = |kind: EventKind, now_ns: u64| {
            budgets.of(kind).tell(&events, (now_ns, kind.pace()), || event(format!("{kind:?} at {now_ns}")))
        };
        assert_eq!((0..60).filter(|now_ns| tell(EventKind::LogIn, *now_ns)).count(), 50);
        assert!(tell(EventKind::OrderRefused, 1) && !tell(EventKind::OrderRefused, 2));
        assert!(tell(EventKind::LogIn, Pace::SECOND_NS));
        let last = printed.try_iter().last().expect("there are some");
        assert_eq!(last.to_string(), "LogIn at 1000000000; 10 lines like this one were left out before");
        assert!(
            tell(EventKind::VenueUnavailable, 1) && !tell(EventKind::VenueUnavailable, 59 * Pace::SECOND_NS)
        );
        budgets.of(EventKind::VenueUnavailable).renew();
        assert!(tell(EventKind::VenueUnavailable, 59 * Pace::SECOND_NS));
    }

    #[test]
    fn an_event_that_finds_no_room_is_lost_and_not_left_out() {
        let (events, budget) = (Events::default(), Budget::default());
        (0..EVENTS_WAITING_MAX).for_each(|_| assert!(events.leave(event(""))));
        let tell = |now_ns| budget.tell(&events, (now_ns, Pace::SECOND), || event(""));
        assert!(tell(0), "it is counted as lost");
        assert_eq!((events.lost_total(), tell(1)), (1, false));
    }

    #[test]
    fn every_kind_has_a_row_on_its_page() {
        let page = include_str!("../../../../docs/formats/event-log.md");
        for (place, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
            let name = serde_json::to_string(&kind).expect("it is data").replace('"', "`");
            assert!(page.lines().any(|line| line.starts_with('|') && line.contains(&name)), "{name}");
        }
    }

    #[test]
    fn an_event_is_a_sentence_and_an_object() {
        let left = event("the session is lost: closed").at_venue("X").at_worker(1).because("closed");
        assert_eq!(left.to_string(), "venue X, worker 1: the session is lost: closed");
        let peer = "10.0.0.1:5".parse().ok();
        let all = Event { left_out: 2, lost: 1, ..left }
            .of_account("C00001".parse().expect("a name"))
            .with_peer(peer);
        let expected = r#"{"t_ns":5,"event":"log_in","worker":1,"venue":"X","account":"C00001","peer":"10.0.0.1:5","reason":"closed","text":"the session is lost: closed","left_out":2,"lost":1}"#;
        assert_eq!(all.json(), expected);
        let plain = event("a \"text\"\nin two lines").json();
        assert_eq!(plain, r#"{"t_ns":5,"event":"log_in","text":"a \"text\"\nin two lines"}"#);
    }
}
