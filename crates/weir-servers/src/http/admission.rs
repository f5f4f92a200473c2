//! Limits how many connections a server holds at a time: in total, and per client.
//!
//! [`counted_as`] defines a client. Clients of a Unix socket have no address, and count only in total.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use weir_proto::client::counted_as;

use super::counters::Refusal;

/// Most connections that are turned away with a reply at a time; further ones are closed without a reply.
pub(super) const TURNED_AWAY_MAX: usize = 64;

/// The present connections. Bounded by the number of connections.
#[derive(Debug)]
pub(super) struct Admission {
    connections_max: usize,
    client_connections_max: Option<usize>,
    open: AtomicUsize,
    /// Only clients that have a connection.
    clients: Mutex<HashMap<IpAddr, usize>>,
    turned_away: AtomicUsize,
}

/// A connection that counts until this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    admission: Arc<Admission>,
    /// In a box, because few servers limit connections per client.
    client: Option<Box<IpAddr>>,
}

/// A connection that is turned away with a reply, and counts as such until this is dropped.
#[derive(Debug)]
pub(super) struct TurnedAway {
    admission: Arc<Admission>,
}

impl Admission {
    pub(super) fn new(connections_max: usize, client_connections_max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            connections_max,
            client_connections_max,
            open: AtomicUsize::new(0),
            clients: Mutex::default(),
            turned_away: AtomicUsize::new(0),
        })
    }

    /// Whether there is a limit per client.
    pub(super) fn tells_clients_apart(&self) -> bool {
        self.client_connections_max.is_some()
    }

    /// Counts one more connection, if there is room for it.
    pub(super) fn admit(self: &Arc<Self>, client: Option<IpAddr>) -> Result<Admitted, Refusal> {
        if !count_up(&self.open, self.connections_max) {
            return Err(Refusal::TooManyConnections);
        }
        let mut admitted = Admitted { admission: Arc::clone(self), client: None };
        if let (Some(most), Some(client)) = (self.client_connections_max, client.map(counted_as)) {
            let mut clients = self.lock();
            let count = clients.entry(client).or_default();
            if *count >= most {
                return Err(Refusal::TooManyOfClient);
            }
            *count += 1;
            admitted.client = Some(Box::new(client));
        }
        Ok(admitted)
    }

    /// A place for a connection that is turned away with a reply. `None`: there are already too many.
    pub(super) fn turn_away(self: &Arc<Self>) -> Option<TurnedAway> {
        count_up(&self.turned_away, TURNED_AWAY_MAX).then(|| TurnedAway { admission: Arc::clone(self) })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Increments the count, unless it would exceed `most`.
fn count_up(count: &AtomicUsize, most: usize) -> bool {
    count.fetch_update(Relaxed, Relaxed, |count| (count < most).then_some(count + 1)).is_ok()
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.open.fetch_sub(1, Relaxed);
        if let Some(client) = self.client.as_deref() {
            let mut clients = self.admission.lock();
            if let Some(count) = clients.get_mut(client) {
                *count -= 1;
                if *count == 0 {
                    clients.remove(client);
                }
            }
        }
    }
}

impl Drop for TurnedAway {
    fn drop(&mut self) {
        self.admission.turned_away.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    #[test]
    fn connections_are_admitted_up_to_the_limit_and_again_when_one_has_ended() {
        let admission = Admission::new(2, None);
        let first = admission.admit(None).expect("room");
        let _second = admission.admit(client("10.0.0.1")).expect("room");
        assert_eq!(admission.admit(None).err(), Some(Refusal::TooManyConnections));
        drop(first);
        assert!(admission.admit(None).is_ok());
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let admission = Admission::new(5, Some(2));
        let held: Vec<_> = (0..2).map(|_| admission.admit(client("10.0.0.1")).expect("room")).collect();
        let refused = admission.admit(client("::ffff:10.0.0.1")).err();
        assert_eq!(refused, Some(Refusal::TooManyOfClient), "the same address, written otherwise");
        let other: Vec<_> = (0..2).map(|_| admission.admit(client("10.0.0.2")).expect("room")).collect();
        assert!(admission.admit(None).is_ok(), "who has no address counts for nobody");
        drop((held, other));
        assert!(admission.lock().is_empty(), "nobody is remembered who is gone");
        assert_eq!(admission.open.load(Relaxed), 0);
    }

    #[test]
    fn the_first_half_of_an_ipv6_address_is_one_client() {
        let admission = Admission::new(5, Some(1));
        let _held = admission.admit(client("2001:db8:0:1::1")).expect("room");
        assert!(admission.admit(client("2001:db8:0:1:ffff::2")).is_err());
        assert!(admission.admit(client("2001:db8:0:2::1")).is_ok());
    }

    #[test]
    fn a_last_word_is_for_a_few_at_a_time() {
        let admission = Admission::new(1, None);
        let told: Vec<_> = (0..TURNED_AWAY_MAX).map(|_| admission.turn_away().expect("room")).collect();
        assert!(admission.turn_away().is_none());
        drop(told);
        assert!(admission.turn_away().is_some());
    }
}
