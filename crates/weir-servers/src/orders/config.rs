//! What the sessions of a server are asked to be.

use std::{path::PathBuf, sync::Arc, time::Duration};

use weir_engine::time::Instant;
use weir_proto::soup::{Name, Timing};

use super::{lines::Lines, password_verifier};
use crate::journal::{
    Level, SEGMENT_BYTES_DEFAULT,
    faults::{Operation, Verdict},
};

/// Most accounts of one server.
pub const ACCOUNTS_MAX: usize = 65_536;

/// One account.
#[derive(Clone, Debug)]
pub struct AccountConfig {
    /// Login name. Case does not matter.
    pub name: Name<6>,
    /// Argon2id in the PHC form, of the password in upper case ([`hash_password`](super::hash_password)).
    pub password_hash: Arc<str>,
    /// The account's live orders are cancelled when its connection ends.
    pub cancel_on_disconnect: bool,
    /// A second login ends the first connection; otherwise the second is refused.
    pub takeover: bool,
}

/// What every session of a server has in common.
#[derive(Clone, Debug)]
pub struct OrdersConfig {
    /// Who may log in. The place in this list is the account's number.
    pub accounts: Arc<Vec<AccountConfig>>,
    /// Name of the first session; each session that was ended is followed by one whose trailing number is one higher.
    /// A configuration file has to give it such a number. With a journal it needs one in any case, which must
    /// have room for those that have ended.
    pub session: Name<10>,
    /// Whether numbers of orders go on in the next session. Otherwise they begin with 1, as an exchange has it.
    pub numbers_go_on: bool,
    /// Whether a message with a number is journaled by the application before anything else comes of it. Then one that
    /// no journal has below an account's last one was never dealt with, because a crash has lost it or its client has
    /// left its number out: should it come, it is refused, and not ignored as a retransmission.
    pub journals_each_number: bool,
    /// Heartbeats, silence, time for the login.
    pub timing: Timing,
    /// Largest payload a client may send in one frame.
    pub payload_bytes_max: usize,
    /// Most bytes that may wait for one client that is not asking for old messages.
    pub outbound_bytes_max: usize,
    /// How long a client may take nothing although something waits for it; it is looked at once a second. Whenever the
    /// kernel takes something the time begins anew. A kernel whose buffer is full takes nothing until a good part of it
    /// is free: Linux with its default of 4 MB, at 50 kB a second on loopback, about every 30 s.
    pub stall: Duration,
    /// … while it is sent the old messages it asked for. It reads as it likes, and a kernel opens the window of a slow
    /// reader rarely: at 10 kB a second and Linux's default buffer about every 12 s on loopback.
    pub stall_replay: Duration,
    /// Connections that have not logged in.
    pub unauthenticated_max: usize,
    /// … from one address, as [`counted_as`](weir_proto::client::counted_as) has it.
    pub unauthenticated_per_address_max: usize,
    /// Where the journal is and what durable means; `None`, or level `none`: there is none.
    pub journal: Option<(PathBuf, Level)>,
    /// Size of each new file of a journal; see [`JournalConfig`](crate::journal::JournalConfig).
    pub journal_segment_bytes: u64,
    /// Most bytes of a stream that are kept in memory after they were sent.
    pub retained_bytes_max: usize,
    /// Bytes a second that an account may have read from journals to be sent its messages again, once the burst is used
    /// up. Others' records that have to be read to find them count.
    pub replay_bytes_per_second: u64,
    /// … and at once, over all its connections.
    pub replay_burst_bytes: u64,
    /// Called once, on the worker's thread, when a worker panics: a process must not live on half dead. By default it
    /// ends. Of no use in a runtime that is somebody else's ([`LocalOrders`](super::LocalOrders)).
    pub on_panic: Option<fn()>,
    /// Judges what the journal of a worker asks of its disk, for tests; see [`faults`](crate::journal::faults).
    pub journal_faults: Option<fn(u16, &Operation) -> Verdict>,
    /// Nanoseconds since 1970 at an instant of the engine's clock, for time stamps alone; `None`: the kernel's clock.
    pub wall_clock: Option<fn(Instant) -> u64>,
    /// Where workers leave what people should hear of: that a journal has failed, and what the application adds.
    pub lines: Lines,
    /// `GATEWAY` or `EXCHANGE`.
    pub node: &'static str,
}

impl OrdersConfig {
    /// These accounts, no journal, everything else by default.
    pub fn new(accounts: Vec<AccountConfig>) -> Self {
        Self {
            accounts: Arc::new(accounts),
            session: password_verifier::name("WEIR000001"),
            numbers_go_on: false,
            journals_each_number: false,
            timing: Timing::default(),
            payload_bytes_max: 512,
            outbound_bytes_max: 4 << 20,
            stall: Duration::from_secs(10),
            stall_replay: Duration::from_secs(30),
            unauthenticated_max: 4096,
            unauthenticated_per_address_max: 1024,
            journal: None,
            journal_segment_bytes: SEGMENT_BYTES_DEFAULT,
            retained_bytes_max: 256 << 10,
            replay_bytes_per_second: 32 << 20,
            replay_burst_bytes: 256 << 20,
            on_panic: Some(|| std::process::abort()),
            journal_faults: None,
            wall_clock: None,
            lines: Lines::default(),
            node: "EXCHANGE",
        }
    }
}

/// Accounts `C00001`, `C00002`, … with the password `DEMO`: for loopback only, because everybody knows it.
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
        takeover: false,
    };
    (1..=count.min(99_999)).map(named).collect()
}
