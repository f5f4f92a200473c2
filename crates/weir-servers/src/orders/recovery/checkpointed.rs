//! A recovery that begins at a checkpoint, and the checkpoints themselves. A checkpoint is the state of a recovery
//! between two records. A recovery that continues there gives what one from the beginning gives: it reads the other
//! records in the same order. If that is not certain, the checkpoint is not used.

use std::path::Path;

use weir_proto::soup::Name;
use weir_trading::AccountId;

use super::{Entry, Found, Names, OrdersRecoverError, Record, Recovery};
use crate::{
    journal::{
        self, Anchor, Checkpoint, CheckpointError, CheckpointFile, JournalEnd, Level, MERGED_MAX, Outcomes,
        Place, Position, RecordView, RecoverError,
        fields::{FieldReader, FieldWriter},
    },
    orders::{OrdersConfig, described::is_answer, known_numbers::KnownNumbers},
};

/// Version of the state in a checkpoint; another one is not read.
const STATE_VERSION: u32 = 1;

/// What an application collects from records, as far as a checkpoint can contain it.
pub(crate) trait Collector {
    /// Processes one record.
    fn take(&mut self, record: &Record<'_>);

    /// Why there is no checkpoint from here on; `None`: [`Self::save`] may know.
    fn obstacle(&self) -> Option<&'static str> {
        None
    }

    /// Writes everything that it has collected.
    ///
    /// # Errors
    /// Why that is not possible; then there is no checkpoint from here on.
    fn save(&self, fields: &mut FieldWriter) -> Result<(), String>;

    /// Reads it, into a new one. `account`: the accounts by their numbers at that time.
    ///
    /// # Errors
    /// Why it does not fit: it was written with another configuration.
    fn load(
        &mut self,
        fields: &mut FieldReader<'_>,
        account: &dyn Fn(u32) -> Option<AccountId>,
    ) -> Result<(), String>;
}

/// A recovery and its application's state, between two records.
struct Reading<C> {
    recovery: Recovery,
    names: Names,
    collector: C,
    /// Where it has begun. [`Self::advance`] moves it to where it has read.
    checkpoint: Checkpoint,
    /// The last place before that: a record behind it must not have an earlier one.
    after: Option<Place>,
    is_out_of_order: bool,
}

impl<C: Collector> Reading<C> {
    fn new(config: &OrdersConfig, collector: C) -> Self {
        let (recovery, names) = Recovery::begin(config, true);
        let checkpoint = Checkpoint::default();
        Self { recovery, names, collector, checkpoint, after: None, is_out_of_order: false }
    }

    /// Continues at a checkpoint. `alone`: there is only one journal, whose order is its own.
    ///
    /// # Errors
    /// Why the checkpoint cannot be used with this configuration.
    fn at(config: &OrdersConfig, collector: C, checkpoint: Checkpoint, alone: bool) -> Result<Self, String> {
        let mut reading = Self::new(config, collector);
        let mut fields = FieldReader::new(&checkpoint.state);
        let malformed = || "it has another form".to_owned();
        if fields.number::<u32>().ok_or_else(malformed)? != STATE_VERSION {
            return Err("another version has written it".to_owned());
        }
        let accounts = reading.recovery.load(&mut reading.names, &mut fields)?;
        let account = |number: u32| accounts.get(number as usize).copied().flatten();
        reading.collector.load(&mut fields, &account)?;
        if !fields.rest().is_empty() {
            return Err(malformed());
        }
        reading.after = (!alone && !checkpoint.anchors.is_empty()).then_some(checkpoint.last);
        reading.checkpoint = checkpoint;
        Ok(reading)
    }

    fn take(&mut self, record: RecordView<'_>, position: Position) -> Result<(), String> {
        let place = (record.t_ns, is_answer(record.kind));
        if self.after.is_some_and(|after| place <= after) {
            self.is_out_of_order = true;
            return Err("its time is before that of a checkpoint".to_owned());
        }
        let Self { recovery, names, collector, .. } = self;
        recovery.take(names, record, position, &mut |record| collector.take(record))
    }

