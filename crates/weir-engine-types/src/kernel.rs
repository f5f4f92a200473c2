//! The kernel version that introduced each feature that our drivers use. One table, both for masking features and for
//! reporting them.
//!
//! Versions are those of the manual pages: `io_uring_setup(2)`, `io_uring_enter(2)`, `io_uring_register(2)`,
//! `io_uring_prep_accept(3)`, `io_uring_prep_recv(3)`, `io_uring_prep_msg_ring(3)` and `epoll_wait(2)`. Distributions
//! backport features, so a kernel may support more than its version says; only a trial shows whether it does.

use std::{fmt, str::FromStr};

/// The first two numbers of a kernel's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(
    feature = "records",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(into = "String", try_from = "String")
)]
pub struct KernelVersion {
    /// The 6 of 6.12.
    pub major: u16,
    /// The 12 of 6.12.
    pub minor: u16,
}

impl KernelVersion {
    /// The oldest version that the table covers: older kernels lack more than the table's features.
    pub const OLDEST: Self = Self::new(4, 14);

    /// A version by its numbers.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The version of a release as `uname -r` prints it (`6.18.44-fc-v669`).
    pub fn of_release(release: &str) -> Option<Self> {
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok();
        Some(Self::new(number()?, number()?))
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for KernelVersion {
    type Err = ();

    /// Parses `5.19`, without anything around it.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.split_once('.').ok_or(())?;
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|_| is_number).ok_or(())
        };
        Ok(Self::new(number(major)?, number(minor)?))
    }
}

impl From<KernelVersion> for String {
    fn from(version: KernelVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for KernelVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|()| format!("{text:?} is no kernel version"))
    }
}

/// A kernel feature that a driver uses if it is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelFeature {
    /// `IORING_ENTER_NO_IOWAIT`.
    NoIowait,
    /// `IORING_SETUP_NO_SQARRAY`.
    NoIndexArray,
    /// `IORING_SETUP_DEFER_TASKRUN`.
    DeferredTaskRun,
    /// `IORING_SETUP_SINGLE_ISSUER`.
    SingleIssuer,
    /// Multishot receive.
    MultishotReceive,
    /// `IORING_SETUP_COOP_TASKRUN` and `IORING_SETUP_TASKRUN_FLAG`.
    CooperativeTaskRun,
    /// Rings of provided buffers; without them a receive uses a separate buffer.
    BufferRing,
    /// Multishot accept.
    MultishotAccept,
    /// `IORING_SETUP_SUBMIT_ALL`.
    SubmitAll,
    /// A registered ring descriptor.
    RegisteredRing,
    /// `IORING_OP_MSG_RING`.
    RingMessages,
    /// `IOSQE_CQE_SKIP_SUCCESS`.
    SkippedCompletions,
    /// `IORING_POLL_ADD_MULTI`.
    MultishotPoll,
    /// `IORING_ENTER_EXT_ARG`: a wait with a time limit in one call. Our driver requires it.
    WaitArguments,
    /// `epoll_pwait2`: a wait with a time limit in nanoseconds; without it one in milliseconds, rounded up.
    EpollPwait2,
    /// `IORING_FEAT_MIN_TIMEOUT`: a wait for several completions that takes fewer after a while.
    MinimumWait,
    /// A ring's file table that releases a file at once, whatever else is in flight.
    FixedFiles,
    /// `IORING_OP_SEND_ZC`.
    ZeroCopySend,
    /// `IORING_RECVSEND_BUNDLE`: one completion for several filled buffers.
    ReceiveBundle,
    /// `IORING_SETUP_SQPOLL` without privileges.
    SubmissionPolling,
}

/// The engine's option that names an older kernel.
pub const AS_ON_KERNEL: &str = "as-on-kernel";

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct FeatureRow {
    /// The feature.
    pub feature: KernelFeature,
    /// Its stable name, which drivers report when it is granted.
    pub name: &'static str,
    /// The driver that uses it.
    pub driver: &'static str,
    /// The version that introduced it.
    pub since: KernelVersion,
    /// The option without which the driver does not use it; with it, the driver does not start on a kernel that lacks
    /// the feature. `None`: the feature is used wherever it is available.
    pub option: Option<&'static str>,
}

const fn row(
    feature: KernelFeature,
    name: &'static str,
    driver: &'static str,
    (major, minor): (u16, u16),
) -> FeatureRow {
    FeatureRow { feature, name, driver, since: KernelVersion::new(major, minor), option: None }
}

/// A feature that io_uring uses only if an option asks for it.
const fn on_request(
    feature: KernelFeature,
    name: &'static str,
    option: &'static str,
    since: (u16, u16),
) -> FeatureRow {
    FeatureRow { option: Some(option), ..row(feature, name, "uring", since) }
}

