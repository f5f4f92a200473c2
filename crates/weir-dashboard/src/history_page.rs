//! The page of results by commit: the results of the folder's studies and comparisons, one after the other.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use weir_judge::history::{Asked, history};
use weir_lab::stored_history;

use crate::{
    app::{App, Failure, listing, reader, written},
    history_cache::Run,
    pages,
    query::{encoded, value},
    reader::Reader,
};

/// Most runs of a series on the page: the newest.
const RUNS_MAX: usize = 100;

/// Most studies that are read: the newest.
const STUDIES_MAX: usize = 200;

/// The finished runs of the folder to be read, and the number of older ones.
fn runs(app: &App) -> Result<(Vec<Run>, usize), Failure> {
    let listing = listing(app)?;
    let ended = listing.studies.iter().filter(|study| !study.is_running).take(STUDIES_MAX);
    let studies =
        ended.filter_map(|study| Run::of(&study.path, &study.path.join(weir_store::FILE_NAME), true));
    // A folder that does not exist yet holds nothing.
    let (files, unread) = stored_history::comparisons(&app.settings.folder).unwrap_or_default();
    let files = files.iter().filter_map(|file| Run::of(file, file, false));
    Ok((studies.chain(files).collect(), unread))
}

/// The page.
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let query = request.uri().query().unwrap_or_default();
    let [name, branch] = ["study", "branch"].map(|key| {
        let text = value(query, key).and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    });
    written(app, reader, move |app, reader| {
        let (runs, unread) = runs(app)?;
        let found = app.history.found(runs, &app.counters);
        let asked = Asked { name, branch, labels: Vec::new(), runs: RUNS_MAX };
        let above = above(reader, &asked);
        let mut history = history(found.entries, found.left_out, &asked);
        history.results_unread = u32::try_from(unread).unwrap_or(u32::MAX);
        Ok(weir_report::history::html_below(&history, reader.language, &above))
    })
    .await
}

/// The head of the page, whose links keep the query.
fn above(reader: &Reader, asked: &Asked) -> maud::Markup {
    let of = |key: &'static str, text: &Option<String>| text.as_ref().map(|it| (key, encoded(it.as_bytes())));
    let query: Vec<(&str, String)> =
        of("study", &asked.name).into_iter().chain(of("branch", &asked.branch)).collect();
    let query: Vec<(&str, &str)> = query.iter().map(|(key, text)| (*key, text.as_str())).collect();
    pages::above(reader, ("/history", &query), None)
}
