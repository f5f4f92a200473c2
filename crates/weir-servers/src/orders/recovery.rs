//! Recovers the state of earlier starts from the journals: each account's stream and numbers, and the positions of
//! its messages. The number of workers may have been different.

mod checkpointed;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use foldhash::{HashMap, HashMapExt};
use weir_proto::{
    ouch::{inbound_user_ref_num, outbound_user_ref_num},
    soup::Name,
};
use weir_trading::AccountId;

use super::{
    ACCOUNTS_MAX, ApplicationKind, OrdersConfig, RECORD_KIND_APPLICATION,
    account::{Entry, INDEX_EVERY, Index},
    described::is_answer,
    known_numbers::KnownNumbers,
    records,
};
use crate::journal::{self, Level, Lsn, Position, RecordView, Recovered};

pub use checkpointed::Obstacle;
pub(crate) use checkpointed::{Collector, checkpoint_of_start, recover_at_checkpoint, write_checkpoint};

/// Why the journals cannot be used. No file was changed.
#[derive(Debug, thiserror::Error)]
pub enum OrdersRecoverError {
    /// The folder cannot be read.
    #[error("{directory}: the journals cannot be listed: {source}", directory = directory.display())]
    List {
        /// The folder.
        directory: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::RecoverError),
    /// The first files are not there any more, and nothing else has what they contain.
    #[error(
        "{directory}: the first files of the journals were archived, and the checkpoint that stands for them cannot be \
         used: {reasons}; copy the archived files back, or start with the configuration of that time",
        directory = directory.display()
    )]
    Base {
        /// The folder.
        directory: PathBuf,
        /// Why, for each file of a checkpoint.
        reasons: String,
    },
}

/// One record, as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The worker whose journal contains it.
    pub worker: u16,
    /// When it was written, in nanoseconds since 1970.
    pub t_ns: u64,
    /// The session with the clients, counted from 0; 0 if the record does not contain it.
    pub generation: u16,
    /// Its kind and contents.
    pub kind: RecordKind<'a>,
}

/// The kind and contents of a record.
#[derive(Clone, Copy, Debug)]
pub enum RecordKind<'a> {
    /// A message of an account's stream, from this session or one that has ended.
    Sequenced {
        /// The account.
        account: AccountId,
        /// Its number.
        sequence: u64,
        /// The value passed to [`SessionStore::emit`](super::SessionStore::emit).
        upstream_sequence: u64,
        /// The message.
        message: &'a [u8],
    },
    /// A client's message ([`SessionStore::log_inbound`](super::SessionStore::log_inbound)).
    Inbound {
        /// The account.
        account: AccountId,
        /// Its number upstream, in records of a version that stored no session with it.
        upstream: u32,
        /// The message.
        raw: &'a [u8],
    },
    /// A client's message that was sent upstream ([`SessionStore::log_sent`](super::SessionStore::log_sent)).
    Sent {
        /// The account.
        account: AccountId,
        /// The session passed with it.
        session: u32,
        /// Its number upstream.
        upstream: u32,
        /// The message.
        raw: &'a [u8],
    },
    /// A client's message that was refused ([`SessionStore::log_refused`](super::SessionStore::log_refused)).
    Refused {
        /// The account.
        account: AccountId,
        /// The reason.
        reason: u16,
        /// The message.
        raw: &'a [u8],
    },
    /// A record of the application ([`SessionStore::log`](super::SessionStore::log)).
    Application {
        /// Its kind.
        kind: ApplicationKind,
        /// The session passed with it.
        session: u32,
        /// Its payload.
        payload: &'a [u8],
    },
}

/// If the first number of a client is higher than this, the client did not start at 1 in this journal. Lower numbers
/// are from an earlier time that the journal does not cover.
const FIRST_NUMBER_MAX: u32 = 1024;

/// The recovered state of an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountRecovery {
    /// Number of the last message of its stream.
    pub sequence: u64,
    /// The highest UserRefNum that was accepted, in this session or, if numbers continue, in any.
    pub user_ref_num: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    account: AccountRecovery,
    generation: u16,
    /// The session of the last accepted number, its highest number, and the highest of earlier sessions.
    numbered_in: u16,
    in_session: u32,
    used_before: u32,
    /// The known numbers of all sessions; of the last one if each begins with 1.
    known: KnownNumbers,
    /// Numbers begin with 1 in each session.
    restarts: bool,
    entries: Vec<Entry>,
    /// The journal and the number of the previous record.
    before: Option<(u16, u64)>,
    /// There is a record of it.
    is_recorded: bool,
}

