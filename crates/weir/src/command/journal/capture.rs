//! A capture of packets as in a pcap file with times in nanoseconds: TCP over IPv4, without a link layer. Every
//! connection has made-up addresses, complete sequence numbers and right checksums. Pure.

use std::net::Ipv4Addr;

/// Magic number of a file with times in nanoseconds; the byte order shows that of the other numbers.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Version 2.4.
const VERSION: [u16; 2] = [2, 4];
/// `LINKTYPE_RAW`: packets begin with the header of IP.
const LINK_TYPE: u32 = 101;
const PACKET_BYTES_MAX: usize = u16::MAX as usize;
const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const WINDOW: u16 = u16::MAX;
const PROTOCOL_TCP: u8 = 6;

const SYN: u8 = 0x02;
const PUSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// The most bytes that one packet carries.
pub(super) const DATA_BYTES_MAX: usize = PACKET_BYTES_MAX - IP_BYTES - TCP_BYTES;

/// The beginning of the file.
pub(super) fn file_header() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend_from_slice(&MAGIC.to_le_bytes());
    VERSION.iter().for_each(|number| header.extend_from_slice(&number.to_le_bytes()));
    // The times are UTC; their accuracy is not known.
    header.extend_from_slice(&[0; 8]);
    header.extend_from_slice(&(PACKET_BYTES_MAX as u32).to_le_bytes());
    header.extend_from_slice(&LINK_TYPE.to_le_bytes());
    header
}

/// One end of a connection, and the number of its next byte.
#[derive(Clone, Copy, Debug)]
struct End {
    address: Ipv4Addr,
    port: u16,
    next: u32,
}

/// A connection, opened with its first packet.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    client: End,
    server: End,
    is_open: bool,
    identification: u16,
}

impl Connection {
    pub(super) fn new(client: (Ipv4Addr, u16), server: (Ipv4Addr, u16)) -> Self {
        let end = |(address, port)| End { address, port, next: 0 };
        Self { client: end(client), server: end(server), is_open: false, identification: 0 }
    }

    /// Appends the packets that carry `data` at this time, in nanoseconds since 1970, to `out`. It has at most
    /// [`DATA_BYTES_MAX`] bytes.
    pub(super) fn send(&mut self, is_from_server: bool, t_ns: u64, data: &[u8], out: &mut Vec<u8>) {
        if !self.is_open {
            self.is_open = true;
            self.packet((false, SYN), t_ns, &[], out);
            self.client.next = 1;
            self.packet((true, SYN | ACK), t_ns, &[], out);
            self.server.next = 1;
            self.packet((false, ACK), t_ns, &[], out);
        }
        self.packet((is_from_server, PUSH | ACK), t_ns, data, out);
        let sender = if is_from_server { &mut self.server } else { &mut self.client };
        sender.next = sender.next.wrapping_add(data.len() as u32);
    }

    fn packet(&mut self, (is_from_server, flags): (bool, u8), t_ns: u64, data: &[u8], out: &mut Vec<u8>) {
        let (from, to) = if is_from_server { (self.server, self.client) } else { (self.client, self.server) };
        let acknowledged = if flags & ACK == 0 { 0 } else { to.next };
        let mut segment = Vec::with_capacity(TCP_BYTES + data.len());
        segment.extend_from_slice(&from.port.to_be_bytes());
        segment.extend_from_slice(&to.port.to_be_bytes());
        segment.extend_from_slice(&from.next.to_be_bytes());
        segment.extend_from_slice(&acknowledged.to_be_bytes());
        // The header's length in words, and the flags.
        segment.extend_from_slice(&[(TCP_BYTES as u8 / 4) << 4, flags]);
        segment.extend_from_slice(&WINDOW.to_be_bytes());
        // Checksum and urgent pointer.
        segment.extend_from_slice(&[0; 4]);
        segment.extend_from_slice(data);
        let mut pseudo = [from.address.octets(), to.address.octets()].concat();
        pseudo.extend_from_slice(&[0, PROTOCOL_TCP]);
        pseudo.extend_from_slice(&(segment.len() as u16).to_be_bytes());
        let checksum = checksum(&[&pseudo, &segment]);
        segment[16..18].copy_from_slice(&checksum.to_be_bytes());
        let header = self.ip_header((from.address, to.address), segment.len());
        let length = (header.len() + segment.len()) as u32;
        let (seconds, rest_ns) = (t_ns / 1_000_000_000, t_ns % 1_000_000_000);
        // The seconds have 32 bits until 2106.
        for number in [u32::try_from(seconds).unwrap_or(u32::MAX), rest_ns as u32, length, length] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&header);
        out.extend_from_slice(&segment);
    }

    fn ip_header(&mut self, (from, to): (Ipv4Addr, Ipv4Addr), segment_bytes: usize) -> [u8; IP_BYTES] {
        let mut header = [0; IP_BYTES];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&((IP_BYTES + segment_bytes) as u16).to_be_bytes());
        header[4..6].copy_from_slice(&self.identification.to_be_bytes());
        self.identification = self.identification.wrapping_add(1);
        // Not to be fragmented.
        header[6] = 0x40;
        header[8] = 64;
        header[9] = PROTOCOL_TCP;
        header[12..16].copy_from_slice(&from.octets());
        header[16..20].copy_from_slice(&to.octets());
        let checksum = checksum(&[&header]);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

/// The checksum of IP and TCP (RFC 1071). Only the last part may have an odd length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_a_known_header() {
        // Wikipedia's example of a header of IPv4.
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(checksum(&[&header]), 0xb861);
        assert_eq!(checksum(&[&[0x01]]), !0x0100);
    }

    #[test]
    fn a_connection_is_opened_once_and_its_numbers_follow_its_bytes() {
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        let mut connection = Connection::new((address(2), 40_000), (address(1), 7001));
        let mut out = Vec::new();
        connection.send(false, 1_500_000_000, b"question", &mut out);
        connection.send(true, 2_000_000_001, b"answer!", &mut out);
        connection.send(false, 3, b"more", &mut out);
        let (mut packets, mut rest) = (Vec::new(), &out[..]);
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().expect("four bytes"));
            let length = word(8) as usize;
            let packet = &rest[16..16 + length];
            assert_eq!(checksum(&[&packet[..20]]), 0, "the header's own checksum makes it zero");
            let pseudo = [&packet[12..20], &[0, 6], &((length - 20) as u16).to_be_bytes()].concat();
            assert_eq!(checksum(&[&pseudo, &packet[20..]]), 0);
            let number = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"));
            packets.push(((word(0), word(4)), packet[33], number(24), number(28), packet[40..].to_vec()));
            rest = &rest[16 + length..];
        }
        let opened = (1, 500_000_000);
        let expected = [
            (opened, SYN, 0, 0, Vec::new()),
            (opened, SYN | ACK, 0, 1, Vec::new()),
            (opened, ACK, 1, 1, Vec::new()),
            (opened, PUSH | ACK, 1, 1, b"question".to_vec()),
            ((2, 1), PUSH | ACK, 1, 9, b"answer!".to_vec()),
            ((0, 3), PUSH | ACK, 9, 8, b"more".to_vec()),
        ];
        assert_eq!(packets, expected);
        assert_eq!(file_header().len(), 24);
    }
}
