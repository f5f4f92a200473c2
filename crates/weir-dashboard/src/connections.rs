//! Open connections: by address, so that no address takes all places, and whether each answers a request. One that does
//! not makes room for another: browsers keep connections open that they may never use again.

use std::{
    collections::HashMap,
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Instant,
};

use axum::{
    Error,
    body::{Body, HttpBody},
    response::Response,
};
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::sync::{Notify, futures::Notified};
use weir_proto::client::counted_as;

/// Most connections of one address. A further one takes the place of one that answers no request; if there is none,
/// it gets the answer that there are too many.
pub const CONNECTIONS_ADDRESS_MAX: usize = 32;

/// Connections of an address that were asked to leave and have not, beyond which a further one is not let in: a
/// client that sends heads without an end cannot take the places of all others by coming again.
const LEAVING_ADDRESS_MAX: usize = 8;

/// Open connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<Open>,
    /// One of them has answered.
    idled: Notify,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of the next one.
    next: u64,
    all: HashMap<u64, Known>,
}

#[derive(Debug)]
struct Known {
    from: IpAddr,
    /// Since when it answers nothing; absent while it answers.
    idle_since: Option<Instant>,
    /// It was asked to leave, and makes room for no further one.
    is_leaving: bool,
    leave: Arc<Notify>,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    of: Arc<Connections>,
    number: u64,
    leave: Arc<Notify>,
}

impl Connections {
    /// Counts one more. If its address has [`CONNECTIONS_ADDRESS_MAX`], the one there that has been idle the longest is
    /// asked to leave; `None` if all of them answer, or if too many of them are slow to leave.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr, now: Instant) -> Option<CountedConnection> {
        let from = counted_as(address);
        let mut open = held(&self.open);
        let of_address = open.all.values().filter(|it| it.from == from);
        let (leaving, staying): (Vec<&Known>, Vec<&Known>) = of_address.partition(|it| it.is_leaving);
        let (leaving, staying) = (leaving.len(), staying.len());
        if leaving >= LEAVING_ADDRESS_MAX {
            return None;
        }
        if staying >= CONNECTIONS_ADDRESS_MAX {
            let longest = open.longest_idle(|it| it.from == from)?;
            open.ask_to_leave(longest);
        }
        let number = open.next;
        open.next += 1;
        let leave = Arc::new(Notify::new());
        let known = Known { from, idle_since: Some(now), is_leaving: false, leave: Arc::clone(&leave) };
        open.all.insert(number, known);
        Some(CountedConnection { of: Arc::clone(self), number, leave })
    }

    /// Asks a connection to leave, other than the one for which there is to be room: the one that has been idle the
    /// longest, at the address that has most. `false` if all of them answer.
    pub(crate) fn make_room(&self, own: &CountedConnection) -> bool {
        let mut open = held(&self.open);
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        let staying = open.all.values().filter(|it| !it.is_leaving);
        staying.for_each(|it| *counts.entry(it.from).or_default() += 1);
        let is_idle =
            |number: &u64, it: &Known| *number != own.number && !it.is_leaving && it.idle_since.is_some();
        let idle = open.all.iter().filter(|(number, it)| is_idle(number, it));
        let most = idle.map(|(_, it)| counts[&it.from]).max();
        let longest = most.and_then(|most| {
            let others = |it: &Known| counts[&it.from] == most && !Arc::ptr_eq(&it.leave, &own.leave);
            open.longest_idle(others)
        });
        longest.is_some_and(|longest| {
            open.ask_to_leave(longest);
            true
        })
    }

    /// Returns when a connection has answered, and may leave.
    pub(crate) fn idled(&self) -> Notified<'_> {
        self.idled.notified()
    }
}

impl Open {
    fn longest_idle(&self, is_meant: impl Fn(&Known) -> bool) -> Option<u64> {
        let idle = self.all.iter().filter(|(_, it)| !it.is_leaving && is_meant(it));
        let since = idle.filter_map(|(number, it)| Some((it.idle_since?, *number)));
        since.min().map(|(_, number)| number)
    }

    fn ask_to_leave(&mut self, number: u64) {
        if let Some(known) = self.all.get_mut(&number) {
            known.is_leaving = true;
            known.leave.notify_one();
        }
    }
}

impl CountedConnection {
    /// Returns when the connection is to leave.
    pub(crate) async fn is_asked_to_leave(&self) {
        self.leave.notified().await;
    }

    /// Whether it answers a request.
    pub(crate) fn is_answering(&self) -> bool {
        held(&self.of.open).all.get(&self.number).is_some_and(|known| known.idle_since.is_none())
    }

    /// Marks the connection as one that answers, until the answer is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        if let Some(known) = held(&self.of.open).all.get_mut(&self.number) {
            known.idle_since = None;
        }
        Busy(Arc::clone(self))
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        held(&self.of.open).all.remove(&self.number);
    }
}

