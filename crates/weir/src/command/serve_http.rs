//! `weir serve http`.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result};
use weir_proto::{content::CONTENT_BYTES_MAX, http1::Limits};
use weir_servers::http::{
    Body, Clock, FileCache, FileIo, HttpConfig, HttpCounters, HttpLogs, HttpServer, LargeContent, Root,
    Timeouts,
};

use super::{engine, serve};
use crate::{
    args::{self, ServeHttp},
    exit::{Exit, UsageError},
    output,
};

pub(super) fn run(arguments: &ServeHttp) -> Result<Exit> {
    let config = config(arguments)?;
    let prepared = serve::prepare(&arguments.shared, &arguments.listen)?;
    let http =
        HttpServer::start(config, logs(arguments)?).context("cannot start a thread for the access log")?;
    let handler = http.clone();
    prepared.run(move |stream| handler.serve(stream))?;
    http.finish();
    tell(http.counters());
    Ok(Exit::Ok)
}

fn config(arguments: &ServeHttp) -> Result<HttpConfig> {
    let defaults = Limits::default();
    Ok(HttpConfig {
        body: body(arguments)?,
        large_content: match arguments.large_content {
            args::LargeContent::Memory => LargeContent::Memory,
            args::LargeContent::PageCache => LargeContent::PageCache,
        },
        limits: Limits {
            first_line_bytes: defaults.first_line_bytes.min(arguments.head_bytes_max),
            head_bytes: arguments.head_bytes_max,
            body_bytes: arguments.content_bytes_max,
            ..defaults
        },
        timeouts: Timeouts {
            idle: limit("--idle-timeout", &arguments.idle_timeout)?,
            head: limit("--header-timeout", &arguments.header_timeout)?,
            content: limit("--body-timeout", &arguments.body_timeout)?,
        },
        requests_max: arguments.requests_max.unwrap_or(u64::MAX),
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
        let io = match arguments.file_io {
            args::FileIo::Read => FileIo::Read,
            args::FileIo::Sendfile => FileIo::Sendfile,
        };
        return Ok(Body::Files { root, io, cache: file_cache(arguments)? });
    }
    let text = arguments.body.as_str();
    if text == "echo" {
        return Ok(Body::Echo);
    }
    text.parse().map(Body::Fixed).map_err(|_| {
        let sizes = format!("a number of bytes up to {CONTENT_BYTES_MAX}");
        UsageError(format!("--body {text:?} is not known; use html, image, echo or {sizes}")).into()
    })
}

fn file_cache(arguments: &ServeHttp) -> Result<FileCache> {
    let text = &arguments.file_cache_time;
    let validity = engine::time("--file-cache-time", text)?;
    if validity.is_zero() {
        let way_out = "write more than 0, or --file-cache 0 to open files for each request";
        return Err(UsageError(format!("--file-cache-time {text} would keep nothing; {way_out}")).into());
    }
    Ok(FileCache { files_max: arguments.file_cache, validity })
}

fn limit(flag: &str, text: &str) -> Result<Duration> {
    let limit = engine::time(flag, text)?;
    if limit.is_zero() {
        return Err(UsageError(format!("{flag} {text} would end every connection; write more than 0")).into());
    }
    Ok(limit)
}

fn logs(arguments: &ServeHttp) -> Result<HttpLogs> {
    let access: Option<Box<dyn Write + Send>> = match arguments.access_log.as_deref() {
        None => None,
        Some(path) if path == Path::new("-") => Some(Box::new(io::stdout())),
        Some(path) => Some(Box::new(append_to("--access-log", path)?)),
    };
    let connections = arguments.log_connections.as_deref();
    let connections = connections.map(|path| append_to("--log-connections", path)).transpose()?;
    Ok(HttpLogs { access, connections })
}

fn append_to(flag: &str, path: &Path) -> Result<File> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.with_context(|| format!("{flag} {} cannot be written; choose another file", path.display()))
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
