//! The first bad response, kept for people to look at. Pure.

use weir_record::{
    failure::FailureSample,
    http::{BAD_RESPONSE_BYTES_MAX, BadResponse},
};

use super::spec::HttpSpec;
use crate::failure::Failure;

/// The first bytes of a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start(Vec<u8>);

impl Start {
    /// Adds as many of the next bytes as fit.
    #[inline]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = BAD_RESPONSE_BYTES_MAX - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Starts the next response.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// A bad response.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// When it was found to be bad.
    pub(crate) at_ns: u64,
    /// Which URL it answered.
    pub(crate) url: usize,
    pub(crate) failure: Failure,
    /// Bytes received of it.
    pub(crate) bytes: u64,
    pub(crate) start: Start,
}

impl Sample {
    /// In the report's form.
    pub(crate) fn report(&self, spec: &HttpSpec) -> BadResponse {
        BadResponse {
            url: spec.urls.get(self.url).map(|url| url.text.clone()).unwrap_or_default(),
            failure: FailureSample {
                class: self.failure.class.name().into(),
                text: self.failure.text.clone(),
            },
            bytes: self.bytes,
            start: self.start.0.escape_ascii().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_are_kept_up_to_the_maximum_and_no_more() {
        let mut start = Start::default();
        start.push(&[1; BAD_RESPONSE_BYTES_MAX - 1]);
        start.push(&[2, 3]);
        start.push(&[4]);
        assert_eq!((start.0.len(), start.0.last()), (BAD_RESPONSE_BYTES_MAX, Some(&2)));
        start.clear();
        start.push(&[5]);
        assert_eq!(start.0, [5]);
    }
}
