//! The content of a message: where it ends, and its bytes as slices of the input (RFC 9112, 6 and 7).
//!
//! Nothing is copied here. The trailer section of a chunked body is text, and its reader handles it.

use super::{
    error::ParseError,
    head::is_token,
    limits::{CHUNK_SIZE_DIGITS_MAX, Limits},
};

/// How the end of the content is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no content, regardless of the headers.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks, each with its size.
    Chunked,
    /// Everything until the peer closes. Responses only.
    UntilClose,
}

/// The result of a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress<'i> {
    /// The piece is used up, and the content continues.
    More,
    /// Bytes of the content.
    Bytes(&'i [u8]),
    /// The content is complete.
    End,
    /// All chunks have been read; the trailer section follows.
    Trailer,
}

/// The state between two pieces of content.
#[derive(Debug)]
pub(super) struct Body {
    state: State,
    /// Content bytes so far, as announced by chunk sizes or as arrived.
    content_bytes: u64,
    extension_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    End,
    Length { left: u64 },
    UntilClose,
    Size { digits: u8, value: u64 },
    Extension { size: u64, at: ExtensionPart },
    SizeLineFeed { size: u64 },
    Chunk { left: u64 },
    ChunkReturn,
    ChunkLineFeed,
    Trailer,
}

/// The position in a chunk's extensions (RFC 9112, 7.1.1): `*( BWS ";" BWS name [ BWS "=" BWS value ] )`.
#[derive(Clone, Copy, Debug)]
enum ExtensionPart {
    /// Whitespace behind the size; it is valid only in front of a semicolon. Some parsers read a size that is
    /// followed only by spaces as another number.
    BehindSize,
    /// Behind a semicolon.
    NameStart,
    Name,
    /// Whitespace behind a name.
    BehindName,
    /// Behind an equals sign.
    ValueStart,
    Value,
    Quoted,
    /// Behind a backslash in quotes.
    Escaped,
    QuotesEnd,
    /// Whitespace behind a value.
    BehindValue,
}

impl ExtensionPart {
    /// The part after a byte other than a carriage return.
    fn next(self, byte: u8) -> Result<Self, ParseError> {
        let is_space = matches!(byte, b' ' | b'\t');
        Ok(match (self, byte) {
            (Self::Quoted, b'"') => Self::QuotesEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, _) if is_space || is_text(byte) => Self::Quoted,
            (Self::BehindSize | Self::NameStart | Self::ValueStart, _) if is_space => self,
            (Self::Name | Self::BehindName, _) if is_space => Self::BehindName,
            (Self::Value | Self::QuotesEnd | Self::BehindValue, _) if is_space => Self::BehindValue,
            (Self::BehindSize | Self::Name | Self::BehindName, b';') => Self::NameStart,
            (Self::Value | Self::QuotesEnd | Self::BehindValue, b';') => Self::NameStart,
            (Self::BehindSize, _) => return Err(ParseError::ChunkSize),
            (Self::Name | Self::BehindName, b'=') => Self::ValueStart,
            (Self::ValueStart, b'"') => Self::Quoted,
            (Self::NameStart | Self::Name, _) if is_token(byte) => Self::Name,
            (Self::ValueStart | Self::Value, _) if is_token(byte) => Self::Value,
            _ => return Err(ParseError::ChunkExtension),
        })
    }

    /// Whether the line may end here.
    fn end(self) -> Result<(), ParseError> {
        match self {
            Self::Name | Self::Value | Self::QuotesEnd => Ok(()),
            Self::BehindSize => Err(ParseError::ChunkSize),
            _ => Err(ParseError::ChunkExtension),
        }
    }
}

/// Visible, or beyond ASCII: allowed between quotes.
fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || !byte.is_ascii()
}

const SIZE: State = State::Size { digits: 0, value: 0 };

impl Body {
    pub(super) fn new(length: BodyLength) -> Self {
        let state = match length {
            BodyLength::None => State::End,
            BodyLength::Length(left) => State::Length { left },
            BodyLength::Chunked => SIZE,
            BodyLength::UntilClose => State::UntilClose,
        };
        Self { state, content_bytes: 0, extension_bytes: 0 }
    }

