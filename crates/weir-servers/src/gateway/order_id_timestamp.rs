//! The time stamp in a client order id: `W` and 13 digits of base 36, nanoseconds since midnight UTC. Clients that
//! measure the latency of their orders write it; other ids are not interpreted.

use weir_proto::ouch::ClientOrderId;

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// Number of digits. As a value: the byte is not a digit.
const BASE: u8 = 36;

/// By byte: its value as a digit.
static VALUES: [u8; 256] = values();

const fn values() -> [u8; 256] {
    let mut values = [BASE; 256];
    let mut value = 0;
    while value < BASE {
        let digit = if value < 10 { b'0' + value } else { b'A' + value - 10 };
        values[digit as usize] = value;
        values[digit.to_ascii_lowercase() as usize] = value;
        value += 1;
    }
    values
}

/// The time, if the id contains one.
#[inline]
pub(super) fn read(id: &ClientOrderId) -> Option<u64> {
    // A day has fewer than 36^9 nanoseconds.
    let [b'W', b'0', b'0', b'0', b'0', digits @ ..] = &id.0 else { return None };
    // The kind of a digit is unpredictable, so there is no branch per digit.
    let (mut time, mut value_max) = (0_u64, 0);
    for digit in digits {
        let value = VALUES[usize::from(*digit)];
        value_max = value.max(value_max);
        time = time * u64::from(BASE) + u64::from(value);
    }
    (value_max < BASE && time < DAY_NS).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_other_ids_are_left_alone() {
        assert_eq!(read(&ClientOrderId(*b"W0000000000010")), Some(36));
        assert_eq!(read(&ClientOrderId(*b"W000000000000z")), Some(35));
        // The last one is 2^64, which would wrap to zero.
        for other in [*b"ORDER-00000001", *b"W             ", *b"WZZZZZZZZZZZZZ", *b"W3W5E11264SGSG"] {
            assert_eq!(read(&ClientOrderId(other)), None);
        }
    }

    #[test]
    fn every_byte_counts_for_what_it_is_as_a_digit_of_base_36_and_no_other_byte_is_one() {
        for byte in 0..=u8::MAX {
            // Each value here is at most a day.
            for (place, weight) in [(13, 1), (12, 36), (6, 36_u64.pow(7))] {
                let mut id = *b"W0000000000000";
                id[place] = byte;
                let expected = char::from(byte).to_digit(36).map(|value| u64::from(value) * weight);
                assert_eq!(read(&ClientOrderId(id)), expected, "{byte} at {place}");
            }
        }
    }
}
