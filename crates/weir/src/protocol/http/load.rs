//! `weir load http`.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use anyhow::{Context, Result};
use weir_load::{ExpectedContent, HttpSpec, HttpUrl, LoadSpec};
use weir_proto::{
    content::Content,
    http1::{Method, url::Url},
};
use weir_record::{
    load::{LoadReport, SecondRow},
    quantity,
};
use weir_report::Language;
use weir_sys::log_file::open_at_once;

use super::{arguments::LoadHttp, table};
use crate::{
    exit::UsageError,
    flags::LoadShared,
    load::{self, LoadCommand, Place, Sink},
    load_text::Unit,
    output, request_mix, shipped,
};

impl LoadCommand for LoadHttp {
    fn shared(&self) -> &LoadShared {
        &self.shared
    }

    fn spec(&self, place: Place) -> Result<LoadSpec> {
        let urls = urls(&self.urls)?;
        let http = http(self, &urls)?.into();
        let (text, target) = target(&urls)?;
        // A host without an address is reported with its URL, as it was written.
        load::spec((&self.shared, place), http, text, &target, self.requests)
    }

    fn obstacle_elsewhere(&self) -> Option<String> {
        let text = "--jtl writes a row for each response where the load comes from, and --host moves the load to other \
                    hosts; use --csv, whose rows by second are those of all hosts";
        self.jtl.is_some().then(|| text.to_owned())
    }

    fn files(&self) -> Result<BTreeMap<String, Vec<u8>>> {
        let mut files = BTreeMap::new();
        if let Some(path) = &self.data_file {
            files.insert(shipped::name(path)?, read("--data-file", path)?);
        }
        if let Some(path) = &self.request_mix {
            // With the files of bodies that it names.
            files.insert(shipped::name(path)?, serde_json::to_vec(&request_mix::read(path)?)?);
        }
        if let Some(path) = self.expect_content.as_deref().filter(|text| is_content_file(text)) {
            files.insert(path.to_owned(), read_content(path)?);
        }
        Ok(files)
    }

    fn unit(&self) -> Unit {
        Unit::Response
    }

    fn refusal(&self, field: &'static str, reason: String) -> String {
        let flag = match field {
            "url" => return reason,
            "messages" => "requests",
            field => field,
        };
        format!("--{flag}: {reason}")
    }

    fn open(&self) -> Result<Option<Sink>> {
        let Some(path) = &self.csv else { return Ok(None) };
        let unwritten = format!("--csv {}: cannot write", path.display());
        output::refuse_device(path, "name a regular file with --csv")?;
        let options = fs::OpenOptions::new().write(true).create(true).truncate(true).clone();
        let file = open_at_once(&options, path).context(unwritten.clone())?;
        Ok(Some(Box::new(|report| write_csv(file, report).context(unwritten))))
    }

    fn hint(&self, report: &LoadReport) -> Option<&'static str> {
        self.is_dynamic(report).then_some(table::DYNAMIC[0])
    }

    fn table(&self, report: &LoadReport, columns: usize, language: Language) -> String {
        let dynamic = if self.is_dynamic(report) { table::dynamic(columns, language) } else { String::new() };
        table::table(report, columns, language) + &dynamic
    }
}

impl LoadHttp {
    /// Whether contents differ from response to response, as those of a dynamic page do: most are not the first one.
    fn is_dynamic(&self, report: &LoadReport) -> bool {
        self.expect_content.is_none()
            && self.request_mix.is_none()
            && report.failures.wrong_bytes > report.messages_whole_run
    }
}

fn http(arguments: &LoadHttp, urls: &[(String, Url)]) -> Result<HttpSpec> {
    let content = match (&arguments.data, &arguments.data_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => Some(read("--data-file", path)?),
        (None, None) => None,
    };
    let url = |(text, url): &(String, Url)| HttpUrl {
        text: text.clone(),
        host: url.authority().into(),
        path: url.target().into(),
        own: None,
    };
    let asked = match &arguments.request_mix {
        Some(path) => request_mix::urls(request_mix::read(path)?, &server_alone(urls)?),
        None => urls.iter().map(url).collect(),
    };
    Ok(HttpSpec {
        method: method(arguments.method.as_deref(), content.is_some())?,
        headers: arguments.headers.iter().map(|text| header(text)).collect::<Result<_>>()?,
        content,
        connection_per_request: arguments.close,
        expect_status: arguments.expect_status.clone(),
        expect_content: expected(arguments.expect_content.as_deref())?,
        source_addresses: arguments.source_addresses.as_deref().map_or(Ok(Vec::new()), source_addresses)?,
        jtl: arguments.jtl.clone(),
        ..HttpSpec::get(asked)
    })
}

