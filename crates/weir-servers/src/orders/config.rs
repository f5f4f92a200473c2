//! The configuration of a server's sessions.

use std::{path::PathBuf, sync::Arc, time::Duration};

use weir_engine::time::Instant;
use weir_proto::soup::{Name, Timing};

use super::{events::Events, login_attempts::LoginLimits, password_verifier};
use crate::journal::{
    Level, SEGMENT_BYTES_DEFAULT,
    faults::{Operation, Verdict},
};

/// Most accounts of one server.
pub const ACCOUNTS_MAX: usize = 65_536;

/// One account.
#[derive(Clone, Debug)]
pub struct AccountConfig {
    /// Login name. Case-insensitive.
    pub name: Name<6>,
    /// Argon2id in the PHC form, of the password in upper case ([`hash_password`](super::hash_password)).
    pub password_hash: Arc<str>,
    /// Cancel the account's live orders when its connection ends.
    pub cancel_on_disconnect: bool,
    /// How long the client has to come back before that. An exchange gives no time.
    pub cancel_after: Duration,
    /// A second login ends the first connection; otherwise the second is refused.
    pub takeover: bool,
}

/// The common configuration of a server's sessions.
#[derive(Clone, Debug)]
pub struct OrdersConfig {
    /// The accounts that may log in. The index in this list is the account's number.
    pub accounts: Arc<Vec<AccountConfig>>,
    /// Accounts that may be added while the server runs.
    pub accounts_added_max: usize,
    /// Name of the first session; each ended session is followed by one whose trailing number is one higher. A
    /// configuration file has to give the name such a number. With a journal the name always needs a number, with
    /// enough digits for the sessions that have ended.
    pub session: Name<10>,
    /// Whether order numbers continue in the next session. Otherwise they start at 1, as in an exchange.
    pub numbers_go_on: bool,
    /// Whether the application journals a numbered message before any other effect. Then a number below an account's
    /// last one that is in no journal was never processed: a crash has lost it, or its client has skipped it. If it
    /// comes, it is refused, not ignored as a retransmission.
    pub journals_each_number: bool,
    /// Clients only receive: one that sends a message is cut off.
    pub is_read_only: bool,
    /// Heartbeats, timeouts, time limit for the login.
    pub timing: Timing,
    /// Largest payload a client may send in one frame.
    pub payload_bytes_max: usize,
    /// Most bytes that may wait for one client that is not requesting old messages.
    pub outbound_bytes_max: usize,
    /// How long a client may take no bytes although some wait for it; this is checked once a second. Whenever the
    /// kernel takes bytes the time starts again. A kernel with a full buffer takes nothing until a considerable part
    /// of it is free: Linux with its default of 4 MB, at 50 kB a second on loopback, about every 30 s.
    pub stall: Duration,
    /// The limit while a client receives old messages that it requested. It reads at its own pace, and a kernel
    /// seldom opens the window of a slow reader: at 10 kB a second and Linux's default buffer about every 12 s on
    /// loopback.
    pub stall_replay: Duration,
    /// Most connections that have not logged in.
    pub unauthenticated_max: usize,
    /// Most of these from one address, as defined by [`counted_as`](weir_proto::client::counted_as).
    pub unauthenticated_per_address_max: usize,
    /// When wrong passwords slow logins down and lock them.
    pub logins: LoginLimits,
    /// The folder of the journal and its level of durability; `None`, or level `none`: there is no journal.
    pub journal: Option<(PathBuf, Level)>,
    /// Size of each new file of a journal; see [`JournalConfig`](crate::journal::JournalConfig).
    pub journal_segment_bytes: u64,
    /// Most bytes of a stream that stay in memory after they were sent.
    pub retained_bytes_max: usize,
    /// Bytes per second that are read from journals to resend an account's messages, once the burst is used up.
    /// Records of other accounts that have to be read on the way count too.
    pub replay_bytes_per_second: u64,
    /// The burst: bytes at once, over all connections of the account.
    pub replay_burst_bytes: u64,
    /// Called once, on the worker's thread, when a worker panics: a process must not continue without one of its
    /// workers. The default ends the process. Not used in a runtime that belongs to the caller
    /// ([`LocalOrders`](super::LocalOrders)).
    pub on_panic: Option<fn()>,
    /// Judges the disk operations of a worker's journal, for tests; see [`faults`](crate::journal::faults).
    pub journal_faults: Option<fn(u16, &Operation) -> Verdict>,
    /// Converts an instant of the engine's clock to nanoseconds since 1970, for time stamps only; `None`: the
    /// kernel's clock.
    pub wall_clock: Option<fn(Instant) -> u64>,
    /// Where workers leave events for operators, and the application does.
    pub events: Events,
    /// `GATEWAY` or `EXCHANGE`.
    pub node: &'static str,
}

impl OrdersConfig {
    /// A configuration with these accounts, no journal, and every default.
    pub fn new(accounts: Vec<AccountConfig>) -> Self {
        Self {
            accounts: Arc::new(accounts),
            accounts_added_max: 0,
            session: password_verifier::name("WEIR000001"),
            numbers_go_on: false,
            journals_each_number: false,
            is_read_only: false,
            timing: Timing::default(),
            payload_bytes_max: 512,
            outbound_bytes_max: 4 << 20,
            stall: Duration::from_secs(10),
            stall_replay: Duration::from_secs(30),
            unauthenticated_max: 4096,
            unauthenticated_per_address_max: 1024,
            logins: LoginLimits::OFF,
            journal: None,
            journal_segment_bytes: SEGMENT_BYTES_DEFAULT,
            retained_bytes_max: 256 << 10,
            replay_bytes_per_second: 32 << 20,
            replay_burst_bytes: 256 << 20,
            on_panic: Some(|| std::process::abort()),
            journal_faults: None,
            wall_clock: None,
            events: Events::default(),
            node: "EXCHANGE",
        }
    }
}

/// Accounts `C00001`, `C00002`, … with the password `DEMO`: for loopback only, because the password is public.
pub fn demo_accounts(count: u32) -> Vec<AccountConfig> {
    accounts_named('C', count)
}

/// As [`demo_accounts`], with another first letter.
pub fn accounts_named(letter: char, count: u32) -> Vec<AccountConfig> {
    let hash: Arc<str> = password_verifier::demo_hash();
    let named = |number: u32| AccountConfig {
        name: password_verifier::name(&format!("{letter}{number:05}")),
        password_hash: Arc::clone(&hash),
        cancel_on_disconnect: false,
        cancel_after: Duration::ZERO,
        takeover: false,
    };
    (1..=count.min(99_999)).map(named).collect()
}
