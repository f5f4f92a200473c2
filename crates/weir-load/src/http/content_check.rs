//! Expected contents of responses, and the comparison of one content that arrives in pieces.
//!
//! The expected content is given, or is taken from the first right response to a URL by any worker and then shared by
//! all workers. Until it is known, contents are held back and compared when complete. A content that is too long to
//! be held back is hashed as it arrives if its hash is known. No I/O, no clock.

use std::{cell::Cell, rc::Rc, sync::OnceLock};

use blake2::{Blake2b128, Blake2b256, Blake2b512, Digest};

use super::spec::{ExpectedContent, HttpSpec, HttpUrl};

/// Bytes that one worker may hold back while the expected content is unknown; beyond that, contents without a hash
/// are not compared.
const HELD_BYTES_MAX: usize = 64 << 20;

/// The expected content of every URL.
#[derive(Debug)]
pub(crate) struct ExpectedContents(Vec<Expected>);

/// The expected content of one URL.
#[derive(Debug, Default)]
struct Expected {
    /// Nothing is compared.
    is_any: bool,
    /// The content, when it is known.
    content: OnceLock<Vec<u8>>,
    length: Option<u64>,
    /// Hash of the content that later ones are compared with.
    hash: Option<Vec<u8>>,
}

impl Expected {
    fn of(spec: &HttpSpec, url: &HttpUrl) -> Self {
        let own = url.own.as_deref();
        let content = own.map_or(&spec.expect_content, |own| &own.expect_content);
        let known = OnceLock::new();
        if let ExpectedContent::Bytes(bytes) = content {
            // The cell was empty until now, so `set` succeeds.
            drop(known.set(bytes.clone()));
        }
        // A response to HEAD has no content to compare.
        let is_head = spec.reads_as(url) == weir_proto::http1::Method::Head;
        Self {
            is_any: *content == ExpectedContent::Anything || is_head,
            content: known,
            length: own.and_then(|own| if is_head { Some(0) } else { own.expect_length }),
            hash: own.and_then(|own| own.expect_hash.clone()),
        }
    }

    /// Whether a content has the required hash, so that others may be compared with it.
    fn has_hash_of(&self, content: &[u8]) -> bool {
        let Some(expected) = self.hash.as_deref() else { return true };
        Hasher::of_length(expected.len()).is_some_and(|mut hasher| {
            hasher.push(content);
            hasher.gives(expected)
        })
    }

    /// The length of a right content, where it is known.
    fn length(&self) -> Option<u64> {
        let content = || self.content.get().filter(|_| !self.is_any);
        self.length.or_else(|| content().map(|content| content.len() as u64))
    }
}

/// A hash of data that arrives in pieces.
#[derive(Debug)]
enum Hasher {
    Short(Blake2b128),
    Middle(Blake2b256),
    Long(Blake2b512),
}

impl Hasher {
    /// A hasher with an output of `bytes` bytes. Other lengths were refused when the request was validated.
    fn of_length(bytes: usize) -> Option<Self> {
        match bytes {
            16 => Some(Self::Short(Blake2b128::new())),
            32 => Some(Self::Middle(Blake2b256::new())),
            64 => Some(Self::Long(Blake2b512::new())),
            _ => None,
        }
    }

    fn push(&mut self, piece: &[u8]) {
        match self {
            Self::Short(hasher) => hasher.update(piece),
            Self::Middle(hasher) => hasher.update(piece),
            Self::Long(hasher) => hasher.update(piece),
        }
    }

    fn gives(self, expected: &[u8]) -> bool {
        match self {
            Self::Short(hasher) => hasher.finalize()[..] == *expected,
            Self::Middle(hasher) => hasher.finalize()[..] == *expected,
            Self::Long(hasher) => hasher.finalize()[..] == *expected,
        }
    }
}

impl ExpectedContents {
    pub(crate) fn new(spec: &HttpSpec) -> Self {
        Self(spec.urls.iter().map(|url| Expected::of(spec, url)).collect())
    }

    /// Whether nothing is compared for a URL.
    pub(crate) fn is_any(&self, url: usize) -> bool {
        self.0[url].is_any
    }

    /// Length in bytes of the required hash of a URL's contents, if there is one.
    pub(crate) fn hash_bytes(&self, url: usize) -> Option<usize> {
        self.0[url].hash.as_ref().map(Vec::len)
    }

    /// The length of a right content of a URL, where it is known.
    pub(crate) fn length(&self, url: usize) -> Option<u64> {
        self.0[url].length()
    }

    /// The expected content of a URL, if known.
    #[inline]
    pub(crate) fn get(&self, url: usize) -> Option<&[u8]> {
        let expected = &self.0[url];
        if expected.is_any { None } else { expected.content.get().map(Vec::as_slice) }
    }

