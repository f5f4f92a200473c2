//! Every error of a received message, and the status that a server answers it with.

use thiserror::Error;

/// Why a message was refused. After an error, a decoder reports the same one forever: the start of the next message
/// is unknown, so the connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum ParseError {
    /// More than [`EMPTY_LINES_MAX`](super::limits::EMPTY_LINES_MAX) empty lines in front of a request, or any
    /// in front of a response.
    #[error("empty lines in front of the message")]
    EmptyLines,
    /// A control byte (NUL among them) where text belongs. TLS on a plain port ends here.
    #[error("a control byte in the head")]
    ControlByte,
    /// A carriage return that no line feed follows.
    #[error("a carriage return without line feed")]
    BareCarriageReturn,
    /// A line feed without a carriage return. RFC 9112, 2.2 would allow it; disagreement between two readers about
    /// the end of a line is how requests are smuggled.
    #[error("a line feed without carriage return")]
    BareLineFeed,
    /// The request line is not `method SP target SP version`.
    #[error("a malformed request line")]
    RequestLine,
    /// The target has none of the four forms of RFC 9112, 3.2, or does not fit its method.
    #[error("a malformed request target")]
    Target,
    /// The status line is not `version SP status SP [reason]`.
    #[error("a malformed status line")]
    StatusLine,
    /// A version of HTTP other than 1.0, 1.1 and later 1.x versions.
    #[error("an unsupported version of HTTP")]
    Version,
    /// The first line is longer than allowed.
    #[error("the first line is too long")]
    FirstLineTooLong,
    /// A method outside [`Method`](super::Method).
    #[error("an unknown method")]
    MethodUnknown,
    /// A header name that is no token; whitespace between name and colon is one cause.
    #[error("a malformed header name")]
    HeaderName,
    /// A header value with forbidden bytes.
    #[error("a malformed header value")]
    HeaderValue,
    /// A header line that begins with whitespace (obs-fold).
    #[error("an obsolete folded header line")]
    FoldedLine,
    /// More header or trailer lines than allowed.
    #[error("too many header lines")]
    HeaderCount,
    /// The head is longer than allowed.
    #[error("the head is too large")]
    HeadTooLarge,
    /// HTTP/1.1 without `Host`.
    #[error("no Host header")]
    HostMissing,
    /// More than one `Host`.
    #[error("more than one Host header")]
    HostRepeated,
    /// `Host` is not `host[:port]`.
    #[error("a malformed Host header")]
    HostInvalid,
    /// `Content-Length` is not one run of decimal digits that fits 64 bits.
    #[error("a malformed Content-Length")]
    ContentLength,
    /// More than one `Content-Length`, equal ones included.
    #[error("more than one Content-Length")]
    ContentLengthRepeated,
    /// Both `Content-Length` and `Transfer-Encoding`.
    #[error("both Content-Length and Transfer-Encoding")]
    FramingConflict,
    /// `Transfer-Encoding` that does not end in `chunked`, names it twice, has an empty element, or comes
    /// with HTTP/1.0.
    #[error("a Transfer-Encoding that does not frame the message")]
    TransferEncoding,
    /// A transfer coding other than `chunked` in front of it.
    #[error("an unknown transfer coding")]
    TransferCodingUnknown,
    /// The content is longer than allowed.
    #[error("the content is too large")]
    BodyTooLarge,
    /// A chunk size without digits, with too many, or with other bytes.
    #[error("a malformed chunk size")]
    ChunkSize,
    /// A chunk extension that is not `;name`, `;name=value` or `;name="value"`.
    #[error("a malformed chunk extension")]
    ChunkExtension,
    /// Chunk extensions longer than allowed.
    #[error("chunk extensions are too large")]
    ChunkExtensionTooLarge,
    /// The bytes of a chunk are not followed by a line end.
    #[error("a chunk without its line end")]
    ChunkEnd,
    /// The trailer section is longer than allowed.
    #[error("the trailer section is too large")]
    TrailerTooLarge,
    /// `Expect` with any value but `100-continue`.
    #[error("an unknown expectation")]
    Expectation,
    /// A final response did not come after many interim ones.
    #[error("too many interim responses")]
    InterimResponses,
    /// The peer stopped sending in the middle of a message.
    #[error("the message is cut off")]
    Truncated,
}

impl ParseError {
    /// The status a server answers with before it closes. For a client the number summarises the error.
    ///
    /// 405 and 408 are not here: other code knows which methods a target allows, and what comes too late.
    pub fn status(self) -> u16 {
        match self {
            Self::BodyTooLarge => 413,
            Self::FirstLineTooLong => 414,
            Self::Expectation => 417,
            Self::HeaderCount | Self::HeadTooLarge | Self::TrailerTooLarge => 431,
            Self::MethodUnknown | Self::TransferCodingUnknown => 501,
            Self::Version => 505,
            Self::EmptyLines
            | Self::ControlByte
            | Self::BareCarriageReturn
            | Self::BareLineFeed
            | Self::RequestLine
            | Self::Target
            | Self::StatusLine
            | Self::HeaderName
            | Self::HeaderValue
            | Self::FoldedLine
            | Self::HostMissing
            | Self::HostRepeated
            | Self::HostInvalid
            | Self::ContentLength
            | Self::ContentLengthRepeated
            | Self::FramingConflict
            | Self::TransferEncoding
            | Self::ChunkSize
            | Self::ChunkExtension
            | Self::ChunkExtensionTooLarge
            | Self::ChunkEnd
            | Self::InterimResponses
            | Self::Truncated => 400,
        }
    }
}