    /// The checkpoint behind the records that were read; `last` has the last of each worker that had some.
    fn advance(
        mut self,
        directory: &Path,
        last: &[(u16, Position)],
        place: Place,
    ) -> Result<Checkpoint, Obstacle> {
        for (worker, at) in last {
            let anchor = Anchor::of(directory, *worker, *at).map_err(Obstacle::Journal)?;
            self.checkpoint.anchors.insert(*worker, anchor);
        }
        let mut fields = FieldWriter::default();
        fields.number(STATE_VERSION);
        self.recovery.save(&self.names, &mut fields);
        self.collector.save(&mut fields).map_err(Obstacle::State)?;
        self.checkpoint.last = self.checkpoint.last.max(place);
        self.checkpoint.state = fields.into_bytes();
        Ok(self.checkpoint)
    }
}

/// How a recovery began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// Records that did not have to be read.
    pub(crate) records_before: u64,
    /// Why a checkpoint that was there has not been used.
    pub(crate) unused: Vec<String>,
}

/// Recovers as [`recover_with_removed`](super::recover_with_removed) does, from the last checkpoint on if there is one
/// that fits. `begin` makes the application's state before the first record.
///
/// # Errors
/// As [`recover_with_removed`](super::recover_with_removed); [`OrdersRecoverError::Base`] if files before a checkpoint
/// were archived, and it cannot be used.
pub(crate) fn recover_at_checkpoint<C: Collector>(
    config: &OrdersConfig,
    begin: impl Fn() -> C,
) -> Result<(Recovery, C, Beginning), OrdersRecoverError> {
    let Some((directory, _)) = config.active_journal() else {
        return Ok((Recovery::begin(config, true).0, begin(), Beginning::default()));
    };
    let list = |source| OrdersRecoverError::List { directory: directory.clone(), source };
    let workers = journal::workers_in(directory).map_err(list)?;
    let mut beginning = Beginning::default();
    for which in [CheckpointFile::Latest, CheckpointFile::Base] {
        let path = which.path(directory);
        let mut unused = |reason: String| beginning.unused.push(format!("{}: {reason}", path.display()));
        let reading = match usable(config, &begin, which, &workers) {
            Ok(Some(reading)) => reading,
            Ok(None) => continue,
            Err(reason) => {
                unused(reason);
                continue;
            }
        };
        let records_before = reading.recovery.records;
        match finish(directory, &workers, reading) {
            Ok((recovery, collector)) => {
                beginning.records_before = records_before;
                return Ok((recovery, collector, beginning));
            }
            Err(Unfit::Checkpoint(reason)) => unused(reason),
            Err(Unfit::Journal(error)) => return Err(error.into()),
        }
    }
    if needs_base(directory, &workers) {
        let reasons = beginning.unused.join("; ");
        return Err(OrdersRecoverError::Base { directory: directory.clone(), reasons });
    }
    match finish(directory, &workers, Reading::new(config, begin())) {
        Ok((recovery, collector)) => Ok((recovery, collector, beginning)),
        Err(Unfit::Journal(error)) => Err(error.into()),
        // It has none.
        Err(Unfit::Checkpoint(reason)) => {
            Err(OrdersRecoverError::Base { directory: directory.clone(), reasons: reason })
        }
    }
}

/// Whether a checkpoint stands for files that are not there: the journals cannot be read from their beginnings. If no
/// journal is left, or none of a worker that the checkpoint has, its records are lost, and nothing may start without
/// them.
fn needs_base(directory: &Path, workers: &[u16]) -> bool {
    if !CheckpointFile::Base.path(directory).exists() {
        return false;
    }
    let has_first =
        |worker: &u16| directory.join(Position { segment: 1, offset: 0 }.file_name(*worker)).exists();
    // What a damaged one names is unknown.
    let base = Checkpoint::read(directory, CheckpointFile::Base).ok().flatten().unwrap_or_default();
    let mut named = base.anchors.keys().chain(base.archived_before.keys());
    workers.is_empty() || !workers.iter().all(has_first) || !named.all(has_first)
}

/// A reading at a checkpoint; `None` if there is no such file.
///
/// # Errors
/// Why it cannot be used.
fn usable<C: Collector>(
    config: &OrdersConfig,
    begin: &impl Fn() -> C,
    which: CheckpointFile,
    workers: &[u16],
) -> Result<Option<Reading<C>>, String> {
    let Some((directory, _)) = config.active_journal() else { return Ok(None) };
    let read = Checkpoint::read(directory, which).map_err(|error| match error {
        CheckpointError::System { source, .. } => source.to_string(),
        CheckpointError::Unreadable { .. } => "it is damaged, or was written by another version".to_owned(),
    })?;
    read.map(|checkpoint| fitting(config, begin, (which, checkpoint), workers)).transpose()
}