/// The state recovered from the journals.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The configured accounts, followed by the removed ones.
    accounts: Vec<Found>,
    removed: Vec<Name<6>>,
    /// See [`OrdersConfig::numbers_go_on`].
    numbers_go_on: bool,
    /// See [`OrdersConfig::journals_each_number`].
    journals_each_number: bool,
    generation: u16,
    /// The session that ends with this start.
    ended: Option<u16>,
    records: u64,
    torn: Vec<String>,
    /// Each is continued by its worker; the others are held so that they are not written.
    journals: Mutex<BTreeMap<u16, Recovered>>,
}

impl Recovery {
    /// The number of records read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Sentences about writes that never finished.
    pub fn torn(&self) -> &[String] {
        &self.torn
    }

    /// The number of accounts with a state: the configured ones and the removed ones.
    pub(crate) fn account_places(&self) -> usize {
        self.accounts.len()
    }

    /// The recovered state of an account.
    pub fn account(&self, account: AccountId) -> AccountRecovery {
        self.accounts.get(account.0 as usize).map(|found| found.account).unwrap_or_default()
    }

    /// The highest UserRefNum of an account in ended sessions; 0 for none.
    pub(super) fn used_before(&self, account: AccountId) -> u32 {
        self.accounts.get(account.0 as usize).map_or(0, |found| found.used_before)
    }

    /// The numbers of an account that are in journals. Numbers between them were never processed; if that is unknown,
    /// there are no gaps.
    pub(super) fn known_numbers(&self, account: AccountId) -> KnownNumbers {
        let found = self.accounts.get(account.0 as usize).filter(|_| self.journals_each_number);
        found.map(|found| found.known.clone()).unwrap_or_default()
    }

    /// Accounts that have records in the journals but are not configured any more, in the order of their numbers
    /// here: these follow the configured ones. Empty if they were not requested.
    pub fn removed(&self) -> &[Name<6>] {
        &self.removed
    }

    /// The session in the journals, if there is one, is over: this start has the next one. Its message numbers start
    /// at 1, its order numbers as configured.
    pub fn end_session(&mut self) {
        if self.records == 0 {
            return;
        }
        self.ended = Some(self.generation);
        self.generation = self.generation.saturating_add(1);
        for found in &mut self.accounts {
            found.account.sequence = 0;
            found.used_before = found.account.user_ref_num;
            found.in_session = 0;
            found.entries.clear();
        }
        self.settle_numbers();
    }

    /// If order numbers start at 1 in each session, only those of this session count.
    fn settle_numbers(&mut self) {
        if self.numbers_go_on {
            return;
        }
        for found in &mut self.accounts {
            found.account.user_ref_num = found.in_session;
            found.used_before = 0;
        }
    }

    /// The session that ends with this start and has no record about its end yet.
    pub(super) fn ended(&self) -> Option<u16> {
        self.ended
    }

    /// The number of sessions that ended before this one.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }

    pub(super) fn index(&self, account: AccountId) -> Index {
        let found = self.accounts.get(account.0 as usize);
        Index::from_entries(found.map(|found| found.entries.clone()).unwrap_or_default())
    }

    /// The journal of a worker, to be continued; available once.
    pub(super) fn take_journal(
        &self,
        config: &OrdersConfig,
        worker: u16,
    ) -> Result<Recovered, journal::RecoverError> {
        let mut journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        match (journals.remove(&worker), config.active_journal()) {
            (Some(recovered), _) => Ok(recovered),
            (None, Some((directory, _))) => journal::recover(directory, worker, &mut |_, _| Ok(())),
            (None, None) => Ok(Recovered::nothing()),
        }
    }

    /// By worker: the end of its journal, and the number of the last record.
    pub(crate) fn journal_ends(&self) -> BTreeMap<u16, (Position, Lsn)> {
        let journals = self.journals.lock().unwrap_or_else(PoisonError::into_inner);
        let end = |(worker, found): (&u16, &Recovered)| (*worker, (found.end(), found.last_lsn));
        journals.iter().map(end).collect()
    }

    /// The state before the first record.
    fn begin(config: &OrdersConfig, takes_removed: bool) -> (Self, Names) {
        let none = || Found { restarts: !config.numbers_go_on, ..Found::default() };
        let recovery = Self {
            accounts: config.accounts.iter().map(|_| none()).collect(),
            numbers_go_on: config.numbers_go_on,
            journals_each_number: config.journals_each_number,
            ..Self::default()
        };
        (recovery, Names { known: config.names(), takes_removed })
    }

    /// Every record has been read.
    fn conclude(&mut self, journals: Vec<(u16, Recovered)>) {
        for (worker, recovered) in journals {
            self.torn.extend(recovered.torn.as_ref().map(ToString::to_string));
            self.journals.get_mut().unwrap_or_else(PoisonError::into_inner).insert(worker, recovered);
        }
        let generation = self.generation;
        for found in &mut self.accounts {
            found.begin_numbers(generation);
            if found.generation < generation {
                found.account.sequence = 0;
                found.entries.clear();
            }
        }
        self.settle_numbers();
    }

