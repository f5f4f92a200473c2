//! The dashboard as a server: addresses, what every answer carries, and connections, which have a maximum and end when
//! their peer stands still.

use std::{
    net::{SocketAddr, TcpListener as StdListener},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{self, Runtime},
    sync::{Semaphore, watch},
    time::{sleep, timeout},
};
use weir_report::{ChartPage, Language, chart_page, html_below};

use crate::{
    counters::Counters,
    errors::DashboardError,
    folder::{Found, Listing},
    live::Live,
    pages::{self, List, PAGE_STUDIES, Reader},
    query::{accepted, decoded, is_own_host, value},
    shelf::{Problem, Shelf},
    words::{self, Told},
};

/// Most connections at a time; further ones wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 64;

/// Longest head of a request, and longest piece of an answer that waits for its peer.
const BUFFER_BYTES_MAX: usize = 16 << 10;
/// How long a peer may take for the head of a request, the wait for it included.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a peer may take nothing of an answer.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Answers that are on their way when the dashboard ends have so long.
const GRACE: Duration = Duration::from_secs(1);
/// After the system refused a connection, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Threads that read stores.
const READERS_MAX: usize = 4;

/// The study whose newest run the charts are of, where none is named.
const CHARTED: &str = "tps";

/// What a chart may do wherever it is framed: be styled from within.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// What other pages may do, which nobody may frame: frame charts, and be told of the running study by a script of the
/// dashboard's own.
const POLICY_UNFRAMED: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; script-src 'self'; \
                               connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
}

/// A dashboard that listens.
pub struct Dashboard {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    stop: watch::Sender<bool>,
}

/// Ends a dashboard from another thread.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// Takes no more connections, and ends when the answers on their way are out, or a second has passed.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Dashboard {
    /// Listens, and looks whether the folder can be read. The address is taken when this returns.
    pub fn bind(settings: Settings) -> Result<Self, DashboardError> {
        let Settings { folder, listen: address, .. } = &settings;
        if folder.join(weir_store::FILE_NAME).exists() {
            return Err(DashboardError::OneStudy(folder.clone()));
        }
        Listing::of(folder)
            .map_err(|source| DashboardError::Unreadable { folder: folder.clone(), source })?;
        let refused = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => DashboardError::InUse { address: *address },
            _ => DashboardError::Unlistenable { address: *address, source },
        };
        let listener = StdListener::bind(address).map_err(refused)?;
        let bound = listener.local_addr().map_err(DashboardError::Runtime)?;
        listener.set_nonblocking(true).map_err(DashboardError::Runtime)?;
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().max_blocking_threads(READERS_MAX).build();
        let runtime = runtime.map_err(DashboardError::Runtime)?;
        let listener = {
            let _entered = runtime.enter();
            TcpListener::from_std(listener).map_err(DashboardError::Runtime)?
        };
        let live = Arc::new(Live::over(folder));
        let readers = Arc::new(Semaphore::new(READERS_MAX));
        let app = App { shelf: Shelf::default(), counters: Counters::default(), live, settings, readers };
        let app = Arc::new(app);
        Ok(Self { runtime, listener, address: bound, app, stop: watch::Sender::new(false) })
    }

    /// Where it listens, with the port that the system chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What ends it.
    pub fn stop(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Answers until it is stopped.
    pub fn run(self) {
        let stopped = self.stop.subscribe();
        self.runtime.block_on(serve(self.listener, self.app, stopped));
        self.runtime.shutdown_timeout(GRACE);
    }
}

struct App {
    settings: Settings,
    shelf: Shelf,
    counters: Counters,
    live: Arc<Live>,
    /// Threads that read and write pages: who goes away while it waits for one leaves nothing behind.
    readers: Arc<Semaphore>,
}

