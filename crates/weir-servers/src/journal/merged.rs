//! Reads the journals of all workers in one pass, for a recovery or an inspection: their records are shown in the
//! order of their times.
//!
//! A separate thread reads each journal, checks its records and copies them into batches; the caller's thread always
//! takes the next record among all journals. A record has the time of its worker's last tick, and all workers of a
//! process read one clock, so an answer comes after its question, even in another journal; among records with the same
//! time, those that are not answers come first. If a clock was set back, the journals may be merged in another order,
//! but each keeps its own order.

use std::{
    ops::Range,
    path::Path,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::{
    Checkpoint, JournalEnd, JournalInspection, Lsn, Position, RecordView, RecoverError, Recovered,
    recover_from, segment,
};

/// Memory of the records that are handed over at once, or one record more.
const BATCH_BYTES: usize = 1 << 20;
/// Waiting batches of a journal.
const BATCHES_MAX: usize = 2;
/// Beyond this many, journals are read one after another, because each open one takes memory.
pub const MERGED_MAX: usize = 32;

/// A record without its payload, which is in the batch.
struct Copied {
    kind: u8,
    batch: u8,
    ends_batch: bool,
    worker: u16,
    lsn: Lsn,
    t_ns: u64,
    session: u32,
    payload: Range<usize>,
    position: Position,
}

#[derive(Default)]
struct Batch {
    records: Vec<Copied>,
    bytes: Vec<u8>,
}

impl Batch {
    fn add(&mut self, record: &RecordView<'_>, position: Position) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        let RecordView { kind, batch, ends_batch, worker, lsn, t_ns, session, .. } = *record;
        let payload = start..self.bytes.len();
        self.records.push(Copied { kind, batch, ends_batch, worker, lsn, t_ns, session, payload, position });
    }

    fn view(&self, at: usize) -> Option<(RecordView<'_>, Position)> {
        let copied = self.records.get(at)?;
        let Copied { kind, batch, ends_batch, worker, lsn, t_ns, session, position, .. } = *copied;
        let payload = &self.bytes[copied.payload.clone()];
        Some((RecordView { kind, batch, ends_batch, worker, lsn, t_ns, session, payload }, position))
    }
}

/// A journal being read.
struct Source {
    batches: Receiver<Batch>,
    batch: Batch,
    at: usize,
}

impl Source {
    /// The next record. `None`: there are no more, or the journal cannot be read.
    fn next(&mut self) -> Option<(RecordView<'_>, Position)> {
        if self.at == self.batch.records.len() {
            (self.batch, self.at) = (self.batches.recv().ok()?, 0);
        }
        self.batch.view(self.at)
    }
}

/// Shows every record of these workers' journals to `visit` and makes the journals ready to be continued, as
/// [`recover`] does for one: each journal in its own order, and all together in the order of their times. Among
/// records with the same time, those whose kind is not an answer (`answers`) come first.
///
/// # Errors
/// See [`RecoverError`]; `visit` can end the pass with its own reason.
pub fn recover_all(
    directory: &Path,
    workers: &[u16],
    answers: impl Fn(u8) -> bool,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Vec<(u16, Recovered)>, RecoverError> {
    recover_all_from(directory, workers, &Checkpoint::default(), answers, visit)
}

/// As [`recover_all`], for the records behind a checkpoint.
///
/// # Errors
/// As [`recover_all`].
pub fn recover_all_from(
    directory: &Path,
    workers: &[u16],
    checkpoint: &Checkpoint,
    answers: impl Fn(u8) -> bool,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Vec<(u16, Recovered)>, RecoverError> {
    let read = |worker, visit: &mut Visit<'_>| recover_from(directory, worker, checkpoint, visit);
    let all = merged(directory, workers, read, answers, visit)?;
    all.into_iter().map(|(worker, recovered)| Ok((worker, recovered?))).collect()
}

/// Shows every record of these workers' journals in the same order, without a lock and without changing anything. A
/// damaged journal ends with its error; the others are read to their ends, unless there are more than 32.
///
/// # Errors
/// A reason of `visit`, or of the system.
pub fn inspect_all(
    directory: &Path,
    workers: &[u16],
    answers: impl Fn(u8) -> bool,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Outcomes<JournalEnd>, RecoverError> {
    inspect_all_from(directory, workers, &Checkpoint::default(), answers, visit)
}

/// As [`inspect_all`], for the records behind a checkpoint.
///
/// # Errors
/// As [`inspect_all`].
pub fn inspect_all_from(
    directory: &Path,
    workers: &[u16],
    checkpoint: &Checkpoint,
    answers: impl Fn(u8) -> bool,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<Outcomes<JournalEnd>, RecoverError> {
    let read = |worker, visit: &mut Visit<'_>| {
        JournalInspection::behind_checkpoint(directory, worker, checkpoint)?.read(visit)
    };
    merged(directory, workers, read, answers, visit)
}

/// See [`recover_all`].
type Visit<'v> = dyn FnMut(RecordView<'_>, Position) -> Result<(), String> + 'v;

/// The outcome of each journal, by worker.
pub type Outcomes<T> = Vec<(u16, Result<T, RecoverError>)>;

/// Reads the journals with `one`, which shows the records of one journal in order.
fn merged<T: Send + 'static>(
    directory: &Path,
    workers: &[u16],
    one: impl Fn(u16, &mut Visit<'_>) -> Result<T, RecoverError> + Sync,
    answers: impl Fn(u8) -> bool,
    visit: &mut Visit<'_>,
) -> Result<Outcomes<T>, RecoverError> {
    let mut all = Vec::with_capacity(workers.len());
    if workers.len() < 2 || workers.len() > MERGED_MAX {
        for worker in workers {
            let outcome = one(*worker, &mut *visit);
            let has_failed = outcome.is_err();
            all.push((*worker, outcome));
            if has_failed {
                break;
            }
        }
        return Ok(all);
    }
    thread::scope(|scope| {
        let (mut sources, mut readers) = (Vec::new(), Vec::new());
        for worker in workers.iter().copied() {
            let (sender, batches) = sync_channel(BATCHES_MAX);
            let one = &one;
            let reader = thread::Builder::new()
                .name(format!("weir-recovery-{worker}"))
                .spawn_scoped(scope, move || read(&|visit| one(worker, visit), &sender));
            let failed = |source| RecoverError::System {
                path: directory.to_owned(),
                doing: "start a thread to read it",
                source,
            };
            readers.push((worker, reader.map_err(failed)?));
            sources.push(Source { batches, batch: Batch::default(), at: 0 });
        }
        let merged = merge(directory, sources, answers, visit);
        for (worker, reader) in readers {
            let outcome = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.push((worker, outcome));
        }
        // If the visitor refused a record, that is why a reader could not continue.
        merged.map(|()| all)
    })
}

/// Reads one journal. It ends early when the receiver is gone.
fn read<T>(
    one: &dyn Fn(&mut Visit<'_>) -> Result<T, RecoverError>,
    batches: &SyncSender<Batch>,
) -> Result<T, RecoverError> {
    let gone = || "the records of another journal cannot be used".to_owned();
    let mut batch = Batch::default();
    let outcome = one(&mut |record, position| {
        batch.add(&record, position);
        if batch.bytes.len() + batch.records.len() * size_of::<Copied>() < BATCH_BYTES {
            return Ok(());
        }
        batches.send(std::mem::take(&mut batch)).map_err(|_| gone())
    });
    // Records before damage are shown too. If the receiver is gone, its reason is reported.
    let _ = batches.send(batch);
    outcome
}

fn merge(
    directory: &Path,
    mut sources: Vec<Source>,
    answers: impl Fn(u8) -> bool,
    visit: &mut dyn FnMut(RecordView<'_>, Position) -> Result<(), String>,
) -> Result<(), RecoverError> {
    type Place = (u64, bool);
    let place = |source: &mut Source| -> Option<Place> {
        source.next().map(|(record, _)| (record.t_ns, answers(record.kind)))
    };
    let mut places: Vec<Option<Place>> = sources.iter_mut().map(place).collect();
    // If times go back within a journal, do not wait for its later records: it is unknown whether the others' records
    // are earlier.
    while let Some((index, _)) =
        places.iter().enumerate().filter_map(|(index, place)| Some((index, (*place)?))).min_by_key(|it| it.1)
    {
        let source = &mut sources[index];
        if let Some((record, position)) = source.next() {
            visit(record, position).map_err(|reason| RecoverError::Refused {
                file: segment::path(directory, record.worker, position.segment),
                offset: position.offset,
                reason,
            })?;
        }
        source.at += 1;
        places[index] = place(source);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use weir_engine::{Config, Driver, Runtime};

    use super::*;
    use crate::journal::{Journal, JournalConfig, Level, recover};

    const QUESTION: u8 = 1;
    const ANSWER: u8 = 2;

    /// A folder with journals of records of these kinds and times.
    fn written(name: &str, journals: &[&[(u8, u64)]]) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("weir-merged-{}-{name}", std::process::id()));
        // Left over from an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        Runtime::new(&Config::for_test(Driver::Poll)).expect("every kernel has it").block_on(async {
            for (worker, records) in (0..).zip(journals) {
                let recovered = recover(&folder, worker, &mut |_, _| Ok(())).expect("it is new");
                let config = JournalConfig {
                    segment_bytes: 64 << 10,
                    ..JournalConfig::new(folder.clone(), worker, Level::Os)
                };
                let journal = Journal::open(config, &recovered).await.expect("it is new");
                journal.start();
                for (kind, t_ns) in *records {
                    journal.append(*kind, 0, *t_ns, &[b"what it says"]).expect("there is room");
                }
                journal.close().await;
            }
        });
        folder
    }

    fn shown(folder: &Path, workers: &[u16]) -> Vec<(u16, Lsn)> {
        let mut shown = Vec::new();
        let all = recover_all(folder, workers, |kind| kind == ANSWER, &mut |record, _| {
            assert_eq!(record.payload, b"what it says");
            shown.push((record.worker, record.lsn));
            Ok(())
        });
        assert_eq!(all.expect("they are right").len(), workers.len());
        shown
    }

    #[test]
    fn records_come_in_the_order_of_their_times_and_questions_before_answers() {
        let folder = written(
            "order",
            &[
                &[(QUESTION, 1), (ANSWER, 3), (ANSWER, 3), (QUESTION, 9)],
                &[(QUESTION, 3), (ANSWER, 4), (QUESTION, 2), (ANSWER, 10)],
                &[],
            ],
        );
        let expected = [(0, 1), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3), (0, 4), (1, 4)];
        assert_eq!(shown(&folder, &[0, 1, 2]), expected);
        std::fs::remove_dir_all(folder).expect("it is ours");
    }

    #[test]
    fn many_batches_are_all_shown_and_a_refusal_names_its_record() {
        let many: Vec<(u8, u64)> = (0..100_000).map(|number| (QUESTION, number)).collect();
        let folder = written("many", &[&many, &many]);
        let shown = shown(&folder, &[0, 1]);
        let expected: Vec<(u16, Lsn)> = (1..=100_000).flat_map(|lsn| [(0, lsn), (1, lsn)]).collect();
        assert!(shown == expected);
        let mut count = 0;
        let outcome = recover_all(&folder, &[0, 1], |_| false, &mut |_, _| {
            count += 1;
            if count == 3 { Err("it is the third".to_owned()) } else { Ok(()) }
        });
        let error = outcome.expect_err("it is refused").to_string();
        assert!(error.contains("worker-00000-") && error.ends_with("it is the third"), "{error}");
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
