//! Who may act: readers with the token, and browsers that gave it not long ago. The number of wrong tokens has a limit.
//! Time is an argument.

use std::{
    collections::{HashMap, VecDeque},
    fmt::Write,
    fs::File,
    io::{self, Read},
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use weir_proto::client::counted_as;

use crate::token::{Token, is_same};

/// Most browsers that are logged in; a further one replaces the oldest.
pub const SESSIONS_MAX: usize = 16;

/// How long a browser stays logged in.
pub(crate) const SESSION_AGE_MAX: Duration = Duration::from_secs(12 * 3_600);

/// Wrong tokens of one address in [`FAILURES_WINDOW`]; further ones are not counted, and the answer says so.
pub const FAILURES_MAX: usize = 10;

/// Wrong tokens of all addresses in the same time; further ones are not recorded.
pub const FAILURES_ALL_MAX: usize = 1_000;

/// Wrong tokens of one address that do not slow its next one.
const FAILURES_FREE: usize = 3;

/// Time between two tokens of an address after these. It doubles with each further wrong one, up to the second.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Wrong tokens of all addresses that do not slow those of others, and the time between any two tokens after these.
const FAILURES_FREE_ALL: usize = 100;
const PAUSE_ALL: Duration = Duration::from_millis(20);

/// Longest wait of a token for its turn. One that would wait longer is refused unread.
pub(crate) const TURN_WAIT_MAX: Duration = Duration::from_secs(5);

/// How long a wrong token counts.
pub(crate) const FAILURES_WINDOW: Duration = Duration::from_secs(60);

const SESSION_BYTES: usize = 32;

/// Why access is refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// It is not the token.
    WrongToken,
    /// It is not the token, and there were too many wrong ones.
    TooMany,
    /// Too many tokens wait for their turn, and this one was not read.
    Unread,
    /// The system gave no random bytes.
    NoSession(io::Error),
}

/// Who may act.
#[derive(Debug)]
pub(crate) struct Access {
    token: Token,
    /// Secrets of browsers that are logged in, and until when; the first is the oldest.
    sessions: Mutex<VecDeque<(String, Instant)>>,
    /// When wrong tokens came, and their addresses; the first is the oldest.
    failures: Mutex<VecDeque<(Instant, IpAddr)>>,
    turns: Mutex<Turns>,
}

/// When the next token may be read: of an address with wrong ones, and of any. Only addresses with recorded failures
/// are in it, so it has at most [`FAILURES_ALL_MAX`] of them.
#[derive(Debug, Default)]
struct Turns {
    own: HashMap<IpAddr, Instant>,
    all: Option<Instant>,
}

impl Access {
    pub(crate) fn with(token: Token) -> Self {
        let (sessions, failures, turns) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { token, sessions, failures, turns }
    }

    /// How long a token of this address waits before it is read. Wrong tokens of the address, and many of any, slow
    /// the next: several connections at once do not make more guesses than one.
    pub(crate) fn turn(&self, from: IpAddr, now: Instant) -> Result<Duration, Refused> {
        let from = counted_as(from);
        let (own, all) = {
            let failures = self.counted_failures(now);
            (failures.iter().filter(|(_, address)| *address == from).count(), failures.len())
        };
        let mut turns = held(&self.turns);
        turns.own.retain(|_, next| *next > now);
        let of_all = turns.all.filter(|_| all >= FAILURES_FREE_ALL);
        let begin = [turns.own.get(&from).copied(), of_all].into_iter().flatten().fold(now, Instant::max);
        let wait = begin.saturating_duration_since(now);
        if wait > TURN_WAIT_MAX {
            return Err(Refused::Unread);
        }
        if let Some(further) = own.checked_sub(FAILURES_FREE) {
            let doubled = PAUSE_MIN.saturating_mul(1 << further.min(16));
            turns.own.insert(from, begin + doubled.min(PAUSE_MAX));
        }
        turns.all = (all >= FAILURES_FREE_ALL).then(|| begin + PAUSE_ALL);
        Ok(wait)
    }

