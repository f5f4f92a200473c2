//! What the contents of responses are compared with, and the comparison of one content as it comes in pieces.
//!
//! What is expected is given, or it is the content of the first right response to a URL; then all workers share it,
//! whichever of them saw it. Until it is known, contents are held back and compared when they are complete. No I/O, no
//! clock.

use std::{cell::Cell, rc::Rc, sync::OnceLock};

use blake2::{Blake2b128, Blake2b256, Blake2b512, Digest};

use super::spec::{ExpectedContent, HttpSpec, HttpUrl};

/// Bytes that one worker may hold back while nothing is expected yet; beyond, contents go uncompared.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What is expected from every URL.
#[derive(Debug)]
pub(crate) struct ExpectedContents(Vec<Expected>);

/// What is expected from one.
#[derive(Debug, Default)]
struct Expected {
    /// Nothing is compared.
    is_any: bool,
    /// The content, when it is known.
    content: OnceLock<Vec<u8>>,
    length: Option<u64>,
    /// Of the content that is then compared with.
    hash: Option<Vec<u8>>,
}

impl Expected {
    fn of(spec: &HttpSpec, url: &HttpUrl) -> Self {
        let own = url.own.as_deref();
        let content = own.map_or(&spec.expect_content, |own| &own.expect_content);
        let known = OnceLock::new();
        if let ExpectedContent::Bytes(bytes) = content {
            // Empty until now, so it takes it.
            drop(known.set(bytes.clone()));
        }
        // A response to HEAD has no content to compare.
        let is_head = spec.reads_as(url) == weir_proto::http1::Method::Head;
        Self {
            is_any: *content == ExpectedContent::Anything || is_head,
            content: known,
            length: own.filter(|_| !is_head).and_then(|own| own.expect_length),
            hash: own.and_then(|own| own.expect_hash.clone()),
        }
    }

    /// Whether a content may be the one that all are compared with.
    fn has_hash_of(&self, content: &[u8]) -> bool {
        let Some(expected) = self.hash.as_deref() else { return true };
        match expected.len() {
            16 => Blake2b128::digest(content)[..] == *expected,
            32 => Blake2b256::digest(content)[..] == *expected,
            64 => Blake2b512::digest(content)[..] == *expected,
            // Another length was refused with its request.
            _ => false,
        }
    }
}

impl ExpectedContents {
    pub(crate) fn new(spec: &HttpSpec) -> Self {
        Self(spec.urls.iter().map(|url| Expected::of(spec, url)).collect())
    }

    /// Nothing is compared of a URL.
    pub(crate) fn is_any(&self, url: usize) -> bool {
        self.0[url].is_any
    }

    /// What is expected from a URL, when it is known.
    #[inline]
    pub(crate) fn get(&self, url: usize) -> Option<&[u8]> {
        let expected = &self.0[url];
        if expected.is_any { None } else { expected.content.get().map(Vec::as_slice) }
    }

    /// The content of every response, in bytes, if they are known and equal; else 0.
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
    /// With what is expected, as it comes.
    Compare { differs_at: Option<usize> },
    /// Nothing is expected yet.
    Hold(Held),
    /// Only its length.
    Measure,
}

/// Bytes held back, on the worker's account until they are let go.
#[derive(Debug)]
struct Held {
    bytes: Vec<u8>,
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
}

impl Drop for Held {
    fn drop(&mut self) {
        self.account.set(self.account.get() - self.bytes.len());
    }
}

/// A content that is coming.
#[derive(Debug)]
pub(crate) struct Content {
    check: Check,
    bytes: usize,
}

/// A content that is not what it should be.
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

    /// It is compared with what is expected as it comes.
    pub(crate) fn compared() -> Self {
        Self { check: Check::Compare { differs_at: None }, bytes: 0 }
    }

    /// It is compared when it is complete, or becomes what is expected. `account` is what this worker holds back.
    pub(crate) fn held_back(account: &Rc<Cell<usize>>) -> Self {
        let held = Held { bytes: Vec::new(), account: Rc::clone(account) };
        Self { check: Check::Hold(held), bytes: 0 }
    }

    /// Bytes so far.
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
                    self.check = Check::Measure;
                }
            }
            Check::Measure => {}
        }
        self.bytes += piece.len();
    }

    /// It is complete: whether it was compared, or what is wrong with it. The first that was held back becomes what
    /// is expected.
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
            Check::Compare { differs_at: Some(at) } => Err(Mismatch::Differs { at }),
            Check::Hold(held) if expected != Some(&held.bytes) => {
                Err(Mismatch::Differs { at: difference(&held.bytes, expected, 0) })
            }
            Check::Compare { differs_at: None } | Check::Hold(_) => Ok(true),
        }
    }
}

/// The first byte of `piece` that is not the one at its place in what is expected, counted from the start of the piece.
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

    fn check(contents: &ExpectedContents, pieces: &[&[u8]]) -> Result<bool, Mismatch> {
        let account = Rc::new(Cell::new(0));
        let mut content =
            if contents.get(0).is_some() { Content::compared() } else { Content::held_back(&account) };
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
        let mut late = Content::held_back(&account);
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

    #[test]
    fn a_content_of_a_mix_has_the_hash_and_the_length_that_were_given() {
        // What `b2sum -l 128` prints of "abc".
        let hash = "cf4ab791c62b8d2b2109c90275287816";
        let byte = |at: usize| u8::from_str_radix(&hash[at..at + 2], 16).expect("hexadecimal");
        let hash: Vec<u8> = (0..hash.len()).step_by(2).map(byte).collect();
        let contents = of_mix(|own| own.expect_hash = Some(hash));
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
        let mut content = Content::held_back(&account);
        content.push(b"1234", None);
        content.push(b"5", None);
        assert_eq!((content.bytes(), account.get()), (5, HELD_BYTES_MAX - 4));
        assert_eq!(content.finish(&contents, 0), Ok(false));
        assert_eq!(contents.get(0), None, "what was not kept is not expected");
        let mut abandoned = Content::held_back(&account);
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
