//! What every answer is made from, and what answers have in common: who asks, threads that read stores, and
//! why there is no page.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::sync::Semaphore;
use weir_report::Language;

use crate::{
    control::{Control, ControlSettings},
    counters::Counters,
    folder::{Found, Listing},
    history_cache::HistoryCache,
    live::Live,
    observer::Observer,
    pages::{self, PAGE_STUDIES},
    query::{accepted, value},
    reader::Reader,
    study_cache::{Problem, StudyCache},
    top::Top,
    unsent::Unsent,
    words::{self, LocalizedText},
};

/// What a dashboard shows, where, and to whom.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The results folder. One that is not there yet holds no studies.
    pub folder: PathBuf,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names, besides addresses and `localhost`, that requests may be for.
    pub hosts: Vec<String>,
    /// For readers whose browser prefers none of ours.
    pub language: Language,
    /// Who may start and stop studies; absent where nobody may.
    pub control: Option<ControlSettings>,
    /// A folder of recorded observations; absent where none are shown.
    pub records: Option<PathBuf>,
    /// Statistics sockets (`@NAME`) of servers that are shown.
    pub stats: Vec<String>,
    /// Every server of Weir that this user runs is shown as well.
    pub finds_servers: bool,
}

/// What every answer is made from.
pub(crate) struct App {
    pub settings: Settings,
    pub studies: StudyCache,
    pub history: HistoryCache,
    pub counters: Counters,
    pub live: Arc<Live>,
    pub control: Option<Control>,
    /// Absent where no server is shown.
    pub top: Option<Top>,
    pub observer: Observer,
    /// Threads that read and write pages: who goes away while it waits for one leaves nothing behind.
    pub readers: Arc<Semaphore>,
    /// Answers that wait for whoever asked.
    pub unsent: Arc<Unsent>,
}

impl App {
    /// Reads what the first pages show before anybody asks for them: a store takes a millisecond or two to open, and
    /// the newest study, which most readers come for, a good part of a second to judge. That one waits for its reader
    /// while a study runs: it would be work beside what is measured.
    pub(crate) fn read_ahead(&self) {
        let Ok(found) = listing(self) else { return };
        let shown: Vec<&Found> = found.studies.iter().take(PAGE_STUDIES).collect();
        let rows = self.studies.rows(&found.studies, &shown, &self.counters);
        if found.studies.iter().any(|study| study.is_running) {
            return;
        }
        if let Some((newest, _)) = shown.into_iter().zip(rows).find(|(_, row)| row.is_ok()) {
            // Why it cannot be read is told to whoever asks for it.
            let _ = self.studies.judged(newest, &self.counters);
        }
    }

    /// Whether there is something to observe, for anybody.
    pub(crate) fn has_observations(&self) -> bool {
        self.settings.records.is_some() || self.top.is_some() || self.control.is_some()
    }
}

/// Why there is no page.
pub(crate) enum Failure {
    Missing(LocalizedText),
    /// What was typed for the name of a study is in the names of none, or of several.
    NotMeant {
        typed: String,
        alike: usize,
    },
    Unshowable(LocalizedText),
    /// Not for whoever asks.
    Refused(LocalizedText),
    Unreadable(Problem),
    FolderGone,
    /// What was read broke the reader: the store holds what no version writes.
    Broken,
}

impl Failure {
    pub(crate) fn page(&self, reader: &Reader) -> Response {
        let (status, text) = match self {
            Self::Missing(text) => (StatusCode::NOT_FOUND, reader.language.choose(*text).to_owned()),
            Self::NotMeant { typed, alike } => {
                return page(StatusCode::NOT_FOUND, pages::not_meant(reader, typed, *alike));
            }
            Self::Refused(text) => (StatusCode::FORBIDDEN, reader.language.choose(*text).to_owned()),
            Self::Unshowable(text) => {
                (StatusCode::INTERNAL_SERVER_ERROR, reader.language.choose(*text).to_owned())
            }
            Self::Unreadable(problem) => {
                let status = match problem {
                    Problem::Busy => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                (status, problem.localized(reader.language))
            }
            Self::FolderGone => {
                (StatusCode::INTERNAL_SERVER_ERROR, reader.language.choose(words::FOLDER_GONE).to_owned())
            }
            Self::Broken => {
                (StatusCode::INTERNAL_SERVER_ERROR, reader.language.choose(words::BROKEN).to_owned())
            }
        };
        page(status, pages::message(reader, &text))
    }
}

/// A page of this status.
pub(crate) fn page(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// Reads stores and makes something of them, on a thread where that may take its time; or a page that says why not.
pub(crate) async fn made<T: Send + 'static>(
    app: Arc<App>,
    reader: Reader,
    make: impl FnOnce(&App, &Reader) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Response> {
    let own = reader.clone();
    // Closed never.
    let Ok(place) = Arc::clone(&app.readers).acquire_owned().await else {
        return Err(Failure::Broken.page(&reader));
    };
    let work = tokio::task::spawn_blocking(move || (make(&app, &own), place));
    // The place is free again when this returns, and not before on its thread: whoever waits for it begins when this
    // answer has its room among those that are not sent. So no more answers are without room than there are readers.
    let (made, _place) = work.await.map_err(|_| Failure::Broken.page(&reader))?;
    made.map_err(|failure| failure.page(&reader))
}

/// The same where it is a page.
pub(crate) async fn written(
    app: Arc<App>,
    reader: Reader,
    write: impl FnOnce(&App, &Reader) -> Result<String, Failure> + Send + 'static,
) -> Response {
    made(app, reader, write).await.map_or_else(|failure| failure, |text| page(StatusCode::OK, text))
}

/// The language of whoever asks: chosen in the address, preferred by the browser, or the dashboard's.
pub(crate) fn reader(app: &App, request: &Request) -> Reader {
    let chosen = value(request.uri().query().unwrap_or_default(), "lang");
    let chosen = chosen.and_then(|code| String::from_utf8(code).ok()?.parse().ok());
    let preferred = || accepted(text_of(request.headers(), header::ACCEPT_LANGUAGE));
    Reader {
        language: chosen.or_else(preferred).unwrap_or(app.settings.language),
        has_chosen: chosen.is_some(),
        has_servers: app.top.is_some(),
        has_observations: app.has_observations(),
    }
}

pub(crate) fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|text| text.to_str().ok()).unwrap_or_default()
}

pub(crate) fn listing(app: &App) -> Result<Listing, Failure> {
    Listing::of(&app.settings.folder).map_err(|_| Failure::FolderGone)
}