/// A connection answers until this is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<CountedConnection>);

impl Busy {
    /// The answer, which keeps its connection busy until it has left.
    pub(crate) fn until_sent(self, answer: Response) -> Response {
        answer.map(|body| Body::new(Leaving { body, _busy: self }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let of = &self.0.of;
        if let Some(known) = held(&of.open).all.get_mut(&self.0.number) {
            known.idle_since = Some(Instant::now());
        }
        of.idled.notify_waiters();
    }
}

/// The body of an answer that is being sent.
struct Leaving {
    body: Body,
    _busy: Busy,
}

impl HttpBody for Leaving {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// Connections of one address that answer, each with its mark.
    fn busy(connections: &Arc<Connections>, from: IpAddr, count: usize) -> Vec<Busy> {
        let one = |_| Arc::new(connections.enter(from, Instant::now()).expect("there is room")).begin();
        (0..count).map(one).collect()
    }

    #[test]
    fn an_address_has_its_maximum_and_keeps_nobody_else_out() {
        let connections = Arc::new(Connections::default());
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        let mut own = busy(&connections, one, CONNECTIONS_ADDRESS_MAX);
        let enter = |from| connections.enter(from, Instant::now());
        assert!(enter(one).is_none() && enter(other).is_some());
        drop(own.pop());
        assert!(enter(one).is_some(), "one of them has gone");
        drop(own);
        assert!(held(&connections.open).all.is_empty(), "nothing is left of those that have gone");
    }

    #[test]
    fn addresses_that_one_client_can_choose_among_share_one_maximum() {
        let connections = Arc::new(Connections::default());
        let from = |host: usize| address(&format!("2001:db8:1:2::{host:x}"));
        let _own: Vec<Busy> =
            (0..CONNECTIONS_ADDRESS_MAX).flat_map(|host| busy(&connections, from(host), 1)).collect();
        let enter = |from| connections.enter(from, Instant::now());
        assert!(enter(from(CONNECTIONS_ADDRESS_MAX)).is_none());
        assert!(enter(address("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn the_connection_that_has_been_idle_the_longest_makes_room_and_one_that_answers_does_not() {
        let connections = Arc::new(Connections::default());
        let (one, began) = (address("10.0.0.1"), Instant::now());
        let enter = |after_s: u64| {
            let entered = connections.enter(one, began + Duration::from_secs(after_s));
            Arc::new(entered.expect("there is room, or one leaves"))
        };
        let all: Vec<_> = (0..CONNECTIONS_ADDRESS_MAX as u64).map(enter).collect();
        let busy = all[0].begin();
        let further = enter(1_000);
        let stays = |it: &Arc<CountedConnection>| !held(&connections.open).all[&it.number].is_leaving;
        assert!(stays(&all[0]) && !stays(&all[1]) && stays(&all[2]) && stays(&further));
        assert!(all[0].is_answering() && !all[2].is_answering());
        drop(busy);
        let asked = held(&connections.open).all[&all[0].number].idle_since;
        assert!(asked.is_some_and(|since| since >= began), "it has answered");
        drop(all);
        assert_eq!(held(&connections.open).all.len(), 1, "those that were asked to leave are counted once");
    }

    #[test]
    fn whoever_does_not_leave_is_let_in_no_further() {
        let connections = Arc::new(Connections::default());
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        let enter = |from| connections.enter(from, Instant::now());
        let most = CONNECTIONS_ADDRESS_MAX + LEAVING_ADDRESS_MAX;
        let mut all: Vec<_> = (0..most).map(|_| enter(one).expect("one of them is asked to leave")).collect();
        assert!(enter(one).is_none() && enter(other).is_some());
        drop(all.remove(0));
        assert!(enter(one).is_some(), "one has left");
    }

    #[test]
    fn room_is_made_where_most_connections_are_and_not_by_the_one_that_needs_it() {
        let connections = Arc::new(Connections::default());
        let (many, few) = (address("10.0.0.1"), address("10.0.0.2"));
        let enter = |from| Arc::new(connections.enter(from, Instant::now()).expect("there is room"));
        let own = enter(few);
        assert!(!connections.make_room(&own), "it is alone");
        let other = enter(few);
        let crowd = [enter(many), enter(many), enter(many)];
        let stays = |it: &Arc<CountedConnection>| !held(&connections.open).all[&it.number].is_leaving;
        assert!(connections.make_room(&own) && !stays(&crowd[0]) && stays(&other));
        let busy: Vec<Busy> = [&crowd[1], &crowd[2], &other].map(|it| it.begin()).into_iter().collect();
        assert!(!connections.make_room(&own), "all others answer");
        drop(busy);
        assert!(connections.make_room(&own) && stays(&own));
    }
}
