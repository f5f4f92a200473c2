//! Client identity, for limits per client.

use core::net::{IpAddr, Ipv6Addr};

/// The key that limits count as one client: an IPv4 address, however it is written, or the first half of an IPv6
/// address. A customer usually gets the whole second half, and can choose any address in it. Link-local addresses
/// count in full: all machines on a link share the first half.
pub fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_unicast_link_local() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_that_one_client_can_choose_among_count_as_one() {
        assert_eq!(counted_as(address("2001:db8:1:2:3::4")), counted_as(address("2001:db8:1:2:ffff::1")));
        assert_ne!(counted_as(address("2001:db8:1:2::1")), counted_as(address("2001:db8:1:3::1")));
        assert_ne!(counted_as(address("10.0.0.1")), counted_as(address("10.0.0.2")));
    }

    #[test]
    fn machines_at_one_wire_that_speak_by_their_link_local_addresses_are_clients_of_their_own() {
        for (one, other) in [("fe80::1", "fe80::2"), ("febf::1", "febf::2")] {
            assert_ne!(counted_as(address(one)), counted_as(address(other)), "{one}");
        }
        assert_eq!(
            counted_as(address("fec0::1")),
            counted_as(address("fec0::2")),
            "these are behind fe80::/10"
        );
    }

    #[test]
    fn an_ipv4_address_is_the_same_client_however_it_is_written() {
        assert_eq!(counted_as(address("::ffff:10.0.0.1")), address("10.0.0.1"));
        assert_ne!(counted_as(address("::ffff:10.0.0.1")), counted_as(address("::ffff:10.0.0.2")));
    }
}