async fn serve(listener: TcpListener, app: Arc<App>, mut stopped: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let router = router(&app);
    tokio::spawn(Arc::clone(&app.live).run());
    let ended = stopped.clone();
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (app, router, stopped) = (Arc::clone(&app), router.clone(), ended.clone());
                    tokio::spawn(async move {
                        app.counters.connected();
                        connection(stream, router, stopped).await;
                        app.counters.disconnected();
                        drop(place);
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    // Who has not taken its answer by then is cut off with the runtime.
    let _ = timeout(GRACE, places.acquire_many(all)).await;
}

/// One connection until its end.
async fn connection(stream: TcpStream, router: Router, mut stopped: watch::Receiver<bool>) {
    // A peer that does not answer is not worse for being noticed later.
    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(STALL_MAX));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX).max_buf_size(BUFFER_BYTES_MAX);
    let service = TowerToHyperService::new(router);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // What is wrong with a connection is its peer's to know.
        _ = served.as_mut() => return,
        _ = stopped.wait_for(|is_stopped| *is_stopped) => served.as_mut().graceful_shutdown(),
    }
    let _ = timeout(GRACE, served).await;
}

fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(list))
        .route("/study/{name}", get(study))
        .route("/charts", get(charts))
        .route("/live", get(live))
        .route("/live.js", get(script))
        .route("/live/events", get(events))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz));
    for page in ChartPage::ALL {
        let answer = move |app: State<Arc<App>>, request: Request| chart(app, request, page);
        router = router.route(&format!("/{}", page.path()), get(answer));
    }
    router
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Marks an answer that other pages may frame.
#[derive(Clone, Copy)]
struct MayBeFramed;

/// Refuses requests for a foreign host, and gives every answer what it must carry.
async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let mut answer = if is_own_host(host, &app.settings.hosts) {
        next.run(request).await
    } else {
        app.counters.refused_host();
        let reader = reader(&app, &request);
        page(
            StatusCode::MISDIRECTED_REQUEST,
            pages::message(&reader, reader.language.choose(words::FOREIGN_HOST)),
        )
    };
    let may_be_framed = answer.extensions().get::<MayBeFramed>().is_some();
    let policy = if may_be_framed { POLICY } else { POLICY_UNFRAMED };
    let carried: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept-language"),
    ];
    for (name, value) in carried {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    app.counters.answered(answer.status().as_u16());
    answer
}

/// Why there is no page.
enum Failure {
    Missing(Told),
    Unreadable(Problem),
    FolderGone,
    /// What was read broke the reader: the store holds what no version writes.
    Broken,
}

