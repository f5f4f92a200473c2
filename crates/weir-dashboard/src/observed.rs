//! Observations: of running processes, while a reader looks, and recorded ones, which are the files of one folder as
//! `weir observe --record` writes them. A request names one of the list and never a path.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use axum::{
    Extension,
    extract::{Request, State},
    response::Response,
};
use maud::html;
use weir_evidence::recorded::{self, RecordError};
use weir_record::observation::Observation;
use weir_report::{document, observation};

use crate::{
    app::{App, Failure, reader, written},
    control::Peer,
    forms, pages,
    query::{encoded, value},
    reader::Reader,
    top::Top,
    words,
};

/// Most records that are listed: the newest.
pub const RECORDS_MAX: usize = 200;

/// Most entries of the folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Where they are.
const PATH: &str = "/observe";

/// Files that may be records, newest first: no links, and none whose name is hidden or not UTF-8.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
        let is_record = name.ends_with(".json") && !name.starts_with('.');
        let written = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        is_record.then(|| (written, name, entry.path()))
    };
    let mut found: Vec<_> = entries.flatten().take(ENTRIES_MAX).filter_map(file).collect();
    found.sort_by(|(at, name, _), (other_at, other, _)| other_at.cmp(at).then(name.cmp(other)));
    found.truncate(RECORDS_MAX);
    found.into_iter().map(|(_, name, path)| (name, path)).collect()
}

/// Where a process is observed.
pub(crate) fn live_href(reader: &Reader, pid: u32) -> String {
    reader.href(PATH, &[("pid", &pid.to_string())])
}

/// The list, or what the query names: a record, or a process.
pub(crate) async fn page(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    request: Request,
) -> Response {
    let reader = reader(&app, &request);
    let query = request.uri().query().unwrap_or_default();
    let [record, pid] = ["record", "pid"].map(|name| value(query, name));
    let has_token = match &app.control {
        Some(control) => control.has_token(request.headers(), peer).await,
        None => false,
    };
    if let Some(pid) = pid {
        return process(app, reader, &pid, has_token).await;
    }
    written(app, reader, move |app, reader| {
        let files = app.settings.records.as_deref().map(files);
        match record {
            Some(record) => shown_record(reader, files.unwrap_or_default(), &record),
            None => Ok(list(app, reader, files.as_deref(), has_token)),
        }
    })
    .await
}

fn shown_record(reader: &Reader, files: Vec<(String, PathBuf)>, named: &[u8]) -> Result<String, Failure> {
    let found = files.into_iter().find(|(name, _)| name.as_bytes() == named);
    let (name, path) = found.ok_or(Failure::Missing(words::NO_SUCH_RECORD))?;
    let record = recorded::read(&path).map_err(|error| match error {
        RecordError::Unreadable { .. } => Failure::Unshowable(words::NO_ACCESS_RECORD),
        RecordError::NoRecord { .. } => Failure::Unshowable(words::NO_RECORD),
    })?;
    let above = pages::above(reader, (PATH, &[("record", &encoded(name.as_bytes()))]), None);
    Ok(observation::html_below(&record, reader.language, &above))
}

/// A process that is observed while a reader looks: a server that every reader may see, or any process for readers with
/// the token.
async fn process(app: Arc<App>, reader: Reader, pid: &[u8], has_token: bool) -> Response {
    let number = std::str::from_utf8(pid).ok().and_then(|text| text.trim().parse().ok());
    let look = move |app: &App, reader: &Reader| {
        let pid: u32 = number.ok_or(Failure::Missing(words::NO_SUCH_PROCESS))?;
        let is_shown =
            || app.top.as_ref().is_some_and(|top| top.servers().iter().any(|(_, own)| *own == pid));
        if !has_token && !is_shown() {
            return Err(Failure::Refused(words::NOT_OBSERVED));
        }
        match app.observer.look(pid) {
            Ok(seen) => Ok(drawn(reader, pid, seen.as_ref())),
            Err(_) => Err(Failure::Missing(words::NO_SUCH_PROCESS)),
        }
    };
    written(app, reader, look).await
}

/// The page of a process. Its script replaces what changed, as on the page of the servers.
fn drawn(reader: &Reader, pid: u32, seen: Option<&Observation>) -> String {
    let body = html! {
        (pages::above(reader, (PATH, &[("pid", &pid.to_string())]), None))
        main {
            (pages::following(reader))
            div #process {
                @match seen {
                    Some(seen) => (observation::content(seen, reader.language)),
                    None => {
                        h1 { (reader.say(words::OBSERVING_BEGINS)) }
                        p.help { (reader.say(words::OBSERVE_HELP)) }
                    }
                }
            }
        }
        script src="/current.js" {}
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::OBSERVATIONS)), &body)
}

/// The available observations: running servers, any process for readers with the token, and records where there is a
/// folder.
fn list(app: &App, reader: &Reader, files: Option<&[(String, PathBuf)]>, has_token: bool) -> String {
    let servers = app.top.as_ref().map(Top::servers).unwrap_or_default();
    let has_live = app.top.is_some() || app.control.is_some();
    let body = html! {
        (pages::above(reader, (PATH, &[]), None))
        main {
            h1 { (reader.say(words::OBSERVATIONS)) }
            @if has_live {
                h2 { (reader.say(words::OBSERVE_LIVE)) }
                p.help { (reader.say(words::OBSERVE_HELP)) }
                ul.studies { @for (name, pid) in &servers {
                    li.plain { a.name href=(live_href(reader, *pid)) { (name) " (" (pid) ")" } }
                } }
                @if has_token { (forms::observe(reader, PATH)) }
                @else if app.control.is_some() { p.hint { (reader.say(words::ANY_PROCESS)) } }
            }
            @if let Some(files) = files {
                @if has_live { h2 { (reader.say(words::RECORDED)) } }
                @if files.is_empty() { p { (reader.say(words::NO_RECORDS)) } }
                ul.studies { @for (name, _) in files {
                    li.plain { a.name href=(reader.href(PATH, &[("record", &encoded(name.as_bytes()))])) { (name) } }
                } }
            }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::OBSERVATIONS)), &body)
}