    /// For each URL a hash of the content that responses were compared with; `None` where nothing was compared.
    pub(crate) fn fingerprints(&self) -> Vec<Option<String>> {
        let hash = |content: &[u8]| {
            Blake2b128::digest(content).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        (0..self.0.len()).map(|url| self.get(url).map(hash)).collect()
    }

    /// The length of every response's content in bytes, if they are known and equal; else 0.
    pub(crate) fn content_bytes(&self) -> u32 {
        let mut lengths = (0..self.0.len()).map(|url| self.get(url).map(<[u8]>::len));
        let first = lengths.next().flatten();
        let all_equal = lengths.all(|length| length == first);
        first.filter(|_| all_equal).and_then(|length| u32::try_from(length).ok()).unwrap_or(0)
    }
}

/// How a content is checked.
#[derive(Debug)]
enum Check {
    /// Compared with the expected content as it arrives.
    Compare { differs_at: Option<usize> },
    /// Held back, because the expected content is not known yet.
    Hold(Held),
    /// Hashed, because it is too long to be held back.
    Hash(Box<Hasher>),
    /// Only its length is measured.
    Measure,
}

/// Bytes held back; they count on the worker's account until they are released.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
    /// Length of the required hash, if there is one.
    hash_bytes: Option<usize>,
    account: Rc<Cell<usize>>,
}

impl Held {
    /// Whether there was room for the piece.
    fn push(&mut self, piece: &[u8]) -> bool {
        let total = self.account.get() + piece.len();
        if total > HELD_BYTES_MAX {
            return false;
        }
        self.account.set(total);
        self.bytes.extend_from_slice(piece);
        true
    }

    /// The check for a content that there is no room for, including a further piece.
    #[cold]
    fn beyond(&self, piece: &[u8]) -> Check {
        let Some(mut hasher) = self.hash_bytes.and_then(Hasher::of_length) else { return Check::Measure };
        hasher.push(&self.bytes);
        hasher.push(piece);
        Check::Hash(Box::new(hasher))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.set(self.account.get() - self.bytes.len());
    }
}

/// A content that is arriving.
#[derive(Debug)]
pub(crate) struct Content {
    check: Check,
    bytes: usize,
}

/// How a content differs from the expected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("the content has {bytes} bytes instead of {expected}")]
    Length { bytes: usize, expected: usize },
    #[error("the content differs from what was expected at byte {at}")]
    Differs { at: usize },
    #[error("the content of {bytes} bytes has another hash than the one that was given")]
    Hash { bytes: usize },
}

impl Content {
    /// Only its length matters.
    pub(crate) fn measured() -> Self {
        Self { check: Check::Measure, bytes: 0 }
    }

    /// Compared with the expected content as it arrives.
    pub(crate) fn compared() -> Self {
        Self { check: Check::Compare { differs_at: None }, bytes: 0 }
    }

    /// Compared when complete, or becomes the expected content. `account` counts the bytes that this worker holds
    /// back.
    pub(crate) fn held_back(account: &Rc<Cell<usize>>, hash_bytes: Option<usize>) -> Self {
        let held = Held { bytes: Vec::new(), hash_bytes, account: Rc::clone(account) };
        Self { check: Check::Hold(held), bytes: 0 }
    }

    /// Bytes received so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next piece.
    #[inline]
    pub(crate) fn push(&mut self, piece: &[u8], expected: Option<&[u8]>) {
        match &mut self.check {
            Check::Compare { differs_at } => {
                let here = expected.and_then(|expected| expected.get(self.bytes..self.bytes + piece.len()));
                if here != Some(piece) && differs_at.is_none() {
                    *differs_at = Some(self.bytes + difference(piece, expected, self.bytes));
                }
            }
            Check::Hold(held) => {
                if !held.push(piece) {
                    self.check = held.beyond(piece);
                }
            }
            Check::Hash(hasher) => hasher.push(piece),
            Check::Measure => {}
        }
        self.bytes += piece.len();
    }