    /// The wrong tokens that still count.
    fn counted_failures(&self, now: Instant) -> MutexGuard<'_, VecDeque<(Instant, IpAddr)>> {
        let mut failures = held(&self.failures);
        while failures.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= FAILURES_WINDOW) {
            failures.pop_front();
        }
        failures
    }

    /// Whether this is the token.
    pub(crate) fn check(&self, given: &[u8], from: IpAddr, now: Instant) -> Result<(), Refused> {
        let mut failures = self.counted_failures(now);
        // First, so that guesses of others do not keep the owner out, who may come through the same proxy.
        if self.token.is(given) {
            return Ok(());
        }
        let from = counted_as(from);
        let own = failures.iter().filter(|(_, address)| *address == from).count();
        if own >= FAILURES_MAX || failures.len() >= FAILURES_ALL_MAX {
            return Err(Refused::TooMany);
        }
        failures.push_back((now, from));
        Err(Refused::WrongToken)
    }

    /// Logs in a browser that gives the token, and returns a secret for its cookie.
    pub(crate) fn log_in(&self, given: &[u8], from: IpAddr, now: Instant) -> Result<String, Refused> {
        self.check(given, from, now)?;
        let secret = secret().map_err(Refused::NoSession)?;
        let mut sessions = held(&self.sessions);
        sessions.retain(|(_, until)| now < *until);
        if sessions.len() >= SESSIONS_MAX {
            sessions.pop_front();
        }
        sessions.push_back((secret.clone(), now + SESSION_AGE_MAX));
        Ok(secret)
    }

    /// Whether a browser with this secret is logged in. Compares all, so that timing reveals nothing.
    pub(crate) fn knows(&self, secret: &str, now: Instant) -> bool {
        let is_it =
            |(own, until): &(String, Instant)| is_same(own.as_bytes(), secret.as_bytes()) & (now < *until);
        held(&self.sessions).iter().fold(false, |known, session| known | is_it(session))
    }

    /// Logs the browser out.
    pub(crate) fn log_out(&self, secret: &str) {
        held(&self.sessions).retain(|(own, _)| !is_same(own.as_bytes(), secret.as_bytes()));
    }
}