/// The server whose paths a file has.
fn server_alone(urls: &[(String, Url)]) -> Result<String> {
    match urls {
        [(_, url)] if url.target() == "/" => Ok(url.authority().to_owned()),
        [(text, _)] => {
            Err(usage(format!("{text}: the paths are in the file of --request-mix; end it after the port")))
        }
        _ => Err(usage(
            "--request-mix goes with one URL, http://HOST:PORT/; the file has the paths".to_owned(),
        )),
    }
}

fn usage(text: String) -> anyhow::Error {
    UsageError(text).into()
}

fn urls(texts: &[String]) -> Result<Vec<(String, Url)>> {
    let read = |text: &String| {
        let url = text.parse::<Url>().map_err(|error| usage(format!("{text}: {error}")))?;
        Ok((text.clone(), url))
    };
    texts.iter().map(read).collect()
}

/// The one server that all URLs are on, and the first URL as it was written.
fn target(urls: &[(String, Url)]) -> Result<(&str, String)> {
    let Some((first, rest)) = urls.split_first() else {
        return Err(usage("no URL: write http://HOST:PORT/".into()));
    };
    let server = |url: &Url| (url.host().to_ascii_lowercase(), url.port());
    if let Some((other, _)) = rest.iter().find(|(_, url)| server(url) != server(&first.1)) {
        let text = format!("{other} is on another server than {}; load one server at a time", first.0);
        return Err(usage(text));
    }
    let (host, port) = server(&first.1);
    let target = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok((&first.0, target))
}

/// The method of every request. Any name is one, but what differs from a known one by its letters' case is a slip.
fn method(name: Option<&str>, has_content: bool) -> Result<String> {
    let name = match name {
        None if has_content => Method::Post.name(),
        None => Method::Get.name(),
        Some(name) => name,
    };
    let known = Method::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name));
    match known {
        Some(method) if method.name() != name => {
            Err(usage(format!("--method {name:?}: methods are case-sensitive; write {}", method.name())))
        }
        _ => Ok(name.to_owned()),
    }
}

fn header(text: &str) -> Result<(String, Vec<u8>)> {
    match text.split_once(':') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().as_bytes().to_vec())),
        None => Err(usage(format!("--header {text:?} has no colon; write it as \"Name: value\""))),
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>> {
    shipped::read(path).map_err(|error| usage(format!("{flag} {}: {error}", path.display())))
}

/// The content that is right, from how it is typed.
fn expected(content: Option<&str>) -> Result<ExpectedContent> {
    let Some(text) = content else { return Ok(ExpectedContent::AsFirst) };
    if text == "any" {
        return Ok(ExpectedContent::Anything);
    }
    if let Ok(content) = quantity::in_digits(text).parse::<Content>() {
        return Ok(ExpectedContent::Bytes(content.bytes()));
    }
    Ok(ExpectedContent::Bytes(read_content(text)?))
}

/// Whether an expected content is in a file.
fn is_content_file(text: &str) -> bool {
    text != "any" && quantity::in_digits(text).parse::<Content>().is_err()
}

fn read_content(path: &str) -> Result<Vec<u8>> {
    shipped::read(Path::new(path)).map_err(|error| {
        usage(format!(
            "--expect-content {path}: not any, html, image or a number of bytes, and no file to read: {error}"
        ))
    })
}

/// Addresses in a list with commas; the last number of an IPv4 address may be a range: `127.0.0.2-9`.
fn source_addresses(text: &str) -> Result<Vec<IpAddr>> {
    let wrong = |part: &str| {
        usage(format!(
            "--source-addresses {part:?} is no address; write 127.0.0.2-9, or addresses with commas"
        ))
    };
    let mut addresses = Vec::new();
    for part in text.split(',').map(str::trim) {
        if let Ok(address) = part.parse() {
            addresses.push(address);
            continue;
        }
        let (first, last) = part.split_once('-').ok_or_else(|| wrong(part))?;
        let first: Ipv4Addr = first.parse().map_err(|_| wrong(part))?;
        let last: u8 = last.parse().map_err(|_| wrong(part))?;
        let [a, b, c, from] = first.octets();
        if last < from {
            return Err(wrong(part));
        }
        addresses.extend((from..=last).map(|d| IpAddr::from([a, b, c, d])));
    }
    Ok(addresses)
}

