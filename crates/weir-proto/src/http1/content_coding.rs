//! Content codings and `Accept-Encoding` (RFC 9110, 8.4.1 and 12.5.3): which of the stored forms of a content a
//! client gets. Nothing is compressed here.
//!
//! ```
//! use weir_proto::http1::{Headers, content_coding::{Coding, Preferences}};
//!
//! let preferences = Preferences::of_value(b"gzip, br;q=0.5, *;q=0");
//! assert_eq!(preferences.ordered().collect::<Vec<_>>(), [Coding::Gzip, Coding::Brotli]);
//! ```

use super::head::Headers;

/// A coding that content may be stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstandard,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    /// Every coding; among codings that a client prefers equally, the first is best.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstandard, Self::Gzip];

    /// The value of `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstandard => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The file name extension of the coding.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstandard => ".zst",
            Self::Gzip => ".gz",
        }
    }

    fn is_named(self, name: &[u8]) -> bool {
        let alias = self == Self::Gzip && name.eq_ignore_ascii_case(b"x-gzip");
        alias || name.eq_ignore_ascii_case(self.name().as_bytes())
    }
}

/// A client's weight for each coding, in thousandths; the unencoded content comes last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preferences {
    weights: [u16; Coding::ALL.len()],
    /// The weight of the unencoded content.
    identity: u16,
}

/// The weights that a field gives explicitly.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    codings: [Option<u16>; Coding::ALL.len()],
    identity: Option<u16>,
    others: Option<u16>,
}

impl Preferences {
    /// The preferences of a request. Without the field, assume that the client reads no coding.
    pub fn of(headers: Headers<'_>) -> Self {
        let mut said = Said::default();
        for (name, value) in headers.iter() {
            if name.eq_ignore_ascii_case(b"accept-encoding") {
                said.add(value);
            }
        }
        said.settle()
    }

    /// The preferences of one value.
    pub fn of_value(value: &[u8]) -> Self {
        let mut said = Said::default();
        said.add(value);
        said.settle()
    }

    /// The codings that are acceptable and have at least the weight of the unencoded content, best first.
    pub fn ordered(self) -> impl Iterator<Item = Coding> {
        let mut places: [usize; Coding::ALL.len()] = std::array::from_fn(|place| place);
        // The sort is stable, so equal weights keep our order.
        places.sort_by_key(|place| std::cmp::Reverse(self.weights[*place]));
        let fits = move |place: &usize| self.weights[*place] > 0 && self.weights[*place] >= self.identity;
        places.into_iter().filter(fits).map(|place| Coding::ALL[place])
    }
}

impl Said {
    /// Malformed elements have no effect.
    fn add(&mut self, value: &[u8]) {
        for element in value.split(|byte| *byte == b',') {
            let mut parts = element.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
            let name = parts.next().unwrap_or_default();
            let weight = match (parts.next(), parts.next()) {
                (None, _) => Some(1000),
                (Some(parameter), None) => weight(parameter),
                _ => None,
            };
            let Some(weight) = weight else { continue };
            if name == b"*" {
                self.others.get_or_insert(weight);
            } else if name.eq_ignore_ascii_case(b"identity") {
                self.identity.get_or_insert(weight);
            } else if let Some(place) = Coding::ALL.iter().position(|coding| coding.is_named(name)) {
                self.codings[place].get_or_insert(weight);
            }
        }
    }

    /// Codings that are not named get the weight of `*`. The unencoded content ranks below every acceptable coding
    /// unless its weight was given.
    fn settle(self) -> Preferences {
        let weights = self.codings.map(|said| said.or(self.others).unwrap_or(0));
        Preferences { weights, identity: self.identity.unwrap_or(0) }
    }
}

/// `q=0.5`, in thousandths.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (b"q" | b"Q", value) = parameter.split_at_checked(1)? else { return None };
    let digits = value.strip_prefix(b"=")?;
    let (whole, rest) = digits.split_first()?;
    let decimals = match rest {
        [] => rest,
        [b'.', decimals @ ..] if decimals.len() <= 3 && decimals.iter().all(u8::is_ascii_digit) => decimals,
        _ => return None,
    };
    let places = (0..3).map(|place| decimals.get(place).map_or(0, |digit| u16::from(digit - b'0')));
    let thousandths = places.fold(0, |sum, digit| sum * 10 + digit);
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ordered(value: &str) -> Vec<&'static str> {
        Preferences::of_value(value.as_bytes()).ordered().map(Coding::name).collect()
    }

    #[test]
    fn weights_decide_and_then_our_own_order() {
        for (value, expected) in [
            ("", &[][..]),
            ("gzip", &["gzip"]),
            ("x-gzip", &["gzip"]),
            ("gzip, deflate, br, zstd", &["br", "zstd", "gzip"]),
            ("GZIP;q=1.0, br;q=0.9", &["gzip", "br"]),
            ("br ; q=0.5 ,\tgzip;Q=0.501", &["gzip", "br"]),
            ("br;q=0, gzip", &["gzip"]),
            ("*", &["br", "zstd", "gzip"]),
            ("*;q=0", &[]),
            ("gzip;q=0.2, *;q=0", &["gzip"]),
            ("*, br;q=0", &["zstd", "gzip"]),
            ("compress, deflate", &[]),
            ("identity, gzip;q=0.5", &[]),
            ("identity;q=0.5, gzip;q=0.5", &["gzip"]),
            ("identity;q=0, gzip", &["gzip"]),
            ("gzip;q=0.5, gzip;q=0", &["gzip"]),
        ] {
            assert_eq!(ordered(value), expected, "{value}");
        }
    }

    #[test]
    fn what_is_malformed_says_nothing() {
        for value in [
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.0001",
            "gzip;q=-1",
            "gzip;q=",
            "gzip;q",
            "gzip;q=.5",
            "gzip;x=1",
            "gzip;q=1;q=1",
            "gzip br",
            "gz ip",
            "\u{e9}",
        ] {
            assert_eq!(ordered(value), [""; 0], "{value}");
        }
        assert_eq!(ordered("gzip;q=2, br"), ["br"]);
    }

    #[test]
    fn several_fields_are_one_list_and_none_is_nothing() {
        let of = |lines: &str| Preferences::of(Headers::of_lines(lines.as_bytes())).ordered().count();
        assert_eq!(of("Accept-Encoding: gzip\r\naccept-encoding: br\r\n"), 2);
        assert_eq!(of("Accept: gzip\r\n"), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(value in prop::collection::vec(any::<u8>(), 0..60)) {
            let codings: Vec<_> = Preferences::of_value(&value).ordered().collect();
            prop_assert!(codings.len() <= Coding::ALL.len());
        }
    }
}
