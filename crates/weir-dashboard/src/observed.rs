//! Recorded observations: the files of one folder, as `weir observe --record` writes them. A request names one of the
//! list and never a path.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use axum::{
    extract::{Request, State},
    response::Response,
};
use maud::html;
use weir_evidence::recorded::{self, RecordError};
use weir_report::{document, observation};

use crate::{
    pages::{self, Reader},
    query::{encoded, value},
    server::{App, Failure, reader, written},
    words,
};

/// Most records that are listed: the newest.
pub const RECORDS_MAX: usize = 200;

/// Most entries of the folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Where they are.
const PATH: &str = "/observe";

/// Files that may be records, newest first: no links, and none whose name is no text or is hidden.
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

/// The list, or the record that the query names.
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let named = value(request.uri().query().unwrap_or_default(), "record");
    written(app, reader, move |app, reader| {
        let files = app.settings.records.as_deref().map(files).unwrap_or_default();
        let Some(named) = named else { return Ok(list(reader, &files)) };
        let found = files.into_iter().find(|(name, _)| name.as_bytes() == named);
        let (name, path) = found.ok_or(Failure::Missing(words::NO_SUCH_RECORD))?;
        let record = recorded::read(&path).map_err(|error| match error {
            RecordError::Unreadable { .. } => Failure::Unshowable(words::NO_ACCESS_RECORD),
            RecordError::NoRecord { .. } => Failure::Unshowable(words::NO_RECORD),
        })?;
        let above = pages::above(reader, (PATH, &[("record", &encoded(name.as_bytes()))]), None);
        Ok(observation::html_below(&record, reader.language, &above))
    })
    .await
}

fn list(reader: &Reader, files: &[(String, PathBuf)]) -> String {
    let body = html! {
        (pages::above(reader, (PATH, &[]), None))
        main {
            h1 { (reader.say(words::OBSERVATIONS)) }
            @if files.is_empty() { p { (reader.say(words::NO_RECORDS)) } }
            ul.studies { @for (name, _) in files {
                li.plain { a.name href=(reader.href(PATH, &[("record", &encoded(name.as_bytes()))])) { (name) } }
            } }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::OBSERVATIONS)), &body)
}
