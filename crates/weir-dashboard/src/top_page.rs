//! Running servers as a table that stays current. The page's script takes the table from the same address every two
//! seconds, so that focus and open details stay.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use maud::{Markup, html};
use weir_monitor::{frame::Frame, lines};
use weir_report::document;

use crate::{
    app::{App, Failure, reader, written},
    pages,
    reader::Reader,
    top::Seen,
    top_table::{self, Order},
    words,
};

/// The page.
pub(crate) async fn page(State(app): State<Arc<App>>, request: Request) -> Response {
    let reader = reader(&app, &request);
    let order = Order::of_query(request.uri().query().unwrap_or_default());
    let look = move |app: &App, reader: &Reader| -> Result<String, Failure> {
        let top = app.top.as_ref().ok_or(Failure::Missing(words::NO_SUCH_PAGE))?;
        Ok(drawn(reader, &top.look(), order))
    };
    written(app, reader, look).await
}

fn drawn(reader: &Reader, seen: &Seen, order: Order) -> String {
    let query = order.value();
    let body = html! {
        (pages::above(reader, ("/top", &[("sort", &query)]), None))
        main {
            h1 { (reader.say(words::SERVERS)) }
            p.help { (reader.say(words::SERVERS_HELP)) }
            (pages::following(reader))
            div #servers {
                (alerts(reader, &seen.frame))
                @if seen.frame.nodes.is_empty() { p { (reader.say(words::NO_SERVERS)) } }
                @else { (top_table::table(reader, seen, order)) }
            }
            details {
                summary { (reader.say(words::THREADS)) }
                pre tabindex="0" { code #threads {
                    (lines::threads(&seen.frame)) (lines::orders(&seen.frame, reader.language))
                } }
            }
        }
        script src="/current.js" {}
    };
    document(reader.language, &format!("Weir · {}", reader.say(words::SERVERS)), &body)
}

/// What keeps orders out although their server runs.
fn alerts(reader: &Reader, frame: &Frame) -> Markup {
    let text = lines::alerts(frame, reader.language);
    html! { @if !text.is_empty() { ul.alerts { @for line in text.lines() { li { (line) } } } } }
}