impl Failure {
    fn page(&self, reader: &Reader) -> Response {
        let (status, text) = match self {
            Self::Missing(text) => (StatusCode::NOT_FOUND, reader.language.choose(*text).to_owned()),
            Self::Unreadable(problem) => {
                let status = match problem {
                    Problem::Busy => StatusCode::SERVICE_UNAVAILABLE,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                (status, pages::problem_told(reader.language, *problem))
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

fn page(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// Reads stores and writes a page on a thread where that may take its time.
async fn written(
    app: Arc<App>,
    reader: Reader,
    write: impl FnOnce(&App, &Reader) -> Result<String, Failure> + Send + 'static,
) -> Response {
    let own = reader.clone();
    // Closed never.
    let Ok(place) = Arc::clone(&app.readers).acquire_owned().await else {
        return Failure::Broken.page(&reader);
    };
    let work = tokio::task::spawn_blocking(move || {
        let page = write(&app, &own);
        drop(place);
        page
    });
    let work = work.await;
    match work.unwrap_or(Err(Failure::Broken)) {
        Ok(text) => page(StatusCode::OK, text),
        Err(failure) => failure.page(&reader),
    }
}

/// The language of whoever asks: chosen in the address, preferred by the browser, or the dashboard's.
fn reader(app: &App, request: &Request) -> Reader {
    let chosen = value(request.uri().query().unwrap_or_default(), "lang");
    let chosen = chosen.and_then(|code| String::from_utf8(code).ok()?.parse().ok());
    let preferred = || accepted(text_of(request.headers(), header::ACCEPT_LANGUAGE));
    Reader {
        language: chosen.or_else(preferred).unwrap_or(app.settings.language),
        has_chosen: chosen.is_some(),
    }
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|text| text.to_str().ok()).unwrap_or_default()
}

fn listing(app: &App) -> Result<Listing, Failure> {
    Listing::of(&app.settings.folder).map_err(|_| Failure::FolderGone)
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let from = value(request.uri().query().unwrap_or_default(), "from");
    let from = from.and_then(|text| String::from_utf8(text).ok()?.parse::<usize>().ok()).unwrap_or_default();
    written(app, reader, move |app, reader| {
        let found = listing(app)?;
        let from = from.min(found.studies.len());
        let shown = &found.studies[from..(from + PAGE_STUDIES).min(found.studies.len())];
        let rows = app.shelf.rows(&found.studies, shown, &app.counters);
        let list = List {
            studies: shown.iter().zip(rows.iter().map(|row| &**row)).collect(),
            from,
            listed: found.studies.len(),
            older: found.older,
            is_cut: found.is_cut,
        };
        Ok(pages::list(reader, &list))
    })
    .await
}

async fn study(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let path = request.uri().path().to_owned();
    written(app, reader, move |app, reader| {
        let found = listing(app)?;
        let name = path.strip_prefix("/study/").and_then(decoded);
        let found = name.and_then(|name| found.named(&name).cloned());
        let found = found.ok_or(Failure::Missing(words::NO_SUCH_STUDY))?;
        let result = app.shelf.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        let above = pages::above(reader, (&path, &[]), Some(&found));
        Ok(html_below(&result, reader.language, &above))
    })
    .await
}

/// The study that a query names, or the newest one that charts are of: a finished one before others.
fn charted(app: &App, named: Option<Vec<u8>>) -> Result<Found, Failure> {
    let found = listing(app)?;
    if let Some(name) = named {
        return found.named(&name).cloned().ok_or(Failure::Missing(words::NO_SUCH_STUDY));
    }
    let mut unfinished = None;
    for one in &found.studies {
        let rows = app.shelf.rows(&found.studies, std::slice::from_ref(one), &app.counters);
        match rows.first().map(|row| &**row) {
            Some(Ok(card)) if card.name == CHARTED && card.conclusion.is_some() => return Ok(one.clone()),
            Some(Ok(card)) if card.name == CHARTED && unfinished.is_none() => unfinished = Some(one.clone()),
            _ => {}
        }
    }
    unfinished.ok_or(Failure::Missing(words::NO_TPS_STUDY))
}

async fn chart(State(app): State<Arc<App>>, request: Request, page: ChartPage) -> Response {
    let reader = reader(&app, &request);
    let named = value(request.uri().query().unwrap_or_default(), "study");
    let mut answer = written(app, reader, move |app, reader| {
        let found = charted(app, named)?;
        let result = app.shelf.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        Ok(chart_page(&result, page, reader.language, &pages::study_href(reader, &found)))
    })
    .await;
    answer.extensions_mut().insert(MayBeFramed);
    answer
}

async fn charts(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let origin = format!("http://{}", text_of(request.headers(), header::HOST));
    let named = value(request.uri().query().unwrap_or_default(), "study");
    written(app, reader, move |app, reader| {
        let study = named.map(|name| charted(app, Some(name))).transpose()?;
        Ok(pages::charts(reader, &origin, study.as_ref()))
    })
    .await
}

async fn live(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    written(app, reader, |app, reader| Ok(pages::live(reader, &app.live.scene()))).await
}

async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], include_str!("live.js"))
}

/// Server-sent events about the study that runs.
async fn events(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    match app.live.watch(reader.language) {
        Some(messages) => {
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::new(messages)).into_response()
        }
        None => {
            let text = reader.language.choose(words::TOO_MANY_WATCH);
            page(StatusCode::SERVICE_UNAVAILABLE, pages::message(&reader, text))
        }
    }
}

async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.counters.exposition(app.live.watching()))
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn nothing(State(app): State<Arc<App>>, request: Request) -> Response {
    Failure::Missing(words::NO_SUCH_PAGE).page(&reader(&app, &request))
}
