//! Who may act: readers with the token, and browsers that gave it not long ago. The number of wrong tokens has a limit.
//! Time is an argument.

use std::{
    collections::VecDeque,
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
}

impl Access {
    pub(crate) fn with(token: Token) -> Self {
        Self { token, sessions: Mutex::default(), failures: Mutex::default() }
    }

    /// Whether this is the token.
    pub(crate) fn check(&self, given: &[u8], from: IpAddr, now: Instant) -> Result<(), Refused> {
        let mut failures = held(&self.failures);
        while failures.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= FAILURES_WINDOW) {
            failures.pop_front();
        }
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
