//! Classification of failures.
//!
//! A failure is classified by the stage at which it happened and by the system's error. The kinds listed here are
//! those that sockets are documented to return. Anything else is `Unexplained`, which makes a run invalid, so that an
//! unknown cause cannot pass as a known one.

use std::io::{Error, ErrorKind};

use weir_record::failure::FailureCounts;

/// Why a connection failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) class: Class,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn system(stage: Stage, error: &Error) -> Self {
        Self { class: classify(stage, error), text: error.to_string() }
    }

    /// The peer ended a connection with `in_flight` messages in flight.
    pub(crate) fn short(in_flight: usize) -> Self {
        let text = match in_flight {
            0 => "the server closed a connection that nothing was in flight on".into(),
            1 => "the server closed a connection with 1 message in flight".into(),
            messages => format!("the server closed a connection with {messages} messages in flight"),
        };
        Self { class: Class::Short, text }
    }

    /// The peer sent bytes although every request was answered.
    pub(crate) fn unsolicited(class: Class, bytes: usize) -> Self {
        Self { class, text: format!("the server sent {bytes} bytes without a request") }
    }
}

/// What was being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Opening the connection.
    Connect,
    /// Sending and receiving messages.
    Exchange,
}

/// Classes of failure, as in [`FailureCounts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The target, or the network on the way to it, refused.
    Refused,
    /// The connection was broken by the other side or the network.
    Reset,
    /// No connection within the time limit.
    ConnectTimeout,
    /// No complete response within the time limit.
    ResponseTimeout,
    /// The peer ended the connection too early.
    Short,
    /// The response differs from what was sent or expected.
    WrongBytes,
    /// An HTTP response with an unexpected status.
    WrongStatus,
    /// The bytes are not a valid HTTP response, or a response that was not requested.
    Malformed,
    /// Ports, descriptors or memory of this machine ran out.
    LocalLimit,
    /// None of these.
    Unexplained,
}

impl Class {
    /// Every class.
    #[cfg(test)]
    pub const ALL: [Class; 10] = [
        Class::Refused,
        Class::Reset,
        Class::ConnectTimeout,
        Class::ResponseTimeout,
        Class::Short,
        Class::WrongBytes,
        Class::WrongStatus,
        Class::Malformed,
        Class::LocalLimit,
        Class::Unexplained,
    ];

    /// The name of its count in [`FailureCounts`].
    pub fn name(self) -> &'static str {
        match self {
            Class::Refused => "refused",
            Class::Reset => "reset",
            Class::ConnectTimeout => "connect_timeout",
            Class::ResponseTimeout => "response_timeout",
            Class::Short => "short",
            Class::WrongBytes => "wrong_bytes",
            Class::WrongStatus => "wrong_status",
            Class::Malformed => "malformed",
            Class::LocalLimit => "local_limit",
            Class::Unexplained => "unexplained",
        }
    }
}

/// The class of an error of the system.
pub fn classify(stage: Stage, error: &Error) -> Class {
    if is_local_limit(error) {
        return Class::LocalLimit;
    }
    match (stage, error.kind()) {
        (Stage::Connect, ErrorKind::TimedOut) => Class::ConnectTimeout,
        (Stage::Exchange, ErrorKind::TimedOut) => Class::ResponseTimeout,
        (_, ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) => {
            Class::Reset
        }
        (
            Stage::Connect,
            ErrorKind::ConnectionRefused
            | ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown,
        ) => Class::Refused,
        // Errors when a path dies under an open connection; a Unix or loopback socket returns "refused" if its
        // listener went away while the connection was still in the queue.
        (
            Stage::Exchange,
            ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::ConnectionRefused,
        ) => Class::Reset,
        _ => Class::Unexplained,
    }
}

fn is_local_limit(error: &Error) -> bool {
    // EMFILE and ENFILE have no `ErrorKind` in the standard library.
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse | ErrorKind::OutOfMemory)
        // The queue of a Unix listener is full: the kernel offers no way to wait for it.
        || error.kind() == ErrorKind::WouldBlock
        || matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
}

/// Adds failures of one class.
pub fn count(counts: &mut FailureCounts, class: Class, failures: u64) {
    *match class {
        Class::Refused => &mut counts.refused,
        Class::Reset => &mut counts.reset,
        Class::ConnectTimeout => &mut counts.connect_timeout,
        Class::ResponseTimeout => &mut counts.response_timeout,
        Class::Short => &mut counts.short,
        Class::WrongBytes => &mut counts.wrong_bytes,
        Class::WrongStatus => &mut counts.wrong_status,
        Class::Malformed => &mut counts.malformed,
        Class::LocalLimit => &mut counts.local_limit,
        Class::Unexplained => &mut counts.unexplained,
    } += failures;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented_errors_of_connect_have_a_class() {
        // connect(2), socket(2); the numbers are those of Linux on every architecture we run on.
        let expected = [
            (111, Class::Refused),
            (2, Class::Refused),
            (1, Class::Refused),
            (13, Class::Refused),
            (101, Class::Refused),
            (113, Class::Refused),
            (104, Class::Reset),
            (103, Class::Reset),
            (110, Class::ConnectTimeout),
            (99, Class::LocalLimit),
            (98, Class::LocalLimit),
            (11, Class::LocalLimit),
            (23, Class::LocalLimit),
            (24, Class::LocalLimit),
            (105, Class::LocalLimit),
            (12, Class::LocalLimit),
        ];
        for (number, class) in expected {
            let error = Error::from_raw_os_error(number);
            assert_eq!(classify(Stage::Connect, &error), class, "{error}");
        }
    }

    #[test]
    fn documented_errors_of_an_open_connection_have_a_class() {
        let expected = [
            (104, Class::Reset),
            (32, Class::Reset),
            (103, Class::Reset),
            (111, Class::Reset),
            (113, Class::Reset),
            (101, Class::Reset),
            (110, Class::ResponseTimeout),
            (105, Class::LocalLimit),
            (12, Class::LocalLimit),
        ];
        for (number, class) in expected {
            let error = Error::from_raw_os_error(number);
            assert_eq!(classify(Stage::Exchange, &error), class, "{error}");
        }
    }

    #[test]
    fn what_is_not_documented_is_unexplained() {
        for number in [9, 22, 88, 107] {
            let error = Error::from_raw_os_error(number);
            assert_eq!(classify(Stage::Exchange, &error), Class::Unexplained, "{error}");
        }
        assert_eq!(classify(Stage::Connect, &Error::other("limit")), Class::Unexplained);
    }

    #[test]
    fn each_class_has_its_own_count() {
        let mut counts = FailureCounts::default();
        for (index, class) in Class::ALL.into_iter().enumerate() {
            count(&mut counts, class, 1 << index);
        }
        assert_eq!(counts.errors(), 1023);
        assert_eq!((counts.refused, counts.unexplained, counts.cut_off_at_end), (1, 512, 0));
        let json = serde_json::to_value(counts).expect("plain data");
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(json[class.name()], 1_u64 << index, "{}", class.name());
        }
    }
}