/// A reading at this checkpoint.
///
/// # Errors
/// Why it cannot be used.
fn fitting<C: Collector>(
    config: &OrdersConfig,
    begin: &impl Fn() -> C,
    (which, checkpoint): (CheckpointFile, Checkpoint),
    workers: &[u16],
) -> Result<Reading<C>, String> {
    if workers.len() > MERGED_MAX {
        return Err(format!("there are more than {MERGED_MAX} journals, which are read one after the other"));
    }
    if let Some(worker) = checkpoint.anchors.keys().find(|worker| !workers.contains(worker)) {
        return Err(format!("the journal of worker {worker} is not there"));
    }
    // A file that the base does not stand for is missed by name when the journals are read.
    if which == CheckpointFile::Latest
        && let Some((directory, _)) = config.active_journal()
        && let Some(file) = checkpoint.first_file_missed(directory).map_err(|error| error.to_string())?
    {
        return Err(format!("it is older than the archive of {file}, which is not there"));
    }
    Reading::at(config, begin(), checkpoint, workers.len() == 1)
}

/// Why a reading could not be finished.
enum Unfit {
    Checkpoint(String),
    Journal(RecoverError),
}

fn finish<C: Collector>(
    directory: &Path,
    workers: &[u16],
    mut reading: Reading<C>,
) -> Result<(Recovery, C), Unfit> {
    let checkpoint = std::mem::take(&mut reading.checkpoint);
    let all =
        journal::recover_all_from(directory, workers, &checkpoint, is_answer, &mut |record, position| {
            reading.take(record, position)
        });
    match all {
        Ok(all) => {
            reading.recovery.conclude(all);
            Ok((reading.recovery, reading.collector))
        }
        Err(error) => Err(Unfit::of(error, reading.is_out_of_order)),
    }
}

impl Unfit {
    /// Why reading on from a checkpoint has failed.
    fn of(error: RecoverError, is_out_of_order: bool) -> Self {
        match error {
            error if is_out_of_order => Self::Checkpoint(error.to_string()),
            error @ RecoverError::OtherJournal { .. } => Self::Checkpoint(error.to_string()),
            error => Self::Journal(error),
        }
    }
}

/// The last checkpoint in a folder of journals, if a start with the configuration of that time begins there; `None` if
/// there is no such file. It is judged as [`recover_at_checkpoint`] does: the records behind it are read, and nothing
/// is changed.
///
/// # Errors
/// See [`Obstacle`]: a state says why a start would not begin there.
pub(crate) fn checkpoint_of_start<C: Collector>(
    directory: &Path,
    begin: impl Fn() -> C,
) -> Result<Option<Checkpoint>, Obstacle> {
    let which = CheckpointFile::Latest;
    let Some(checkpoint) = Checkpoint::read(directory, which)? else { return Ok(None) };
    let failed = |source| CheckpointError::System { path: directory.to_owned(), source };
    let workers = journal::workers_in(directory).map_err(failed)?;
    let config = config_of(directory, &checkpoint);
    let mut reading = fitting(&config, &begin, (which, checkpoint), &workers).map_err(Obstacle::State)?;
    let checkpoint = std::mem::take(&mut reading.checkpoint);
    let read =
        journal::inspect_all_from(directory, &workers, &checkpoint, is_answer, &mut |record, position| {
            reading.take(record, position)
        });
    let read = read.and_then(|all| all.into_iter().try_for_each(|(_, outcome)| outcome.map(drop)));
    match read.map_err(|error| Unfit::of(error, reading.is_out_of_order)) {
        Ok(()) => Ok(Some(checkpoint)),
        Err(Unfit::Checkpoint(reason)) => Err(Obstacle::State(reason)),
        Err(Unfit::Journal(error)) => Err(Obstacle::Journal(error)),
    }
}

/// A configuration without accounts, whose orders are numbered as when the checkpoint was written. Accounts in journals
/// are then those that were removed.
fn config_of(directory: &Path, checkpoint: &Checkpoint) -> OrdersConfig {
    let journal = Some((directory.to_owned(), Level::Os));
    let config = OrdersConfig { journal, ..OrdersConfig::new(Vec::new()) };
    let mut fields = FieldReader::new(&checkpoint.state);
    let rules = fields.number::<u32>().and_then(|_version| Some((fields.flag()?, fields.flag()?)));
    match rules {
        Some((numbers_go_on, journals_each_number)) => {
            OrdersConfig { numbers_go_on, journals_each_number, ..config }
        }
        // It is refused.
        None => config,
    }
}