fn write_csv(mut file: fs::File, report: &LoadReport) -> std::io::Result<()> {
    file.write_all(csv(report).as_bytes())
}

/// A row for each whole second. Times are response times; a second without an answer has none.
fn csv(report: &LoadReport) -> String {
    let time = |time_ns: u64| if time_ns == 0 { String::new() } else { time_ns.to_string() };
    let mut text = String::from("second,responses,errors,response_p50_ns,response_p99_ns\n");
    for (second, row) in report.seconds.iter().enumerate() {
        let SecondRow { messages, errors, p50_ns, p99_ns } = row;
        let (p50, p99) = (time(*p50_ns), time(*p99_ns));
        text.push_str(&format!("{},{messages},{errors},{p50},{p99}\n", second + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frozen_second_has_no_time() {
        let second = SecondRow { messages: 60, errors: 1, p50_ns: 1500, p99_ns: 9000 };
        let report = LoadReport { seconds: vec![second, SecondRow::default()], ..LoadReport::default() };
        assert_eq!(
            csv(&report),
            "second,responses,errors,response_p50_ns,response_p99_ns\n1,60,1,1500,9000\n2,0,0,,\n"
        );
    }

    #[test]
    fn source_addresses_are_ranges_and_lists() {
        let read = |text: &str| {
            let addresses = source_addresses(text).expect(text);
            addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read("127.0.0.2-4"), "127.0.0.2 127.0.0.3 127.0.0.4");
        assert_eq!(read("127.0.0.9-9, ::1,10.0.0.1"), "127.0.0.9 ::1 10.0.0.1");
        for text in ["", "127.0.0.9-2", "127.0.0.2-256", "127.0.0", "a-b", "::1-5"] {
            let error = source_addresses(text).expect_err(text).to_string();
            assert!(error.contains("--source-addresses") && error.contains("127.0.0.2-9"), "{error}");
        }
    }

    #[test]
    fn all_urls_are_on_one_server() {
        let target = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            let urls = urls(&texts).map_err(|error| error.to_string())?;
            target(&urls).map(|(_, target)| target).map_err(|error| error.to_string())
        };
        assert_eq!(
            target(&["http://127.0.0.1:8088/a", "http://127.0.0.1:8088/b?c"]).as_deref(),
            Ok("127.0.0.1:8088")
        );
        assert_eq!(target(&["http://[::1]/"]).as_deref(), Ok("[::1]:80"));
        let other = target(&["http://127.0.0.1:8088/", "http://127.0.0.1:8089/"]).expect_err("two servers");
        assert!(other.contains("http://127.0.0.1:8089/ is on another server"), "{other}");
        for text in ["https://x/", "h2://x/", "127.0.0.1:8088"] {
            let error = target(&[text]).expect_err(text);
            assert!(error.starts_with(text) && error.contains("http://"), "{error}");
        }
    }

    #[test]
    fn methods_headers_and_contents_are_read_as_written() {
        assert_eq!(method(None, true).expect("known"), "POST");
        assert_eq!(method(None, false).expect("known"), "GET");
        assert_eq!(method(Some("PUT"), false).expect("known"), "PUT");
        assert_eq!(method(Some("purge"), true).expect("its own name"), "purge");
        assert!(method(Some("get"), false).expect_err("a slip").to_string().contains("write GET"));
        assert_eq!(header("X-A:  b c ").expect("a field"), ("X-A".to_owned(), b"b c".to_vec()));
        assert!(header("X-A").is_err());
        assert_eq!(expected(Some("any")).expect("known"), ExpectedContent::Anything);
        let ExpectedContent::Bytes(bytes) = expected(Some("1k")).expect("a size") else { panic!("bytes") };
        assert_eq!(bytes, Content::Bytes(1024).bytes());
        assert!(expected(Some("/nonexistent/page")).expect_err("no file").to_string().contains("no file"));
    }
}
