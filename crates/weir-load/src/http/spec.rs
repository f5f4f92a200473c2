//! The HTTP part of a load's specification. Plain data, checked as a whole.

use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use weir_engine::net::Address;
use weir_proto::http1::{
    Method,
    encode::{AfterMessage, EncodeError, Framing, HeadWriter},
};
use weir_record::load::{LoadReport, parts::LoadPart};

use super::{across_workers::HttpCommon, notes::ResponseNotes, outcome, request_order::WEIGHTS_MAX};
use crate::{
    error::{LoadError, invalid},
    gather::Gather,
    outcome::{Common, WorkerOutcomes},
    recorder::{Sections, WindowBounds},
    spec::{Facts, LoadSpec, MESSAGE_BYTES_MAX, ProtocolSpec},
};

/// Most URLs of one run.
pub const URLS_MAX: usize = 4096;
/// Most header fields given by hand.
pub const HEADERS_MAX: usize = 64;
/// Most local addresses.
pub const SOURCE_ADDRESSES_MAX: usize = 1024;

/// One resource of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// As it was written.
    pub text: String,
    /// Value of the `Host` field.
    pub host: String,
    /// Target of the request: path and query.
    pub path: String,
    /// The method, fields and expectations of a request of a mix, which replace those of every URL.
    pub own: Option<Box<OwnRequest>>,
}

/// A request of a mix, besides its URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// Its method.
    pub method: String,
    /// Header fields before those of every request; if a name occurs in both, these win.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Its content.
    pub content: Option<Vec<u8>>,
    /// How often it occurs in a cycle.
    pub weight: u32,
    /// Statuses that are right.
    pub expect_status: Vec<u16>,
    /// Contents that are right: [`ExpectedContent::AsFirst`] or [`ExpectedContent::Anything`].
    pub expect_content: ExpectedContent,
    /// Length of a right content, in bytes.
    pub expect_length: Option<u64>,
    /// BLAKE2b of a right content, of 16, 32 or 64 bytes.
    pub expect_hash: Option<Vec<u8>>,
}

/// What the content of a response must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedContent {
    /// The same for each URL as in its first right response.
    AsFirst,
    /// These bytes.
    Bytes(Vec<u8>),
    /// Anything, as long as its framing is right.
    Anything,
}

/// The HTTP part of a [`LoadSpec`].
#[derive(Clone, Debug)]
pub struct HttpSpec {
    /// The requested URLs, in turn; all on the server of [`LoadSpec::target`].
    pub urls: Vec<HttpUrl>,
    /// Method of every request: a known one or any other name.
    pub method: String,
    /// Further header fields.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Content of every request.
    pub content: Option<Vec<u8>>,
    /// Every request has its own connection and sends `Connection: close`.
    pub connection_per_request: bool,
    /// Statuses that are right.
    pub expect_status: Vec<u16>,
    /// Contents that are right.
    pub expect_content: ExpectedContent,
    /// Local addresses to connect from, in turn; empty leaves the choice to the kernel.
    pub source_addresses: Vec<IpAddr>,
    /// File for a row per response of the window, in the columns of JMeter's CSV.
    pub jtl: Option<PathBuf>,
}

impl HttpSpec {
    /// These URLs with GET, on persistent connections: 200 is right, with the same content for each URL as the first
    /// time.
    pub fn get(urls: Vec<HttpUrl>) -> Self {
        Self {
            urls,
            method: Method::Get.name().into(),
            headers: Vec::new(),
            content: None,
            connection_per_request: false,
            expect_status: vec![200],
            expect_content: ExpectedContent::AsFirst,
            source_addresses: Vec::new(),
            jtl: None,
        }
    }

    fn validate_sources(&self, target: &Address) -> Result<(), LoadError> {
        if self.source_addresses.len() > SOURCE_ADDRESSES_MAX {
            return invalid("source-addresses", format!("at most {SOURCE_ADDRESSES_MAX} are possible"));
        }
        let Address::Tcp(target) = target else { return Ok(()) };
        match self.source_addresses.iter().find(|source| source.is_ipv4() != target.is_ipv4()) {
            Some(source) => {
                let reason = format!("{source} cannot reach {target}: one is IPv4 and the other IPv6");
                invalid("source-addresses", reason)
            }
            None => Ok(()),
        }
    }