/// Random bytes as text.
fn secret() -> io::Result<String> {
    let mut bytes = [0; SESSION_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let mut text = String::with_capacity(2 * SESSION_BYTES);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &[u8] = b"correct-horse-battery";

    fn access() -> Access {
        Access::with(Token::of_tests(TOKEN))
    }

    fn address(last: u16) -> IpAddr {
        let [high, low] = last.to_be_bytes();
        IpAddr::from([10, 0, high, low])
    }

    #[test]
    fn a_browser_is_known_by_its_secret_until_it_leaves_or_its_time_is_over() {
        let (access, now) = (access(), Instant::now());
        let secret = access.log_in(TOKEN, address(1), now).expect("it is the token");
        assert_eq!(secret.len(), 2 * SESSION_BYTES);
        assert!(access.knows(&secret, now) && !access.knows("", now) && !access.knows(&secret[1..], now));
        let late = now + SESSION_AGE_MAX;
        assert!(!access.knows(&secret, late) && access.knows(&secret, late - Duration::from_secs(1)));
        let other = access.log_in(TOKEN, address(1), now).expect("it is the token");
        assert_ne!(secret, other);
        access.log_out(&secret);
        assert!(!access.knows(&secret, now) && access.knows(&other, now));
    }

    #[test]
    fn a_browser_beyond_the_maximum_takes_the_place_of_the_first() {
        let (access, now) = (access(), Instant::now());
        let log_in = || access.log_in(TOKEN, address(1), now).expect("it is the token");
        let secrets: Vec<String> = (0..SESSIONS_MAX).map(|_| log_in()).collect();
        assert!(secrets.iter().all(|secret| access.knows(secret, now)));
        let further = log_in();
        assert!(!access.knows(&secrets[0], now));
        assert!(secrets[1..].iter().chain([&further]).all(|secret| access.knows(secret, now)));
    }

    #[test]
    fn who_gives_wrong_tokens_has_to_wait_and_who_knows_it_does_not() {
        let (access, now) = (access(), Instant::now());
        for _ in 0..FAILURES_MAX {
            assert!(matches!(access.check(b"guess", address(1), now), Err(Refused::WrongToken)));
        }
        assert!(matches!(access.check(b"guess", address(1), now), Err(Refused::TooMany)));
        assert!(access.check(TOKEN, address(1), now).is_ok(), "guesses keep nobody out who knows it");
        assert!(matches!(access.check(b"guess", address(2), now), Err(Refused::WrongToken)));
        let later = now + FAILURES_WINDOW;
        assert!(matches!(access.check(b"guess", address(1), later), Err(Refused::WrongToken)));
    }

    #[test]
    fn a_wrong_token_slows_the_next_of_its_address_and_no_other() {
        let (access, now) = (access(), Instant::now());
        let turn = |last: u16, now: Instant| access.turn(address(last), now);
        let guess = || assert!(access.check(b"guess", address(1), now).is_err());
        for _ in 0..FAILURES_FREE {
            assert_eq!(turn(1, now).ok(), Some(Duration::ZERO), "a mistake costs nothing");
            guess();
        }
        let waits: Vec<Duration> = (0..4).filter_map(|_| turn(1, now).ok()).collect();
        assert_eq!(waits, [0_u32, 1, 2, 3].map(|turns| turns * PAUSE_MIN), "each waits for those before it");
        assert_eq!(turn(2, now).ok(), Some(Duration::ZERO));
        for _ in FAILURES_FREE..FAILURES_MAX {
            guess();
        }
        let later = now + TURN_WAIT_MAX;
        assert_eq!(turn(1, later).ok(), Some(Duration::ZERO), "its turn has come");
        assert_eq!(turn(1, later).ok(), Some(PAUSE_MAX));
        let refused = (0..100).find_map(|_| turn(1, later).err());
        assert!(matches!(refused, Some(Refused::Unread)), "no more wait than is stated");
        assert!(turn(1, later + FAILURES_WINDOW + TURN_WAIT_MAX).is_ok());
        assert!(held(&access.turns).own.len() <= 1);
    }

    #[test]
    fn many_wrong_tokens_of_many_addresses_slow_each_a_little() {
        let (access, now) = (access(), Instant::now());
        for last in 0..FAILURES_FREE_ALL as u16 {
            assert_eq!(access.turn(address(last), now).ok(), Some(Duration::ZERO));
            assert!(access.check(b"guess", address(last), now).is_err());
        }
        let waits: Vec<Duration> =
            (0..3).filter_map(|last| access.turn(address(1_000 + last), now).ok()).collect();
        assert_eq!(waits, [0_u32, 1, 2].map(|turns| turns * PAUSE_ALL));
        assert_eq!(held(&access.turns).own.len(), 0, "only addresses with several wrong ones are kept");
        assert_eq!(access.turn(address(1), now + FAILURES_WINDOW).ok(), Some(Duration::ZERO));
    }

    #[test]
    fn who_chooses_among_the_addresses_of_a_network_has_to_wait_as_well() {
        let (access, now) = (access(), Instant::now());
        let guess = |from: String| access.check(b"guess", from.parse().expect("an address"), now);
        for host in 0..FAILURES_MAX {
            assert!(matches!(guess(format!("2001:db8:1:2::{host:x}")), Err(Refused::WrongToken)));
        }
        assert!(matches!(guess("2001:db8:1:2:ffff::1".to_owned()), Err(Refused::TooMany)));
        assert!(matches!(guess("2001:db8:1:3::1".to_owned()), Err(Refused::WrongToken)));
    }

    #[test]
    fn wrong_tokens_of_many_addresses_have_a_maximum_together() {
        let (access, now) = (access(), Instant::now());
        for last in 0..FAILURES_ALL_MAX as u16 {
            assert!(matches!(access.check(b"guess", address(last), now), Err(Refused::WrongToken)));
        }
        assert!(matches!(access.check(b"guess", address(5_000), now), Err(Refused::TooMany)));
        assert_eq!(held(&access.failures).len(), FAILURES_ALL_MAX);
        assert!(access.check(TOKEN, address(5_000), now + FAILURES_WINDOW).is_ok());
        assert!(held(&access.failures).is_empty());
    }
}
