//! HTTP: requests and their responses. The arms are the same as for echo.

use weir_proto::content::Content;
use weir_record::{
    finding::NoTurns,
    quantity,
    spec::{ArmSpec, CellSpec, HttpCell},
};

use super::{
    Factor, Kind, LoadWords, Protocol, Setting, Value, connected,
    echo::{
        ACCEPT, CONGESTION_CONTROL, CONNECTIONS, DEPTH, IDLE_CONNECTIONS, LOAD_CPUS, LOAD_WORKERS,
        SERVER_CPUS, WORKERS,
    },
    running::HTTP_PORT,
    seconds,
};
use crate::{
    limits::SpecError,
    toml_table::{Entry, FieldError, Table},
};

/// Placeholder of the file with the requests of a mix, in the words of a generator.
pub(crate) const REQUESTS: &str = "{requests}";

/// Longest ramp-up, and longest timeout of a connection or a response.
const LENGTH_NS_MAX: u64 = 60_000_000_000;

const CONTENT: Factor = Factor {
    key: "content",
    kind: Kind::Word(|text| Ok(content(text)?.to_string())),
    default: Some(Value::Word(std::borrow::Cow::Borrowed("html"))),
    set: |cell, level| {
        cell.message_bytes = content(level.word()).map_or(0, content_bytes);
        http(cell).content = level.word().to_owned();
    },
    shown: |cell| {
        let http = cell.http.as_ref()?;
        if http.mix {
            return Some("mix".to_owned());
        }
        let content = &http.content;
        let is_size = content.bytes().all(|symbol| symbol.is_ascii_digit());
        Some(if is_size { format!("b{content}") } else { content.clone() })
    },
};

const CLOSE: Factor = Factor {
    key: "close",
    kind: Kind::Flag,
    default: Some(Value::Flag(false)),
    set: |cell, level| http(cell).close = level.is_true(),
    shown: |cell| cell.http.as_ref()?.close.then(|| "reconnect".to_owned()),
};

fn http(cell: &mut CellSpec) -> &mut HttpCell {
    cell.http.get_or_insert_default()
}

/// The content of a response, from its name.
fn content(text: &str) -> Result<Content, SpecError> {
    quantity::in_digits(text).parse::<Content>().map_err(|error| {
        let message = format!("{text:?} is none: {error}");
        SpecError::new("content", message)
    })
}

/// Length of a content, as message size in bytes.
fn content_bytes(content: Content) -> u32 {
    u32::try_from(content.len()).unwrap_or(u32::MAX)
}

/// The name of the file that has a content.
pub(crate) fn file_name(content: Content) -> String {
    match content {
        Content::Html => "index.html".to_owned(),
        Content::Image => "image.jpg".to_owned(),
        Content::Bytes(bytes) => format!("{bytes}.bin"),
    }
}

/// The path that a generator requests. Servers of one content answer any path with it.
fn url_path(http: &HttpCell) -> String {
    // An invalid content was refused before anything ran; the generator would refuse it too.
    match http.content.parse() {
        Ok(Content::Html) | Err(_) => "/".to_owned(),
        Ok(other) => format!("/{}", file_name(other)),
    }
}

fn words(cell: &CellSpec, address: &str) -> Vec<String> {
    let http = cell.http.clone().unwrap_or_default();
    let path = if http.mix { "/".to_owned() } else { url_path(&http) };
    let url = format!("http://{address}{path}");
    let mut said = match http.mix {
        true => vec![("--request-mix", REQUESTS.to_owned())],
        false => vec![("--expect-content", http.content.clone())],
    };
    said.extend(connected(cell));
    let lengths = [
        ("--ramp-up", http.ramp_up_ns),
        ("--connect-timeout", http.connect_timeout_ns),
        ("--response-timeout", http.response_timeout_ns),
    ];
    let given = lengths.into_iter().filter(|(_, length_ns)| *length_ns > 0);
    said.extend(given.map(|(name, length_ns)| (name, seconds(length_ns))));
    let mut words = super::options(&["load", "http", "--json", &url], &said);
    words.extend(http.close.then(|| "--close".to_owned()));
    words
}

/// Value of the field `Host` for a server at `HOST:PORT`, as written in the study; the default port is omitted.
fn host(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, port)) if port.parse() == Ok(HTTP_PORT) => host,
        _ => address,
    }
}

/// The protocol of requests and their responses.
pub(super) struct Http;

