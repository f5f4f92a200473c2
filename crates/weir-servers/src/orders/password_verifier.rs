//! Passwords: hashed with Argon2id, verified by a few separate threads, because one verification takes as long as
//! thousands of orders.
//!
//! The queue of waiting logins is bounded; the connection of a further one is closed. One address has a small part of
//! it: its further logins wait in front of the queue, so that they do not keep others out. Unknown names are verified
//! too, against another account's hash. Every refusal is sent the same time after the login, so that timing reveals
//! nothing.

use std::{
    fs::File,
    future::poll_fn,
    io::{self, Read},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    task::{Poll, Waker},
    thread,
    time::Duration,
};

use argon2::{
    Algorithm, Argon2, Block, Params, Version,
    password_hash::{
        PasswordHasher,
        phc::{Output, PasswordHash},
    },
};
use weir_engine::time::sleep;
use weir_proto::soup::Name;

use super::admission::{Admission, LimitReached, Permit};

/// Threads that verify passwords. Each keeps the memory that a hash of the default cost requires: 19 MiB.
pub(super) const VERIFIER_THREADS: usize = 2;

/// Logins that may wait for one of them.
pub(super) const WAITING_MAX: usize = 1024;

/// Logins among these from one address.
const WAITING_PER_ADDRESS_MAX: usize = 64;

/// How often a login in front of the queue checks whether its address has a place in it.
const LINE_LOOK: Duration = Duration::from_millis(20);

/// The password of demonstration accounts.
const DEMO_PASSWORD: &[u8] = b"DEMO";

/// Hashes a password, in the form used in configuration files: Argon2id with the default cost and a random salt. The
/// password is folded to upper case, because the protocol is case-insensitive.
///
/// # Errors
/// For a password that no client could send: empty, longer than 10 characters, or not printable ASCII.
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

/// Whether a text is a hash that passwords can be verified against.
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text)
        .is_ok_and(|hash| hash.salt.is_some() && hash.hash.is_some() && hash.algorithm.as_str() == "argon2id")
}

fn hash(argon: &Argon2<'_>, password: &[u8], salt: &[u8]) -> Result<String, String> {
    let hash: PasswordHash =
        argon.hash_password_with_salt(password, salt).map_err(|error| error.to_string())?;
    Ok(hash.to_string())
}

/// The hash of the public password, at the lowest possible cost: it protects nothing.
pub(super) fn demo_hash() -> Arc<str> {
    static HASH: OnceLock<Arc<str>> = OnceLock::new();
    let make = || {
        let params = Params::new(Params::MIN_M_COST, 1, 1, None).unwrap_or_default();
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        // This cannot fail with these lengths; an empty hash would admit no one.
        hash(&argon, DEMO_PASSWORD, b"weir demonstration").unwrap_or_default().into()
    };
    Arc::clone(HASH.get_or_init(make))
}

/// A name that is known to be valid.
pub(super) fn name<const N: usize>(text: &str) -> Name<N> {
    text.parse().unwrap_or_default()
}

/// Whether a password matches a hash. Blocks for the time that the hash requires.
pub(super) fn verify(hash: &str, password: &Name<10>) -> bool {
    verify_in(hash, password, &mut Scratch::default())
}

/// Memory for verifications, one after the other. Each needs 19 MiB at the default cost; an allocator that gets them
/// back keeps them too, but not always for the next one, so that a server would grow with its logins.
#[derive(Default)]
struct Scratch(Vec<Block>);

impl Scratch {
    /// Memory for this many blocks. It is kept for later, unless that would be more than a hash of ours needs.
    fn with<T>(&mut self, blocks: usize, work: impl FnOnce(&mut [Block]) -> T) -> T {
        if blocks > Params::DEFAULT.block_count() {
            return work(&mut vec![Block::new(); blocks]);
        }
        if self.0.len() < blocks {
            self.0.resize(blocks, Block::new());
        }
        work(&mut self.0[..blocks])
    }
}

fn verify_in(hash: &str, password: &Name<10>, scratch: &mut Scratch) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else { return false };
    let (Some(salt), Some(expected)) = (&hash.salt, &hash.hash) else { return false };
    let version = hash.version.map_or(Ok(Version::default()), Version::try_from);
    let (Ok(algorithm), Ok(version), Ok(params)) =
        (Algorithm::try_from(hash.algorithm.as_str()), version, Params::try_from(&hash))
    else {
        return false;
    };
    let mut output = [0; Output::MAX_LENGTH];
    let Some(output) = output.get_mut(..expected.len()) else { return false };
    let blocks = params.block_count();
    let argon = Argon2::new(algorithm, version, params);
    let password = password.folded();
    let hashed = scratch.with(blocks, |memory| {
        argon.hash_password_into_with_memory(password.as_str().as_bytes(), salt.as_ref(), output, memory)
    });
    // Outputs are compared in constant time.
    hashed.is_ok() && Output::new(output).is_ok_and(|output| output == *expected)
}

struct Job {
    hash: Arc<str>,
    password: Name<10>,
    answer: Arc<VerifyResult>,
}

/// The place for a verdict.
#[derive(Debug, Default)]
struct VerifyResult(Mutex<(Option<bool>, Option<Waker>)>);

