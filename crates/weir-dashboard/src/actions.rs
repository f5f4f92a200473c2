//! The addresses at which studies are started and stopped, and browsers log in and out. The sender is checked before
//! the request.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Extension, Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{task::spawn_blocking, time::timeout};
use weir_lab::run_locks::is_locked;

use crate::{
    app::{App, page, reader},
    auth::{Refused, SESSION_AGE_MAX},
    control::{Control, Denied, Peer},
    folder::{Found, Listing},
    offered::Offered,
    origin::Sender,
    pages,
    query::value,
    reader::Reader,
    runner::{Stage, StartFailure, Started, Task},
};

/// Longest form.
pub const FORM_BYTES_MAX: usize = 4 << 10;

/// How long a peer may take to send a form.
const FORM_WAIT_MAX: Duration = Duration::from_secs(10);

const FORM_TYPE: &str = "application/x-www-form-urlencoded";

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    LogIn,
    LogOut,
    Start,
    Stop,
}

/// The addresses that act.
pub(crate) fn routes(mut router: Router<Arc<App>>) -> Router<Arc<App>> {
    for (path, action) in [
        ("/login", Action::LogIn),
        ("/logout", Action::LogOut),
        ("/start", Action::Start),
        ("/stop", Action::Stop),
    ] {
        let answer = move |app: State<Arc<App>>, peer: Extension<Peer>, request: Request| {
            answer(app, peer, request, action)
        };
        router = router.route(path, post(answer));
    }
    router
}

async fn answer(
    State(app): State<Arc<App>>,
    Extension(peer): Extension<Peer>,
    request: Request,
    action: Action,
) -> Response {
    let reader = reader(&app, &request);
    match act(&app, (&reader, peer), request, action).await {
        Ok(answer) => answer,
        Err(denied) => {
            app.counters.denied();
            denied.page(&reader, action)
        }
    }
}

async fn act(
    app: &Arc<App>,
    (reader, peer): (&Reader, Peer),
    request: Request,
    action: Action,
) -> Result<Response, Denied> {
    // Without control these addresses are not there.
    let control = app.control.as_ref().ok_or(Denied::NoToken)?;
    let (head, body) = request.into_parts();
    let headers = &head.headers;
    let sender = Sender::of(headers, &control.origins, control.own);
    if sender == Sender::Foreign {
        return Err(Denied::Foreign);
    }
    if action == Action::LogIn {
        let Sender::OwnPage { is_secure } = sender else { return Err(Denied::Foreign) };
        let form = form(headers, body).await?;
        let token = value(&form, "token").unwrap_or_default();
        control.wait_for_turn(peer).await?;
        let secret = control.access.log_in(&token, peer.0, Instant::now()).map_err(Denied::Refused)?;
        return seen(&reader.href("/", &[]), Some(&cookie(control, &secret, SESSION_AGE_MAX, is_secure)));
    }
    control.check(headers, sender, peer).await?;
    match action {
        Action::LogIn => Err(Denied::NoToken),
        Action::LogOut => {
            if let Some(secret) = control.secret(headers) {
                control.access.log_out(secret);
            }
            let is_secure = sender == Sender::OwnPage { is_secure: true };
            seen(&reader.href("/", &[]), Some(&cookie(control, "", Duration::ZERO, is_secure)))
        }
        Action::Start => {
            let form = form(headers, body).await?;
            start(app, value(&form, "study").unwrap_or_default(), reader.language.code()).await?;
            app.counters.study_started();
            seen(&reader.href("/live", &[]), None)
        }
        Action::Stop => match control.runner.stop() {
            true => seen(&reader.href("/", &[]), None),
            false => Err(Denied::NothingRuns),
        },
    }
}

/// Redirects a browser to the page that shows the result.
fn seen(href: &str, cookie: Option<&str>) -> Result<Response, Denied> {
    let mut answer = (StatusCode::SEE_OTHER, [(header::LOCATION, href)]).into_response();
    if let Some(cookie) = cookie {
        let value = HeaderValue::from_str(cookie).map_err(|_| Denied::NoToken)?;
        answer.headers_mut().insert(header::SET_COOKIE, value);
    }
    Ok(answer)
}

fn cookie(control: &Control, secret: &str, age: Duration, is_secure: bool) -> String {
    let secure = if is_secure { "; Secure" } else { "" };
    let (name, age_s) = (&control.cookie, age.as_secs());
    format!("{name}={secret}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age_s}{secure}")
}

/// The text of a form.
async fn form(headers: &HeaderMap, body: Body) -> Result<String, Denied> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM_TYPE) {
        return Err(Denied::NoForm);
    }
    let bytes = timeout(FORM_WAIT_MAX, to_bytes(body, FORM_BYTES_MAX)).await;
    let bytes = bytes.map_err(|_| Denied::TooSlow)?.map_err(|_| Denied::TooLong)?;
    String::from_utf8(bytes.to_vec()).map_err(|_| Denied::NoForm)
}

/// Starts the study of this name, unless one runs here or a session of another process works in the same folder: two at
/// a time would disturb each other.
async fn start(app: &Arc<App>, name: Vec<u8>, language: &'static str) -> Result<(), Denied> {
    let place = Arc::clone(&app.readers).acquire_owned().await;
    let app = Arc::clone(app);
    let work = move || -> Result<(), Denied> {
        let control = app.control.as_ref().ok_or(Denied::NoToken)?;
        let not_offered =
            || if Offered::names_plan(&name) { Denied::NoSuchLevels } else { Denied::NoSuchStudy };
        let study = Offered::named(control.studies.as_deref(), &name).ok_or_else(not_offered)?;
        // If the folder cannot be read, the study reports that when it writes to it.
        let found = Listing::of(&app.settings.folder).unwrap_or_default();
        let is_own = matches!(control.runner.stage(), Stage::Running { .. });
        // The kernel does not list locks of another PID namespace. Only here, each lock is tried.
        let is_taken = |study: &Found| study.is_running || is_locked(&study.path);
        if is_own || found.studies.iter().any(is_taken) {
            return Err(Denied::Busy);
        }
        let folder = study.results_folder();
        let out = app.settings.folder.join(&folder);
        let of = Started { name: study.shown(), folder };
        let levels = study.levels.as_deref();
        let started = control.runner.start(Task { of, study: &study.argument, levels, out, language });
        started.map_err(|failure| match failure {
            StartFailure::Busy => Denied::Busy,
            StartFailure::Ending => Denied::Ending,
            StartFailure::Refused(error) => Denied::NotStarted(error),
        })?;
        app.live.expect();
        drop(place);
        Ok(())
    };
    spawn_blocking(work).await.unwrap_or(Err(Denied::Ending))
}

impl Denied {
    /// A browser that gave a wrong token gets the form again.
    fn page(&self, reader: &Reader, action: Action) -> Response {
        let (status, text) = self.status_and_text();
        let text = reader.language.choose(text);
        let text = match self {
            Self::Refused(Refused::NoSession(error)) | Self::NotStarted(error) => format!("{text} {error}"),
            _ => text.to_owned(),
        };
        let is_token =
            matches!(self, Self::Refused(Refused::WrongToken | Refused::TooMany | Refused::Unread));
        let body = match action {
            Action::LogIn if is_token => pages::log_in_again(reader, &text),
            _ => pages::message(reader, &text),
        };
        let mut answer = page(status, body);
        if status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(wait) = self.retry_after() {
            answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        answer
    }
}