    /// Refuses source addresses that this machine does not have.
    fn ensure_sources(&self) -> Result<(), LoadError> {
        for source in &self.source_addresses {
            if let Err(error) = std::net::TcpListener::bind(SocketAddr::new(*source, 0)) {
                let reason =
                    format!("{source} is no address of this machine ({error}); `ip address` lists them");
                return invalid("source-addresses", reason);
            }
        }
        Ok(())
    }

    /// The method that decides where a response ends: HEAD and CONNECT are special, all others behave like GET.
    pub(crate) fn reads_as(&self, url: &HttpUrl) -> Method {
        Method::from_name(self.method(url)).unwrap_or(Method::Get)
    }

    fn method<'a>(&'a self, url: &'a HttpUrl) -> &'a str {
        url.own.as_ref().map_or(&self.method, |own| &own.method)
    }

    fn content<'a>(&'a self, url: &'a HttpUrl) -> Option<&'a [u8]> {
        url.own.as_ref().map_or(self.content.as_deref(), |own| own.content.as_deref())
    }

    /// Statuses that are right for a URL.
    pub(crate) fn expect_status<'a>(&'a self, url: &'a HttpUrl) -> &'a [u16] {
        url.own.as_ref().map_or(&self.expect_status, |own| &own.expect_status)
    }

    /// Whether the URLs are requests of a mix.
    pub(crate) fn is_mix(&self) -> bool {
        self.urls.iter().any(|url| url.own.is_some())
    }

    fn validate_mix(&self) -> Result<(), LoadError> {
        let own = || self.urls.iter().filter_map(|url| url.own.as_deref());
        let all = own().fold(0_u32, |sum, own| sum.saturating_add(own.weight));
        if all > WEIGHTS_MAX || own().any(|own| own.weight == 0) {
            let reason = format!("weights are whole numbers from 1 on that add up to at most {WEIGHTS_MAX}");
            return invalid("request-mix", reason);
        }
        if own().filter_map(|own| own.expect_hash.as_ref()).any(|hash| ![16, 32, 64].contains(&hash.len())) {
            return invalid("request-mix", "a hash has 16, 32 or 64 bytes");
        }
        match own().any(|own| matches!(own.expect_content, ExpectedContent::Bytes(_))) {
            true => invalid("request-mix", "contents of a mix are expected by their hash"),
            false => Ok(()),
        }
    }

    /// Every request as sent, in the order of the URLs.
    pub(crate) fn requests(&self) -> Result<Vec<Vec<u8>>, LoadError> {
        if self.headers.len() > HEADERS_MAX {
            invalid("header", format!("at most {HEADERS_MAX} fields are possible"))?;
        }
        self.urls.iter().map(|url| self.request(url)).collect()
    }

    /// The request to a URL.
    fn request(&self, url: &HttpUrl) -> Result<Vec<u8>, LoadError> {
        let (method, content) = (self.method(url), self.content(url));
        if content.is_some_and(|content| content.len() > MESSAGE_BYTES_MAX as usize) {
            invalid("data", format!("at most {MESSAGE_BYTES_MAX} bytes are possible"))?;
        }
        let after = if self.connection_per_request { AfterMessage::Close } else { AfterMessage::Unsaid };
        let framing = content.map_or(Framing::NoContent, |content| Framing::Length(content.len() as u64));
        let fields = self.fields(url);
        let host_given = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = match host_given {
            Some((_, value)) => std::str::from_utf8(value).unwrap_or_default(),
            None => &url.host,
        };
        let mut bytes = Vec::new();
        let refused = |field, reason: String| LoadError::Invalid { field, reason };
        let head = HeadWriter::request_of(&mut bytes, method, &url.path, host);
        let mut head = head.map_err(|error| match error {
            EncodeError::Method => {
                refused("method", format!("{:?} is {error}", method.escape_debug().to_string()))
            }
            _ => refused("url", format!("{}: {error}", url.text)),
        })?;
        for (name, value) in fields.into_iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            head.header(name, value).map_err(|error| {
                refused("header", format!("{name}: {}", explain(name, &error.to_string())))
            })?;
        }
        head.finish(framing, after).map_err(|error| refused("data", error.to_string()))?;
        bytes.extend_from_slice(content.unwrap_or_default());
        Ok(bytes)
    }

    /// Fields of a request: its own, those of every request, and ours; if a name occurs repeatedly, the first wins.
    fn fields<'a>(&'a self, url: &'a HttpUrl) -> Vec<(&'a str, &'a [u8])> {
        const OURS: [(&str, &[u8]); 2] = [("User-Agent", b"weir"), ("Accept", b"*/*")];
        fn given(fields: &[(String, Vec<u8>)]) -> impl Iterator<Item = (&str, &[u8])> {
            fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
        }
        let own = url.own.as_ref().map_or(&[][..], |own| own.headers.as_slice());
        let has = |fields: &[(String, Vec<u8>)], name: &str| {
            fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let ours = OURS.into_iter().filter(|(name, _)| !has(own, name) && !has(&self.headers, name));
        let every = given(&self.headers).filter(|(name, _)| !has(own, name));
        ours.chain(every).chain(given(own)).collect()
    }
}

