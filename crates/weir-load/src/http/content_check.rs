//! What the contents of responses are compared with, and the comparison of one content as it comes in pieces.
//!
//! What is expected is given, or it is the content of the first right response to a URL; then all workers share it,
//! whichever of them saw it. Until it is known, contents are held back and compared when they are complete. No I/O, no
//! clock.

use std::{cell::Cell, rc::Rc, sync::OnceLock};

use super::spec::{ExpectedContent, HttpSpec};

/// Bytes that one worker may hold back while nothing is expected yet; beyond, contents go uncompared.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What is expected from every URL.
#[derive(Debug)]
pub(crate) struct ExpectedContents {
    is_any: bool,
    by_url: Vec<OnceLock<Vec<u8>>>,
}

impl ExpectedContents {
    pub(crate) fn new(spec: &HttpSpec) -> Self {
        let by_url: Vec<OnceLock<Vec<u8>>> = spec.urls.iter().map(|_| OnceLock::new()).collect();
        if let ExpectedContent::Bytes(bytes) = &spec.expect_content {
            // Empty until now, so each takes it.
            by_url.iter().for_each(|content| drop(content.set(bytes.clone())));
        }
        // A response to HEAD has no content to compare.
        let is_any = spec.expect_content == ExpectedContent::Anything
            || spec.reads_as() == weir_proto::http1::Method::Head;
        Self { is_any, by_url }
    }

    /// Nothing is compared.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any
    }

    /// What is expected from a URL, when it is known.
    #[inline]
    pub(crate) fn get(&self, url: usize) -> Option<&[u8]> {
        if self.is_any { None } else { self.by_url[url].get().map(Vec::as_slice) }
    }

    /// The content of every response, in bytes, if they are known and equal; else 0.
    pub(crate) fn content_bytes(&self) -> u32 {
        let mut lengths = (0..self.by_url.len()).map(|url| self.get(url).map(<[u8]>::len));
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
        if contents.is_any {
            return Ok(false);
        }
        if let Check::Hold(held) = &self.check {
            contents.by_url[url].get_or_init(|| held.bytes.clone());
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
    use super::{super::spec::tests::http, *};

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