impl VerifyResult {
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

/// The queue of logins is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub(super) struct Verifier {
    queue: SyncSender<Job>,
    /// Places in the queue and in front of it.
    line: Arc<Admission>,
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
    /// When a thread cannot be started.
    pub(super) fn start(threads: usize, waiting_max: usize) -> io::Result<Self> {
        let (verifier, jobs) = Self::line(waiting_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..threads {
            let jobs = Arc::clone(&jobs);
            thread::Builder::new().name(format!("weir-login-{number}")).spawn(move || work(&jobs))?;
        }
        Ok(verifier)
    }

    /// The queue, and its other end.
    fn line(waiting_max: usize) -> (Self, Receiver<Job>) {
        let (queue, jobs) = sync_channel(waiting_max);
        let line = Admission::new(waiting_max + VERIFIER_THREADS, WAITING_PER_ADDRESS_MAX);
        (Self { queue, line }, jobs)
    }

    /// Verifies the password of a login from this address.
    pub(super) async fn verify(
        &self,
        address: Option<IpAddr>,
        hash: Arc<str>,
        password: Name<10>,
    ) -> Result<bool, Busy> {
        let _place = self.line_up(address).await?;
        let answer = Arc::new(VerifyResult::default());
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

    async fn line_up(&self, address: Option<IpAddr>) -> Result<Permit, Busy> {
        loop {
            match self.line.admit(address) {
                Ok(place) => return Ok(place),
                Err(LimitReached::Total) => return Err(Busy),
                // The waiting task gives up when the time limit for the login expires.
                Err(LimitReached::Address) => sleep(LINE_LOOK).await,
            }
        }
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    let mut scratch = Scratch::default();
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        if Arc::strong_count(&job.answer) == 1 {
            // The login's task is gone.
            continue;
        }
        job.answer.give(verify_in(&job.hash, &job.password, &mut scratch));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        pin::pin,
        task::{Context, Poll},
    };

    use weir_engine::{Config, Driver, Runtime};

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
    fn verifications_share_their_memory_and_a_costly_one_leaves_none() {
        let mut scratch = Scratch::default();
        let hash = hash_password("SECRET-1").expect("it can be sent");
        let mut places = Vec::new();
        for password in ["SECRET-1", "SECRET-2", "secret-1"] {
            let is_right = verify_in(&hash, &name(password), &mut scratch);
            assert_eq!(is_right, password.eq_ignore_ascii_case("SECRET-1"), "{password}");
            assert!(verify_in(&demo_hash(), &name("demo"), &mut scratch), "a hash that needs less");
            places.push((scratch.0.as_ptr(), scratch.0.len()));
        }
        assert_eq!(places, vec![(scratch.0.as_ptr(), Params::DEFAULT.block_count()); 3]);
        let params = Params::new(2 * Params::DEFAULT_M_COST, 1, 1, None).expect("it is allowed");
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let costly = super::hash(&argon, b"SECRET-1", b"as others have it").expect("it is hashed");
        assert!(verify_in(&costly, &name("secret-1"), &mut scratch));
        assert_eq!(scratch.0.len(), Params::DEFAULT.block_count());
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
        // No thread works at the other end.
        let (verifier, jobs) = Verifier::line(WAITING_MAX);
        let mut context = Context::from_waker(Waker::noop());
        let mut ask = || pin!(verifier.verify(None, demo_hash(), name("DEMO"))).poll(&mut context);
        for waiting in 0..WAITING_MAX {
            assert_eq!(ask(), Poll::Pending, "{waiting} wait");
        }
        assert_eq!(ask(), Poll::Ready(Err(Busy)));
        let job = jobs.recv().expect("they wait");
        job.answer.give(true);
        assert_eq!(ask(), Poll::Pending, "there is room again");
    }

    #[test]
    fn one_address_has_a_small_part_of_the_line_and_keeps_nobody_else_out() {
        Runtime::new(&Config::with_driver(Driver::Sim)).expect("it runs everywhere").block_on(async {
            let (verifier, jobs) = Verifier::line(WAITING_MAX);
            let verifier = Arc::new(verifier);
            let ask = |last: u8| {
                let verifier = Arc::clone(&verifier);
                let address = IpAddr::from(Ipv4Addr::new(10, 0, 0, last));
                weir_engine::spawn(
                    async move { verifier.verify(Some(address), demo_hash(), name("DEMO")).await },
                )
            };
            let greedy: Vec<_> = (0..WAITING_MAX + 10).map(|_| ask(1)).collect();
            sleep(LINE_LOOK).await;
            let first: Vec<Job> = jobs.try_iter().collect();
            assert_eq!(first.len(), WAITING_PER_ADDRESS_MAX);
            let other = ask(2);
            sleep(LINE_LOOK).await;
            jobs.try_recv().expect("it is in the line").answer.give(true);
            assert_eq!(other.await, Ok(true));
            // The rest of the first address moves up when places become free.
            first.iter().for_each(|job| job.answer.give(false));
            sleep(2 * LINE_LOOK).await;
            assert_eq!(jobs.try_iter().count(), WAITING_PER_ADDRESS_MAX);
            greedy.into_iter().for_each(|task| task.abort());
        });
    }
}