/// Why there is no later checkpoint, or why a start does not begin at the last one.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(RecoverError),
    /// The state cannot be written or used: more records do not change that.
    #[error("{0}")]
    State(String),
    /// The file cannot be written or read.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// Reads on from the last checkpoint, or from the beginning, and writes the next one. It includes records before this
/// time, in nanoseconds since 1970: one that is not written yet must not have an earlier time. Changes nothing else,
/// and needs no lock. Returns the bytes of the checkpoint; `None` if there is no further record.
///
/// # Errors
/// See [`Obstacle`]. The last checkpoint stays.
pub(crate) fn write_checkpoint<C: Collector>(
    config: &OrdersConfig,
    begin: impl Fn() -> C,
    until_ns: u64,
) -> Result<Option<u64>, Obstacle> {
    let Some((directory, _)) = config.active_journal() else { return Ok(None) };
    let failed = |source| Obstacle::Checkpoint(CheckpointError::System { path: directory.clone(), source });
    let workers = journal::workers_in(directory).map_err(failed)?;
    if workers.len() > MERGED_MAX {
        let reason = format!("there are more than {MERGED_MAX} journals, which are read one after the other");
        return Err(Obstacle::State(reason));
    }
    Checkpoint::can_be_written(directory, CheckpointFile::Latest)?;
    for which in [CheckpointFile::Latest, CheckpointFile::Base] {
        let Ok(Some(reading)) = usable(config, &begin, which, &workers) else { continue };
        match read_on(directory, &workers, reading, until_ns) {
            Err(Obstacle::Journal(RecoverError::OtherJournal { .. } | RecoverError::Refused { .. })) => {}
            written => return written,
        }
    }
    if needs_base(directory, &workers) {
        return Err(Obstacle::State("the first files of the journals were archived".to_owned()));
    }
    read_on(directory, &workers, Reading::new(config, begin()), until_ns)
}

/// The reason that ends a pass without an error.
const ENOUGH: &str = "the rest is for the next checkpoint";

fn read_on<C: Collector>(
    directory: &Path,
    workers: &[u16],
    mut reading: Reading<C>,
    until_ns: u64,
) -> Result<Option<u64>, Obstacle> {
    let from = Checkpoint {
        anchors: reading.checkpoint.anchors.clone(),
        archived_before: reading.checkpoint.archived_before.clone(),
        ..Checkpoint::default()
    };
    let (mut last, mut place) = (std::collections::BTreeMap::new(), Place::default());
    let read: Result<Outcomes<JournalEnd>, _> =
        journal::inspect_all_from(directory, workers, &from, is_answer, &mut |record, position| {
            if record.t_ns >= until_ns {
                return Err(ENOUGH.to_owned());
            }
            last.insert(record.worker, position);
            place = place.max((record.t_ns, is_answer(record.kind)));
            reading.take(record, position)?;
            reading.collector.obstacle().map_or(Ok(()), |obstacle| Err(obstacle.to_owned()))
        });
    if let Some(obstacle) = reading.collector.obstacle() {
        return Err(Obstacle::State(obstacle.to_owned()));
    }
    match read {
        // A journal that ends early ends all: records of others might belong behind its next one.
        Ok(outcomes) => {
            for (_, outcome) in outcomes {
                match outcome {
                    Err(error) if !is_enough(&error) => return Err(Obstacle::Journal(error)),
                    _ => {}
                }
            }
        }
        Err(error) if is_enough(&error) => {}
        Err(error) => return Err(Obstacle::Journal(error)),
    }
    if last.is_empty() {
        return Ok(None);
    }
    let last: Vec<(u16, Position)> = last.into_iter().collect();
    let checkpoint = reading.advance(directory, &last, place)?;
    checkpoint.sync_journals(directory, &from).map_err(Obstacle::Journal)?;
    Ok(Some(checkpoint.write(directory, CheckpointFile::Latest)?))
}

fn is_enough(error: &RecoverError) -> bool {
    matches!(error, RecoverError::Refused { reason, .. } if reason == ENOUGH)
}

