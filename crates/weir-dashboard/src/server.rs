//! The dashboard as a server: addresses, the headers of every answer, and connections, which have a maximum and end
//! when their peer makes no progress.

use std::{
    ffi::OsStr,
    fs,
    io::{self, ErrorKind},
    net::{SocketAddr, TcpListener as StdListener},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header, uri::Authority},
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
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use weir_lab::{
    stored::{self, StoredRun},
    stored_folders,
};
use weir_proto::exposition;
use weir_report::{
    ChartPage, PICTURE_SCRIPT, Theme, chart_page_in, chart_svg, has_chart, html_of_run_below, run_pair,
    run_pool,
};

use crate::{
    actions,
    app::{App, Failure, Settings, listing, made, page, reader, text_of, written},
    charts_page::{self, Charts},
    choice::{Choice, Entry},
    compare_page,
    connections::{Connections, CountedConnection},
    control::{Control, ControlSettings, Peer},
    counters::Counters,
    errors::DashboardError,
    folder::{Found, LISTED_MAX, Listing},
    forms::Stopping,
    history_cache::HistoryCache,
    history_page,
    list_page::{self, List, Offers, PAGE_STUDIES},
    live::Live,
    observed,
    observer::Observer,
    origin::is_foreign_fetch,
    packed::Packed,
    pages,
    query::{decoded, encoded, is_own_host, value},
    reader::Reader,
    study_cache::{Problem, StudyCache},
    top::{Others, Top},
    top_page,
    turned_away::TurnedAway,
    unsent::{ANSWER_WAIT_MAX, Deadline, Unsent},
    words,
};

/// Most connections at a time. A further one takes the place of one that answers no request, or waits for one.
pub const CONNECTIONS_MAX: usize = 64;

/// Longest head of a request. When fewer bytes than this wait in a connection, it takes the next piece of its answer.
const BUFFER_BYTES_MAX: usize = 16 << 10;
/// How long a peer may take to send the head of a request, including the wait for it.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(30);
/// How long a peer may read nothing of an answer.
const STALL_MAX: Duration = Duration::from_secs(30);
/// How long a connection that was asked to leave may take to do so, or to send the rest of a head. An answer that it
/// gets by then goes on.
const LEAVE_MAX: Duration = Duration::from_secs(1);
/// Time for unfinished answers when the dashboard ends.
const GRACE: Duration = Duration::from_secs(1);
/// Pause after the system refused a connection, for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Threads that read stores.
const READERS_MAX: usize = 4;

/// The default study of the charts: they show its newest run.
const CHARTED: &str = "tps";

/// Content policy of a chart, wherever it is framed: styles from within.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Content policy of other pages, which no page may frame: they may frame charts, send forms here, receive events about
/// the running study by the dashboard's own script, and draw a chart that they show as an image.
const POLICY_UNFRAMED: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; script-src 'self'; \
                               connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; \
                               frame-ancestors 'none'";

/// A dashboard that listens.
pub struct Dashboard {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    app: Arc<App>,
    /// Number of requests to end.
    stop: watch::Sender<u32>,
}

/// Ends a dashboard from another thread.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<u32>);

impl Stop {
    /// Accepts no more connections, and ends when the unfinished answers are out, or a second has passed. It ends a
    /// study that was started here too; a second call skips the wait for that.
    pub fn stop(&self) {
        self.0.send_modify(|asked| *asked = asked.saturating_add(1));
    }
}

