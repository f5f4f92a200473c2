//! Answers that wait for their readers. An answer stays in memory until its reader has taken it, and a slow reader
//! could keep it there forever. So the bytes and the time have a maximum.

use std::{
    collections::HashMap,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    Error,
    body::{Body, HttpBody},
    response::Response,
};
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use weir_proto::client::counted_as;

/// Most bytes of answers that wait for their readers; an answer that would need more is refused. One answer counts as
/// [`UNSENT_ADDRESS_BYTES_MAX`] at most, whatever its length.
pub const UNSENT_BYTES_MAX: usize = 256 << 20;

/// Most of them at one address. A longer answer counts as this many, and waits alone there.
pub const UNSENT_ADDRESS_BYTES_MAX: usize = 128 << 20;

/// How long a peer may take for one answer.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(300);

/// Longest piece in which an answer is handed to its connection. An answer that is no longer is not counted: the kernel
/// takes it, or the connection holds it, as it holds the last piece of any other.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Bytes that wait, by address.
#[derive(Debug, Default)]
pub(crate) struct Unsent {
    bytes: Mutex<HashMap<IpAddr, usize>>,
}

/// Room for an answer, until this is dropped.
#[derive(Debug)]
struct Room {
    of: Arc<Unsent>,
    from: IpAddr,
    bytes: usize,
}

impl Unsent {
    /// The answer with room for its unsent bytes, and with a deadline for all of them. Absent where there is no room.
    /// Streams of events have no length, and none of their bytes wait here.
    pub(crate) fn hold(
        self: &Arc<Self>,
        answer: Response,
        address: IpAddr,
        deadline: &Deadline,
        wait: Duration,
    ) -> Option<Response> {
        let length = answer.body().size_hint().exact().unwrap_or_default();
        let bytes = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes <= PIECE_BYTES_MAX {
            return Some(answer);
        }
        let room = self.room(bytes, address)?;
        let on_its_way = deadline.begin(wait);
        let rest = Bytes::new();
        Some(answer.map(|body| Body::new(Waiting { body, rest, _room: room, _on_its_way: on_its_way })))
    }

    fn room(self: &Arc<Self>, bytes: usize, address: IpAddr) -> Option<Room> {
        let from = counted_as(address);
        let bytes = bytes.min(UNSENT_ADDRESS_BYTES_MAX);
        let mut waiting = held(&self.bytes);
        let all: usize = waiting.values().sum();
        let own = waiting.get(&from).copied().unwrap_or_default();
        if all + bytes > UNSENT_BYTES_MAX || own + bytes > UNSENT_ADDRESS_BYTES_MAX {
            return None;
        }
        waiting.insert(from, own + bytes);
        Some(Room { of: Arc::clone(self), from, bytes })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut waiting = held(&self.of.bytes);
        if let Some(own) = waiting.get_mut(&self.from) {
            *own -= self.bytes;
            if *own == 0 {
                waiting.remove(&self.from);
            }
        }
    }
}

/// The deadline of the answer that a connection sends; absent while it sends no long one. Connections send one answer
/// after another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deadline(watch::Sender<Option<Instant>>);

/// An answer that has a deadline until this is dropped.
#[derive(Debug)]
struct OnItsWay(Deadline);

impl Deadline {
    fn begin(&self, wait: Duration) -> OnItsWay {
        self.0.send_replace(Some(Instant::now() + wait));
        OnItsWay(self.clone())
    }

    /// Returns when an answer was not sent in time. The body of an answer is not polled while its connection cannot
    /// send, so the connection has to wait for this.
    pub(crate) async fn passes(&self) {
        let mut deadline = self.0.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let changed = deadline.changed();
            match at {
                // Fails only when no sender is left, and this waiter holds one.
                None => drop(changed.await),
                Some(at) => {
                    if timeout_at(at, changed).await.is_err() {
                        return;
                    }
                }
            }
        }
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        self.0.0.send_replace(None);
    }
}

/// An answer that leaves piece by piece.
struct Waiting {
    body: Body,
    /// Bytes that were taken from it and are not sent.
    rest: Bytes,
    _room: Room,
    _on_its_way: OnItsWay,
}