    /// Ends a content: whether it was compared, or how it differs. The first complete content that was held back
    /// becomes the expected one.
    pub(crate) fn finish(self, contents: &ExpectedContents, url: usize) -> Result<bool, Mismatch> {
        let wanted = &contents.0[url];
        let given = wanted.length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if let Some(expected) = given.filter(|expected| *expected != self.bytes) {
            return Err(Mismatch::Length { bytes: self.bytes, expected });
        }
        if wanted.is_any {
            return Ok(false);
        }
        if let Check::Hold(held) = &self.check
            && wanted.content.get().is_none()
        {
            if !wanted.has_hash_of(&held.bytes) {
                return Err(Mismatch::Hash { bytes: self.bytes });
            }
            wanted.content.get_or_init(|| held.bytes.clone());
        }
        let expected = contents.get(url);
        if let Some(expected) = expected
            && expected.len() != self.bytes
        {
            return Err(Mismatch::Length { bytes: self.bytes, expected: expected.len() });
        }
        match self.check {
            Check::Measure => Ok(false),
            Check::Hash(hasher) => match hasher.gives(wanted.hash.as_deref().unwrap_or_default()) {
                true => Ok(true),
                false => Err(Mismatch::Hash { bytes: self.bytes }),
            },
            Check::Compare { differs_at: Some(at) } => Err(Mismatch::Differs { at }),
            Check::Hold(held) if expected != Some(&held.bytes) => {
                Err(Mismatch::Differs { at: difference(&held.bytes, expected, 0) })
            }
            Check::Compare { differs_at: None } | Check::Hold(_) => Ok(true),
        }
    }
}

/// Offset of the first byte of `piece` that differs from the expected content at `at`.
#[cold]
fn difference(piece: &[u8], expected: Option<&[u8]>, at: usize) -> usize {
    let expected = expected.and_then(|expected| expected.get(at..)).unwrap_or_default();
    piece
        .iter()
        .zip(expected)
        .position(|(byte, other)| byte != other)
        .unwrap_or(expected.len().min(piece.len()))
}

#[cfg(test)]
mod tests {
    use super::{
        super::spec::{OwnRequest, tests::http},
        *,
    };

    fn contents(expect_content: ExpectedContent) -> ExpectedContents {
        ExpectedContents::new(&HttpSpec { expect_content, ..http() })
    }

    fn held_back(contents: &ExpectedContents, account: &Rc<Cell<usize>>) -> Content {
        Content::held_back(account, contents.hash_bytes(0))
    }

    fn check(contents: &ExpectedContents, pieces: &[&[u8]]) -> Result<bool, Mismatch> {
        let account = Rc::new(Cell::new(0));
        let mut content =
            if contents.get(0).is_some() { Content::compared() } else { held_back(contents, &account) };
        pieces.iter().for_each(|piece| content.push(piece, contents.get(0)));
        let outcome = content.finish(contents, 0);
        assert_eq!(account.get(), 0);
        outcome
    }

    #[test]
    fn a_content_in_pieces_is_compared_at_the_place_of_each_piece() {
        let contents = contents(ExpectedContent::Bytes(b"0123456789".to_vec()));
        for cut in 0..=10 {
            let (first, second) = b"0123456789".split_at(cut);
            assert_eq!(check(&contents, &[first, second]), Ok(true));
            for place in 0..10 {
                let mut wrong = b"0123456789".to_vec();
                wrong[place] ^= 1;
                let (first, second) = wrong.split_at(cut);
                assert_eq!(check(&contents, &[first, second]), Err(Mismatch::Differs { at: place }));
            }
        }
        assert_eq!(check(&contents, &[b"012345678"]), Err(Mismatch::Length { bytes: 9, expected: 10 }));
        let longer = Err(Mismatch::Length { bytes: 11, expected: 10 });
        assert_eq!(check(&contents, &[b"0123456789", b"x"]), longer);
    }

    #[test]
    fn the_first_content_is_what_is_expected_of_all_that_were_held_back() {
        let contents = contents(ExpectedContent::AsFirst);
        let account = Rc::new(Cell::new(0));
        let mut late = held_back(&contents, &account);
        late.push(b"on", None);
        assert_eq!(check(&contents, &[b"one"]), Ok(true));
        assert_eq!(contents.get(0), Some(&b"one"[..]));
        late.push(b"E", contents.get(0));
        assert_eq!(account.get(), 3);
        assert_eq!(late.finish(&contents, 0), Err(Mismatch::Differs { at: 2 }));
        assert_eq!(account.get(), 0);
        assert_eq!(check(&contents, &[b"one"]), Ok(true));
        assert_eq!(contents.content_bytes(), 3);
    }

    fn of_mix(change: impl FnOnce(&mut OwnRequest)) -> ExpectedContents {
        let mut spec = http();
        let mut own = OwnRequest {
            method: "GET".into(),
            headers: Vec::new(),
            content: None,
            weight: 1,
            expect_status: vec![200],
            expect_content: ExpectedContent::AsFirst,
            expect_length: None,
            expect_hash: None,
        };
        change(&mut own);
        spec.urls[0].own = Some(Box::new(own));
        ExpectedContents::new(&spec)
    }