impl Dashboard {
    /// Listens, and checks that the folder can be read. The address is taken when this returns.
    pub fn bind(mut settings: Settings) -> Result<Self, DashboardError> {
        let control = settings.control.take().map(|control| checked(control, &mut settings)).transpose()?;
        let Settings { folder, listen: address, .. } = &settings;
        if folder.join(weir_store::FILE_NAME).exists() {
            return Err(DashboardError::OneStudy(folder.clone()));
        }
        Listing::of(folder)
            .map_err(|source| DashboardError::Unreadable { folder: folder.clone(), source })?;
        let refused = |source: std::io::Error| match source.kind() {
            ErrorKind::AddrInUse => DashboardError::InUse { address: *address },
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
        let app = App {
            studies: StudyCache::default(),
            history: HistoryCache::default(),
            counters: Counters::default(),
            live: Arc::new(Live::over(folder)),
            control: control.map(|control| Control::of(control, bound)),
            top: shown_servers(&settings),
            observer: Observer::default(),
            settings,
            readers: Arc::new(Semaphore::new(READERS_MAX)),
            unsent: Arc::new(Unsent::default()),
        };
        Ok(Self { runtime, listener, address: bound, app: Arc::new(app), stop: watch::Sender::new(0) })
    }

    /// Its address, with the port that the system chose for port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle that ends it.
    pub fn stop(&self) -> Stop {
        Stop(self.stop.clone())
    }

    /// Serves until it is stopped.
    pub fn run(self) {
        let Self { runtime, listener, app, stop, .. } = self;
        let (stopped, mut asked) = (stop.subscribe(), stop.subscribe());
        runtime.block_on(async {
            serve(listener, Arc::clone(&app), stopped).await;
            if let Some(control) = &app.control {
                control.runner.end(&mut asked).await;
            }
        });
        runtime.shutdown_timeout(GRACE);
    }
}

/// The servers that are shown, if any are.
fn shown_servers(settings: &Settings) -> Option<Top> {
    let others = if settings.finds_servers { Others::Found } else { Others::LeftOut };
    let is_asked = others == Others::Found || !settings.stats.is_empty();
    is_asked.then(|| Top::over(&settings.stats, others))
}

/// Prerequisites of acting: origins of pages that others can reach, and a folder of studies that exists. Requests may
/// be for the host of an origin that may act.
fn checked(control: ControlSettings, settings: &mut Settings) -> Result<ControlSettings, DashboardError> {
    let address = settings.listen;
    if !address.ip().is_loopback() && control.origins.is_empty() {
        return Err(DashboardError::NoOrigins { address });
    }
    settings.hosts.extend(control.origins.iter().map(|origin| origin.host().to_owned()));
    let whole = |folder: PathBuf| match fs::canonicalize(&folder) {
        Ok(whole) if whole.is_dir() => Ok(whole),
        Ok(_) => Err(DashboardError::NoStudies { folder, source: ErrorKind::NotADirectory.into() }),
        Err(source) => Err(DashboardError::NoStudies { folder, source }),
    };
    // An absolute path, so that no file name looks like a flag.
    let studies = control.studies.map(whole).transpose()?;
    Ok(ControlSettings { studies, ..control })
}

async fn serve(listener: TcpListener, app: Arc<App>, mut stopped: watch::Receiver<u32>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (connections, turned_away) = (Arc::new(Connections::default()), TurnedAway::default());
    let router = router(&app);
    tokio::spawn(Arc::clone(&app.live).run());
    let ahead = Arc::clone(&app);
    tokio::task::spawn_blocking(move || ahead.read_ahead());
    let ended = stopped.clone();
    loop {
        let accepted = async {
            let (stream, peer) = listener.accept().await?;
            let Some(counted) = connections.enter(peer.ip(), Instant::now()) else {
                return Ok((stream, Peer(peer.ip()), None));
            };
            let place = place(&places, &connections, &counted).await;
            Ok::<_, io::Error>((stream, Peer(peer.ip()), Some((Arc::new(counted), place))))
        };
        tokio::select! {
            _ = stopped.wait_for(|asked| *asked > 0) => break,
            accepted = accepted => match accepted {
                Ok((stream, _, None)) => {
                    app.counters.turned_away();
                    turned_away.answer(stream, &app);
                }
                Ok((stream, peer, Some((counted, place)))) => {
                    let (app, router, stopped) = (Arc::clone(&app), router.clone(), ended.clone());
                    tokio::spawn(async move {
                        app.counters.connected();
                        let deadline = Deadline::default();
                        let router = router.layer(Extension(peer)).layer(Extension(deadline.clone()));
                        let router = router.layer(Extension(Arc::clone(&counted)));
                        connection(stream, router, (&deadline, &counted), stopped).await;
                        app.counters.disconnected();
                        drop((counted, place));
                    });
                }
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    // Peers that have not read their answer by then are cut off with the runtime.
    let _ = timeout(GRACE, places.acquire_many(all)).await;
}

/// A place for a connection. If there is none, one that answers no request is asked to leave; if all of them answer,
/// the first that has answered.
async fn place(
    places: &Arc<Semaphore>,
    connections: &Connections,
    own: &CountedConnection,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(place) = Arc::clone(places).try_acquire_owned() {
        return Some(place);
    }
    let mut acquired = pin!(Arc::clone(places).acquire_owned());
    let mut has_asked = false;
    loop {
        // From here on, so that none is missed between the look and the wait.
        let mut idled = pin!(connections.idled());
        idled.as_mut().enable();
        has_asked = has_asked || connections.make_room(own);
        tokio::select! {
            // It is never closed.
            place = acquired.as_mut() => return place.ok(),
            () = idled => {}
        }
    }
}

/// One connection until its end, or until an answer was not sent in time.
async fn connection(
    stream: TcpStream,
    router: Router,
    (deadline, counted): (&Deadline, &CountedConnection),
    mut stopped: watch::Receiver<u32>,
) {
    // For a peer that does not answer, late detection is harmless.
    let _ = SockRef::from(&stream).set_tcp_user_timeout(Some(STALL_MAX));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WAIT_MAX).max_buf_size(BUFFER_BYTES_MAX);
    let service = TowerToHyperService::new(router);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let (grace, of_answer) = tokio::select! {
        // Errors of a connection are the peer's concern.
        _ = served.as_mut() => return,
        () = deadline.passes() => return,
        // A request that has come meanwhile is answered.
        () = counted.is_asked_to_leave() => (LEAVE_MAX, STALL_MAX),
        _ = stopped.wait_for(|asked| *asked > 0) => (GRACE, Duration::ZERO),
    };
    served.as_mut().graceful_shutdown();
    if timeout(grace, served.as_mut()).await.is_err() && counted.is_answering() {
        let _ = timeout(of_answer, served).await;
    }
}

fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new()
        .route("/", get(list))
        .route("/study/{name}", get(study))
        .route("/study/{name}/figures.csv", get(figures))
        .route("/study/{name}/study.json", get(export))
        .route("/compare", get(compare))
        .route("/compare.json", get(compare_json))
        .route("/pool", get(pool))
        .route("/history", get(history_page::page))
        .route("/charts", get(charts))
        .route("/live", get(live))
        .route("/live.js", get(|| script(include_str!("live.js"))))
        .route("/copy.js", get(|| script(include_str!("copy.js"))))
        .route(pages::PICTURE_SCRIPT_PATH, get(|| script(PICTURE_SCRIPT)))
        .route("/live/events", get(events))
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz));
    for page in ChartPage::ALL {
        let answer = move |app: State<Arc<App>>, request: Request| chart(app, request, page);
        router = router.route(&format!("/{}", page.path()), get(answer));
        let answer = move |app: State<Arc<App>>, request: Request| drawing(app, request, page);
        router = router.route(&format!("/{}.svg", page.path()), get(answer));
    }
    if app.control.is_some() {
        router = actions::routes(router);
    }
    if app.top.is_some() {
        router = router.route("/top", get(top_page::page));
    }
    if app.has_observations() {
        router = router.route("/observe", get(observed::page));
        router = router.route("/current.js", get(|| script(include_str!("current.js"))));
    }
    router
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard))
        .with_state(Arc::clone(app))
}

