//! Requests of a mix, from a study file or from a separate file: what is requested how often, and which answers are
//! right.

use std::{collections::BTreeSet, fs, path::Path};

use weir_proto::http1::{
    Method,
    encode::{EncodeError, HeadWriter},
};
use weir_record::http::{MixedRequest, RequestMix};

use super::FileError;
use crate::{
    limits::{
        REQUEST_BODY_BYTES_MAX, REQUEST_FIELDS_MAX, REQUEST_HASH_BYTES, REQUEST_TEXT_BYTES_MAX,
        REQUEST_WEIGHT, REQUEST_WEIGHTS_MAX, REQUESTS_MAX, instead,
    },
    toml_table::{Entry, FieldError, Table},
};

/// Values for right contents: the same as the first right response, or any.
const CONTENTS: [&str; 2] = ["first", "any"];

/// Reads a file of requests. Files of bodies are in or below its folder.
pub fn requests(path: &Path, text: &str) -> Result<RequestMix, FileError> {
    super::read_text(path, text, |mut table| {
        let request = read(table.tables("request")?, folder_of(path))?;
        table.finish(|_| None)?;
        match request.is_empty() {
            true => Err(FieldError::new(0, "request", "it has no [[request]]".to_owned())),
            false => Ok(RequestMix { request }),
        }
    })
}

/// The folder of a file.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// Reads the `[[request]]` tables of a file.
pub(super) fn read(tables: Vec<Table<'_>>, folder: &Path) -> Result<Vec<MixedRequest>, FieldError> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    let (mut bytes, mut weights) = (0, 0);
    for mut table in tables {
        let at = table.at();
        let wrong = |key: &str, message: String| Err(FieldError::new(at, key, message));
        let request = one(&mut table, folder)?;
        table.finish(|_| None)?;
        if found.len() == REQUESTS_MAX {
            return wrong("request", format!("there are more than {REQUESTS_MAX} requests"));
        }
        bytes += body_bytes(&request);
        if bytes > REQUEST_BODY_BYTES_MAX {
            return wrong(
                "request",
                format!("all bodies together have more than {REQUEST_BODY_BYTES_MAX} bytes"),
            );
        }
        weights += request.weight;
        if weights > REQUEST_WEIGHTS_MAX {
            return wrong("request.weight", format!("the weights add up to more than {REQUEST_WEIGHTS_MAX}"));
        }
        if !names.insert(request.name.clone()) {
            let name = request.name;
            return wrong(
                "request.name",
                format!("two requests are named {name:?}; give one another `name`"),
            );
        }
        found.push(request);
    }
    Ok(found)
}

fn one(table: &mut Table<'_>, folder: &Path) -> Result<MixedRequest, FieldError> {
    let at = table.at();
    let (body, body_hex) = body(table, folder)?;
    let has_body = body.is_some() || body_hex.is_some();
    let usual = if has_body { Method::Post } else { Method::Get };
    let method_at = table.read("method", |entry| Ok((entry.at, entry.text()?)))?;
    let (method_at, method) = method_at.unwrap_or((at, usual.name().to_owned()));
    let path_at = table.required("path", |entry| Ok((entry.at, entry.text()?)))?;
    let headers = table.read("headers", |entry| Ok((entry.at, entry.options()?)))?.unwrap_or_default();
    let name = table.read("name", text)?.unwrap_or_else(|| format!("{method} {}", path_at.1));
    let weight = table.read("weight", weight)?.unwrap_or(1);
    let expect_status = table.read("expect_status", statuses)?.unwrap_or_else(|| vec![200]);
    let expect_length = table.read("expect_length", |entry| {
        let wrong = entry.wrong("a length is a whole number, 0 or more".to_owned());
        u64::try_from(entry.number()?).map_err(|_| wrong)
    })?;
    let expect_hash = table.read("expect_hash", hash)?;
    let expect_content = table.read("expect_content", content)?;
    let request = MixedRequest {
        name,
        method,
        path: path_at.1,
        body,
        body_hex,
        weight,
        expect_status,
        expect_content: expect_content.unwrap_or_else(|| CONTENTS[0].to_owned()),
        expect_length,
        expect_hash,
        headers: headers.1,
    };
    check(&request, (method_at, path_at.0, headers.0))?;
    Ok(request)
}

