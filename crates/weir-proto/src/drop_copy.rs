//! The messages of a drop copy: what an account got, with the account, its session and the number there in front.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0 | `Y` |
//! | 1..7 | account, padded on the right |
//! | 7..17 | name of the account's session, padded on the right |
//! | 17..25 | number of the message in that session, big-endian |
//! | 25.. | the message, byte for byte |

use crate::soup::Name;

/// The first byte of a copy. No message of OUCH 5.0 begins with it.
pub const COPY: u8 = b'Y';

/// Bytes before the copied message.
pub const HEAD_BYTES: usize = 25;

const ACCOUNT_AT: usize = 1;
const SESSION_AT: usize = ACCOUNT_AT + 6;
const NUMBER_AT: usize = SESSION_AT + 10;

const _: () = assert!(NUMBER_AT + 8 == HEAD_BYTES);

/// A copied message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copied<'a> {
    /// The account that got it.
    pub account: Name<6>,
    /// The session in which it got it.
    pub session: Name<10>,
    /// Its number there.
    pub number: u64,
    /// The message.
    pub message: &'a [u8],
}

impl<'a> Copied<'a> {
    /// The bytes before the message.
    pub fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [COPY; HEAD_BYTES];
        head[ACCOUNT_AT..SESSION_AT].copy_from_slice(self.account.as_bytes());
        head[SESSION_AT..NUMBER_AT].copy_from_slice(self.session.as_bytes());
        head[NUMBER_AT..].copy_from_slice(&self.number.to_be_bytes());
        head
    }

    /// Reads a copy. `None`: it is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (head, message) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let number = head.last_chunk::<8>()?;
        if head[0] != COPY {
            return None;
        }
        Some(Self {
            account: Name::from_padded(&head[ACCOUNT_AT..SESSION_AT]).ok()?,
            session: Name::from_padded(&head[SESSION_AT..NUMBER_AT]).ok()?,
            number: u64::from_be_bytes(*number),
            message,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_of_a_copy_are_those_of_the_table() {
        let copied = Copied {
            account: "C1".parse().expect("a name"),
            session: "WEIRGW0001".parse().expect("a name"),
            number: 258,
            message: b"E...",
        };
        let bytes = [&copied.head()[..], copied.message].concat();
        assert_eq!(bytes, b"YC1    WEIRGW0001\0\0\0\0\0\0\x01\x02E...");
        assert_eq!(Copied::parse(&bytes), Some(copied));
    }

    proptest! {
        #[test]
        fn copies_are_read_back(number: u64, message in prop::collection::vec(any::<u8>(), 0..100)) {
            let account = "C00042".parse().expect("a name");
            let copied = Copied { account, session: Name::BLANK, number, message: &message };
            let bytes = [&copied.head()[..], &message].concat();
            prop_assert_eq!(Copied::parse(&bytes), Some(copied));
        }

        #[test]
        fn any_bytes_are_a_copy_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(copied) = Copied::parse(&bytes) {
                prop_assert_eq!(copied.message, &bytes[HEAD_BYTES..]);
            }
        }
    }
}