    /// Whether the end of the connection is the end of the content.
    pub(super) fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::UntilClose)
    }

    /// Takes bytes up to the next event and returns their number.
    pub(super) fn decode<'i>(
        &mut self,
        input: &'i [u8],
        limits: &Limits,
    ) -> Result<(usize, Progress<'i>), ParseError> {
        let mut taken = 0;
        loop {
            match self.state {
                State::End => return Ok((taken, Progress::End)),
                State::Trailer => return Ok((taken, Progress::Trailer)),
                State::Length { left: 0 } => self.state = State::End,
                State::Chunk { left: 0 } => self.state = State::ChunkReturn,
                _ if taken == input.len() => return Ok((taken, Progress::More)),
                State::Length { left } => {
                    let bytes = prefix(input, left);
                    self.state = State::Length { left: left - bytes.len() as u64 };
                    return Ok((bytes.len(), Progress::Bytes(bytes)));
                }
                State::Chunk { left } => {
                    let bytes = prefix(&input[taken..], left);
                    self.state = State::Chunk { left: left - bytes.len() as u64 };
                    return Ok((taken + bytes.len(), Progress::Bytes(bytes)));
                }
                State::UntilClose => {
                    // Bytes up to the bound are handed out first, so that cuts in the input change nothing.
                    let left = limits.body_bytes_max.saturating_sub(self.content_bytes);
                    let bytes = prefix(input, left.max(1));
                    self.announce(bytes.len() as u64, limits)?;
                    return Ok((bytes.len(), Progress::Bytes(bytes)));
                }
                _ => {
                    self.state = self.step(input[taken], limits)?;
                    taken += 1;
                }
            }
        }
    }

    /// One byte of chunk framing.
    fn step(&mut self, byte: u8, limits: &Limits) -> Result<State, ParseError> {
        match (self.state, byte) {
            (State::Size { digits, value }, _) if byte.is_ascii_hexdigit() => {
                if digits == CHUNK_SIZE_DIGITS_MAX || value > u64::MAX >> 4 {
                    return Err(ParseError::ChunkSize);
                }
                Ok(State::Size { digits: digits + 1, value: value << 4 | u64::from(hex_value(byte)) })
            }
            (State::Size { digits: 0, .. }, _) => Err(ParseError::ChunkSize),
            (State::Size { value, .. }, b'\r') => self.end_size(value, limits),
            (State::Size { value, .. }, b';' | b' ' | b'\t') => {
                self.count_extension(limits)?;
                Ok(State::Extension { size: value, at: ExtensionPart::BehindSize.next(byte)? })
            }
            (State::Size { .. }, _) => Err(ParseError::ChunkSize),
            (State::Extension { size, at }, b'\r') => {
                at.end()?;
                self.end_size(size, limits)
            }
            // Extensions are ignored but counted.
            (State::Extension { size, at }, _) => {
                let at = at.next(byte)?;
                self.count_extension(limits)?;
                Ok(State::Extension { size, at })
            }
            (State::SizeLineFeed { size: 0 }, b'\n') => Ok(State::Trailer),
            (State::SizeLineFeed { size }, b'\n') => Ok(State::Chunk { left: size }),
            (State::SizeLineFeed { .. }, _) => Err(ParseError::BareCarriageReturn),
            (State::ChunkReturn, b'\r') => Ok(State::ChunkLineFeed),
            (State::ChunkLineFeed, b'\n') => Ok(SIZE),
            (State::ChunkReturn | State::ChunkLineFeed, _) => Err(ParseError::ChunkEnd),
            (state @ (State::End | State::Length { .. } | State::UntilClose), _)
            | (state @ (State::Chunk { .. } | State::Trailer), _) => Ok(state),
        }
    }

    fn count_extension(&mut self, limits: &Limits) -> Result<(), ParseError> {
        self.extension_bytes += 1;
        if self.extension_bytes > limits.chunk_extension_bytes_max {
            return Err(ParseError::ChunkExtensionTooLarge);
        }
        Ok(())
    }

    fn end_size(&mut self, size: u64, limits: &Limits) -> Result<State, ParseError> {
        self.announce(size, limits)?;
        Ok(State::SizeLineFeed { size })
    }

    fn announce(&mut self, bytes: u64, limits: &Limits) -> Result<(), ParseError> {
        self.content_bytes = self.content_bytes.checked_add(bytes).ok_or(ParseError::BodyTooLarge)?;
        if self.content_bytes > limits.body_bytes_max {
            return Err(ParseError::BodyTooLarge);
        }
        Ok(())
    }
}

fn prefix(input: &[u8], bytes_max: u64) -> &[u8] {
    let length = usize::try_from(bytes_max).map_or(input.len(), |most| most.min(input.len()));
    &input[..length]
}

fn hex_value(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
