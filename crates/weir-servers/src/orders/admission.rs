//! Connections that have not logged in: limits their number, in total and per address. [`counted_as`] says which
//! addresses count as one.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weir_proto::client::counted_as;

/// The limits and their usage. Locked when a connection arrives and when it has logged in.
#[derive(Debug)]
pub(super) struct Admission {
    total_max: usize,
    per_address_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    total: usize,
    /// At most as many as there are connections.
    by_address: HashMap<IpAddr, usize>,
}

/// Why a connection was closed on arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitReached {
    Total,
    Address,
}

impl LimitReached {
    pub(super) fn label(self) -> &'static str {
        match self {
            LimitReached::Total => "too_many_unauthenticated",
            LimitReached::Address => "too_many_from_address",
        }
    }
}

/// A place among those that have not logged in; dropping it frees the place.
#[derive(Debug)]
pub(super) struct Permit {
    admission: Arc<Admission>,
    address: Option<IpAddr>,
}

impl Admission {
    pub(super) fn new(total_max: usize, per_address_max: usize) -> Arc<Self> {
        Arc::new(Self { total_max, per_address_max, state: Mutex::default() })
    }

    /// Admits a connection. One without an address (a Unix socket, a simulated one) counts only in total.
    pub(super) fn admit(self: &Arc<Self>, address: Option<IpAddr>) -> Result<Permit, LimitReached> {
        let address = address.map(counted_as);
        let mut state = self.lock();
        if state.total >= self.total_max {
            return Err(LimitReached::Total);
        }
        if let Some(address) = address {
            let of_address = state.by_address.entry(address).or_default();
            if *of_address >= self.per_address_max {
                return Err(LimitReached::Address);
            }
            *of_address += 1;
        }
        state.total += 1;
        Ok(Permit { admission: Arc::clone(self), address })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.admission.lock();
        state.total -= 1;
        if let Some(address) = self.address
            && let Some(of_address) = state.by_address.get_mut(&address)
        {
            *of_address -= 1;
            if *of_address == 0 {
                state.by_address.remove(&address);
            }
        }
    }
}

/// The address of a socket's peer, if it is an Internet address.
pub(super) fn peer(socket: impl AsFd) -> Option<SocketAddr> {
    let name = rustix::net::getpeername(socket).ok()??;
    SocketAddr::try_from(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_limited_by_address_and_in_total_and_come_back() {
        let admission = Admission::new(3, 2);
        let (first, second) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let held = [admission.admit(Some(first)), admission.admit(Some(first))];
        assert!(held.iter().all(Result::is_ok));
        assert_eq!(admission.admit(Some(first)).err(), Some(LimitReached::Address));
        let other = admission.admit(Some(second)).expect("there is one place left");
        assert_eq!(admission.admit(None).err(), Some(LimitReached::Total));
        drop(other);
        assert!(admission.admit(None).is_ok());
        drop(held);
        assert!(admission.lock().by_address.is_empty(), "nothing is kept of who is gone");
        assert_eq!(admission.lock().total, 0);
    }

    #[test]
    fn addresses_that_one_client_can_choose_among_share_its_places() {
        let address = |text: &str| text.parse::<IpAddr>().ok();
        let admission = Admission::new(9, 1);
        let held = [admission.admit(address("2001:db8:0:1::1")), admission.admit(address("10.0.0.1"))];
        assert!(held.iter().all(Result::is_ok));
        let refused = |text: &str| admission.admit(address(text)).err();
        assert_eq!(refused("2001:db8:0:1:ffff::2"), Some(LimitReached::Address));
        assert_eq!(refused("::ffff:10.0.0.1"), Some(LimitReached::Address), "the same, written otherwise");
        assert_eq!(refused("2001:db8:0:2::1"), None);
        drop(held);
        assert!(admission.lock().by_address.is_empty(), "nothing is kept of who is gone");
    }
}
