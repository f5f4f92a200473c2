//! Passwords: hashed with Argon2id, verified by a few threads of their own, because one verification takes as long as
//! thousands of orders.
//!
//! The line of logins that wait is bounded; one more is refused by closing its connection. Names that do not exist are
//! verified as well, against somebody's hash, and every refusal leaves at the same time after the login came, so that
//! the time tells nothing.

use std::{
    fs::File,
    future::poll_fn,
    io::{self, Read},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    task::{Poll, Waker},
    thread,
};

use argon2::{
    Algorithm, Argon2, Params, Version,
    password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash},
};
use weir_proto::soup::Name;

/// Threads that verify. Each uses the memory that a hash asks for (19 MiB by default) while it does.
pub(super) const VERIFIER_THREADS: usize = 2;

/// Logins that wait for one of them.
pub(super) const WAITING_MAX: usize = 1024;

/// What a demonstration account is logged in with.
const DEMO_PASSWORD: &[u8] = b"DEMO";

/// Makes the hash of a password, in the form configuration files have: Argon2id with the default cost and a salt of its
/// own. The password is folded to upper case, because the protocol does not tell cases apart.
///
/// # Errors
/// A password that no client could send: empty, longer than 10 characters, or not printable ASCII.
pub fn hash_password(password: &str) -> io::Result<String> {
    let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
    let name: Name<10> = password
        .parse()
        .map_err(|_| wrong("a password has at most 10 characters, all of them printable ASCII"))?;
    if name.is_blank() {
        return Err(wrong("an empty password protects nothing"));
    }
    let mut salt = [0_u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut salt)?;
    hash(&Argon2::default(), name.folded().as_str().as_bytes(), &salt).map_err(io::Error::other)
}

/// Whether a text is a hash that a password can be verified against.
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text)
        .is_ok_and(|hash| hash.salt.is_some() && hash.hash.is_some() && hash.algorithm.as_str() == "argon2id")
}

fn hash(argon: &Argon2<'_>, password: &[u8], salt: &[u8]) -> Result<String, String> {
    let hash: PasswordHash =
        argon.hash_password_with_salt(password, salt).map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

/// The hash of everybody's password, at the lowest cost there is: it protects nothing.
pub(super) fn demo_hash() -> Arc<str> {
    static HASH: OnceLock<Arc<str>> = OnceLock::new();
    let make = || {
        let params = Params::new(Params::MIN_M_COST, 1, 1, None).unwrap_or_default();
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        // It cannot fail with these lengths; an empty hash would let nobody in.
        hash(&argon, DEMO_PASSWORD, b"weir demonstration").unwrap_or_default().into()
    };
    Arc::clone(HASH.get_or_init(make))
}

/// A name that is known to be right.
pub(super) fn name<const N: usize>(text: &str) -> Name<N> {
    text.parse().unwrap_or_default()
}

/// Whether the password is the one that was hashed. Blocks for as long as the hash asks for.
pub(super) fn verify(hash: &str, password: &Name<10>) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    Argon2::default().verify_password(password.folded().as_str().as_bytes(), &hash).is_ok()
}

struct Job {
    hash: Arc<str>,
    password: Name<10>,
    answer: Arc<Answer>,
}

/// Where the verdict is left.
#[derive(Debug, Default)]
struct Answer(Mutex<(Option<bool>, Option<Waker>)>);

impl Answer {
    fn lock(&self) -> MutexGuard<'_, (Option<bool>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, verdict: bool) {
        let mut place = self.lock();
        place.0 = Some(verdict);
        let waker = place.1.take();
        drop(place);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// As many logins wait as may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Verifier {
    queue: SyncSender<Job>,
}

impl std::fmt::Debug for Job {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Job").finish_non_exhaustive()
    }
}

impl Verifier {
    /// Starts the threads.
    ///
    /// # Errors
    /// When none can be had.
    pub(super) fn start(threads: usize, waiting_max: usize) -> io::Result<Self> {
        let (verifier, jobs) = Self::line(waiting_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..threads {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new().name(format!("weir-login-{number}")).spawn(move || work(&jobs))?;
        }
        Ok(verifier)
    }

    /// The line, and its other end.
    fn line(waiting_max: usize) -> (Self, Receiver<Job>) {
        let (queue, jobs) = sync_channel(waiting_max);
        (Self { queue }, jobs)
    }

    /// Asks whether a password is right.
    pub(super) async fn verify(&self, hash: Arc<str>, password: Name<10>) -> Result<bool, Busy> {
        let answer = Arc::new(Answer::default());
        let job = Job { hash, password, answer: Arc::clone(&answer) };
        match self.queue.try_send(job) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return Err(Busy),
        }
        Ok(poll_fn(|context| {
            let mut place = answer.lock();
            match place.0 {
                Some(verdict) => Poll::Ready(verdict),
                None => {
                    place.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await)
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if Arc::strong_count(&job.answer) == 1 {
            // Whoever asked has gone.
            continue;
        }
        job.answer.give(verify(&job.hash, &job.password));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll},
    };

    use super::*;

    #[test]
    fn a_password_is_verified_whatever_its_case() {
        let hash = hash_password("Secret-1").expect("it can be sent");
        assert!(is_password_hash(&hash), "{hash}");
        for right in ["SECRET-1", "secret-1", "Secret-1"] {
            assert!(verify(&hash, &name(right)));
        }
        for wrong in ["", "SECRET-2", "SECRET-11"] {
            assert!(!verify(&hash, &name(wrong)));
        }
        assert_ne!(hash, hash_password("Secret-1").expect("it can be sent"), "salts differ");
        assert!(verify(&demo_hash(), &name("demo")));
    }

    #[test]
    fn what_no_client_could_send_is_no_password() {
        for wrong in ["", "   ", "12345678901", "pässwort"] {
            assert!(hash_password(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["", "DEMO", "$argon2id$v=19$m=8,t=1,p=1", "$argon2i$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$AAAA"]
        {
            assert!(!is_password_hash(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn the_line_is_bounded_and_one_more_is_refused() {
        // Nobody works at the other end.
        let (verifier, jobs) = Verifier::line(WAITING_MAX);
        let mut context = Context::from_waker(Waker::noop());
        let mut ask = || pin!(verifier.verify(demo_hash(), name("DEMO"))).poll(&mut context);
        for waiting in 0..WAITING_MAX {
            assert_eq!(ask(), Poll::Pending, "{waiting} wait");
        }
        assert_eq!(ask(), Poll::Ready(Err(Busy)));
        let job = jobs.recv().expect("they wait");
        job.answer.give(true);
        assert_eq!(ask(), Poll::Pending, "there is room again");
    }
}
