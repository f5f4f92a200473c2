//! Limits on the cost of one message for its reader. Every buffer of this module is bounded by one of these numbers.

/// The most header lines any configuration can allow: heads are parsed into an array on the stack.
pub const HEADER_COUNT_MAX: usize = 128;

/// Empty lines skipped in front of a request (RFC 9112, 2.2 recommends at least one).
pub const EMPTY_LINES_MAX: u8 = 2;

/// Interim responses (1xx) accepted in front of one final response.
pub const INTERIM_RESPONSES_MAX: u8 = 16;

/// Hexadecimal digits of a chunk size, leading zeros included. Without leading zeros a size has at most the 16 digits
/// of 64 bits.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 64;

/// Limits for one message. A message exactly at a bound is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The request line or status line, without its line end. Above the limit: 414.
    pub first_line_bytes_max: usize,
    /// Header lines, and trailer lines. Above the limit: 431. Never more than [`HEADER_COUNT_MAX`].
    pub header_count_max: usize,
    /// The whole head, from its first byte to the end of its empty line. Above the limit: 431.
    pub head_bytes_max: usize,
    /// The content of one message, without its chunk framing. Above the limit: 413.
    pub body_bytes_max: u64,
    /// Chunk extensions of one message together, from the first byte after the digits. Above the limit: 400.
    pub chunk_extension_bytes_max: usize,
    /// The trailer section with its empty line. Above the limit: 431.
    pub trailer_bytes_max: usize,
}

impl Limits {
    /// The default limits.
    pub const DEFAULT: Self = Self {
        first_line_bytes_max: 8 * 1024,
        header_count_max: 100,
        head_bytes_max: 16 * 1024,
        body_bytes_max: 16 * 1024 * 1024,
        chunk_extension_bytes_max: 4 * 1024,
        trailer_bytes_max: 8 * 1024,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
