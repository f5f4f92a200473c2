//! Running servers as `weir top` shows them, in a page that loads itself again. It looks at them when somebody asks,
//! and no more than once a second, whoever asks.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    response::Response,
};
use maud::html;
use weir_monitor::{
    frame::{Frame, frame},
    lines,
    snapshot::{Monitor, Snapshot},
    target::Target,
};
use weir_report::document;

use crate::{
    pages::{self, Reader},
    server::{App, Failure, reader, written},
    words,
};

/// Shortest time between two looks: below it the watching would be part of what is watched.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After so many seconds a browser asks again.
const REFRESH_S: &str = "2";

/// Rates are between two looks; an earlier one than this says nothing of now.
const BEFORE_AGE_MAX: Duration = Duration::from_secs(10);

/// Servers that are watched, and what was seen of them last.
pub(crate) struct Top {
    looking: Mutex<Looking>,
    seen: Mutex<Frame>,
}

struct Looking {
    monitor: Monitor,
    before: Option<(Snapshot, Instant)>,
}

impl Top {
    /// Servers that answer on these statistics sockets.
    pub(crate) fn over(sockets: &[String]) -> Self {
        let targets = sockets.iter().map(|socket| Target::of_socket(socket)).collect();
        let looking = Looking { monitor: Monitor::new(targets), before: None };
        Self { looking: Mutex::new(looking), seen: Mutex::default() }
    }

    /// What is seen of them now. Waits for their answers, unless somebody waits for them already: who comes then is
    /// told what was seen last.
    fn look(&self) -> Frame {
        if let Ok(mut looking) = self.looking.try_lock() {
            let Looking { monitor, before } = &mut *looking;
            if before.as_ref().is_none_or(|(_, at)| at.elapsed() >= LOOK_EVERY) {
                let after = monitor.snapshot();
                let recent = before.as_ref().filter(|(_, at)| at.elapsed() < BEFORE_AGE_MAX);
                let now = frame(recent.map(|(snapshot, _)| snapshot), &after);
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
                *before = Some((after, Instant::now()));
            }
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The page.
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let look = |app: &App, reader: &Reader| -> Result<String, Failure> {
        let top = app.top.as_ref().ok_or(Failure::Missing(words::NO_SUCH_PAGE))?;
        Ok(drawn(reader, &top.look()))
    };
    let mut answer = written(app, reader, look).await;
    answer.headers_mut().insert(header::REFRESH, HeaderValue::from_static(REFRESH_S));
    answer
}

fn drawn(reader: &Reader, frame: &Frame) -> String {
    let language = reader.language;
    let messages = lines::messages(frame, language);
    let text = [lines::header(), messages, lines::threads(frame), lines::orders(frame, language)].concat();
    let body = html! {
        (pages::above(reader, ("/top", &[]), None))
        main {
            h1 { (reader.say(words::SERVERS)) }
            p.help { (reader.say(words::SERVERS_HELP)) }
            pre tabindex="0" { code { (text) } }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::SERVERS)), &body)
}