    /// What `b2sum -l 128` prints of "abc".
    fn hash_of_abc() -> Vec<u8> {
        let hash = "cf4ab791c62b8d2b2109c90275287816";
        let byte = |at: usize| u8::from_str_radix(&hash[at..at + 2], 16).expect("hexadecimal");
        (0..hash.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn a_content_too_long_to_be_held_back_still_has_its_hash() {
        let contents = of_mix(|own| own.expect_hash = Some(hash_of_abc()));
        let account = Rc::new(Cell::new(HELD_BYTES_MAX - 1));
        let checked = |pieces: &[&[u8]]| {
            let mut content = held_back(&contents, &account);
            pieces.iter().for_each(|piece| content.push(piece, None));
            content.finish(&contents, 0)
        };
        assert_eq!(checked(&[b"a", b"b", b"c"]), Ok(true), "one byte was held back");
        assert_eq!(checked(&[b"abc"]), Ok(true), "none was");
        assert_eq!(checked(&[b"a", b"b", b"d"]), Err(Mismatch::Hash { bytes: 3 }));
        assert_eq!((contents.get(0), account.get()), (None, HELD_BYTES_MAX - 1), "nothing is kept");
    }

    #[test]
    fn every_length_of_a_hash_is_that_of_the_whole() {
        for bytes in [16, 32, 64] {
            let whole = Hasher::of_length(bytes).map(|mut hasher| {
                hasher.push(b"abc");
                hasher
            });
            let expected = match whole.expect("there is one") {
                Hasher::Short(hasher) => hasher.finalize().to_vec(),
                Hasher::Middle(hasher) => hasher.finalize().to_vec(),
                Hasher::Long(hasher) => hasher.finalize().to_vec(),
            };
            let mut pieces = Hasher::of_length(bytes).expect("there is one");
            [b"a", b"b", b"c"].into_iter().for_each(|piece| pieces.push(piece));
            assert!(expected.len() == bytes && pieces.gives(&expected));
        }
        assert!(Hasher::of_length(20).is_none());
    }

    #[test]
    fn a_content_of_a_mix_has_the_hash_and_the_length_that_were_given() {
        let contents = of_mix(|own| own.expect_hash = Some(hash_of_abc()));
        assert_eq!(check(&contents, &[b"abd"]), Err(Mismatch::Hash { bytes: 3 }));
        assert_eq!(contents.get(0), None, "what is wrong is not expected");
        assert_eq!(check(&contents, &[b"a", b"bc"]), Ok(true));
        assert_eq!(check(&contents, &[b"abd"]), Err(Mismatch::Differs { at: 2 }), "compared from then on");
        let contents = of_mix(|own| {
            (own.expect_content, own.expect_length) = (ExpectedContent::Anything, Some(3));
        });
        assert_eq!((check(&contents, &[b"abc"]), check(&contents, &[b"xyz"])), (Ok(false), Ok(false)));
        assert_eq!(check(&contents, &[b"ab"]), Err(Mismatch::Length { bytes: 2, expected: 3 }));
    }

    #[test]
    fn what_is_only_measured_still_has_a_length() {
        let contents = contents(ExpectedContent::Bytes(vec![7; 5]));
        for (bytes, outcome) in [(5, Ok(false)), (6, Err(Mismatch::Length { bytes: 6, expected: 5 }))] {
            let mut content = Content::measured();
            content.push(&vec![8; bytes], contents.get(0));
            assert_eq!(content.finish(&contents, 0), outcome);
        }
    }

    #[test]
    fn contents_beyond_what_may_be_held_back_go_uncompared() {
        let contents = contents(ExpectedContent::AsFirst);
        let account = Rc::new(Cell::new(HELD_BYTES_MAX - 4));
        let mut content = held_back(&contents, &account);
        content.push(b"1234", None);
        content.push(b"5", None);
        assert_eq!((content.bytes(), account.get()), (5, HELD_BYTES_MAX - 4));
        assert_eq!(content.finish(&contents, 0), Ok(false));
        assert_eq!(contents.get(0), None, "what was not kept is not expected");
        let mut abandoned = held_back(&contents, &account);
        abandoned.push(b"12", None);
        drop(abandoned);
        assert_eq!(account.get(), HELD_BYTES_MAX - 4);
    }

    #[test]
    fn anything_is_right_where_anything_is_expected_and_where_nothing_can_come() {
        let head =
            HttpSpec { method: "HEAD".into(), expect_content: ExpectedContent::Bytes(vec![1]), ..http() };
        for contents in [contents(ExpectedContent::Anything), ExpectedContents::new(&head)] {
            assert_eq!(check(&contents, &[b"a"]), Ok(false));
            assert_eq!(check(&contents, &[]), Ok(false));
            assert_eq!(contents.content_bytes(), 0);
        }
    }
}