/// Checks the conditions between the keys of a request, and refuses what no request can contain.
fn check(
    request: &MixedRequest,
    (method_at, path_at, headers_at): (usize, usize, usize),
) -> Result<(), FieldError> {
    let wrong = |at: usize, key: &str, message: String| Err(FieldError::new(at, key, message));
    let method = &request.method;
    if Method::from_name(method) == Some(Method::Connect) {
        return wrong(
            method_at,
            "request.method",
            "CONNECT ends HTTP on its connection; use another".to_owned(),
        );
    }
    let known = Method::from_name(&method.to_ascii_uppercase());
    if let Some(known) = known.filter(|known| known.name() != method) {
        let name = known.name();
        return wrong(method_at, "request.method", format!("methods have their case; write {name}"));
    }
    let is_head = Method::from_name(method) == Some(Method::Head);
    if is_head && (request.expect_length.is_some() || request.expect_hash.is_some()) {
        let message =
            "a response to HEAD has no content; leave `expect_length` and `expect_hash` out".to_owned();
        return wrong(method_at, "request.method", message);
    }
    if request.expect_content == CONTENTS[1] && request.expect_hash.is_some() {
        let message = "\"any\" content and one hash contradict each other; leave one out".to_owned();
        return wrong(path_at, "request.expect_content", message);
    }
    let no_path = || {
        let message = format!("{:?} is no path; write it like /page?x=1, without a host", request.path);
        wrong(path_at, "request.path", message)
    };
    // Only a request to a proxy would have a whole URL.
    if !request.path.starts_with('/') && request.path != "*" {
        return no_path();
    }
    let mut bytes = Vec::new();
    let host = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = host.map_or("localhost", |(_, host)| host.as_str());
    let head = HeadWriter::request_of(&mut bytes, method, &request.path, host);
    let mut head = match head {
        Ok(head) => head,
        Err(EncodeError::Method) => {
            return wrong(method_at, "request.method", format!("{method:?} is no method"));
        }
        Err(EncodeError::Host) => {
            return wrong(headers_at, "request.headers", format!("{host:?} is no host for the field Host"));
        }
        Err(_) => return no_path(),
    };
    for (name, value) in request.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        if let Err(error) = head.header(name, value.as_bytes()) {
            return wrong(headers_at, "request.headers", format!("{name}: {error}"));
        }
    }
    if request.headers.len() > REQUEST_FIELDS_MAX {
        return wrong(
            headers_at,
            "request.headers",
            format!("at most {REQUEST_FIELDS_MAX} fields are possible"),
        );
    }
    Ok(())
}

/// Content of a request: text, hexadecimal digits, or a file, which is converted to one of these.
fn body(table: &mut Table<'_>, folder: &Path) -> Result<(Option<String>, Option<String>), FieldError> {
    let text = table.read("body", Entry::text)?;
    let hex = table.read("body_hex", |entry| {
        let wrong = entry.wrong("write two hexadecimal digits for each byte".to_owned());
        entry.text().and_then(|text| if hex_bytes(&text).is_some() { Ok(text) } else { Err(wrong) })
    })?;
    let file = table.read("body_file", |entry| {
        let (at, key) = (entry.at, entry.key.clone());
        let name = entry.text()?;
        read_body(&folder.join(&name))
            .map_err(|reason| FieldError::new(at, &key, format!("{name}: {reason}")))
    })?;
    let given = [text.is_some(), hex.is_some(), file.is_some()].into_iter().filter(|it| *it).count();
    if given > 1 {
        return Err(table.wrong("give one of `body`, `body_hex` and `body_file`"));
    }
    Ok(match file.map(String::from_utf8) {
        Some(Ok(text)) => (Some(text), None),
        Some(Err(error)) => (None, Some(hex_of(error.as_bytes()))),
        None => (text, hex),
    })
}

fn read_body(path: &Path) -> Result<Vec<u8>, String> {
    let found = fs::metadata(path).map_err(|error| format!("it cannot be read: {error}"))?;
    if !found.is_file() || found.len() > REQUEST_BODY_BYTES_MAX as u64 {
        return Err(format!("a body is a file of at most {REQUEST_BODY_BYTES_MAX} bytes"));
    }
    fs::read(path).map_err(|error| format!("it cannot be read: {error}"))
}