impl ProtocolSpec for HttpSpec {
    fn validate(&self, load: &LoadSpec, target: &Address) -> Result<(), LoadError> {
        if !matches!(target, Address::Tcp(_)) {
            return invalid("url", "HTTP needs a host and a port");
        }
        if self.urls.is_empty() || self.urls.len() > URLS_MAX {
            return invalid("url", format!("{} URLs are not possible; use 1 to {URLS_MAX}", self.urls.len()));
        }
        if self.urls.iter().any(|url| self.reads_as(url) == Method::Connect) {
            return invalid("method", "CONNECT ends HTTP on its connection; use another method");
        }
        self.validate_mix()?;
        let is_wrong = |all: &[u16]| all.is_empty() || all.iter().any(|it| !(100..=999).contains(it));
        if self.urls.iter().any(|url| is_wrong(self.expect_status(url))) {
            return invalid("expect-status", "a status is a number from 100 to 999");
        }
        if self.connection_per_request && load.depth > 1 {
            return invalid("depth", "with a connection for each request there is no pipeline; use 1");
        }
        self.validate_sources(target)?;
        self.requests().map(|_| ())
    }

    fn request_bytes_max(&self) -> (usize, &'static str) {
        let requests = self.requests().unwrap_or_default();
        (requests.iter().map(Vec::len).max().unwrap_or(0), "data")
    }

    fn facts(&self) -> Facts {
        Facts {
            // Known when the first right response has come.
            message_bytes: 0,
            messages_each: None,
            connection_per_message: self.connection_per_request,
            sections: Sections {
                connections: true,
                own: Some(|| Box::new(ResponseNotes::default())),
                ..Sections::default()
            },
            has_slices: !self.connection_per_request && self.jtl.is_none(),
        }
    }

    fn source_addresses(&self) -> Option<&[IpAddr]> {
        Some(&self.source_addresses)
    }

    fn common(&self, load: &LoadSpec, bounds: &Arc<WindowBounds>) -> Result<Common, LoadError> {
        self.ensure_sources()?;
        Ok(Arc::new(HttpCommon::new(self, load, bounds)?))
    }

    fn add_section(
        &self,
        report: &mut LoadReport,
        load: &LoadSpec,
        gather: &Gather,
        outcomes: &WorkerOutcomes<'_>,
    ) {
        let common: Option<&HttpCommon> = outcomes.common();
        report.message_bytes = common.map_or(0, |common| common.expected.content_bytes());
        if let Some(responses) = gather.section() {
            // In an open loop, requests in flight at the end had their full time to come back.
            let late = if gather.paced.is_some() { gather.errors_after } else { 0 };
            let errors = gather.window.errors + late + report.failed_starts;
            report.http = Some(outcome::section(self, report, load, (responses, errors), outcomes));
        }
    }

    fn add_to_part(&self, part: &mut LoadPart, origin_ns: u64, outcomes: &WorkerOutcomes<'_>) {
        part.bad_response_ns = outcome::bad_response(outcomes).map(|bad| bad.at_ns.saturating_sub(origin_ns));
        let common: Option<&HttpCommon> = outcomes.common();
        part.contents = common.map(|common| common.expected.fingerprints()).unwrap_or_default();
    }
}

