//! `weir serve http`.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use weir_proto::{content::CONTENT_BYTES_MAX, http1::Limits};
use weir_record::{engine::ServerStats, quantity};
use weir_servers::http::{
    Body, Clock, FileCache, FileIo, HttpConfig, HttpCounters, HttpLogs, HttpServer, LargeContent, LogFormat,
    ReplyHeaders, Root, Timeouts,
};
use weir_sys::log_file;

use super::arguments::{self, ServeHttp};
use crate::{
    engine,
    exit::{Exit, UsageError},
    output, serve, signals,
};

/// How often a running server looks for lost lines of its logs. A reader of the log wants to know before the end.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &ServeHttp) -> Result<Exit> {
    let config = config(arguments)?;
    let mut prepared = serve::prepare(&arguments.shared, &arguments.listen)?;
    if arguments.root.is_some() {
        prepared.reserve_for_files();
    }
    let access_log = arguments.access_log.as_deref().filter(|path| *path != Path::new("-"));
    if access_log.is_some() || arguments.log_connections.is_some() {
        prepared.reopens_logs();
    }
    let http =
        HttpServer::start(config, logs(arguments)?).context("cannot start a thread for the access log")?;
    let handler = http.clone();
    let watch = match arguments.access_log {
        Some(_) => Some(watch(http.clone()).context("cannot start a thread for the access log")?),
        None => None,
    };
    let server = http.clone();
    let node = Arc::new(move |stats: &mut ServerStats| stats.files = server.files());
    let served = prepared.run(Some(node), move |stream| handler.serve(stream));
    drop(watch);
    http.finish();
    tell(http.counters());
    served.map(|()| Exit::Ok)
}

/// Says once a second how many lines the logs have lost, if that has become more; until what comes back is dropped.
fn watch(http: HttpServer) -> io::Result<mpsc::Sender<()>> {
    let (alive, ended) = mpsc::channel();
    let look = move || {
        let mut known = 0;
        while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let counters = http.counters();
            let (dropped, failed) = (counters.log_lines_dropped(), counters.log_lines_failed());
            if dropped + failed > known {
                known = dropped + failed;
                output::tell(&format!(
                    "log lines lost so far: {known} ({failed} could not be written, {dropped} came too fast)"
                ));
            }
        }
    };
    thread::Builder::new().name("weir-log-watch".into()).spawn(look)?;
    Ok(alive)
}

fn config(arguments: &ServeHttp) -> Result<HttpConfig> {
    let defaults = Limits::default();
    Ok(HttpConfig {
        body: body(arguments)?,
        large_content: match arguments.large_content {
            arguments::LargeContent::Memory => LargeContent::Memory,
            arguments::LargeContent::PageCache => LargeContent::PageCache,
        },
        limits: Limits {
            first_line_bytes_max: defaults.first_line_bytes_max.min(arguments.head_bytes_max),
            head_bytes_max: arguments.head_bytes_max,
            body_bytes_max: arguments.content_bytes_max,
            ..defaults
        },
        timeouts: Timeouts {
            idle: limit("--idle-timeout", &arguments.idle_timeout)?,
            head: limit("--header-timeout", &arguments.header_timeout)?,
            content: limit("--body-timeout", &arguments.body_timeout)?,
        },
        requests_max: arguments.requests_max.unwrap_or(u64::MAX),
        connections_max: arguments.connections_max,
        client_connections_max: arguments.connections_max_per_client,
        headers: headers(&arguments.headers)?,
        log_format: match arguments.log_format {
            arguments::LogFormat::Common => LogFormat::Common,
            arguments::LogFormat::Combined => LogFormat::Combined,
            arguments::LogFormat::Timed => LogFormat::Timed,
        },
        say_close: arguments.say_close,
        handler_time: engine::time("--handler-time", &arguments.handler_time)?,
        clock: Clock::Kernel,
    })
}

