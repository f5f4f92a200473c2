//! What the studies and comparisons of the folder found, by commit. What was read of a run is kept until its file
//! changes.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    extract::{Request, State},
    response::Response,
};
use weir_judge::history::{Asked, history};
use weir_lab::stored_history::{self, FoundRuns, HistoryMetrics};

use crate::{
    app::{App, Failure, listing, reader, written},
    pages,
    query::{encoded, value},
    reader::Reader,
};

/// Most runs of a series on the page, the newest.
const RUNS_MAX: usize = 100;

/// Most studies that are read, the newest.
const STUDIES_MAX: usize = 200;

/// When a file was last written, and its length.
type Stamp = (i64, i64, u64);

/// What was read of runs, by their places.
#[derive(Default)]
pub(crate) struct HistoryCache(Mutex<HashMap<PathBuf, (Stamp, FoundRuns)>>);

impl HistoryCache {
    /// What these runs say, each read again only where its file has changed. Of others nothing is kept.
    fn found(&self, runs: Vec<Run>, app: &App) -> FoundRuns {
        // A reader that broke off left nothing half done: entries are whole or absent.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut earlier = std::mem::take(&mut *kept);
        let mut all = FoundRuns::default();
        for run in runs {
            let own = earlier.remove(&run.path).filter(|(stamp, _)| *stamp == run.stamp);
            let found = own.map_or_else(|| run.read(app), |(_, found)| found);
            all.add(found.clone());
            kept.insert(run.path, (run.stamp, found));
        }
        all
    }
}

/// A stored run of the folder.
struct Run {
    path: PathBuf,
    /// Its name in the folder: where that is stands on no page.
    name: String,
    stamp: Stamp,
    is_study: bool,
}

impl Run {
    fn of(path: &Path, stamped: &Path, is_study: bool) -> Option<Self> {
        let found = fs::symlink_metadata(stamped).ok().filter(fs::Metadata::is_file)?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        let stamp = (found.mtime(), found.mtime_nsec(), found.size());
        Some(Self { path: path.to_path_buf(), name, stamp, is_study })
    }

    fn read(&self, app: &App) -> FoundRuns {
        let mut found = FoundRuns::default();
        let (at, metrics) = ((self.path.as_path(), self.name.as_str()), HistoryMetrics::default());
        app.counters.stores_read();
        match self.is_study {
            true => stored_history::read_study(at, &metrics, &mut found),
            false => stored_history::read_comparison(at, &metrics, &mut found),
        }
        found
    }
}

/// The runs of the folder that have ended.
fn runs(app: &App) -> Result<Vec<Run>, Failure> {
    let listing = listing(app)?;
    let ended = listing.studies.iter().filter(|study| !study.is_running).take(STUDIES_MAX);
    let studies =
        ended.filter_map(|study| Run::of(&study.path, &study.path.join(weir_store::FILE_NAME), true));
    // A folder that is not there yet holds nothing.
    let files = stored_history::comparisons(&app.settings.folder).unwrap_or_default();
    let files = files.iter().filter_map(|file| Run::of(file, file, false));
    Ok(studies.chain(files).collect())
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
        let found = app.history.found(runs(app)?, app);
        let asked = Asked { name, branch, labels: Vec::new(), runs: RUNS_MAX };
        let above = above(reader, &asked);
        let history = history(found.entries, found.left_out, &asked);
        Ok(weir_report::history::html_below(&history, reader.language, &above))
    })
    .await
}

/// What stands above the page, whose links keep what was asked for.
fn above(reader: &Reader, asked: &Asked) -> maud::Markup {
    let of = |key: &'static str, text: &Option<String>| text.as_ref().map(|it| (key, encoded(it.as_bytes())));
    let query: Vec<(&str, String)> =
        of("study", &asked.name).into_iter().chain(of("branch", &asked.branch)).collect();
    let query: Vec<(&str, &str)> = query.iter().map(|(key, text)| (*key, text.as_str())).collect();
    pages::above(reader, ("/history", &query), None)
}
