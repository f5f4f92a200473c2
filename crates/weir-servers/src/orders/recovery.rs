//! What the journals of earlier starts say: how far each account's stream and numbers had come, and where its messages
//! lie. It does not matter how many workers there were.

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
    ACCOUNTS_MAX, OrdersConfig, RECORD_KIND_APPLICATION,
    account::{Entry, INDEX_EVERY, Index},
    known_numbers::KnownNumbers,
    records,
};
use crate::journal::{self, Level, Position, RecordView, Recovered};

/// Why the journals cannot be used. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OrdersRecoverError {
    /// The folder cannot be read.
    #[error("{directory}: the journals cannot be listed: {source}", directory = directory.display())]
    List {
        /// The folder.
        directory: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::RecoverError),
}

/// One record, as it was written.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// In whose journal it is.
    pub worker: u16,
    /// When it was written, in nanoseconds since 1970.
    pub t_ns: u64,
    /// In which session with the clients, counted from 0; 0 where the record does not say.
    pub generation: u16,
    /// What it is.
    pub kind: RecordKind<'a>,
}

/// What a record is.
#[derive(Clone, Copy, Debug)]
pub enum RecordKind<'a> {
    /// A message of an account's stream, of this session or one that has ended.
    Sequenced {
        /// Whose.
        account: AccountId,
        /// Its number.
        sequence: u64,
        /// What [`SessionStore::emit`](super::SessionStore::emit) was given.
        upstream_sequence: u64,
        /// The message.
        message: &'a [u8],
    },
    /// A message of a client ([`SessionStore::log_inbound`](super::SessionStore::log_inbound)).
    Inbound {
        /// Whose.
        account: AccountId,
        /// Its number upstream, where a version wrote it that kept no session with it.
        upstream: u32,
        /// The message.
        raw: &'a [u8],
    },
    /// A message of a client that was sent on ([`SessionStore::log_sent`](super::SessionStore::log_sent)).
    Sent {
        /// Whose.
        account: AccountId,
        /// What was given with it.
        session: u32,
        /// Its number upstream.
        upstream: u32,
        /// The message.
        raw: &'a [u8],
    },
    /// A message of a client that was refused ([`SessionStore::log_refused`](super::SessionStore::log_refused)).
    Refused {
        /// Whose.
        account: AccountId,
        /// Why.
        reason: u16,
        /// The message.
        raw: &'a [u8],
    },
    /// Something of the application's own ([`SessionStore::log`](super::SessionStore::log)).
    Application {
        /// Its kind.
        kind: u8,
        /// What was given with it.
        session: u32,
        /// Its payload.
        payload: &'a [u8],
    },
}

/// A client whose first number is higher does not count from 1 where a journal begins. What lies below is of a time
/// before, of which the journal knows nothing.
const FIRST_NUMBER_MAX: u32 = 1024;

/// How far an account had come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountRecovery {
    /// Number of the last message of its stream.
    pub sequence: u64,
    /// The highest UserRefNum that was taken in, in this session or, where they go on, in any.
    pub user_ref_num: u32,
}

#[derive(Debug, Default)]
struct Found {
    account: AccountRecovery,
    generation: u16,
    /// The session of the last number that was taken in, its highest number, and that of those before it.
    numbered_in: u16,
    in_session: u32,
    used_before: u32,
    /// Those of all sessions.
    known: KnownNumbers,
    entries: Vec<Entry>,
    /// The journal and the number of the record before.
    before: Option<(u16, u64)>,
}

/// What the journals say.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Those that are configured, and behind them the removed ones.
    accounts: Vec<Found>,
    removed: Vec<Name<6>>,
    /// See [`OrdersConfig::numbers_go_on`].
    numbers_go_on: bool,
    /// See [`OrdersConfig::journals_each_number`].
    journals_each_number: bool,
    generation: u16,
    /// The session that has ended with this start.
    ended: Option<u16>,
    records: u64,
    torn: Vec<String>,
    /// Each is continued by its worker; the others are kept from being written to.
    journals: Mutex<BTreeMap<u16, Recovered>>,
}

impl Recovery {
    /// Records that were read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Sentences about writes that were never finished.
    pub fn torn(&self) -> &[String] {
        &self.torn
    }

    /// How far an account had come.
    pub fn account(&self, account: AccountId) -> AccountRecovery {
        self.accounts.get(account.0 as usize).map(|found| found.account).unwrap_or_default()
    }

    /// The highest UserRefNum that an account has used in sessions that have ended; 0: none.
    pub(super) fn used_before(&self, account: AccountId) -> u32 {
        self.accounts.get(account.0 as usize).map_or(0, |found| found.used_before)
    }

    /// The numbers of an account that journals have. Those between them were never dealt with; where that cannot be
    /// told there are none.
    pub(super) fn known_numbers(&self, account: AccountId) -> KnownNumbers {
        let found = self.accounts.get(account.0 as usize).filter(|_| self.journals_each_number);
        found.map(|found| found.known.clone()).unwrap_or_default()
    }

    /// Accounts of which the journals have records and which are not configured any more, in the order of the numbers
    /// they have here: those behind the configured ones. None where they were not asked for.
    pub fn removed(&self) -> &[Name<6>] {
        &self.removed
    }

    /// The session of the journals, if they have one, is over: this start has the next one, in which messages begin
    /// with 1, and orders as the configuration says.
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

    /// Where numbers of orders begin with 1 in each session, those of this one alone count.
    fn settle_numbers(&mut self) {
        if self.numbers_go_on {
            return;
        }
        for found in &mut self.accounts {
            found.account.user_ref_num = found.in_session;
            found.used_before = 0;
        }
    }

