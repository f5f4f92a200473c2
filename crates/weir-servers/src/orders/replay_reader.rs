//! Reads old messages of one account from journals, a piece at a time: in a finished file only those records that its
//! index names, and near ones.

use weir_proto::soup::{SEQUENCED, encode_frame};
use weir_trading::AccountId;

use super::{
    records,
    store::SessionStore,
    stream_index::{self, StreamPlaces},
};
use crate::journal::{JournalChunk, Position};

/// How much of a journal is read at a time. Frames are shorter than their records, so a piece of frames is no longer
/// than this.
const READ_BYTES: usize = super::replay_sender::PIECE_BYTES;

/// Records of the account that are at most this far from each other are read at once.
const GAP_BYTES_MAX: u64 = 2048;

/// Read behind the beginning of the last record that an index names. A longer one is read again.
const LAST_RECORD_BYTES: u64 = 512;

/// The reading position in a stream.
#[derive(Debug)]
pub(super) struct Cursor {
    sequence: u64,
    place: Option<ReadPosition>,
    listed: Option<Listed>,
}

#[derive(Clone, Copy, Debug)]
struct ReadPosition {
    worker: u16,
    position: Position,
    /// From this message on, the index gives a better position.
    until: u64,
}

/// What the index of one file says about the stream; nothing if there is none that can be used.
#[derive(Debug)]
struct Listed {
    worker: u16,
    segment: u64,
    places: Option<StreamPlaces>,
}

impl Cursor {
    pub(super) fn before(sequence: u64) -> Self {
        Self { sequence, place: None, listed: None }
    }

    /// Number of the next message.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// What the index of the file at this position says.
    async fn look_up(
        &mut self,
        store: &SessionStore,
        place: ReadPosition,
        account: AccountId,
    ) -> Option<&StreamPlaces> {
        let (worker, segment) = (place.worker, place.position.segment);
        let is_it = |listed: &Listed| (listed.worker, listed.segment) == (worker, segment);
        if !self.listed.as_ref().is_some_and(is_it) {
            let stream = (store.account(account).name(), store.shared.generation);
            let places = match store.shared.config.active_journal() {
                Some((directory, _)) => stream_index::read(directory, (worker, segment), stream).await,
                None => None,
            };
            self.listed = Some(Listed { worker, segment, places });
        }
        self.listed.as_ref()?.places.as_ref()
    }

    /// The index of this file is wrong: it is read without.
    fn distrust(&mut self) {
        if let Some(listed) = &mut self.listed {
            listed.places = None;
        }
    }
}

/// Reads one chunk of a journal, appends the frames of the next messages in it to `piece`, and returns the bytes of
/// all records in it, including other accounts'. A chunk may contain no message of this account although more follow:
/// in a file without an index any number of other records may lie between two of its messages. `None`: a message that
/// is in the index was not found.
pub(super) async fn read(
    store: &SessionStore,
    account: AccountId,
    cursor: &mut Cursor,
    piece: &mut Vec<u8>,
) -> Option<u64> {
    let (name, generation) = (store.account(account).name(), store.shared.generation);
    let mut place = match cursor.place {
        Some(place) if cursor.sequence < place.until => place,
        _ => {
            let (entry, until) = store.slot(account).state.borrow().index.find(cursor.sequence)?;
            ReadPosition { worker: entry.worker, position: entry.position, until }
        }
    };
    let (sequence, mut bytes_max) = (cursor.sequence, READ_BYTES);
    let mut is_listed = false;
    if let Some(places) = cursor.look_up(store, place, account).await {
        let Some((start, last)) = places.find(sequence, READ_BYTES as u64, GAP_BYTES_MAX) else {
            // It is behind this file.
            let position = Position::first_of(place.position.segment + 1);
            cursor.place = Some(ReadPosition { position, ..place });
            return Some(0);
        };
        place.position.offset = start;
        bytes_max = (last - start + LAST_RECORD_BYTES) as usize;
        is_listed = true;
    }
    let chunk = match read_chunk(store, place, bytes_max).await {
        None if is_listed => {
            cursor.distrust();
            return Some(0);
        }
        chunk => chunk?,
    };
    // It begins in the next segment when this one has no more records. Without a record there is no position to
    // continue from.
    let (_, start) = chunk.records().next()?;
    for (record, _) in chunk.records() {
        if record.kind != records::SEQUENCED {
            continue;
        }
        let found = records::sequenced(record.payload)?;
        let is_it = found.name.eq_ignore_case(&name) && found.generation == generation;
        if found.sequence == cursor.sequence && is_it {
            encode_frame(SEQUENCED, found.message, piece);
            cursor.sequence += 1;
        }
    }
    if is_listed && cursor.sequence == sequence {
        cursor.distrust();
    } else {
        cursor.place = Some(ReadPosition { position: chunk.next(), ..place });
    }
    Some(chunk.next().offset - start.offset)
}

