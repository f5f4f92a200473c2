//! Connections by address, so that no address takes all places.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weir_proto::client::counted_as;

/// Most connections of one address; a further one gets the answer that there are too many.
pub const CONNECTIONS_ADDRESS_MAX: usize = 32;

/// Open connections, by their addresses.
#[derive(Debug, Default)]
pub(crate) struct ConnectionsByAddress {
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    of: Arc<ConnectionsByAddress>,
    from: IpAddr,
}

impl ConnectionsByAddress {
    /// Counts one more, unless the address has [`CONNECTIONS_ADDRESS_MAX`].
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<CountedConnection> {
        let from = counted_as(address);
        let mut open = held(&self.open);
        let own = open.entry(from).or_default();
        (*own < CONNECTIONS_ADDRESS_MAX).then(|| {
            *own += 1;
            CountedConnection { of: Arc::clone(self), from }
        })
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        let mut open = held(&self.of.open);
        if let Some(own) = open.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.from);
            }
        }
    }
}

/// Every change is whole before its lock is released.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_its_maximum_and_keeps_nobody_else_out() {
        let connections = Arc::new(ConnectionsByAddress::default());
        let (one, other) = (address("10.0.0.1"), address("10.0.0.2"));
        let enter = || connections.enter(one).expect("there is room");
        let mut own: Vec<CountedConnection> = (0..CONNECTIONS_ADDRESS_MAX).map(|_| enter()).collect();
        assert!(connections.enter(one).is_none() && connections.enter(other).is_some());
        drop(own.pop());
        assert!(connections.enter(one).is_some(), "one of them has gone");
        drop(own);
        assert!(held(&connections.open).is_empty(), "nothing is left of those that have gone");
    }

    #[test]
    fn addresses_that_one_client_can_choose_among_share_one_maximum() {
        let connections = Arc::new(ConnectionsByAddress::default());
        let enter = |host: usize| connections.enter(address(&format!("2001:db8:1:2::{host:x}")));
        let held: Vec<CountedConnection> = (0..CONNECTIONS_ADDRESS_MAX).filter_map(enter).collect();
        assert_eq!(held.len(), CONNECTIONS_ADDRESS_MAX);
        assert!(enter(CONNECTIONS_ADDRESS_MAX).is_none());
        assert!(connections.enter(address("2001:db8:1:3::1")).is_some());
    }
}
