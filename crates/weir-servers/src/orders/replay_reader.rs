//! Old messages of one account, read from journals a piece at a time.

use weir_proto::soup::{SEQUENCED, encode_frame};
use weir_trading::AccountId;

use super::{records, store::SessionStore};
use crate::journal::{JournalChunk, Position};

/// What is read of a journal at a time. Frames are shorter than their records, so a piece of them is no longer.
const READ_BYTES: usize = super::replay_sender::PIECE_BYTES;

/// How far a stream has been read.
#[derive(Debug)]
pub(super) struct Cursor {
    sequence: u64,
    place: Option<ReadPosition>,
}

#[derive(Clone, Copy, Debug)]
struct ReadPosition {
    worker: u16,
    position: Position,
    /// From this message on the index knows better.
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

/// Reads one chunk of a journal, appends the frames of the next messages in it to `piece`, and returns how many bytes
/// of records it has, whoever's they are. There may be none of this account's among them and more behind them: between
/// two entries of its index may lie any number of others'. `None`: what the index promises is not there.
pub(super) async fn read(
    store: &SessionStore,
    account: AccountId,
    cursor: &mut Cursor,
    piece: &mut Vec<u8>,
) -> Option<u64> {
    let (name, generation) = (store.account(account).name, store.shared.generation);
    let place = match cursor.place {
        Some(place) if cursor.sequence < place.until => place,
        _ => {
            let (entry, until) = store.slot(account).state.borrow().index.find(cursor.sequence)?;
            ReadPosition { worker: entry.worker, position: entry.position, until }
        }
    };
    let chunk = read_chunk(store, place).await?;
    // It begins in the next segment when this one has no more records. Without a record there is nothing to go on from.
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
    // Of a worker that this account lived on at an earlier start, when there were more or fewer of them.
    store.reader(place.worker)?.read(place.position, READ_BYTES).await.ok()
}