fn body(arguments: &ServeHttp) -> Result<Body> {
    if let Some(path) = &arguments.root {
        let root = Root::open(path).map_err(|error| {
            let path = path.display();
            UsageError(format!("--root {path} cannot be served: {error}; choose a folder that can be read"))
        })?;
        let root = if arguments.dotfiles { root.with_dotfiles() } else { root };
        let root = if arguments.precompressed { root.with_precompressed() } else { root };
        let io = match arguments.file_io {
            arguments::FileIo::Read => FileIo::Read,
            arguments::FileIo::Sendfile => FileIo::Sendfile,
        };
        return Ok(Body::Files { root, io, cache: file_cache(arguments)? });
    }
    let text = arguments.body.as_str();
    if text == "echo" {
        return Ok(Body::Echo);
    }
    quantity::in_digits(text).parse().map(Body::Fixed).map_err(|_| {
        let sizes = format!("a number of bytes up to {CONTENT_BYTES_MAX}");
        UsageError(format!("--body {text:?} is not known; use html, image, echo or {sizes}")).into()
    })
}

fn file_cache(arguments: &ServeHttp) -> Result<FileCache> {
    let text = &arguments.file_cache_time;
    let validity = engine::time("--file-cache-time", text)?;
    if validity.is_zero() {
        let remedy = "write more than 0, or --file-cache 0 to open files for each request";
        return Err(UsageError(format!("--file-cache-time {text} would keep nothing; {remedy}")).into());
    }
    Ok(FileCache { files_max: arguments.file_cache, validity })
}

fn headers(lines: &[String]) -> Result<ReplyHeaders> {
    let mut headers = ReplyHeaders::default();
    for line in lines {
        headers.add(line).map_err(|error| {
            UsageError(format!(
                "--header {line:?} {error}; write 'Name: value', as in 'Cache-Control: max-age=60'"
            ))
        })?;
    }
    Ok(headers)
}

fn limit(flag: &str, text: &str) -> Result<Duration> {
    let limit = engine::time(flag, text)?;
    if limit.is_zero() {
        return Err(UsageError(format!("{flag} {text} would end every connection; write more than 0")).into());
    }
    Ok(limit)
}

fn logs(arguments: &ServeHttp) -> Result<HttpLogs> {
    let mut files = Vec::new();
    let access: Option<Box<dyn Write + Send>> = match arguments.access_log.as_deref() {
        None => None,
        Some(path) if path == Path::new("-") => Some(Box::new(io::stdout())),
        Some(path) => Some(Box::new(LogFile::open("--access-log", path, &mut files)?)),
    };
    let connections = arguments.log_connections.as_deref();
    let connections =
        connections.map(|path| LogFile::open("--log-connections", path, &mut files)).transpose()?;
    if !files.is_empty() {
        signals::on_rotation(move || files.iter().for_each(LogFile::reopen))
            .context("cannot start a thread for the signals that open logs anew")?;
    }
    Ok(HttpLogs { access, connections })
}

/// A log that may be moved away while it is written.
struct LogFile {
    flag: &'static str,
    path: PathBuf,
    file: Arc<File>,
}

impl LogFile {
    /// Opens a log, notes it among those that are opened anew, and gives what is written to.
    fn open(flag: &'static str, path: &Path, files: &mut Vec<Self>) -> Result<Arc<File>> {
        let opened = Self::append_to(path);
        let file = opened
            .with_context(|| format!("{flag} {} cannot be written; choose another file", path.display()))?;
        let file = Arc::new(file);
        files.push(Self { flag, path: path.to_owned(), file: Arc::clone(&file) });
        Ok(file)
    }

    /// Opens it anew under its name. Where that fails the old one goes on, and no line is lost.
    fn reopen(&self) {
        let Self { flag, path, file } = self;
        let outcome = Self::append_to(path).and_then(|by| log_file::replace(file, &by));
        output::tell_reopened(flag, path, outcome);
    }

    fn append_to(path: &Path) -> io::Result<File> {
        log_file::open_at_once(&OpenOptions::new().create(true).append(true).clone(), path)
    }
}

/// What a drained server has to tell: nothing, if nothing was unusual.
fn tell(counters: &HttpCounters) {
    for (refusal, count) in counters.refusals() {
        match refusal.status() {
            Some(status) => output::tell(&format!("refused {count}: {refusal} (status {status})")),
            None => output::tell(&format!("given up {count}: {refusal}")),
        }
    }
    for (count, what) in [
        (counters.log_lines_dropped(), "dropped: they came faster than they could be written"),
        (counters.log_lines_failed(), "lost: they could not be written"),
    ] {
        if count > 0 {
            output::tell(&format!("log lines {what}: {count}"));
        }
    }
}
