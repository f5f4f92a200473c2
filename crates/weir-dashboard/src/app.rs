//! The common state of all answers and their common parts: the reader, threads that read stores, and errors in place of
//! a page.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use tokio::sync::Semaphore;
use weir_report::Language;

use crate::{
    choice::{Choice, Entry},
    control::{Control, ControlSettings, Peer},
    counters::Counters,
    folder::{Found, Listing},
    history_cache::HistoryCache,
    list_page::PAGE_STUDIES,
    live::Live,
    observer::Observer,
    packed::{Packed, Taken},
    pages,
    query::{accepted, value},
    reader::Reader,
    study_cache::{Problem, StudyCache},
    top::Top,
    unsent::Unsent,
    words::{self, LocalizedText},
};

/// Settings of a dashboard: its content, its address, and its readers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The results folder. A folder that does not exist yet holds no studies.
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

/// The common state of all answers.
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
    /// Threads that read and write pages. A reader that goes away while it waits for one leaves nothing behind.
    pub readers: Arc<Semaphore>,
    /// Answers that wait for their readers.
    pub unsent: Arc<Unsent>,
}

impl App {
    /// Reads the data of the first pages before anybody asks for them. A store takes a millisecond or two to open. The
    /// newest study, which most readers come for, takes a good part of a second to judge. While a study runs, that one
    /// waits for its reader, because judging would be work beside the measurement.
    pub(crate) fn read_ahead(&self) {
        let Ok(found) = listing(self) else { return };
        let newest = self.newest(&found);
        let shown = newest.iter().take(PAGE_STUDIES).filter_map(|entry| Some((entry.found, entry.card()?)));
        for (study, card) in shown.clone() {
            self.studies.judgement(study, card);
        }
        if found.studies.iter().any(|study| study.is_running) {
            return;
        }
        if let Some((newest, _)) = shown.into_iter().next() {
            // A reader who asks for it gets the error.
            let _ = self.studies.judged(newest, &self.counters);
        }
    }

    /// The newest studies with the facts of their stores, in the order of the listing, which is that of the files.
    pub(crate) fn entries<'l>(&self, found: &'l Listing) -> Vec<Entry<'l>> {
        let all: Vec<&Found> = found.studies.iter().collect();
        let rows = self.studies.rows(&found.studies, &all, &self.counters);
        all.into_iter().zip(rows).map(|(found, row)| Entry { found, row, judgement: None }).collect()
    }

    /// The same, the newest first by the dates in the stores.
    pub(crate) fn newest<'l>(&self, found: &'l Listing) -> Vec<Entry<'l>> {
        Choice::default().of(self.entries(found))
    }

    /// The entry with the judgement of its study, if that can be read.
    pub(crate) fn with_judgement<'l>(&self, entry: Entry<'l>) -> Entry<'l> {
        let judgement = entry.card().map(|card| self.studies.judgement(entry.found, card));
        Entry { judgement, ..entry }
    }

    /// Whether any reader can observe something.
    pub(crate) fn has_observations(&self) -> bool {
        self.settings.records.is_some() || self.top.is_some() || self.control.is_some()
    }
}

/// Why there is no page.
pub(crate) enum Failure {
    Missing(LocalizedText),
    /// The typed part of a name is in no name of a study, or in several.
    NotMeant {
        typed: String,
        alike: usize,
    },
    Unshowable(LocalizedText),
    /// Forbidden for this reader.
    Refused(LocalizedText),
    Unreadable(Problem),
    FolderGone,
    /// The data broke the reader: the store holds content that no version writes.
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

/// Reads stores and makes a page of them, on a thread that may block; otherwise a page with the reason.
pub(crate) async fn made<T: Send + 'static>(
    app: Arc<App>,
    reader: Reader,
    make: impl FnOnce(&App, &Reader) -> Result<T, Failure> + Send + 'static,
) -> Result<T, Response> {
    let own = reader.clone();
    // It is never closed.
    let Ok(place) = Arc::clone(&app.readers).acquire_owned().await else {
        return Err(Failure::Broken.page(&reader));
    };
    let work = tokio::task::spawn_blocking(move || (make(&app, &own), place));
    // The permit is released when this returns, and not earlier on the thread. So the next reader begins only when this
    // answer has its room among the unsent ones, and no more answers are without room than there are readers.
    let (made, _place) = work.await.map_err(|_| Failure::Broken.page(&reader))?;
    made.map_err(|failure| failure.page(&reader))
}

/// The same for a page.
pub(crate) async fn written(
    app: Arc<App>,
    reader: Reader,
    write: impl FnOnce(&App, &Reader) -> Result<String, Failure> + Send + 'static,
) -> Response {
    let make = |app: &App, reader: &Reader| write(app, reader).map(|text| Packed::of(text, &reader.taken));
    made(app, reader, make)
        .await
        .map_or_else(|failure| failure, |packed| packed.answer("text/html; charset=utf-8"))
}

/// The reader's language: chosen in the address, preferred by the browser, or the dashboard's.
pub(crate) fn reader(app: &App, request: &Request) -> Reader {
    let chosen = value(request.uri().query().unwrap_or_default(), "lang");
    let chosen = chosen.and_then(|code| String::from_utf8(code).ok()?.parse().ok());
    let preferred = || accepted(text_of(request.headers(), header::ACCEPT_LANGUAGE));
    Reader {
        language: chosen.or_else(preferred).unwrap_or(app.settings.language),
        has_chosen: chosen.is_some(),
        has_servers: app.top.is_some(),
        has_observations: app.has_observations(),
        taken: Taken::of(request.headers()),
        results: is_here(request).then(|| app.settings.folder.clone()),
    }
}

/// Whether the reader is on this machine, as far as the connection and the headers of proxies say.
fn is_here(request: &Request) -> bool {
    let is_forwarded =
        ["forwarded", "x-forwarded-for"].iter().any(|name| request.headers().contains_key(*name));
    let peer = request.extensions().get::<Peer>();
    !is_forwarded && peer.is_some_and(|Peer(address)| address.is_loopback())
}

pub(crate) fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|text| text.to_str().ok()).unwrap_or_default()
}

pub(crate) fn listing(app: &App) -> Result<Listing, Failure> {
    Listing::of(&app.settings.folder).map_err(|_| Failure::FolderGone)
}