fn body_bytes(request: &MixedRequest) -> usize {
    request.body.as_ref().map_or(0, String::len) + request.body_hex.as_ref().map_or(0, |hex| hex.len() / 2)
}

/// A text short enough for a table of results.
fn text(entry: Entry<'_>) -> Result<String, FieldError> {
    let long =
        entry.wrong(format!("it must have 1 to {REQUEST_TEXT_BYTES_MAX} bytes, and no control characters"));
    let text = entry.text()?;
    let is_right = (1..=REQUEST_TEXT_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
    if is_right { Ok(text) } else { Err(long) }
}

fn weight(entry: Entry<'_>) -> Result<u32, FieldError> {
    let (start, end) = (REQUEST_WEIGHT.start(), REQUEST_WEIGHT.end());
    let wrong = entry.wrong(format!("a weight is a whole number from {start} to {end}"));
    u32::try_from(entry.number()?).ok().filter(|weight| REQUEST_WEIGHT.contains(weight)).ok_or(wrong)
}

/// One status or several.
fn statuses(entry: Entry<'_>) -> Result<Vec<u16>, FieldError> {
    let one = |entry: Entry<'_>| {
        let wrong = entry.wrong("a status is a number from 100 to 999".to_owned());
        u16::try_from(entry.number()?).ok().filter(|status| (100..=999).contains(status)).ok_or(wrong)
    };
    entry.one_or_many()?.into_iter().map(one).collect()
}

fn content(entry: Entry<'_>) -> Result<String, FieldError> {
    let (at, key) = (entry.at, entry.key.clone());
    let word = entry.text()?;
    match CONTENTS.contains(&word.as_str()) {
        true => Ok(word),
        false => {
            Err(FieldError::new(at, &key, format!("there is no {word:?}; {}", instead(&word, &CONTENTS))))
        }
    }
}

fn hash(entry: Entry<'_>) -> Result<String, FieldError> {
    let [short, middle, long] = REQUEST_HASH_BYTES.map(|bytes| 2 * bytes);
    let wrong = entry.wrong(format!(
        "a hash has {short}, {middle} or {long} hexadecimal digits, as `b2sum -l 128 FILE`, `b2sum -l 256 FILE` and \
         `b2sum FILE` print them"
    ));
    let text = entry.text()?;
    let bytes = hex_bytes(&text).filter(|bytes| REQUEST_HASH_BYTES.contains(&bytes.len()));
    if bytes.is_some() { Ok(text) } else { Err(wrong) }
}

/// The bytes that hexadecimal digits encode.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let is_whole = text.is_ascii() && text.len().is_multiple_of(2);
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    if !is_whole || text.contains('+') {
        return None;
    }
    (0..text.len()).step_by(2).map(byte).collect()
}

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIX: &str = "\
[[request]]
name = \"page\"
path = \"/\"
weight = 8

