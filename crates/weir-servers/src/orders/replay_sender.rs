//! Sends to a connection that is behind in its stream: a piece at a time, the next one when the kernel has taken the
//! last. So the output queue stays short. A client that takes nothing is noticed, and one that takes its messages
//! slowly is not mistaken for it. Reads from a journal are rationed: a maximum of concurrent chunks on a worker, and
//! of bytes per second for an account.

use std::{io, rc::Rc, time::Duration};

use weir_engine::{
    net::Stream,
    time::{self, Instant},
};
use weir_trading::{AccountId, Rate};

use super::{
    CutOff,
    counters::AccountCells,
    replay_reader::{self, Cursor},
    session::{End, Next, Session},
    store::{REPLAYS_MAX, SessionStore},
};
use crate::connection_timer::ConnectionTimer;

/// The bytes handed to the output queue at a time.
pub(super) const PIECE_BYTES: usize = 32 << 10;

/// How often a connection that falls behind is checked for progress.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// One of the concurrent reads from the journal; dropping it lets the next one start.
struct Replay<'h>(&'h SessionStore);

impl<'h> Replay<'h> {
    /// Waits behind those who already wait.
    async fn begin(store: &'h SessionStore) -> Self {
        // Otherwise a task that has just released its turn would take it again before the woken tasks have run.
        time::yield_now().await;
        store.replay_ended.until(|| store.replays.get() < REPLAYS_MAX).await;
        store.replays.set(store.replays.get() + 1);
        Self(store)
    }
}

impl Drop for Replay<'_> {
    fn drop(&mut self) {
        self.0.replays.set(self.0.replays.get() - 1);
        self.0.replay_ended.notify_all();
    }
}

/// Sends until the connection has received everything, is broken or is to end.
pub(super) async fn run(store: Rc<SessionStore>, account: AccountId, session: Rc<Session>) {
    let config = &store.shared.config;
    // Until it has received everything that was there when it logged in.
    let stall = if session.has_caught_up() { config.stall } else { config.stall_replay };
    let mut deadline = ConnectionTimer::new();
    let mut reading = None;
    let mut piece = Vec::new();
    loop {
        session.set_waiting(true);
        let flushed = flush(&session.stream, stall, &mut deadline).await;
        session.set_waiting(false);
        match flushed {
            Some(Ok(())) => session.set_flushed(),
            // Its receiving task sees that too.
            Some(Err(_)) => return,
            None => return session.end(End::CutOff(CutOff::Slow)),
        }
        piece.clear();
        let Some(messages) = gather(&store, account, &session, &mut reading, &mut piece).await else {
            store.counters().count_protocol_error("journal_unreadable");
            return session.end(End::CutOff(CutOff::JournalFailed));
        };
        if piece.is_empty() {
            catch_up(&store, account, &session);
            return store.tell_ignored(store.slot(account));
        }
        // The queue is empty: there is room.
        if !session.push_piece(&piece, store.tick()) {
            return;
        }
        let sent = match session.next() {
            Next::Buffered(mark) => mark.sequence - 1,
            Next::Journal(sequence) => sequence - 1,
        };
        store.count_sent(store.slot(account), messages, sent);
    }
}

/// Waits until the kernel has taken everything that is queued. `None`: it has taken nothing at all for `stall`, or
/// for up to [`LOOK_EVERY`] longer.
async fn flush(stream: &Stream, stall: Duration, deadline: &mut ConnectionTimer) -> Option<io::Result<()>> {
    let (mut queued_bytes, mut stalled) = (stream.queued_bytes(), Duration::ZERO);
    loop {
        let slice = LOOK_EVERY.min(stall - stalled);
        if let Some(flushed) = deadline.within(slice, stream.flush()).await {
            return Some(flushed);
        }
        // No other task queues while this waits.
        let left_bytes = stream.queued_bytes();
        stalled = if left_bytes < queued_bytes { Duration::ZERO } else { stalled + slice };
        queued_bytes = left_bytes;
        if stalled >= stall {
            return None;
        }
    }
}

/// The connection has caught up: from now on each message goes to it directly.
fn catch_up(store: &SessionStore, account: AccountId, session: &Session) {
    session.catch_up();
    let slot = store.slot(account);
    let state = &mut *slot.state.borrow_mut();
    // The messages kept for it have been sent.
    let keep = state.kept_from();
    state.retransmit.trim(store.shared.config.retained_bytes_max, keep);
    let cells = &store.shared.cells[account.0 as usize];
    cells.queued_bytes.set(0);
    cells.state.set(AccountCells::LIVE);
}

fn replay_rate(store: &SessionStore) -> Rate {
    let config = &store.shared.config;
    Rate { per_second: config.replay_bytes_per_second, burst: config.replay_burst_bytes }
}

/// Collects the next messages and returns their number; zero if there are none. `None`: they cannot be read.
async fn gather(
    store: &SessionStore,
    account: AccountId,
    session: &Session,
    reading: &mut Option<Cursor>,
    piece: &mut Vec<u8>,
) -> Option<u64> {
    if let Next::Journal(sequence) = session.next() {
        let found = store.slot(account).state.borrow().retransmit.find(sequence);
        let Some(mark) = found else {
            let cursor = reading.get_or_insert_with(|| Cursor::before(sequence));
            // A chunk without a message of the account does not mean that there are no more.
            while piece.is_empty() {
                read_chunk(store, account, cursor, piece).await?;
            }
            session.set_next_in_journal(cursor.sequence());
            return Some(cursor.sequence() - sequence);
        };
        *reading = None;
        session.set_next(mark);
    }
    let state = store.slot(account).state.borrow();
    let next = session.next_buffered()?;
    if next.sequence >= state.durable.sequence {
        return Some(0);
    }
    let to = state.retransmit.advance(next, state.durable, PIECE_BYTES);
    let (first, second) = state.retransmit.between(next, to);
    piece.extend_from_slice(first);
    piece.extend_from_slice(second);
    session.set_next(to);
    Some(to.sequence - next.sequence)
}

/// Reads one chunk of a journal when the account's rate allows it and its turn has come.
async fn read_chunk(
    store: &SessionStore,
    account: AccountId,
    cursor: &mut Cursor,
    piece: &mut Vec<u8>,
) -> Option<()> {
    let (bucket, rate) = (&store.slot(account).replay_bytes, replay_rate(store));
    time::sleep_until(Instant::from_nanos(bucket.get().ready_at_ns(rate))).await;
    // For one chunk: neither a slow client nor one whose messages are far apart keeps others waiting.
    let _turn = Replay::begin(store).await;
    let bytes = replay_reader::read(store, account, cursor, piece).await?;
    let now_ns = store.tick().as_nanos();
    let mut left = bucket.get();
    left.spend(now_ns, bytes, rate);
    bucket.set(left);
    Some(())
}