    /// The account with this name. `None`: it is no longer configured, and such accounts are skipped.
    fn account_named(&mut self, names: &mut Names, name: &Name<6>) -> Result<Option<AccountId>, String> {
        let name = name.folded();
        if let Some(account) = names.known.get(&name) {
            return Ok(Some(*account));
        }
        if !names.takes_removed {
            return Ok(None);
        }
        if self.accounts.len() >= ACCOUNTS_MAX {
            return Err(format!("with the configured accounts there are more than {ACCOUNTS_MAX}"));
        }
        let account = AccountId(self.accounts.len() as u32);
        names.known.insert(name, account);
        self.accounts.push(Found { restarts: !self.numbers_go_on, ..Found::default() });
        self.removed.push(name);
        Ok(Some(account))
    }

    fn take(
        &mut self,
        names: &mut Names,
        record: RecordView<'_>,
        position: Position,
        visit: &mut dyn FnMut(&Record<'_>),
    ) -> Result<(), String> {
        self.records += 1;
        let malformed = || format!("the payload of kind {} is not what it has to be", record.kind);
        let mut generation = 0;
        let kind = match record.kind {
            records::SEQUENCED => {
                let found = records::sequenced(record.payload).ok_or_else(malformed)?;
                let Some(account) = self.account_named(names, &found.name)? else { return Ok(()) };
                let account_found = &mut self.accounts[account.0 as usize];
                account_found.is_recorded = true;
                account_found.take_sequenced(&found, record.worker, position);
                self.generation = self.generation.max(found.generation);
                generation = found.generation;
                RecordKind::Sequenced {
                    account,
                    sequence: found.sequence,
                    upstream_sequence: found.upstream_sequence,
                    message: found.message,
                }
            }
            records::INBOUND | records::REFUSED | records::SENT => {
                let found = records::inbound(record.payload).ok_or_else(malformed)?;
                let Some(account) = self.account_named(names, &found.name)? else { return Ok(()) };
                let account_found = &mut self.accounts[account.0 as usize];
                account_found.is_recorded = true;
                if let (Some(b'O' | b'U'), Some(number)) =
                    (found.raw.first(), inbound_user_ref_num(found.raw))
                {
                    account_found.raise(number, found.generation);
                }
                let records::Inbound { upstream, raw, .. } = found;
                generation = found.generation;
                match record.kind {
                    records::REFUSED => {
                        let reason = u16::try_from(upstream).map_err(|_| malformed())?;
                        RecordKind::Refused { account, reason, raw }
                    }
                    records::SENT => RecordKind::Sent { account, session: record.session, upstream, raw },
                    _ => RecordKind::Inbound { account, upstream, raw },
                }
            }
            records::ENDED => {
                let ended = records::ended(record.payload).ok_or_else(malformed)?;
                self.generation = self.generation.max(ended.saturating_add(1));
                return Ok(());
            }
            RECORD_KIND_APPLICATION.. => RecordKind::Application {
                kind: ApplicationKind::new(record.kind),
                session: record.session,
                payload: record.payload,
            },
            unknown => return Err(format!("kind {unknown} is not known")),
        };
        visit(&Record { worker: record.worker, t_ns: record.t_ns, generation, kind });
        Ok(())
    }
}

impl Found {
    fn raise(&mut self, number: u32, generation: u16) {
        self.begin_numbers(generation);
        if generation == self.numbered_in {
            self.in_session = self.in_session.max(number);
        } else {
            // If a clock jumped, journals are out of order: this record is read after those of a later session.
            self.used_before = self.used_before.max(number);
        }
        self.account.user_ref_num = self.account.user_ref_num.max(number);
        if self.restarts && generation != self.numbered_in {
            return;
        }
        if self.known.last() == 0 && number > FIRST_NUMBER_MAX {
            self.known = KnownNumbers::through(number);
        } else {
            self.known.add(number);
        }
    }

    /// If the numbers so far are from earlier sessions than `generation`, they count as numbers of ended sessions.
    fn begin_numbers(&mut self, generation: u16) {
        if generation > self.numbered_in {
            self.numbered_in = generation;
            self.in_session = 0;
            self.used_before = self.account.user_ref_num;
            if self.restarts {
                self.known = KnownNumbers::default();
            }
        }
    }

