//! Fields that are not plain numbers, and the limits of the numbers.

use std::{fmt, str::FromStr};

use crate::padded::{TextError, left_justified, trimmed, trimmed_end};

/// The highest price of a limit order: 199,999.9900.
pub const PRICE_MAX: u64 = 1_999_999_900;

/// The price that means a market order: 214,748.3647.
pub const PRICE_MARKET: u64 = 0x7fff_ffff;

/// The most shares of one order.
pub const QUANTITY_MAX: u32 = 999_999;

macro_rules! text {
    ($(#[$meta:meta])* $name:ident, $bytes:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; $bytes]);

        impl $name {
            /// Only padding.
            pub const BLANK: Self = Self([b' '; $bytes]);

            /// Without its padding; empty if a peer sent bytes that are not text.
            pub fn as_str(&self) -> &str {
                str::from_utf8(trimmed_end(&self.0)).unwrap_or_default()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::BLANK
            }
        }

        impl FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                left_justified(text.as_bytes()).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "\"{}\"", trimmed_end(&self.0).escape_ascii())
            }
        }
    };
}

text! {
    /// The traded symbol. The bytes are those of the message.
    Symbol, 8
}

impl Symbol {
    /// The form for comparing symbols: in upper case, without what is behind a NUL, and left-justified. Different bytes
    /// of one form may be one symbol to a venue; a check that must not be passed by writing a symbol differently
    /// compares the forms. A message keeps its bytes.
    pub fn canonical(self) -> Self {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        let text = trimmed(&self.0[..end]);
        let mut canonical = Self::BLANK;
        canonical.0[..text.len()].copy_from_slice(text);
        canonical.0.make_ascii_uppercase();
        canonical
    }
}

text! {
    /// A client's name for an order; returned and not interpreted. The bytes are those of the message.
    ClientOrderId, 14
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_that_a_venue_may_take_for_one_symbol_are_one() {
        let form = |bytes: &[u8; 8]| Symbol(*bytes).canonical();
        for same in [
            b"BBB     ",
            b"BBB\0    ",
            b"bbb     ",
            b"bBb\0\0\0\0\0",
            b"  BBB   ",
            b"BBB\0X\0\0\0",
            b"BBB \0   ",
        ] {
            assert_eq!(form(same), Symbol(*b"BBB     "), "{same:?}");
        }
        for other in [b"BBBB    ", b"B BB    ", b"BBB.A   ", b"\xffBBB    "] {
            assert_ne!(form(other), Symbol(*b"BBB     "), "{other:?}");
        }
        assert_eq!(form(b"EIGHTLTR"), Symbol(*b"EIGHTLTR"));
        assert_eq!(form(&[0; 8]), Symbol::BLANK);
    }
}