impl Protocol for Http {
    fn name(&self) -> &'static str {
        "http"
    }

    fn factors(&self) -> &'static [Factor] {
        &[
            CONNECTIONS,
            DEPTH,
            CONTENT,
            CLOSE,
            WORKERS,
            ACCEPT,
            CONGESTION_CONTROL,
            IDLE_CONNECTIONS,
            SERVER_CPUS,
            LOAD_WORKERS,
            LOAD_CPUS,
        ]
    }

    fn has_requests(&self) -> bool {
        true
    }

    fn begin(&self, cell: &mut CellSpec) {
        cell.http = Some(HttpCell::default());
    }

    fn settings(&self, table: &mut Table<'_>) -> Result<Vec<Setting>, FieldError> {
        type Set = fn(&mut HttpCell, u64);
        let keys: [(&str, Set); 3] = [
            ("ramp_up", |http, length_ns| http.ramp_up_ns = length_ns),
            ("connect_timeout", |http, length_ns| http.connect_timeout_ns = length_ns),
            ("response_timeout", |http, length_ns| http.response_timeout_ns = length_ns),
        ];
        let mut settings: Vec<Setting> = Vec::new();
        if table.has("request") {
            settings.push(Box::new(|cell| http(cell).mix = true));
        }
        for (key, set) in keys {
            let length = |entry: Entry<'_>| {
                let long = entry.wrong("it must be at most 1min".to_owned());
                entry.length().and_then(|ns| if ns > LENGTH_NS_MAX { Err(long) } else { Ok(ns) })
            };
            if let Some(length_ns) = table.read(key, length)? {
                settings.push(Box::new(move |cell| set(http(cell), length_ns)));
            }
        }
        Ok(settings)
    }

    fn generator(&self) -> Option<LoadWords> {
        Some(words)
    }

    /// The generator connects to the resolved address, but the server may select its site by name.
    fn arm_words(&self, arm: &ArmSpec) -> Vec<String> {
        let host = arm.running().map(|server| format!("Host: {}", host(&server.address)));
        host.map_or(Vec::new(), |host| vec!["--header".to_owned(), host])
    }

    fn content(&self, cell: &CellSpec) -> Option<Content> {
        cell.http.as_ref()?.content.parse().ok()
    }

    /// A server of files has no single body.
    fn server_words(&self, cell: &CellSpec, own: &[String]) -> Vec<String> {
        let http = cell.http.as_ref().filter(|_| own.iter().all(|word| word != "--root"));
        http.map_or(Vec::new(), |http| vec!["--body".to_owned(), http.content.clone()])
    }

    fn ramp_up_ns(&self, cell: &CellSpec) -> u64 {
        cell.http.as_ref().map_or(0, |http| http.ramp_up_ns)
    }

    fn message_ns(&self) -> u64 {
        20_000
    }

    fn timeouts_ns(&self, cell: &CellSpec) -> [u64; 2] {
        cell.http.as_ref().map_or([0; 2], |http| [http.connect_timeout_ns, http.response_timeout_ns])
    }

    fn obstacle(&self, cell: &CellSpec) -> Option<NoTurns> {
        let http = cell.http.as_ref()?;
        if http.close {
            return Some(NoTurns::ConnectionEach);
        }
        (http.ramp_up_ns > 0).then_some(NoTurns::RampUp)
    }

    fn check_cell(&self, cell: &CellSpec) -> Result<(), SpecError> {
        let Some(http) = &cell.http else { return Ok(()) };
        let content = content(&http.content)?;
        if content_bytes(content) != cell.message_bytes {
            let message =
                format!("{} says {} bytes, and {content} has {}", cell.id, cell.message_bytes, content.len());
            return Err(SpecError::new("content", message));
        }
        if http.close && cell.depth > 1 {
            let message = format!("{} closes after each request, so that only one can be in flight", cell.id);
            return Err(SpecError::new("depth", message));
        }
        let lengths = [http.ramp_up_ns, http.connect_timeout_ns, http.response_timeout_ns];
        if lengths.iter().any(|length_ns| *length_ns > LENGTH_NS_MAX) {
            let message = format!("{} has a ramp-up or a timeout of more than a minute", cell.id);
            return Err(SpecError::new("factors", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_asked_for_at_the_root_and_others_by_name() {
        let path = |content: &str| url_path(&HttpCell { content: content.to_owned(), ..HttpCell::default() });
        assert_eq!(["html", "image", "64"].map(path), ["/", "/image.jpg", "/64.bin"]);
    }

    #[test]
    fn a_host_has_its_port_where_that_is_not_the_usual_one() {
        for (address, told) in [
            ("localhost:80", "localhost"),
            ("api.example:8080", "api.example:8080"),
            ("[::1]:80", "[::1]"),
            ("[::80]:81", "[::80]:81"),
        ] {
            assert_eq!(host(address), told);
        }
    }
}