    fn take_sequenced(&mut self, record: &records::Sequenced<'_>, worker: u16, position: Position) {
        // These three show that a number was accepted: the others are about orders that had already been answered.
        if let (Some(b'A' | b'J' | b'U'), Some(number)) =
            (record.message.first(), outbound_user_ref_num(record.message))
        {
            self.raise(number, record.generation);
        }
        if record.generation > self.generation {
            // From a later session: message numbers start again.
            self.generation = record.generation;
            self.account.sequence = 0;
            self.entries.clear();
            self.before = None;
        }
        if record.generation < self.generation {
            return;
        }
        let sequence = record.sequence;
        let follows = self.before == Some((worker, sequence.wrapping_sub(1)));
        if !follows || sequence % INDEX_EVERY == 1 {
            self.entries.push(Entry { sequence, worker, position });
        }
        self.before = Some((worker, sequence));
        self.account.sequence = self.account.sequence.max(sequence);
    }
}

/// Accounts by their names in upper case.
struct Names {
    known: HashMap<Name<6>, AccountId>,
    /// Whether an unknown account is added.
    takes_removed: bool,
}

/// Reads the journals of all workers and shows each record of a configured account to `visit`: in order within each
/// journal, and all together in the order of their times, as far as the clocks allow. A torn tail is cleared.
///
/// # Errors
/// See [`OrdersRecoverError`].
pub fn recover(
    config: &OrdersConfig,
    visit: &mut dyn FnMut(&Record<'_>),
) -> Result<Recovery, OrdersRecoverError> {
    recover_accounts(config, false, visit)
}

/// As [`recover`], including the records of accounts that are no longer configured: see [`Recovery::removed`].
///
/// # Errors
/// As [`recover`]; an error for more than [`ACCOUNTS_MAX`] accounts.
pub fn recover_with_removed(
    config: &OrdersConfig,
    visit: &mut dyn FnMut(&Record<'_>),
) -> Result<Recovery, OrdersRecoverError> {
    recover_accounts(config, true, visit)
}

fn recover_accounts(
    config: &OrdersConfig,
    takes_removed: bool,
    visit: &mut dyn FnMut(&Record<'_>),
) -> Result<Recovery, OrdersRecoverError> {
    let (mut recovery, mut names) = Recovery::begin(config, takes_removed);
    let Some((directory, _)) = config.active_journal() else { return Ok(recovery) };
    let list = |source| OrdersRecoverError::List { directory: directory.clone(), source };
    let workers = journal::workers_in(directory).map_err(list)?;
    let all = journal::recover_all(directory, &workers, is_answer, &mut |record, position| {
        recovery.take(&mut names, record, position, visit)
    })?;
    recovery.conclude(all);
    Ok(recovery)
}

impl OrdersConfig {
    /// The journal, if one is configured.
    pub(super) fn active_journal(&self) -> Option<(&PathBuf, Level)> {
        self.journal.as_ref().filter(|(_, level)| *level != Level::None).map(|(place, level)| (place, *level))
    }

    /// The accounts by their names in upper case. If two have the same name, the first one counts.
    pub(super) fn names(&self) -> HashMap<Name<6>, AccountId> {
        let mut names = HashMap::with_capacity(self.accounts.len());
        for (account, index) in self.accounts.iter().zip(0..) {
            names.entry(account.name.folded()).or_insert(AccountId(index));
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_number_of_earlier_sessions_is_found_in_whatever_order_records_are_read() {
        let numbers = [(5, 0), (9, 0), (12, 1)];
        for order in [[0, 1, 2], [0, 2, 1], [2, 1, 0]] {
            let mut found = Found::default();
            for (number, generation) in order.map(|place: usize| numbers[place]) {
                found.raise(number, generation);
            }
            assert_eq!((found.used_before, found.in_session), (9, 12), "{order:?}");
        }
    }

    #[test]
    fn numbers_of_ended_sessions_are_not_known_if_each_begins_with_1() {
        for (restarts, expected) in [(true, [false, true, false]), (false, [true, true, true])] {
            let mut found = Found { restarts, ..Found::default() };
            for (number, generation) in [(1, 0), (7, 0), (2, 1), (3, 0)] {
                found.raise(number, generation);
            }
            assert_eq!([1, 2, 3].map(|number| found.known.has(number)), expected, "{restarts}");
        }
    }

    #[test]
    fn numbers_that_no_journal_has_are_known_to_be_missing_but_for_those_of_a_time_before() {
        let missing = |numbers: &[u32], among: &[u32]| -> Vec<u32> {
            let mut found = Found::default();
            numbers.iter().for_each(|number| found.raise(*number, 0));
            among.iter().copied().filter(|number| !found.known.has(*number)).collect()
        };
        // The first number may be lost like any other: its client has no earlier records.
        assert_eq!(missing(&[2, 3, 5], &[1, 2, 3, 4, 5]), [1, 4]);
        assert_eq!(missing(&[FIRST_NUMBER_MAX], &[1, FIRST_NUMBER_MAX - 1]), [1, FIRST_NUMBER_MAX - 1]);
        // A client that continues where an earlier journal ended.
        assert_eq!(missing(&[5000, 5002], &[1, 4999, 5000, 5001]), [5001]);
        assert!(missing(&[1_000_000_000, 7], &[1, 999_999_999]).is_empty());
    }
}
