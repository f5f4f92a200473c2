//! Frames: cutting them out of a stream, and writing them.

use super::{
    ProtocolError,
    packet::{CLIENT_HEARTBEAT, END_OF_SESSION, LOGOUT, SERVER_HEARTBEAT},
};

/// Bytes in front of a payload: the length and the type.
pub const HEADER_BYTES: usize = LENGTH_BYTES + 1;

/// The most payload a length of 16 bits can declare.
pub const PAYLOAD_BYTES_MAX: usize = u16::MAX as usize - 1;

/// A whole server heartbeat.
pub const SERVER_HEARTBEAT_FRAME: [u8; HEADER_BYTES] = header(SERVER_HEARTBEAT, 0);
/// A whole client heartbeat.
pub const CLIENT_HEARTBEAT_FRAME: [u8; HEADER_BYTES] = header(CLIENT_HEARTBEAT, 0);
/// A whole end of session.
pub const END_OF_SESSION_FRAME: [u8; HEADER_BYTES] = header(END_OF_SESSION, 0);
/// A whole logout request.
pub const LOGOUT_FRAME: [u8; HEADER_BYTES] = header(LOGOUT, 0);

/// The length field, which counts the bytes after it.
const LENGTH_BYTES: usize = 2;

/// One frame of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    /// Type of the packet.
    pub kind: u8,
    /// The bytes after the type.
    pub payload: &'a [u8],
}

/// Cuts a stream into frames, for any division of the stream into reads.
///
/// A frame that is whole in the input is lent from it. A divided one is collected, up to the allowed payload and a
/// header, and lent from here until the next call. The division of the stream changes neither the frames nor the
/// [`ProtocolError`]; after an error a stream returns that error forever.
#[derive(Clone, Debug)]
pub struct Deframer {
    payload_bytes_max: usize,
    held: Vec<u8>,
    /// The held frame was lent by the previous call.
    is_lent: bool,
    error: Option<ProtocolError>,
}

impl Deframer {
    /// Refuses frames with more than `payload_bytes_max` bytes of payload.
    pub fn new(payload_bytes_max: usize) -> Self {
        Self { payload_bytes_max, held: Vec::new(), is_lent: false, error: None }
    }

    /// The next frame, and `input` moved behind it; `None` when the input is used up and the frame is not complete.
    pub fn next<'a: 'b, 'b>(&'b mut self, input: &mut &'a [u8]) -> Result<Option<Frame<'b>>, ProtocolError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.is_lent {
            self.held.clear();
            self.is_lent = false;
        }
        if self.held.is_empty() {
            match frame_bytes(input, self.payload_bytes_max) {
                Ok(Some(bytes)) if bytes <= input.len() => {
                    let (whole, rest) = input.split_at(bytes);
                    *input = rest;
                    return Ok(frame(whole));
                }
                Ok(_) => {}
                Err(error) => return Err(self.fail(error)),
            }
        }
        if !self.collect(input)? {
            return Ok(None);
        }
        self.is_lent = true;
        Ok(frame(&self.held))
    }

    /// Whether no part of a frame is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() || self.is_lent
    }

    /// Bytes of an incomplete frame that are held.
    pub fn held_bytes(&self) -> usize {
        if self.is_lent { 0 } else { self.held.len() }
    }

    /// Takes the missing bytes of the held frame from the input, and returns whether it is complete.
    fn collect(&mut self, input: &mut &[u8]) -> Result<bool, ProtocolError> {
        loop {
            let wanted = match frame_bytes(&self.held, self.payload_bytes_max) {
                Ok(Some(bytes)) if bytes == self.held.len() => return Ok(true),
                Ok(Some(bytes)) => bytes,
                Ok(None) => LENGTH_BYTES,
                Err(error) => return Err(self.fail(error)),
            };
            let missing = wanted - self.held.len();
            let (taken, rest) = input.split_at(missing.min(input.len()));
            if taken.is_empty() {
                return Ok(false);
            }
            self.held.reserve_exact(missing);
            self.held.extend_from_slice(taken);
            *input = rest;
        }
    }

    fn fail(&mut self, error: ProtocolError) -> ProtocolError {
        self.held = Vec::new();
        self.error = Some(error);
        error
    }
}

/// Length of the frame that starts with `start`, once its length field is complete.
fn frame_bytes(start: &[u8], payload_bytes_max: usize) -> Result<Option<usize>, ProtocolError> {
    let Some(length) = start.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes(*length));
    match length.checked_sub(1) {
        None => Err(ProtocolError::EmptyFrame),
        Some(declared) if declared > payload_bytes_max => {
            Err(ProtocolError::TooLong { declared, max: payload_bytes_max })
        }
        Some(_) => Ok(Some(LENGTH_BYTES + length)),
    }
}

fn frame(whole: &[u8]) -> Option<Frame<'_>> {
    match whole {
        [_, _, kind, payload @ ..] => Some(Frame { kind: *kind, payload }),
        _ => None,
    }
}

/// The bytes in front of a payload.
///
/// # Panics
/// When the payload is longer than [`PAYLOAD_BYTES_MAX`].
pub const fn header(kind: u8, payload_bytes: usize) -> [u8; HEADER_BYTES] {
    assert!(payload_bytes <= PAYLOAD_BYTES_MAX, "a payload fits its frame");
    let [high, low] = (1 + payload_bytes as u16).to_be_bytes();
    [high, low, kind]
}

/// Appends a whole frame.
///
/// # Panics
/// When the payload is longer than [`PAYLOAD_BYTES_MAX`].
pub fn encode_frame(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.reserve(HEADER_BYTES + payload.len());
    out.extend_from_slice(&header(kind, payload.len()));
    out.extend_from_slice(payload);
}