impl Recovery {
    /// Writes the state between two records.
    fn save(&self, names: &Names, fields: &mut FieldWriter) {
        let Self {
            accounts,
            // The names have these.
            removed: _,
            numbers_go_on,
            journals_each_number,
            generation,
            // They exist when everything has been read.
            ended: _,
            torn: _,
            journals: _,
            records,
        } = self;
        fields.flag(*numbers_go_on);
        fields.flag(*journals_each_number);
        fields.number(*generation);
        fields.number(*records);
        let mut of_account = vec![None; accounts.len()];
        for (name, account) in &names.known {
            of_account[account.0 as usize] = Some(*name);
        }
        fields.count(accounts.len());
        for (found, name) in accounts.iter().zip(of_account) {
            // A further account of the same name has no records.
            fields.flag(name.is_some());
            let Some(name) = name else { continue };
            fields.fixed(name.as_bytes());
            found.save(fields);
        }
    }

    /// Reads it, and returns the accounts by their numbers at that time.
    ///
    /// # Errors
    /// Why it does not fit.
    fn load(
        &mut self,
        names: &mut Names,
        fields: &mut FieldReader<'_>,
    ) -> Result<Vec<Option<AccountId>>, String> {
        let malformed = || "it has another form".to_owned();
        let rules = (fields.flag().ok_or_else(malformed)?, fields.flag().ok_or_else(malformed)?);
        if rules != (self.numbers_go_on, self.journals_each_number) {
            return Err("order numbers began otherwise in each session with clients then".to_owned());
        }
        self.generation = fields.number().ok_or_else(malformed)?;
        self.records = fields.number().ok_or_else(malformed)?;
        let count = fields.count(1).ok_or_else(malformed)?;
        let mut accounts = Vec::with_capacity(count);
        for _ in 0..count {
            if !fields.flag().ok_or_else(malformed)? {
                accounts.push(None);
                continue;
            }
            let name =
                fields.fixed::<6>().and_then(|name| Name::from_padded(&name).ok()).ok_or_else(malformed)?;
            let found = Found::load(self.numbers_go_on, fields).ok_or_else(malformed)?;
            let is_configured = names.known.contains_key(&name.folded());
            // An account without records is not one that was removed.
            let account = match is_configured || found.is_recorded {
                true => self.account_named(names, &name)?,
                false => None,
            };
            if let Some(account) = account {
                self.accounts[account.0 as usize] = found;
            }
            accounts.push(account);
        }
        Ok(accounts)
    }
}

impl Found {
    fn save(&self, fields: &mut FieldWriter) {
        let Self {
            account,
            generation,
            numbered_in,
            in_session,
            used_before,
            known,
            // The configuration has it.
            restarts: _,
            entries,
            before,
            is_recorded,
        } = self;
        fields.flag(*is_recorded);
        fields.number(account.sequence);
        fields.number(account.user_ref_num);
        fields.number(*generation);
        fields.number(*numbered_in);
        fields.number(*in_session);
        fields.number(*used_before);
        known.save(fields);
        fields.count(entries.len());
        for Entry { sequence, worker, position } in entries {
            fields.number(*sequence);
            fields.number(*worker);
            fields.number(position.segment);
            fields.number(position.offset);
        }
        fields.flag(before.is_some());
        if let Some((worker, sequence)) = before {
            fields.number(*worker);
            fields.number(*sequence);
        }
    }

    fn load(numbers_go_on: bool, fields: &mut FieldReader<'_>) -> Option<Self> {
        let is_recorded = fields.flag()?;
        let account = super::AccountRecovery { sequence: fields.number()?, user_ref_num: fields.number()? };
        let (generation, numbered_in) = (fields.number()?, fields.number()?);
        let (in_session, used_before) = (fields.number()?, fields.number()?);
        let known = KnownNumbers::load(fields)?;
        let count = fields.count(4)?;
        let mut entry = || {
            let (sequence, worker) = (fields.number()?, fields.number()?);
            let position = Position { segment: fields.number()?, offset: fields.number()? };
            Some(Entry { sequence, worker, position })
        };
        let entries = (0..count).map(|_| entry()).collect::<Option<Vec<_>>>()?;
        let before = match fields.flag()? {
            true => Some((fields.number()?, fields.number()?)),
            false => None,
        };
        Some(Self {
            account,
            generation,
            numbered_in,
            in_session,
            used_before,
            known,
            restarts: !numbers_go_on,
            entries,
            before,
            is_recorded,
        })
    }
}

#[cfg(test)]
mod tests;
