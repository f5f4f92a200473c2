//! Tests of methods that a target supports or refuses, and of header fields in every reply.

use weir_engine::Driver;
use weir_proto::{content::Content, http1::Method};
use weir_servers::http::{Body, FileCache, FileIo, HttpConfig, HttpLogs, Refusal, ReplyHeaders, Root};

use crate::{
    client::get,
    rig::{on_driver, on_every_driver_and_seed},
};

const PAGES: &str = "GET, HEAD, POST, PUT, OPTIONS";

fn request(method: Method, target: &str, fields: &str) -> String {
    format!("{} {target} HTTP/1.1\r\nHost: x\r\n{fields}\r\n", method.name())
}

#[test]
fn a_method_that_a_target_has_not_is_refused_and_the_connection_goes_on() {
    for driver in Driver::ALL {
        let config = HttpConfig::new(Body::Fixed(Content::Html));
        let served = on_driver(driver, config, HttpLogs::default(), async |network| {
            let mut client = network.connect().await;
            let with_content = "Content-Length: 5\r\n";
            for (method, fields, content) in [
                (Method::Delete, "", ""),
                (Method::Patch, with_content, "hello"),
                (Method::Trace, "", ""),
                (Method::Delete, "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
            ] {
                let asked = format!("{}{content}", request(method, "/", fields));
                let refused = client.ask(method, asked).await;
                assert_eq!((refused.status, refused.header("allow")), (405, Some(PAGES)), "{method:?}");
                assert_eq!(refused.header("connection"), None, "{method:?}");
                let text = String::from_utf8(refused.content).expect("text");
                assert_eq!(text, "405 Method Not Allowed: a method that is not allowed\n");
            }
            // The same in a batch, and in order.
            client.write([request(Method::Delete, "/", ""), get("/")].concat().repeat(3)).await;
            for _ in 0..3 {
                assert_eq!(client.response(Method::Delete).await.expect("a refusal").status, 405);
                assert_eq!(client.response(Method::Get).await.expect("a page").status, 200);
            }
        });
        let Some(served) = served else { continue };
        assert_eq!(served.http.counters().refusals(), [(Refusal::Method, 7)], "{driver}");
    }
}

#[test]
fn content_that_nobody_wants_is_not_asked_for() {
    on_every_driver_and_seed(HttpConfig::new(Body::Fixed(Content::Html)), async |network| {
        let mut client = network.connect().await;
        let fields = "Content-Length: 1000000\r\nExpect: 100-continue\r\n";
        let refused = client.ask(Method::Patch, request(Method::Patch, "/", fields)).await;
        assert_eq!((refused.status, &refused.interim[..]), (405, &[][..]));
        // It is unknown whether the content will still come.
        assert_eq!(refused.header("connection"), Some("close"));
        client.expect_end().await;
    });
}

#[test]
fn options_tells_which_methods_there_are() {
    let root = Root::open(&std::env::temp_dir()).expect("it is there");
    let files = Body::Files { root, io: FileIo::default(), cache: FileCache::default() };
    for (body, allowed) in
        [(Body::Fixed(Content::Html), PAGES), (Body::Echo, PAGES), (files, "GET, HEAD, OPTIONS")]
    {
        on_every_driver_and_seed(HttpConfig::new(body), async |network| {
            let mut client = network.connect().await;
            for (target, fields) in [("*", ""), ("/", ""), ("/nothing", "Content-Length: 2\r\n")] {
                let content = if fields.is_empty() { "" } else { "{}" };
                let asked = format!("{}{content}", request(Method::Options, target, fields));
                let told = client.ask(Method::Options, asked).await;
                assert_eq!((told.status, told.header("allow")), (204, Some(allowed)), "{target}");
                assert_eq!((told.header("content-length"), told.content.len()), (None, 0), "{target}");
            }
            let old = client.ask(Method::Options, "OPTIONS * HTTP/1.0\r\n\r\n").await;
            assert_eq!((old.status, old.header("connection")), (204, Some("close")));
            client.expect_end().await;
        });
    }
}

#[test]
fn a_post_without_content_is_answered() {
    for body in [Body::Fixed(Content::Html), Body::Echo] {
        let page = if matches!(body, Body::Echo) { Vec::new() } else { Content::Html.bytes() };
        on_every_driver_and_seed(HttpConfig::new(body), async |network| {
            let mut client = network.connect().await;
            for method in [Method::Post, Method::Put] {
                for fields in ["", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
                    let content = if fields.starts_with('T') { "0\r\n\r\n" } else { "" };
                    let asked = format!("{}{content}", request(method, "/", fields));
                    let reply = client.ask(method, asked).await;
                    assert_eq!((reply.status, &reply.content), (200, &page), "{method:?} {fields}");
                }
            }
        });
    }
}

#[test]
fn fields_that_are_added_are_in_every_reply_but_refusals() {
    let mut headers = ReplyHeaders::default();
    for line in ["Cache-Control: max-age=60", "X-Content-Type-Options: nosniff"] {
        headers.add(line).expect("a field");
    }
    for body in [Body::Fixed(Content::Html), Body::Fixed(Content::Image), Body::Echo] {
        let config = HttpConfig { headers: headers.clone(), ..HttpConfig::new(body) };
        on_every_driver_and_seed(config, async |network| {
            let mut client = network.connect().await;
            // Batched replies are rendered elsewhere than single ones.
            client.write(get("/").repeat(3)).await;
            for _ in 0..3 {
                let reply = client.response(Method::Get).await.expect("a page");
                assert_eq!(reply.header("cache-control"), Some("max-age=60"));
                assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
            }
            let told = client.ask(Method::Options, request(Method::Options, "*", "")).await;
            assert_eq!(told.header("cache-control"), Some("max-age=60"));
            let refused = client.ask(Method::Delete, request(Method::Delete, "/", "")).await;
            assert_eq!((refused.status, refused.header("cache-control")), (405, None));
        });
    }
}
