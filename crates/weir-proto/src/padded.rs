//! Text in fields of fixed length: left-justified and filled up with spaces.
//!
//! Both order protocols encode names this way. Fields made here are checked; fields from a peer are trimmed of the
//! padding that peers use.

use thiserror::Error;

/// Why a text does not fit a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum TextError {
    /// More bytes than the field has.
    #[error("longer than {bytes_max} characters")]
    TooLong {
        /// Size of the field in bytes.
        bytes_max: usize,
    },
    /// A byte outside printable ASCII.
    #[error("not printable ASCII")]
    NotPrintable,
}

/// The field for `text`, padded with spaces.
pub(crate) fn left_justified<const N: usize>(text: &[u8]) -> Result<[u8; N], TextError> {
    if !text.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return Err(TextError::NotPrintable);
    }
    let mut field = [b' '; N];
    match field.get_mut(..text.len()) {
        Some(start) => start.copy_from_slice(text),
        None => return Err(TextError::TooLong { bytes_max: N }),
    }
    Ok(field)
}

/// Without the spaces and NULs on either side.
pub(crate) fn trimmed(field: &[u8]) -> &[u8] {
    let text = trimmed_end(field);
    match text.iter().position(|byte| !is_padding(*byte)) {
        Some(first) => &text[first..],
        None => &[],
    }
}

/// Without the spaces and NULs behind it.
pub(crate) fn trimmed_end(field: &[u8]) -> &[u8] {
    match field.iter().rposition(|byte| !is_padding(*byte)) {
        Some(last) => &field[..=last],
        None => &[],
    }
}

fn is_padding(byte: u8) -> bool {
    matches!(byte, b' ' | 0)
}
