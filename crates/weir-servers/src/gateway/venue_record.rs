//! The journal's records about venues: their names, in the order of their numbers in the following records, and the
//! addresses where its worker has logged in. An order is only where it was sent: at another address there may be
//! another exchange, with a session of the same name in which the same numbers are different orders. Pure.

use serde::{Deserialize, Serialize};

use super::{config::VenueConfig, unreachable_orders::Why};

/// The address and name with which a worker logs in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Endpoint {
    address: String,
    username: String,
    /// Former addresses of the same exchange, confirmed by an operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moved_from: Vec<String>,
}

impl Endpoint {
    pub(super) fn new(venue: &VenueConfig, worker: usize) -> Self {
        Self {
            address: venue.address.to_string(),
            username: venue.usernames.get(worker).map(ToString::to_string).unwrap_or_default(),
            moved_from: venue.moved_from.iter().map(ToString::to_string).collect(),
        }
    }

    /// Why orders sent from the former endpoint may not be reachable from this one.
    pub(super) fn change_from(&self, before: &Self) -> Option<Why> {
        if !self.username.eq_ignore_ascii_case(&before.username) {
            return Some(Why::Login { from: before.username.clone(), to: self.username.clone() });
        }
        let is_same = self.address == before.address || self.moved_from.contains(&before.address);
        (!is_same).then(|| Why::Address { from: before.address.clone(), to: self.address.clone() })
    }
}

/// One venue. An earlier version stored only its name, as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct VenueRecord {
    pub(super) name: String,
}

/// The contents of the venues' record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Venues {
    pub(super) names: Vec<String>,
    /// This version wrote it, and every later refusal has a record.
    pub(super) is_certain: bool,
}

/// Encodes the record. Names are text, which always serialises.
pub(super) fn venues_record(venues: &[VenueRecord]) -> Vec<u8> {
    serde_json::to_vec(venues).unwrap_or_default()
}

/// Decodes it; `None` if it is malformed.
pub(super) fn of_venues_record(payload: &[u8]) -> Option<Venues> {
    if let Ok(names) = serde_json::from_slice(payload) {
        return Some(Venues { names, is_certain: false });
    }
    let venues: Vec<VenueRecord> = serde_json::from_slice(payload).ok()?;
    Some(Venues { names: venues.into_iter().map(|venue| venue.name).collect(), is_certain: true })
}

/// Encodes the record of a worker's endpoint. That is text too.
pub(super) fn endpoint_record(endpoint: &Endpoint) -> Vec<u8> {
    serde_json::to_vec(endpoint).unwrap_or_default()
}

/// Decodes it; `None` if it is malformed.
pub(super) fn of_endpoint_record(payload: &[u8]) -> Option<Endpoint> {
    serde_json::from_slice(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::GatewayConfig;

    fn endpoint(address: &str, username: &str, moved_from: &[&str]) -> Endpoint {
        let moved_from = moved_from.iter().map(|address| (*address).to_owned()).collect();
        Endpoint { address: address.to_owned(), username: username.to_owned(), moved_from }
    }

    #[test]
    fn what_is_written_is_read_back_and_so_are_the_names_of_an_earlier_version() {
        let names = || vec!["A".to_owned(), "B".to_owned()];
        let venues: Vec<VenueRecord> = names().into_iter().map(|name| VenueRecord { name }).collect();
        let record = venues_record(&venues);
        assert_eq!(String::from_utf8_lossy(&record), r#"[{"name":"A"},{"name":"B"}]"#);
        assert_eq!(of_venues_record(&record), Some(Venues { names: names(), is_certain: true }));
        let named = Venues { names: names(), is_certain: false };
        assert_eq!(of_venues_record(br#"["A","B"]"#), Some(named));
        assert_eq!(of_venues_record(b"nothing"), None);
    }

    #[test]
    fn where_a_worker_has_logged_in_is_read_back() {
        let first = endpoint("10.0.0.1:7001", "G00001", &[]);
        let moved = endpoint("10.0.0.2:7001", "G", &["@before"]);
        let records = [
            (first, r#"{"address":"10.0.0.1:7001","username":"G00001"}"#),
            (moved, r#"{"address":"10.0.0.2:7001","username":"G","moved_from":["@before"]}"#),
        ];
        for (endpoint, record) in records {
            assert_eq!(String::from_utf8_lossy(&endpoint_record(&endpoint)), record);
            assert_eq!(of_endpoint_record(record.as_bytes()), Some(endpoint));
        }
        assert_eq!(of_endpoint_record(b"nothing"), None);
    }

    #[test]
    fn another_address_is_confirmed_and_another_login_is_not() {
        let before = endpoint("10.0.0.1:7001", "G00001", &[]);
        assert_eq!(endpoint("10.0.0.1:7001", "g00001", &[]).change_from(&before), None);
        let address = Why::Address { from: "10.0.0.1:7001".into(), to: "10.0.0.2:7001".into() };
        assert_eq!(endpoint("10.0.0.2:7001", "G00001", &[]).change_from(&before), Some(address));
        let confirmed = ["10.0.0.9:7001", "10.0.0.1:7001"];
        assert_eq!(endpoint("10.0.0.2:7001", "G00001", &confirmed).change_from(&before), None);
        let login = Why::Login { from: "G00001".into(), to: "G00002".into() };
        assert_eq!(endpoint("10.0.0.1:7001", "G00002", &confirmed).change_from(&before), Some(login));
    }

    #[test]
    fn an_endpoint_is_that_of_the_configuration() {
        let config = GatewayConfig::demo(1, "127.0.0.1:9101".parse().expect("an address"));
        assert_eq!(Endpoint::new(&config.venues[0], 1), endpoint("127.0.0.1:9101", "G00002", &[]));
    }
}