/// The table, newest first.
pub const FEATURES: [FeatureRow; 20] = [
    row(KernelFeature::NoIowait, "no-iowait", "uring", (6, 15)),
    on_request(KernelFeature::FixedFiles, "fixed-files", "fixed-files", (6, 13)),
    on_request(KernelFeature::MinimumWait, "minimum-wait", "minimum-wait-us", (6, 12)),
    on_request(KernelFeature::ReceiveBundle, "receive-bundle", "receive", (6, 10)),
    row(KernelFeature::NoIndexArray, "no-index-array", "uring", (6, 6)),
    row(KernelFeature::DeferredTaskRun, "deferred-task-run", "uring", (6, 1)),
    row(KernelFeature::SingleIssuer, "single-issuer", "uring", (6, 0)),
    row(KernelFeature::MultishotReceive, "multishot-receive", "uring", (6, 0)),
    on_request(KernelFeature::ZeroCopySend, "zero-copy-send", "send-zc-bytes", (6, 0)),
    row(KernelFeature::CooperativeTaskRun, "cooperative-task-run", "uring", (5, 19)),
    row(KernelFeature::BufferRing, "buffer-ring", "uring", (5, 19)),
    row(KernelFeature::MultishotAccept, "multishot-accept", "uring", (5, 19)),
    row(KernelFeature::SubmitAll, "submit-all", "uring", (5, 18)),
    row(KernelFeature::RegisteredRing, "registered-ring", "uring", (5, 18)),
    row(KernelFeature::RingMessages, "ring-messages", "uring", (5, 18)),
    row(KernelFeature::SkippedCompletions, "completions-skipped-on-success", "uring", (5, 17)),
    row(KernelFeature::MultishotPoll, "multishot-poll", "uring", (5, 13)),
    on_request(KernelFeature::SubmissionPolling, "submission-polling", "sqpoll-idle-ms", (5, 13)),
    row(KernelFeature::WaitArguments, "wait-arguments", "uring", (5, 11)),
    row(KernelFeature::EpollPwait2, "epoll-pwait2", "epoll", (5, 11)),
];

/// The features that a kernel of this version lacks, of those that the driver uses by default, newest first. Features
/// that need an option are not included: with the option the driver does not start there, and without it nothing is
/// missing.
pub fn lacking(version: KernelVersion, driver: &str) -> impl Iterator<Item = &'static FeatureRow> {
    let is_lacking = move |row: &&FeatureRow| row.driver == driver && row.since > version;
    FEATURES.iter().filter(is_lacking).filter(|row| row.option.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers_and_a_release_begins_with_them() {
        assert_eq!("5.19".parse(), Ok(KernelVersion::new(5, 19)));
        assert!(KernelVersion::new(5, 9) < KernelVersion::new(5, 19));
        assert_eq!(KernelVersion::new(6, 1).to_string(), "6.1");
        for wrong in ["", "5", "5.", ".19", "5.19.1", "v5.19", "+5.19", "5.19-rc1", "99999.1"] {
            assert_eq!(wrong.parse::<KernelVersion>(), Err(()), "{wrong}");
        }
        assert_eq!(KernelVersion::of_release("6.18.44-fc-v669"), Some(KernelVersion::new(6, 18)));
        assert_eq!(KernelVersion::of_release("5.14-rt"), Some(KernelVersion::new(5, 14)));
        assert_eq!(KernelVersion::of_release("unknown"), None);
    }

    #[test]
    fn an_older_kernel_lacks_what_a_newer_one_lacks_and_more() {
        let lacks = |major: u16, minor: u16, driver: &str| -> Vec<&str> {
            lacking(KernelVersion::new(major, minor), driver).map(|row| row.name).collect()
        };
        assert!(FEATURES.windows(2).all(|two| two[0].since >= two[1].since), "newest first");
        assert!(FEATURES.iter().all(|row| row.since > KernelVersion::OLDEST));
        assert_eq!(lacks(6, 15, "uring"), [""; 0]);
        assert_eq!(lacks(6, 12, "uring"), ["no-iowait"]);
        assert_eq!(lacks(6, 1, "uring"), ["no-iowait", "no-index-array"]);
        assert_eq!(lacks(6, 0, "uring"), ["no-iowait", "no-index-array", "deferred-task-run"]);
        let of_5_19 =
            ["no-iowait", "no-index-array", "deferred-task-run", "single-issuer", "multishot-receive"];
        assert_eq!(lacks(5, 19, "uring"), of_5_19);
        assert!(lacks(5, 15, "uring").contains(&"buffer-ring"));
        assert!(!lacks(5, 11, "uring").contains(&"wait-arguments"));
        assert_eq!(lacks(5, 7, "uring").last(), Some(&"wait-arguments"));
        assert_eq!((lacks(5, 11, "epoll"), lacks(5, 10, "epoll")), (vec![], vec!["epoll-pwait2"]));
        assert_eq!(lacks(4, 14, "poll"), [""; 0]);
    }
}
