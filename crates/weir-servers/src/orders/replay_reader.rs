//! Reads old messages of one account from journals, a piece at a time.

use weir_proto::soup::{SEQUENCED, encode_frame};
use weir_trading::AccountId;

use super::{records, store::SessionStore};
use crate::journal::{JournalChunk, Position};

/// How much of a journal is read at a time. Frames are shorter than their records, so a piece of frames is no longer
/// than this.
const READ_BYTES: usize = super::replay_sender::PIECE_BYTES;

/// The reading position in a stream.
#[derive(Debug)]
pub(super) struct Cursor {
    sequence: u64,
    place: Option<ReadPosition>,
}

#[derive(Clone, Copy, Debug)]
struct ReadPosition {
    worker: u16,
    position: Position,
    /// From this message on, the index gives a better position.
    until: u64,
}

impl Cursor {
    pub(super) fn before(sequence: u64) -> Self {
        Self { sequence, place: None }
    }

    /// Number of the next message.
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// Reads one chunk of a journal, appends the frames of the next messages in it to `piece`, and returns the bytes of
/// all records in it, including other accounts'. A chunk may contain no message of this account although more follow:
/// any number of other records may lie between two entries of its index. `None`: a message that is in the index was
/// not found.
pub(super) async fn read(
    store: &SessionStore,
    account: AccountId,
    cursor: &mut Cursor,
    piece: &mut Vec<u8>,
) -> Option<u64> {
    let (name, generation) = (store.account(account).name(), store.shared.generation);
    let place = match cursor.place {
        Some(place) if cursor.sequence < place.until => place,
        _ => {
            let (entry, until) = store.slot(account).state.borrow().index.find(cursor.sequence)?;
            ReadPosition { worker: entry.worker, position: entry.position, until }
        }
    };
    let chunk = read_chunk(store, place).await?;
    // It begins in the next segment when this one has no more records. Without a record there is no position to
    // continue from.
    let (_, start) = chunk.records().next()?;
    for (record, _) in chunk.records() {
        if record.kind != records::SEQUENCED {
            continue;
        }
        let found = records::sequenced(record.payload)?;
        if found.sequence == cursor.sequence && found.name == name && found.generation == generation {
            encode_frame(SEQUENCED, found.message, piece);
            cursor.sequence += 1;
        }
    }
    cursor.place = Some(ReadPosition { position: chunk.next(), ..place });
    Some(chunk.next().offset - start.offset)
}

async fn read_chunk(store: &SessionStore, place: ReadPosition) -> Option<JournalChunk> {
    if usize::from(place.worker) == store.worker() {
        return store.journal()?.read(place.position, READ_BYTES).await.ok();
    }
    // For a worker that was this account's home at an earlier start, with another number of workers.
    store.reader(place.worker)?.read(place.position, READ_BYTES).await.ok()
}
