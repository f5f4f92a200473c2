//! The bytes that servers send and clients expect: a content is a name, and the same name gives the same bytes on
//! every machine, so both ends of a connection can produce and compare them.
//!
//! A content is only bytes and their media type. This module does not contain the contents of files, nor any framing.
//!
//! ```
//! use weir_proto::content::Content;
//!
//! let content: Content = "1024".parse()?;
//! assert_eq!(content.bytes().len(), content.len());
//! assert_eq!(Content::Image.len(), 151_552);
//! assert_eq!(Content::Html.media_type(), "text/html; charset=utf-8");
//! # Ok::<(), weir_proto::content::ContentError>(())
//! ```

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The largest content that a name can ask for: 16 MiB.
pub const CONTENT_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// The size of [`Content::Image`]: 148 KiB, the size of the image in the studies that are repeated with it.
pub const IMAGE_BYTES: usize = 151_552;

const PAGE: &str = include_str!("page.html");

/// Drawn for this purpose; a comment in the file fills it to its size.
const IMAGE: &[u8; IMAGE_BYTES] = include_bytes!("../../assets/weir.jpg");

const NOISE_SEED: u64 = 0x5eed_0f00_0000_0001;

/// A content and its name: `html`, `image`, or a number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Content {
    /// A small page.
    Html,
    /// A picture of a weir as a baseline JPEG of [`IMAGE_BYTES`] bytes.
    Image,
    /// This many bytes of noise. A shorter one is a prefix of a longer one.
    Bytes(u32),
}

impl Content {
    /// The bytes, computed at each call.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::Html => PAGE.into(),
            Self::Image => IMAGE.to_vec(),
            Self::Bytes(_) => noise(self.len()),
        }
    }

    /// The number of bytes, without computing them.
    pub fn len(self) -> usize {
        match self {
            Self::Html => PAGE.len(),
            Self::Image => IMAGE_BYTES,
            Self::Bytes(bytes) => bytes as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Html => "text/html; charset=utf-8",
            Self::Image => "image/jpeg",
            Self::Bytes(_) => "application/octet-stream",
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Html => formatter.pad("html"),
            Self::Image => formatter.pad("image"),
            Self::Bytes(bytes) => fmt::Display::fmt(bytes, formatter),
        }
    }
}

/// Why a text is not the name of a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ContentError {
    /// Neither a known name nor decimal digits.
    #[error("a content is `html`, `image` or a number of bytes")]
    Unknown,
    /// More than [`CONTENT_BYTES_MAX`].
    #[error("a content has at most {CONTENT_BYTES_MAX} bytes")]
    TooLarge,
}

impl FromStr for Content {
    type Err = ContentError;

    fn from_str(name: &str) -> Result<Self, ContentError> {
        match name {
            "html" => Ok(Self::Html),
            "image" => Ok(Self::Image),
            _ if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(ContentError::Unknown)
            }
            // Digits that do not parse are too many.
            _ => match name.parse() {
                Ok(bytes @ ..=CONTENT_BYTES_MAX) => Ok(Self::Bytes(bytes)),
                _ => Err(ContentError::TooLarge),
            },
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), little-endian, cut to length. `weir-stats` has it too, but crates
/// of the lowest layer do not depend on each other.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = NOISE_SEED;
    let mut noise = Vec::with_capacity(bytes.next_multiple_of(8));
    while noise.len() < bytes {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        noise.extend_from_slice(&(word ^ word >> 31).to_le_bytes());
    }
    noise.truncate(bytes);
    noise
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FNV-1a: enough to detect a change.
    fn digest(bytes: &[u8]) -> u64 {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn a_content_and_its_name_correspond() {
        for content in [
            Content::Html,
            Content::Image,
            Content::Bytes(0),
            Content::Bytes(64),
            Content::Bytes(CONTENT_BYTES_MAX),
        ] {
            assert_eq!(content.to_string().parse(), Ok(content));
        }
        for name in ["", "HTML", " 64", "+64", "-1", "64k", "0x40", "1.5", "jpeg", "\u{663}"] {
            assert_eq!(name.parse::<Content>(), Err(ContentError::Unknown), "{name:?}");
        }
        for name in ["16777217", "4294967296", "99999999999999999999999"] {
            assert_eq!(name.parse::<Content>(), Err(ContentError::TooLarge), "{name:?}");
        }
        assert_eq!(format!("[{:>6}]", Content::Html), "[  html]");
    }

    #[test]
    fn the_length_is_known_without_the_bytes() {
        for content in [Content::Html, Content::Image]
            .into_iter()
            .chain([0, 1, 7, 8, 9, 64, 1024, 1_000_003].map(Content::Bytes))
        {
            assert_eq!(content.bytes().len(), content.len(), "{content}");
            assert_eq!(content.is_empty(), content == Content::Bytes(0), "{content}");
        }
    }

    #[test]
    fn noise_is_noise_and_a_shorter_one_begins_a_longer_one() {
        let long = Content::Bytes(100_000).bytes();
        assert!(long.starts_with(&Content::Bytes(64).bytes()));
        let mut counts = [0_u32; 256];
        long.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 390 of each are expected, with a standard deviation of 20.
        assert!(counts.iter().all(|count| (270..510).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_page_is_small_and_ends_as_it_should() {
        assert!((500..900).contains(&PAGE.len()), "{}", PAGE.len());
        assert!(PAGE.starts_with("<!doctype html>") && PAGE.ends_with("</html>\n") && PAGE.is_ascii());
    }

    /// Stored results refer to these bytes. A change of them changes the meaning of older figures.
    #[test]
    fn the_bytes_are_those_that_were_always_sent() {
        let digests =
            [Content::Html, Content::Image, Content::Bytes(1024)].map(|content| digest(&content.bytes()));
        assert_eq!(
            digests,
            [0xa088_3a9d_483e_15d4, 0x858b_22d3_fa08_bd06, 0x037f_4026_0a6b_97ce],
            "{digests:#x?}"
        );
    }

    #[test]
    fn the_image_is_a_whole_baseline_jpeg() {
        let image = Content::Image.bytes();
        assert_eq!(image.len(), IMAGE_BYTES);
        assert!(image.starts_with(b"\xff\xd8\xff\xe0\x00\x10JFIF\0") && image.ends_with(b"\xff\xd9"));
        // A baseline frame of 8 bits, 576 rows of 1024.
        let frame = b"\xff\xc0\x00\x11\x08\x02\x40\x04\x00";
        assert!(image.windows(frame.len()).any(|window| window == frame));
    }
}
