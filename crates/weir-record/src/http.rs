//! What a load run of HTTP measured besides what every load run measures.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    failure::{FailureCounts, FailureSample},
    latency::LatencySummary,
};

/// The part of a load report that only HTTP has. Documented in `docs/formats/load-report.md`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HttpLoadReport {
    /// What was asked for, in turn.
    pub urls: Vec<String>,
    /// Method of every request; empty where each has its own.
    pub method: String,
    /// Every request had its own connection.
    pub connection_per_request: bool,
    /// From the beginning of a connection attempt to its end; all connections of the run, warm-up included.
    pub connect: LatencySummary,
    /// From the start of a request to the first byte of its response.
    pub first_byte: LatencySummary,
    /// From the start of a request to the last byte of its response; the same as `LoadReport::service`.
    pub last_byte: LatencySummary,
    /// Complete responses in the window by status, those with an unexpected status included; rising.
    pub responses_by_status: Vec<StatusCount>,
    /// Right responses of the window whose content was compared byte for byte.
    pub responses_compared: u64,
    /// Their share of all right responses, 0 to 1.
    pub compared_share: f64,
    /// Connections opened in the whole run.
    pub connections_opened: u64,
    /// Connections the server closed after it had said so, or had been asked to, in the whole run.
    pub connections_closed_as_said: u64,
    /// Connections the server closed without a word while no request was in flight, in the whole run.
    pub connections_closed_between: u64,
    /// Connections the server kept open although it had said, or had been asked, that they close; whole run.
    pub connections_kept_open: u64,
    /// Requests that were in flight behind a response that closed the connection, and were started again; whole run.
    pub requests_withdrawn: u64,
    /// Responses of the window that pointed elsewhere. They are not followed.
    pub redirects: u64,
    /// Where the first redirect of the run pointed to.
    pub redirect_location: Option<String>,
    /// The first wrong response of the run.
    pub bad_response: Option<BadResponse>,
    /// Content of right responses, in bytes a second over the window.
    pub content_bytes_per_second: f64,
    /// The rows of a table as people know it.
    pub rows: LoadRows,
    /// Why the run is too short to conclude anything from it; absent when it is long enough.
    pub too_short: Option<String>,
    /// What became of each request of a mix; empty where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RequestOutcome>,
    /// Rows written to the JTL file.
    pub jtl_rows: u64,
    /// Rows that were not written, because the writer fell behind or failed.
    pub jtl_rows_dropped: u64,
}

/// What became of one request of a mix, over the whole run where nothing else is said: warm-up, window, and the moment
/// after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestOutcome {
    /// Its name.
    pub name: String,
    /// How often it occurs in a cycle of the mix.
    pub weight: u32,
    /// Right responses.
    pub right: u64,
    /// Failures by class, but those of connections on which it is not known what would have been asked.
    pub failures: FailureCounts,
    /// Right responses in the window; absent in records of earlier versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_in_window: Option<u64>,
    /// Those among them whose content was compared, byte for byte or by its hash; absent where any content is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared_in_window: Option<u64>,
    /// Bytes of every right content; absent where they may differ, or none was there to know them from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
}

/// A request of a mix, as a file says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MixedRequest {
    /// Name in reports.
    pub name: String,
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Content, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Content that is no text, in hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_hex: Option<String>,
    /// How often it occurs in a cycle of the mix.
    pub weight: u32,
    /// Statuses that are right.
    pub expect_status: Vec<u16>,
    /// Contents that are right: `first`, as the first right response, or `any`.
    pub expect_content: String,
    /// Length of a right content, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_length: Option<u64>,
    /// BLAKE2b of a right content, in hexadecimal digits, as `b2sum` prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_hash: Option<String>,
    /// Header fields.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// The requests of a mix, as a file has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RequestMix {
    /// All of them.
    pub request: Vec<MixedRequest>,
}

/// A wrong response, as far as it arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BadResponse {
    /// What was asked for.
    pub url: String,
    /// What was wrong.
    pub failure: FailureSample,
    /// Bytes that came, head included.
    pub bytes: u64,
    /// The first of them, at most 1,024 bytes. What is not printable ASCII is escaped as in a string of
    /// Rust.
    pub start: String,
}

/// Most bytes of a bad response that are kept.
pub const BAD_RESPONSE_BYTES_MAX: usize = 1024;

/// Responses with one status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusCount {
    /// Status, 100 to 999.
    pub status: u16,
    /// Responses.
    pub count: u64,
}

/// The eleven rows of an aggregate table, and the 99.9th percentile. Times are those of right responses, to the last
/// byte. A percentile is absent when there are too few samples for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LoadRows {
    /// Right responses in the window.
    pub samples: u64,
    /// Arithmetic mean.
    pub mean_ns: f64,
    /// Median.
    pub median_ns: Option<u64>,
    /// 90th percentile.
    pub p90_ns: Option<u64>,
    /// 95th percentile.
    pub p95_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// 99.9th percentile.
    pub p999_ns: Option<u64>,
    /// Largest.
    pub max_ns: u64,
    /// Failures in the window.
    pub errors: u64,
    /// Standard deviation.
    pub stddev_ns: f64,
    /// Right responses a second over the steady part of the window: without the ramp, up to the last whole second.
    pub throughput_per_second: f64,
    /// Right responses in the best whole second; in a window without one, the mean rate.
    pub throughput_peak_per_second: f64,
}