[[request]]
method = \"PUT\"
path = \"/items/1?x=2\"
headers = { Content-Type = \"application/json\", X-Trace = 7 }
body = '{\"a\":1}'
expect_status = [200, 201]
expect_content = \"any\"
expect_length = 2
";

    fn parse(text: &str) -> Result<RequestMix, String> {
        requests(Path::new("mixes/own.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_mix_is_read_with_what_it_leaves_out_and_written_as_it_is_read() {
        let mix = parse(MIX).expect("it is one");
        let [page, put] = &mix.request[..] else { panic!("two: {mix:?}") };
        assert_eq!((page.method.as_str(), page.weight, &page.expect_status), ("GET", 8, &vec![200]));
        assert_eq!((put.name.as_str(), put.weight), ("PUT /items/1?x=2", 1));
        assert_eq!((put.headers["X-Trace"].as_str(), put.expect_length), ("7", Some(2)));
        let posted = parse("[[request]]\npath = \"/\"\nbody_hex = \"00fF\"\n").expect("it is one");
        assert_eq!(posted.request[0].method, "POST", "it has a content");
        for mix in [mix, posted] {
            let text = toml::to_string(&mix).expect("it can be written");
            assert_eq!(parse(&text), Ok(mix), "{text}");
        }
    }

    #[test]
    fn a_body_of_a_file_becomes_part_of_the_mix() {
        let folder = std::env::temp_dir().join(format!("weir-request-mix-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("it can be made");
        fs::write(folder.join("text"), "{}").expect("it can be written");
        fs::write(folder.join("bytes"), [0xff, 0]).expect("it can be written");
        let read = |file: &str| {
            let text = format!("[[request]]\npath = \"/\"\nbody_file = \"{file}\"\n");
            requests(&folder.join("mix.toml"), &text).map(|mut mix| mix.request.remove(0))
        };
        assert_eq!(read("text").expect("it is there").body.as_deref(), Some("{}"));
        assert_eq!(read("bytes").expect("it is there").body_hex.as_deref(), Some("ff00"));
        let missing = read("none").expect_err("it is not there").to_string();
        assert!(missing.contains("mix.toml:3: request.body_file: none: it cannot be read"), "{missing}");
        assert!(read(".").expect_err("a folder").to_string().contains("a body is a file of at most"));
        fs::remove_dir_all(&folder).expect("it was made");
    }

    #[test]
    fn a_mistake_is_named_with_its_line_and_key() {
        let with = |line: &str| parse(&format!("[[request]]\npath = \"/\"\n{line}\n")).expect_err(line);
        for (line, told) in [
            ("weight = 0", "3: request.weight: a weight is a whole number from 1 to 1000"),
            ("expect_status = 99", "3: request.expect_status: a status is a number from 100 to 999"),
            ("expect_hash = \"abc\"", "3: request.expect_hash: a hash has 32, 64 or 128 hexadecimal digits"),
            (
                "expect_content = \"frist\"",
                "3: request.expect_content: there is no \"frist\"; did you mean first?",
            ),
            ("expect_length = -1", "3: request.expect_length: a length is"),
            ("method = \"get\"", "3: request.method: methods have their case; write GET"),
            ("method = \"CONNECT\"", "3: request.method: CONNECT ends HTTP"),
            ("method = \"a b\"", "3: request.method: \"a b\" is no method"),
            ("headers = { Content-Length = 3 }", "3: request.headers: Content-Length: "),
            ("headers = { Host = \"a b\" }", "3: request.headers: \"a b\" is no host"),
            ("body_hex = \"0\"", "3: request.body_hex: write two hexadecimal digits"),
            ("name = \"\"", "3: request.name: it must have 1 to 256 bytes"),
            ("wieght = 3", "3: request.wieght: there is no such key; did you mean weight?"),
            ("body = \"\"\nbody_hex = \"\"", "1: request: give one of `body`, `body_hex` and `body_file`"),
        ] {
            let error = with(line);
            assert!(error.starts_with(&format!("mixes/own.toml:{told}")), "{line}: {error}");
        }
        for (text, told) in [
            ("", "it has no [[request]]"),
            ("[[request]]\n", "request.path: it must be given"),
            ("[[request]]\npath = \"http://a/\"\n", "2: request.path: \"http://a/\" is no path"),
            ("[[request]]\npath = \"/\"\n[[request]]\npath = \"/\"\n", "two requests are named \"GET /\""),
            (
                "[[request]]\npath = \"/\"\nmethod = \"HEAD\"\nexpect_length = 1\n",
                "a response to HEAD has no content",
            ),
            ("[requests]\n", "1: requests: there is no such key; did you mean request?"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_mix_has_its_limits() {
        let many = |count: usize, weight: usize| {
            let one = |at: usize| format!("[[request]]\npath = \"/{at}\"\nweight = {weight}\n");
            parse(&(0..count).map(one).collect::<String>())
        };
        assert_eq!(many(REQUESTS_MAX, 1).expect("as many as may be").request.len(), REQUESTS_MAX);
        assert!(many(REQUESTS_MAX + 1, 1).expect_err("too many").contains("more than 256 requests"));
        assert!(many(10, 1000).is_ok());
        assert!(many(11, 1000).expect_err("too heavy").contains("add up to more than 10000"));
        let body = "x".repeat(REQUEST_BODY_BYTES_MAX / 2 + 1);
        let text = |path: &str| format!("[[request]]\npath = \"{path}\"\nbody = \"{body}\"\n");
        assert!(parse(&text("/a")).is_ok());
        assert!(parse(&(text("/a") + &text("/b"))).expect_err("too long").contains("bytes"));
    }
}
