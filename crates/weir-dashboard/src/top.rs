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
    target::{TARGETS_MAX, Target},
};
use weir_report::document;

use crate::{
    observed,
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
    /// Those that were named.
    named: Vec<Target>,
    others: Others,
    monitor: Monitor,
    before: Option<(Snapshot, Instant)>,
}

/// What becomes of servers that nobody named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// They are looked for each time.
    Found,
    /// They are not shown.
    LeftOut,
}

impl Looking {
    /// Looks for those that have come and gone.
    fn find(&mut self) {
        let is_named =
            |found: &Target| self.named.iter().any(|own| own.pid == found.pid || own.socket == found.socket);
        let found = Target::running().into_iter().filter(|target| !is_named(target));
        let targets = self.named.iter().cloned().chain(found).take(TARGETS_MAX).collect();
        if self.monitor.watch(targets) {
            self.before = None;
        }
    }
}

impl Top {
    /// Servers that answer on these statistics sockets, and perhaps every other one that this user runs.
    pub(crate) fn over(sockets: &[String], others: Others) -> Self {
        let named: Vec<Target> = sockets.iter().map(|socket| Target::of_socket(socket)).collect();
        let monitor = Monitor::new(named.clone());
        let looking = Looking { named, others, monitor, before: None };
        Self { looking: Mutex::new(looking), seen: Mutex::default() }
    }

    /// Name and process of those that are seen now, as far as their processes are known.
    pub(crate) fn servers(&self) -> Vec<(String, u32)> {
        let nodes = self.look().nodes.into_iter();
        nodes.filter_map(|node| Some((node.node, node.pid?))).collect()
    }

    /// What is seen of them now. Waits for their answers, unless somebody waits for them already: who comes then is
    /// told what was seen last.
    fn look(&self) -> Frame {
        if let Ok(mut looking) = self.looking.try_lock() {
            let is_due = looking.before.as_ref().is_none_or(|(_, at)| at.elapsed() >= LOOK_EVERY);
            if is_due {
                if looking.others == Others::Found {
                    looking.find();
                }
                let Looking { monitor, before, .. } = &mut *looking;
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
    let is_empty = frame.nodes.is_empty();
    let messages = lines::messages(frame, language);
    let text = [lines::header(), messages, lines::threads(frame), lines::orders(frame, language)].concat();
    let body = html! {
        (pages::above(reader, ("/top", &[]), None))
        main {
            h1 { (reader.say(words::SERVERS)) }
            p.help { (reader.say(words::SERVERS_HELP)) }
            @if is_empty { p { (reader.say(words::NO_SERVERS)) } } @else {
                pre tabindex="0" { code { (text) } }
                p.facts { @for (name, pid) in frame.nodes.iter().filter_map(|it| Some((&it.node, it.pid?))) {
                    a href=(observed::live_href(reader, pid)) { (reader.say(words::OBSERVE)) " " (name) " (" (pid) ")" }
                } }
            }
        }
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::SERVERS)), &body)
}