    /// The session that has ended with this start, which no record says yet.
    pub(super) fn ended(&self) -> Option<u16> {
        self.ended
    }

    /// How many sessions have ended before this one.
    pub(crate) fn generation(&self) -> u16 {
        self.generation
    }

    pub(super) fn index(&self, account: AccountId) -> Index {
        let found = self.accounts.get(account.0 as usize);
        Index::from_entries(found.map(|found| found.entries.clone()).unwrap_or_default())
    }

    /// The journal of a worker, to be continued; once.
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

    /// The account of this name. `None`: it is not configured any more, and those are passed over.
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
        self.accounts.push(Found::default());
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
                self.accounts[account.0 as usize].take_sequenced(&found, record.worker, position);
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
                if let (Some(b'O' | b'U'), Some(number)) =
                    (found.raw.first(), inbound_user_ref_num(found.raw))
                {
                    self.accounts[account.0 as usize].raise(number, found.generation);
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
                kind: record.kind,
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
            // Clocks that jump put journals out of order: it is read behind those of a later session.
            self.used_before = self.used_before.max(number);
        }
        self.account.user_ref_num = self.account.user_ref_num.max(number);
        if self.known.last() == 0 && number > FIRST_NUMBER_MAX {
            self.known = KnownNumbers::through(number);
        } else {
            self.known.add(number);
        }
    }

    /// Numbers so far are those of sessions that have ended, if they are of earlier ones than this.
    fn begin_numbers(&mut self, generation: u16) {
        if generation > self.numbered_in {
            self.numbered_in = generation;
            self.in_session = 0;
            self.used_before = self.account.user_ref_num;
        }
    }

    fn take_sequenced(&mut self, record: &records::Sequenced<'_>, worker: u16, position: Position) {
        // These three say that a number was taken in: the others speak of orders that had been answered before.
        if let (Some(b'A' | b'J' | b'U'), Some(number)) =
            (record.message.first(), outbound_user_ref_num(record.message))
        {
            self.raise(number, record.generation);
        }
        if record.generation > self.generation {
            // Of a later session: numbers of messages begin anew.
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
    /// Whether one that is not known becomes so.
    takes_removed: bool,
}

/// Reads the journals of all workers and shows each record of a configured account to `visit`: in order for each
/// journal, and in the order of their times together, as far as clocks tell. A torn tail is cleared.
///
/// # Errors
/// See [`OrdersRecoverError`].
pub fn recover(
    config: &OrdersConfig,
    visit: &mut dyn FnMut(&Record<'_>),
) -> Result<Recovery, OrdersRecoverError> {
    recover_accounts(config, false, visit)
}

/// As [`recover`], with the records of accounts that are not configured any more: see [`Recovery::removed`].
///
/// # Errors
/// As [`recover`]; more than [`ACCOUNTS_MAX`] accounts.
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
    let mut recovery = Recovery {
        accounts: config.accounts.iter().map(|_| Found::default()).collect(),
        numbers_go_on: config.numbers_go_on,
        journals_each_number: config.journals_each_number,
        ..Recovery::default()
    };
    let Some((directory, _)) = config.active_journal() else { return Ok(recovery) };
    let mut names = Names { known: config.names(), takes_removed };
    let list = |source| OrdersRecoverError::List { directory: directory.clone(), source };
    let workers = journal::workers_in(directory).map_err(list)?;
    let is_answer = |kind| kind == records::SEQUENCED;
    let all = journal::recover_all(directory, &workers, is_answer, &mut |record, position| {
        recovery.take(&mut names, record, position, visit)
    })?;
    for (worker, recovered) in all {
        recovery.torn.extend(recovered.torn.as_ref().map(ToString::to_string));
        recovery.journals.get_mut().unwrap_or_else(PoisonError::into_inner).insert(worker, recovered);
    }
    let generation = recovery.generation;
    for found in &mut recovery.accounts {
        found.begin_numbers(generation);
        if found.generation < generation {
            found.account.sequence = 0;
            found.entries.clear();
        }
    }
    recovery.settle_numbers();
    Ok(recovery)
}

impl OrdersConfig {
    /// The journal, if there is to be one.
    pub(super) fn active_journal(&self) -> Option<(&PathBuf, Level)> {
        self.journal.as_ref().filter(|(_, level)| *level != Level::None).map(|(place, level)| (place, *level))
    }

    /// The accounts by their names in upper case. Of two with one name the first one holds.
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
    fn numbers_that_no_journal_has_are_known_to_be_missing_but_for_those_of_a_time_before() {
        let missing = |numbers: &[u32], among: &[u32]| -> Vec<u32> {
            let mut found = Found::default();
            numbers.iter().for_each(|number| found.raise(*number, 0));
            among.iter().copied().filter(|number| !found.known.has(*number)).collect()
        };
        // The first one is lost as well as others: of its client there is nothing before.
        assert_eq!(missing(&[2, 3, 5], &[1, 2, 3, 4, 5]), [1, 4]);
        assert_eq!(missing(&[FIRST_NUMBER_MAX], &[1, FIRST_NUMBER_MAX - 1]), [1, FIRST_NUMBER_MAX - 1]);
        // A client that goes on where an earlier journal has ended.
        assert_eq!(missing(&[5000, 5002], &[1, 4999, 5000, 5001]), [5001]);
        assert!(missing(&[1_000_000_000, 7], &[1, 999_999_999]).is_empty());
    }
}