/// Marks an answer that other pages may frame.
#[derive(Clone, Copy)]
struct MayBeFramed;

/// Whether this is the address of a chart, or of its image.
fn is_chart(path: &str) -> bool {
    let name = path.strip_prefix('/').map(|name| name.strip_suffix(".svg").unwrap_or(name));
    ChartPage::ALL.iter().any(|page| name == Some(page.path()))
}

/// Whether a page of another site fetches a page that is generated for it, or a stream that takes a place. It may link
/// here, and frame charts. Requests that act have a stricter rule.
fn is_fetched_from_elsewhere(request: &Request) -> bool {
    let opened_as: &[&str] = match request.uri().path() {
        "/metrics" | "/healthz" => return false,
        "/live/events" => &[],
        path if is_chart(path) => &["document", "iframe", "frame", "object", "embed"],
        _ => &["document"],
    };
    request.method().is_safe() && is_foreign_fetch(request.headers(), opened_as)
}

/// There is no room for an answer that would wait for its reader.
fn no_room(reader: &Reader) -> Response {
    let text = pages::message(reader, reader.say(words::NO_ROOM));
    let mut answer = page(StatusCode::SERVICE_UNAVAILABLE, text);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    answer
}

/// Whether a request is for this host. One with a whole address as its target is for the host there (RFC 9112, 3.2.2),
/// and the header may name no foreign one beside it.
fn is_for_own_host(app: &App, request: &Request) -> bool {
    let host = text_of(request.headers(), header::HOST);
    let authority = request.uri().authority().map(Authority::as_str);
    [Some(host), authority].into_iter().flatten().all(|host| is_own_host(host, &app.settings.hosts))
}