impl HttpBody for Waiting {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        if this.rest.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => this.rest = bytes,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE_BYTES_MAX));
        // A copy: a part of the whole would keep the whole until its last piece has left.
        Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(&piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let further = self.body.size_hint().exact().unwrap_or_default();
        SizeHint::with_exact(self.rest.len() as u64 + further)
    }
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::pin};

    use axum::response::IntoResponse;
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    impl Unsent {
        /// Whether nothing waits.
        pub(crate) fn is_empty(&self) -> bool {
            held(&self.bytes).is_empty()
        }
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().expect("a runtime")
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn as_much_may_wait_as_is_stated_at_an_address_and_in_all() {
        let unsent = Arc::new(Unsent::default());
        let room = |bytes: usize, last: u8| unsent.room(bytes, at(last));
        let half = room(UNSENT_ADDRESS_BYTES_MAX / 2, 1);
        let other_half = room(UNSENT_ADDRESS_BYTES_MAX / 2, 1);
        assert!(half.is_some() && other_half.is_some() && room(1, 1).is_none(), "and no more there");
        let longest = room(UNSENT_BYTES_MAX, 2);
        assert!(longest.is_some() && room(1, 2).is_none(), "one that is longer is alone at its address");
        assert_eq!(held(&unsent.bytes).values().sum::<usize>(), UNSENT_BYTES_MAX);
        assert!(room(1, 3).is_none(), "and no more in all");
        drop(half);
        assert!(room(1, 3).is_some() && room(1, 2).is_none());
        drop((other_half, longest));
        assert!(unsent.is_empty(), "nothing is left of what has gone");
    }

    #[test]
    fn without_room_there_is_no_long_answer_and_short_ones_need_none() {
        let (unsent, deadline) = (Arc::new(Unsent::default()), Deadline::default());
        let hold = |length: usize| {
            let answer = "x".repeat(length).into_response();
            unsent.hold(answer, at(1), &deadline, ANSWER_WAIT_MAX)
        };
        let all = unsent.room(UNSENT_ADDRESS_BYTES_MAX, at(1)).expect("nothing waits");
        assert!(hold(PIECE_BYTES_MAX + 1).is_none() && hold(PIECE_BYTES_MAX).is_some());
        assert!(deadline.0.borrow().is_none(), "nothing is on its way");
        drop(all);
        let answer = hold(PIECE_BYTES_MAX + 1).expect("there is room again");
        assert!(deadline.0.borrow().is_some() && !unsent.is_empty());
        drop(answer);
        assert!(deadline.0.borrow().is_none() && unsent.is_empty());
    }

    #[test]
    fn a_long_answer_leaves_whole_in_pieces_that_do_not_keep_it() {
        let (unsent, deadline) = (Arc::new(Unsent::default()), Deadline::default());
        let whole: Vec<u8> = (0..3 * PIECE_BYTES_MAX + 5).map(|index| index as u8).collect();
        let answer = whole.clone().into_response();
        let answer = unsent.hold(answer, at(1), &deadline, ANSWER_WAIT_MAX).expect("there is room");
        let mut body = answer.into_body();
        assert_eq!(body.size_hint().exact(), Some(whole.len() as u64));
        let mut pieces: Vec<Bytes> = Vec::new();
        runtime().block_on(async {
            while !body.is_end_stream() {
                let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
                let frame = frame.expect("it has not ended").expect("nothing fails");
                pieces.push(frame.into_data().expect("bytes"));
            }
        });
        drop(body);
        let lengths: Vec<usize> = pieces.iter().map(Bytes::len).collect();
        assert_eq!(lengths, [PIECE_BYTES_MAX, PIECE_BYTES_MAX, PIECE_BYTES_MAX, 5]);
        assert!(pieces.iter().all(Bytes::is_unique), "each has its own memory");
        let sent: Vec<u8> = pieces.iter().flat_map(|piece| piece.to_vec()).collect();
        assert!(sent == whole, "nothing else was sent");
        assert!(unsent.is_empty());
    }

    #[test]
    fn a_deadline_passes_while_an_answer_is_on_its_way_and_not_after_it() {
        let deadline = Deadline::default();
        runtime().block_on(async {
            let on_its_way = deadline.begin(Duration::ZERO);
            deadline.passes().await;
            drop(on_its_way);
            let mut passes = pin!(deadline.passes());
            let is_over = poll_fn(|context| Poll::Ready(passes.as_mut().poll(context).is_ready())).await;
            assert!(!is_over);
        });
    }
}
