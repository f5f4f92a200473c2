//! Running servers as `weir top` shows them, in a page that reloads itself.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderValue, header},
    response::Response,
};
use maud::html;
use weir_monitor::{frame::Frame, lines};
use weir_report::document;

use crate::{
    app::{App, Failure, reader, written},
    observed, pages,
    reader::Reader,
    words,
};

/// A browser reloads the page after this many seconds.
const REFRESH_S: &str = "2";

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