async fn read_chunk(store: &SessionStore, place: ReadPosition, bytes_max: usize) -> Option<JournalChunk> {
    if usize::from(place.worker) == store.worker() {
        return store.journal()?.read(place.position, bytes_max).await.ok();
    }
    // For a worker that was this account's home at an earlier start, with another number of workers.
    store.reader(place.worker)?.read(place.position, bytes_max).await.ok()
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, collections::BTreeSet, path::Path, rc::Rc};

    use weir_engine::{Config, Driver, Runtime, time::Instant};

    use super::*;
    use crate::{
        journal::{Journal, JournalConfig, Level, recover},
        orders::{
            Application, ClientMessage, LocalOrders, OrdersConfig, OrdersRecoverError, Recovery,
            accounts_named,
        },
    };

    /// An account that has one message among this many of another one.
    const RARE: AccountId = AccountId(0);
    const MESSAGES: u64 = 100;
    const OTHERS: u64 = 40;

    struct Idle;

    impl Application for Idle {
        fn on_message(&self, _: AccountId, _: &ClientMessage<'_>, _: Instant) {}
    }

    /// Accounts whose names begin with this letter.
    fn config(folder: &Path, letter: char) -> OrdersConfig {
        OrdersConfig {
            journal: Some((folder.to_owned(), Level::Os)),
            journal_segment_bytes: 64 << 10,
            ..OrdersConfig::new(accounts_named(letter, 2))
        }
    }

    async fn write(folder: &Path) {
        let recovered = recover(folder, 0, &mut |_, _| Ok(())).expect("it is new");
        let config = JournalConfig::new(folder.to_owned(), 0, Level::Os);
        let config = JournalConfig { segment_bytes: 64 << 10, ..config };
        let journal = Journal::open(config, &recovered).await.expect("it is new");
        journal.start();
        let mut others = 0;
        for sequence in 1..=MESSAGES {
            let append = |account: &str, sequence: u64| {
                let name = account.parse().expect("a name");
                let head = records::sequenced_head(sequence, 0, &name, 0);
                journal
                    .append(records::SEQUENCED, 0, 1, &[&head, &sequence.to_le_bytes()])
                    .expect("there is room");
            };
            append("C00001", sequence);
            for _ in 0..OTHERS {
                others += 1;
                append("C00002", others);
            }
            journal.committed(journal.last()).await.expect("the disk works");
        }
        journal.close().await;
    }

    fn on<T>(future: impl Future<Output = T>) -> T {
        Runtime::new(&Config::for_test(Driver::Poll)).expect("every kernel has it").block_on(future)
    }

    /// The messages of the rare account, and the bytes read for them.
    async fn replay(folder: &Path, letter: char) -> (Vec<u8>, u64) {
        let recovery: Result<Recovery, OrdersRecoverError> =
            crate::orders::recover(&config(folder, letter), &mut |_| {});
        let found = RefCell::new(None);
        let keep = |store: Rc<SessionStore>| {
            *found.borrow_mut() = Some(store);
            Ok(Rc::new(Idle) as Rc<dyn Application>)
        };
        let recovery = recovery.expect("it is whole");
        let orders = LocalOrders::start_recovered(config(folder, letter), recovery, keep).await;
        let orders = orders.expect("it starts");
        let store = found.take().expect("it was made");
        let (mut cursor, mut pieces, mut bytes) = (Cursor::before(1), Vec::new(), 0);
        while cursor.sequence() <= MESSAGES {
            let before = (cursor.sequence(), cursor.place.map(|place| place.position), bytes);
            bytes += read(&store, RARE, &mut cursor, &mut pieces).await.expect("they are there");
            let after = (cursor.sequence(), cursor.place.map(|place| place.position), bytes);
            assert_ne!(before, after, "it goes on");
        }
        drop(orders);
        (pieces, bytes)
    }

    #[test]
    fn a_replay_reads_the_records_of_its_account_alone_and_without_an_index_those_of_all() {
        let folder = std::env::temp_dir().join(format!("weir-replay-index-{}", std::process::id()));
        // Left over from an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        // Each has its own runtime, which ends with every task.
        let replay_to = |letter| on(replay(&folder, letter));
        let replay = || replay_to('C');
        on(write(&folder));
        let mut expected = Vec::new();
        (1..=MESSAGES).for_each(|number| encode_frame(SEQUENCED, &number.to_le_bytes(), &mut expected));
        let (whole, bytes_whole) = replay();
        assert_eq!(whole, expected);
        // The configuration writes the name in other letters now.
        assert_eq!(replay_to('c').0, expected);
        stream_index::write_missing(&folder, &mut BTreeSet::new());
        let entries =
            std::fs::read_dir(&folder).expect("it is there").map(|entry| entry.expect("one").path());
        let mut indexes: Vec<_> =
            entries.filter(|path| path.extension().is_some_and(|kind| kind == "index")).collect();
        indexes.sort_unstable();
        assert!(indexes.len() >= 3, "{indexes:?}");
        let (part, bytes_part) = replay();
        assert_eq!(part, expected);
        assert!(bytes_part < bytes_whole / 3, "{bytes_part} of {bytes_whole} bytes");
        assert_eq!(replay_to('c'), (expected.clone(), bytes_part));
        // One that is damaged, and one of another file.
        std::fs::copy(&indexes[0], &indexes[1]).expect("it can be written");
        let mut bytes = std::fs::read(&indexes[2]).expect("it is there");
        bytes.truncate(50);
        std::fs::write(&indexes[2], bytes).expect("it can be written");
        assert_eq!(replay().0, expected);
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
