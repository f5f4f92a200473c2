//! The time in a client order id: `W` and 13 digits of base 36, nanoseconds since midnight UTC. Clients that measure
//! their orders' way write it; of all others nothing is read.

use weir_proto::ouch::ClientOrderId;

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// The time, if the id has one.
#[inline]
pub(super) fn read(id: &ClientOrderId) -> Option<u64> {
    let [b'W', digits @ ..] = &id.0 else { return None };
    let mut time = 0_u64;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            b'a'..=b'z' => digit - b'a' + 10,
            _ => return None,
        };
        time = time.wrapping_mul(36).wrapping_add(value.into());
    }
    (time < DAY_NS).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_other_ids_are_left_alone() {
        assert_eq!(read(&ClientOrderId(*b"W0000000000010")), Some(36));
        assert_eq!(read(&ClientOrderId(*b"W000000000000z")), Some(35));
        for other in [*b"ORDER-00000001", *b"W             ", *b"WZZZZZZZZZZZZZ"] {
            assert_eq!(read(&ClientOrderId(other)), None);
        }
    }
}