/// Refuses requests for a foreign host and fetches of pages of other sites. Gives every answer its headers, and room
/// until it is sent.
async fn guard(
    State(app): State<Arc<App>>,
    Extension(Peer(address)): Extension<Peer>,
    Extension(deadline): Extension<Deadline>,
    Extension(counted): Extension<Arc<CountedConnection>>,
    request: Request,
    next: Next,
) -> Response {
    let busy = counted.begin();
    let reader = reader(&app, &request);
    let answer = if request.headers().get_all(header::HOST).iter().count() > 1 {
        app.counters.refused_host();
        page(StatusCode::BAD_REQUEST, pages::message(&reader, reader.say(words::TWO_HOSTS)))
    } else if !is_for_own_host(&app, &request) {
        app.counters.refused_host();
        page(StatusCode::MISDIRECTED_REQUEST, pages::message(&reader, reader.say(words::FOREIGN_HOST)))
    } else if is_fetched_from_elsewhere(&request) {
        page(StatusCode::FORBIDDEN, pages::message(&reader, reader.say(words::FOREIGN_FETCH)))
    } else {
        next.run(request).await
    };
    let may_be_framed = answer.extensions().get::<MayBeFramed>().is_some();
    let policy = if may_be_framed { POLICY } else { POLICY_UNFRAMED };
    let answer = app.unsent.hold(answer, address, &deadline, ANSWER_WAIT_MAX);
    let mut answer = answer.unwrap_or_else(|| no_room(&reader));
    // With `no-referrer`, browsers would not send our own origin either: a form would come from `null`.
    let carried: [(HeaderName, &'static str); 5] = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, if app.control.is_some() { "no-store" } else { "no-cache" }),
        (header::VARY, "accept-language, accept-encoding"),
    ];
    for (name, value) in carried {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    app.counters.answered(answer.status().as_u16());
    busy.until_sent(answer)
}

/// A file to download, under a name without characters that a header or a file system could misread.
fn download(kind: &'static str, name: &OsStr, end: &str, packed: Packed) -> Response {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
    let name: String = name.to_string_lossy().chars().map(plain).collect();
    let disposition = format!("attachment; filename=\"{name}{end}\"");
    let mut answer = packed.answer(kind);
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        answer.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    answer
}

async fn list(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let query = request.uri().query().unwrap_or_default();
    let from = value(query, "from").and_then(|text| String::from_utf8(text).ok()?.parse::<usize>().ok());
    let choice = Choice::of_query(query);
    let is_logged_in = app.control.as_ref().is_some_and(|control| control.is_logged_in(request.headers()));
    written(app, reader, move |app, reader| {
        let found = listing(app)?;
        let entries = app.entries(&found);
        let offers = Offers::of(&entries);
        let entries = match choice.needs_judgement() {
            true => entries.into_iter().map(|entry| app.with_judgement(entry)).collect(),
            false => entries,
        };
        let mut chosen = choice.of(entries);
        // Older studies are found by their names alone, because their stores are not opened for a list.
        let is_older = |study: &&Found| !choice.has_filter() && choice.is_in_name(study);
        let older: Vec<&Found> = found.older.iter().filter(is_older).collect();
        let all = chosen.len() + older.len();
        let listed = all.min(LISTED_MAX);
        let from = from.unwrap_or_default().min(listed);
        let until = (from + PAGE_STUDIES).min(listed);
        let further = older.get(from.saturating_sub(chosen.len())..until.saturating_sub(chosen.len()));
        let further = further.unwrap_or_default();
        let rows = app.studies.rows(&found.studies, further, &app.counters);
        let further = further.iter().zip(rows);
        let further = further.map(|(found, row)| Entry { found, row, judgement: None });
        let first = from.min(chosen.len());
        let shown = chosen.drain(first..until.min(chosen.len())).chain(further);
        let list = List {
            entries: shown.map(|entry| app.with_judgement(entry)).collect(),
            choice: &choice,
            offers,
            newest: &found.studies,
            from,
            listed,
            older: if choice.has_filter() { found.older.len() } else { all - listed },
            is_cut: found.is_cut,
            panel: app.control.as_ref().map(|control| control.panel(is_logged_in, &found)),
        };
        Ok(list_page::list(reader, &list))
    })
    .await
}

/// The study that a path names after `/study/`, up to what ends it.
fn of_path(app: &App, path: &str, end: &str) -> Result<Found, Failure> {
    let name = path.strip_prefix("/study/").and_then(|path| path.strip_suffix(end)).and_then(decoded);
    let found = listing(app)?;
    name.and_then(|name| found.named(&name).cloned()).ok_or(Failure::Missing(words::NO_SUCH_STUDY))
}

async fn study(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let path = request.uri().path().to_owned();
    written(app, reader, move |app, reader| {
        let found = of_path(app, &path, "")?;
        let run = app.studies.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        let above = pages::above(reader, (&path, &[]), Some(&found));
        let folder = reader.run_folder(&found.name);
        Ok(html_of_run_below(&run.result, reader.language, &folder, (&above, pages::PICTURE_SCRIPT_PATH)))
    })
    .await
}

/// Every figure of a study, as `weir export --format csv` prints them.
async fn figures(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let path = request.uri().path().to_owned();
    let made = made(app, reader, move |app, reader| {
        let found = of_path(app, &path, "/figures.csv")?;
        let run = app.studies.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        Ok((found.name, Packed::of(weir_report::csv(&run.result), &reader.taken)))
    });
    made.await.map_or_else(
        |failure| failure,
        |(name, packed)| download("text/csv; charset=utf-8", &name, ".csv", packed),
    )
}

/// A whole study, as `weir export` prints it.
async fn export(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let path = request.uri().path().to_owned();
    let made = made(app, reader, move |app, reader| {
        let found = of_path(app, &path, "/study.json")?;
        app.counters.stores_read();
        let read = stored::read(&found.path).map_err(|error| Failure::Unreadable(Problem::of(&error)));
        let (result, trials) = read?;
        let text = weir_lab::export::json(&result, &trials).map_err(|_| Failure::Broken)?;
        Ok((found.name, Packed::of(text, &reader.taken)))
    });
    made.await
        .map_or_else(|failure| failure, |(name, packed)| download("application/json", &name, ".json", packed))
}

/// Two studies that a query names, judged.
struct Two {
    names: [Found; 2],
    one: Arc<StoredRun>,
    other: Arc<StoredRun>,
}

impl Two {
    fn of(app: &App, names: [Option<Vec<u8>>; 2]) -> Result<Self, Failure> {
        let listing = listing(app)?;
        let found = |name: Option<Vec<u8>>| {
            let name = name.filter(|name| !name.is_empty()).ok_or(Failure::Missing(words::NAME_BOTH))?;
            if let Some(found) = listing.named(&name) {
                return Ok(found.clone());
            }
            let typed = String::from_utf8(name).map_err(|_| Failure::Missing(words::NO_SUCH_STUDY))?;
            let found = listing.only_match(typed.trim()).cloned();
            found.map_err(|alike| Failure::NotMeant { typed: typed.trim().to_owned(), alike })
        };
        let [one, other] = names.map(found);
        let names = [one?, other?];
        let judged = |found: &Found| app.studies.judged(found, &app.counters).map_err(Failure::Unreadable);
        Ok(Self { one: judged(&names[0])?, other: judged(&names[1])?, names })
    }
}

/// The names of both in a query.
fn pair_of(request: &Request) -> [Option<Vec<u8>>; 2] {
    let query = request.uri().query().unwrap_or_default();
    ["a", "b"].map(|side| value(query, side))
}

async fn compare(State(app): State<Arc<App>>, request: Request) -> Response {
    let (reader, names) = (reader(&app, &request), pair_of(&request));
    if names.iter().all(Option::is_none) {
        return written(app, reader, choose_two).await;
    }
    written(app, reader, move |app, reader| {
        let Two { names, one, other } = Two::of(app, names)?;
        let above = pages::above_pair(reader, [&names[0], &names[1]]);
        Ok(run_pair::html(&other.against(&one, &[]), &other.result, reader.language, &above))
    })
    .await
}

/// The form that names two studies.
fn choose_two(app: &App, reader: &Reader) -> Result<String, Failure> {
    let found = listing(app)?;
    let mut entries = app.newest(&found);
    let is_whole = entries.len() <= PAGE_STUDIES && found.older.is_empty();
    entries.truncate(PAGE_STUDIES);
    let entries: Vec<Entry<'_>> = entries.into_iter().map(|entry| app.with_judgement(entry)).collect();
    Ok(compare_page::page(reader, &entries, is_whole, &found.studies))
}

/// The same as `weir study diff --format json` prints it.
async fn compare_json(State(app): State<Arc<App>>, request: Request) -> Response {
    let (reader, names) = (reader(&app, &request), pair_of(&request));
    let made = made(app, reader, move |app, reader| {
        let Two { names, one, other } = Two::of(app, names)?;
        let text = serde_json::to_string_pretty(&other.against(&one, &[])).map_err(|_| Failure::Broken)?;
        let [mut name, second] = names.map(|found| found.name);
        name.push("-");
        name.push(second);
        Ok((name, Packed::of(text, &reader.taken)))
    });
    made.await
        .map_or_else(|failure| failure, |(name, packed)| download("application/json", &name, ".json", packed))
}

/// The runs of a study, pooled as `weir study pool` does.
async fn pool(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let named = value(request.uri().query().unwrap_or_default(), "study");
    written(app, reader, move |app, reader| {
        let named = named.and_then(|name| String::from_utf8(name).ok()).unwrap_or_default();
        let found = listing(app)?;
        let newest: Vec<&Found> = app.newest(&found).iter().map(|entry| entry.found).collect();
        let runs = app.studies.runs(&newest, &named, &app.counters);
        let pool = stored_folders::pooled(&runs);
        let last = stored_folders::named(&pool, &runs).filter(|_| runs.len() > 1);
        let last = last.ok_or(Failure::Missing(words::NOTHING_TO_POOL))?;
        let above = pages::above(reader, ("/pool", &[("study", &encoded(named.as_bytes()))]), None);
        Ok(run_pool::html_below(&pool, last, reader.language, &above))
    })
    .await
}

/// The study that a query names, or the newest one for charts, by the date in its store: a finished one before others.
/// It is looked for among the listed studies, because thousands of older stores are not opened for a chart.
fn charted(app: &App, named: Option<Vec<u8>>) -> Result<Found, Failure> {
    let found = listing(app)?;
    if let Some(name) = named {
        return found.named(&name).cloned().ok_or(Failure::Missing(words::NO_SUCH_STUDY));
    }
    let mut unfinished = None;
    for entry in app.newest(&found) {
        let Some(card) = entry.card().filter(|card| card.name == CHARTED) else { continue };
        if app.studies.judgement(entry.found, card).is_judged {
            return Ok(entry.found.clone());
        }
        unfinished = unfinished.or_else(|| Some(entry.found.clone()));
    }
    let has_others = found.is_cut || !found.older.is_empty();
    let none = if has_others { words::NO_NEW_TPS_STUDY } else { words::NO_TPS_STUDY };
    unfinished.ok_or(Failure::Missing(none))
}

/// The theme that a query names; without one the colours follow the reader's choice.
fn theme(request: &Request) -> Option<Theme> {
    let named = value(request.uri().query().unwrap_or_default(), "theme")?;
    Theme::named(&String::from_utf8(named).ok()?)
}

async fn chart(State(app): State<Arc<App>>, request: Request, page: ChartPage) -> Response {
    let (reader, theme) = (reader(&app, &request), theme(&request));
    let named = value(request.uri().query().unwrap_or_default(), "study");
    let mut answer = written(app, reader, move |app, reader| {
        let found = charted(app, named)?;
        let run = app.studies.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        let report = pages::study_href(reader, &found);
        Ok(chart_page_in(&run.result, page, (reader.language, theme), &report))
    })
    .await;
    answer.extensions_mut().insert(MayBeFramed);
    answer
}

/// A chart as an image that stands alone.
async fn drawing(State(app): State<Arc<App>>, request: Request, page: ChartPage) -> Response {
    let (reader, theme) = (reader(&app, &request), theme(&request));
    let named = value(request.uri().query().unwrap_or_default(), "study");
    let made = made(app, reader, move |app, reader| {
        let found = charted(app, named)?;
        let run = app.studies.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        let image = chart_svg(&run.result, page, reader.language, theme);
        let image = image.ok_or(Failure::Missing(words::NOTHING_DRAWN))?;
        Ok(Packed::of(image, &reader.taken))
    });
    let mut answer = made.await.map_or_else(|failure| failure, |packed| packed.answer("image/svg+xml"));
    answer.extensions_mut().insert(MayBeFramed);
    answer
}

async fn charts(State(app): State<Arc<App>>, request: Request) -> Response {
    let (reader, theme) = (reader(&app, &request), theme(&request));
    let is_secure = text_of(request.headers(), HeaderName::from_static("x-forwarded-proto")) == "https";
    let scheme = if is_secure { "https" } else { "http" };
    let origin = format!("{scheme}://{}", text_of(request.headers(), header::HOST));
    // The form sends an empty name for the default study.
    let named = value(request.uri().query().unwrap_or_default(), "study").filter(|name| !name.is_empty());
    written(app, reader, move |app, reader| {
        let is_named = named.is_some();
        let listing = listing(app)?;
        let offered = charts_page::offered(&app.newest(&listing));
        let found = match charted(app, named) {
            Err(Failure::Missing(why)) if !is_named => {
                return Ok(charts_page::nothing_charted(reader, why, &offered, theme));
            }
            found => found?,
        };
        let run = app.studies.judged(&found, &app.counters).map_err(Failure::Unreadable)?;
        let has_chart = |page: &ChartPage| has_chart(&run.result, *page);
        let drawn: Vec<ChartPage> = ChartPage::ALL.into_iter().filter(has_chart).collect();
        Ok(charts_page::charts(
            reader,
            &Charts { origin: &origin, theme, found: &found, is_named, drawn: &drawn, offered: &offered },
        ))
    })
    .await
}

async fn live(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let control = app.control.as_ref();
    let stopping = control.map(|control| control.stopping(control.is_logged_in(request.headers())));
    let stopping = stopping.unwrap_or(Stopping::No);
    written(app, reader, move |app, reader| Ok(pages::live(reader, &app.live.scene(), &stopping))).await
}

async fn script(text: &'static str) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], text)
}

/// Server-sent events about the study that runs.
async fn events(
    State(app): State<Arc<App>>,
    Extension(Peer(address)): Extension<Peer>,
    request: Request,
) -> Response {
    let reader = reader(&app, &request);
    let messages = app.live.watch(reader.language, address);
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::new(messages)).into_response()
}

async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, exposition::CONTENT_TYPE)], app.counters.exposition(app.live.watching()))
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn nothing(State(app): State<Arc<App>>, request: Request) -> Response {
    Failure::Missing(words::NO_SUCH_PAGE).page(&reader(&app, &request))
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::{IpAddr, TcpStream as StdStream},
    };

    use super::*;

    #[test]
    fn a_connection_whose_peer_takes_its_answer_too_slowly_ends() {
        // More than the system buffers for a connection.
        const BYTES: usize = 32 << 20;
        let runtime = runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let mut slow = runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let mut slow =
                StdStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            slow.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it takes a request");
            let (stream, peer) = listener.accept().await.expect("a connection");
            let connections = Arc::new(Connections::default());
            let counted = connections.enter(peer.ip(), Instant::now()).expect("it is the only one");
            let (unsent, deadline) = (Arc::new(Unsent::default()), Deadline::default());
            let (held, own) = (Arc::clone(&unsent), deadline.clone());
            let long = move || async move {
                let answer = "x".repeat(BYTES).into_response();
                held.hold(answer, IpAddr::from([127, 0, 0, 1]), &own, Duration::ZERO).expect("there is room")
            };
            let stop = watch::Sender::new(0);
            let began = Instant::now();
            let router = Router::new().route("/", get(long));
            connection(stream, router, (&deadline, &counted), stop.subscribe()).await;
            assert!(began.elapsed() < STALL_MAX, "it did not end for its peer's silence");
            assert!(unsent.is_empty(), "and keeps nothing of its answer");
            slow
        });
        let mut taken = Vec::new();
        // The answer may end with a reset.
        let _ = slow.read_to_end(&mut taken);
        assert!(taken.len() < BYTES, "{} bytes came", taken.len());
    }
}