/// Why a framing field cannot be given by hand.
fn explain(name: &str, error: &str) -> String {
    match name.to_ascii_lowercase().as_str() {
        "connection" => "a connection for each request is asked for with --close".into(),
        "content-length" | "transfer-encoding" => "the length follows from the content given".into(),
        _ => error.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn http() -> HttpSpec {
        HttpSpec::get(vec![HttpUrl {
            text: "http://127.0.0.1:7007/".into(),
            host: "127.0.0.1:7007".into(),
            path: "/".into(),
            own: None,
        }])
    }

    fn refused(change: impl FnOnce(&mut LoadSpec, &mut HttpSpec)) -> String {
        let mut load = crate::spec::tests::spec();
        let mut changed = http();
        change(&mut load, &mut changed);
        load.protocol = changed.into();
        load.validate().expect_err("an impossible value").to_string()
    }

    #[test]
    fn a_request_is_what_the_specification_says() {
        let spec = HttpSpec {
            method: "POST".into(),
            headers: vec![("X-A".into(), b"b".to_vec()), ("accept".into(), b"text/html".to_vec())],
            content: Some(b"hello".to_vec()),
            connection_per_request: true,
            ..http()
        };
        let request = String::from_utf8(spec.requests().expect("valid").remove(0)).expect("ASCII");
        assert_eq!(
            request,
            "POST / HTTP/1.1\r\nHost: 127.0.0.1:7007\r\nUser-Agent: weir\r\nX-A: b\r\naccept: text/html\r\n\
             Content-Length: 5\r\nConnection: close\r\n\r\nhello"
        );
        let mut mixed = spec.clone();
        mixed.urls[0].own = Some(Box::new(OwnRequest {
            method: "PUT".into(),
            headers: vec![("x-a".into(), b"own".to_vec())],
            content: Some(b"hi".to_vec()),
            weight: 1,
            expect_status: vec![201],
            expect_content: ExpectedContent::Anything,
            expect_length: None,
            expect_hash: None,
        }));
        let request = String::from_utf8(mixed.requests().expect("valid").remove(0)).expect("ASCII");
        assert_eq!(
            request,
            "PUT / HTTP/1.1\r\nHost: 127.0.0.1:7007\r\nUser-Agent: weir\r\naccept: text/html\r\nx-a: own\r\n\
             Content-Length: 2\r\nConnection: close\r\n\r\nhi"
        );
        assert_eq!(mixed.expect_status(&mixed.urls[0]), [201]);
        let host = HttpSpec { headers: vec![("host".into(), b"other".to_vec())], ..http() };
        let request = String::from_utf8(host.requests().expect("valid").remove(0)).expect("ASCII");
        assert_eq!(request, "GET / HTTP/1.1\r\nHost: other\r\nUser-Agent: weir\r\nAccept: */*\r\n\r\n");
    }

    #[test]
    fn each_impossible_value_is_refused_by_the_name_of_its_field() {
        assert!(refused(|_, http| http.urls.clear()).starts_with("url: 0 URLs"));
        assert!(refused(|load, _| load.target = "@name".into()).starts_with("url: "));
        assert!(refused(|_, http| http.urls[0].path = "/a b".into()).starts_with("url: http://"));
        assert!(refused(|_, http| http.method = "CONNECT".into()).starts_with("method: "));
        assert!(refused(|_, http| http.expect_status = vec![99]).starts_with("expect-status: "));
        let close = |load: &mut LoadSpec, http: &mut HttpSpec| {
            (load.depth, http.connection_per_request) = (2, true);
        };
        assert!(refused(close).starts_with("depth: "));
        let header = |name: &str| {
            let field = (name.to_owned(), b"close".to_vec());
            refused(|_, http| http.headers.push(field))
        };
        assert!(header("Connection").contains("--close"));
        assert!(header("Content-Length").starts_with("header: Content-Length: the length follows"));
        assert!(header("a b").starts_with("header: a b: not a header name"));
        let source = |_: &mut LoadSpec, http: &mut HttpSpec| {
            http.source_addresses = vec!["::1".parse().expect("an address")];
        };
        assert!(refused(source).contains("one is IPv4 and the other IPv6"));
    }

    #[test]
    fn a_foreign_source_address_is_no_address_of_this_machine() {
        let at = |text: &str| HttpSpec { source_addresses: vec![text.parse().expect("one")], ..http() };
        assert!(at("127.0.0.9").ensure_sources().is_ok());
        // TEST-NET-1 (RFC 5737) belongs to no machine.
        let error = at("192.0.2.1").ensure_sources().expect_err("not ours").to_string();
        assert!(error.starts_with("source-addresses: 192.0.2.1 is no address of this machine"), "{error}");
    }
}
