//! The slow path of heads and trailers: text that arrives in pieces, gathered line by line into one bounded
//! buffer until its empty line.
//!
//! It works byte by byte, so its result depends only on the bytes and never on how they were split. It does not
//! interpret the lines.

use super::{error::ParseError, limits::EMPTY_LINES_MAX};

/// How much of a refused piece is kept: enough to distinguish methods.
const METHOD_BYTES: usize = 8;

/// The section that is being gathered, and its limits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) section: Section,
    pub(super) first_line_bytes_max: usize,
    pub(super) line_count_max: usize,
    pub(super) section_bytes_max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Request,
    Response,
    Trailer,
}

/// The state of the section after a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The piece is used up; the section is not complete.
    More,
    /// The first line of a head is complete; continue with the rest of the piece.
    FirstLine,
    /// The empty line has been read.
    End,
}

#[derive(Debug, Default)]
pub(super) struct Scanner {
    buffer: Vec<u8>,
    line_bytes: usize,
    line_count: usize,
    after_return: bool,
    /// Empty lines skipped in front of this head.
    pub(super) empty_lines: u8,
}

impl Scanner {
    /// Drops the section and its memory, so that an idle connection holds none.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether nothing of a section is held.
    pub(super) fn is_idle(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The section, line ends included.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer
    }

    pub(super) fn capacity_bytes(&self) -> usize {
        self.buffer.capacity()
    }

    /// Replaces a digit larger than one at this position by one.
    pub(super) fn lower_to_one(&mut self, place: usize) {
        if let Some(digit @ b'2'..=b'9') = self.buffer.get_mut(place) {
            *digit = b'1';
        }
    }

    /// Takes bytes of `piece` up to the next event and returns their number. After an error, `bytes` contains at
    /// least the start of the section, and the wrong bytes if they have been read.
    pub(super) fn push(&mut self, piece: &[u8], bounds: &Bounds) -> Result<(usize, Progress), ParseError> {
        let mut copied = 0;
        for (index, byte) in piece.iter().enumerate() {
            let taken = index + 1;
            let line = match self.step(*byte, self.buffer.len() + taken - copied, bounds) {
                Ok(Some(line)) => line,
                Ok(None) => continue,
                Err(error) => {
                    let start = &piece[copied..taken];
                    self.keep(&start[..start.len().min(METHOD_BYTES)], bounds.section_bytes_max);
                    return Err(error);
                }
            };
            match line {
                Line::Leading => {
                    self.buffer.clear();
                    copied = taken;
                }
                Line::First | Line::Last => {
                    self.keep(&piece[copied..taken], bounds.section_bytes_max);
                    let progress =
                        if matches!(line, Line::First) { Progress::FirstLine } else { Progress::End };
                    return Ok((taken, progress));
                }
            }
        }
        self.keep(&piece[copied..], bounds.section_bytes_max);
        Ok((piece.len(), Progress::More))
    }

    /// One byte, the `count`th of its section; returns the line that it ends, if the caller needs it.
    fn step(&mut self, byte: u8, count: usize, bounds: &Bounds) -> Result<Option<Line>, ParseError> {
        match byte {
            b'\n' if self.after_return => {}
            _ if self.after_return => return Err(ParseError::BareCarriageReturn),
            b'\n' => return Err(ParseError::BareLineFeed),
            b'\r' => self.after_return = true,
            b' ' | b'\t' if self.line_bytes == 0 => return Err(self.error_of_leading_space(bounds)),
            byte if byte != b'\t' && byte.is_ascii_control() => return Err(ParseError::ControlByte),
            _ => self.line_bytes += 1,
        }
        let in_first_line = bounds.section != Section::Trailer && self.line_count == 0;
        if in_first_line && self.line_bytes > bounds.first_line_bytes_max {
            return Err(ParseError::FirstLineTooLong);
        }
        if count > bounds.section_bytes_max {
            let in_trailer = bounds.section == Section::Trailer;
            return Err(if in_trailer { ParseError::TrailerTooLarge } else { ParseError::HeadTooLarge });
        }
        if byte == b'\n' { self.end_line(bounds, in_first_line) } else { Ok(None) }
    }

    fn error_of_leading_space(&self, bounds: &Bounds) -> ParseError {
        match bounds.section {
            Section::Request if self.line_count == 0 => ParseError::RequestLine,
            Section::Response if self.line_count == 0 => ParseError::StatusLine,
            _ => ParseError::FoldedLine,
        }
    }

    fn end_line(&mut self, bounds: &Bounds, in_first_line: bool) -> Result<Option<Line>, ParseError> {
        self.after_return = false;
        let empty = std::mem::take(&mut self.line_bytes) == 0;
        if empty && in_first_line {
            if bounds.section != Section::Request || self.empty_lines == EMPTY_LINES_MAX {
                return Err(ParseError::EmptyLines);
            }
            self.empty_lines += 1;
            return Ok(Some(Line::Leading));
        }
        if empty {
            return Ok(Some(Line::Last));
        }
        self.line_count += 1;
        let headers = self.line_count - usize::from(bounds.section != Section::Trailer);
        if headers > bounds.line_count_max {
            return Err(ParseError::HeaderCount);
        }
        Ok(in_first_line.then_some(Line::First))
    }

    /// Appends within the bound: the buffer doubles, but its capacity never exceeds the section's limit.
    fn keep(&mut self, bytes: &[u8], bytes_max: usize) {
        let needed = self.buffer.len() + bytes.len();
        if needed > self.buffer.capacity() {
            let wanted = needed.max(self.buffer.capacity() * 2).min(bytes_max.max(needed));
            self.buffer.reserve_exact(wanted - self.buffer.len());
        }
        self.buffer.extend_from_slice(bytes);
    }
}

/// A line end that matters to the caller.
#[derive(Clone, Copy)]
enum Line {
    /// Empty, in front of a request.
    Leading,
    /// The first line of a head.
    First,
    /// The empty line at the end.
    Last,
}
