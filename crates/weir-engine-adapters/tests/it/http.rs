//! hyper serves HTTP/1.1 over the adapter on every driver. The client is written by hand.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use http_body_util::{Either, Full};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use weir_engine::net::{Address, Stream};
use weir_engine_adapters::{EngineIo, EngineTimer};

use crate::{random::Pattern, rig::Rig};

on_every_driver!(
    requests_on_one_connection_are_answered_in_order,
    a_chunked_body_returns_whole,
    a_large_answer_waits_for_a_slow_client,
    the_timer_ends_a_connection_without_a_request,
);

type Body = Either<Full<Bytes>, Incoming>;

/// `GET /N` is answered with N bytes of the pattern, `POST` with the body of the request.
async fn answer(pattern: Pattern, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.method() == hyper::Method::POST {
        return Ok(Response::new(Either::Right(request.into_body())));
    }
    let length = request.uri().path()[1..].parse().expect("a number");
    Ok(Response::new(Either::Left(Full::new(pattern.bytes(0, length).into()))))
}

fn serve_pattern(pattern: &Pattern) -> impl Fn(Stream) -> BoxedHandler + Clone + Send + 'static {
    let pattern = pattern.clone();
    move |stream: Stream| -> BoxedHandler {
        let pattern = pattern.clone();
        Box::pin(async move {
            let service = service_fn(|request| answer(pattern.clone(), request));
            let mut builder = http1::Builder::new();
            builder.timer(EngineTimer::new()).pipeline_flush(true);
            builder.serve_connection(EngineIo::new(stream), service).await.expect("the client is correct");
        })
    }
}

type BoxedHandler = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// A client's end of a connection.
struct Client {
    stream: EngineIo,
    received: Vec<u8>,
}

impl Client {
    async fn connected(address: &Address) -> Self {
        let stream = Stream::connect(address).await.expect("the server accepts");
        Self { stream: EngineIo::new(stream), received: Vec::new() }
    }

    async fn send(&mut self, request: &str) {
        self.stream.write_all(request.as_bytes()).await.expect("the server receives");
    }

    async fn fill(&mut self) {
        let count = self.stream.read_buf(&mut self.received).await.expect("the server answers");
        assert!(count > 0, "the end after {:?}", String::from_utf8_lossy(&self.received));
    }

    /// Bytes up to the first `end`, without it.
    async fn until(&mut self, end: &str) -> String {
        loop {
            let found = self.received.windows(end.len()).position(|part| part == end.as_bytes());
            if let Some(length) = found {
                let bytes: Vec<u8> = self.received.drain(..length + end.len()).take(length).collect();
                return String::from_utf8(bytes).expect("text");
            }
            self.fill().await;
        }
    }

    async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.received.len() < count {
            self.fill().await;
        }
        self.received.drain(..count).collect()
    }

    /// The body of the next answer, with a length or in chunks.
    async fn body(&mut self) -> Vec<u8> {
        let head = self.until("\r\n\r\n").await.to_ascii_lowercase();
        assert!(head.starts_with("http/1.1 200 ok"), "{head}");
        if let Some((_, after)) = head.split_once("content-length: ") {
            let length = after.split("\r\n").next().unwrap_or(after);
            return self.bytes(length.parse().expect("a number")).await;
        }
        assert!(head.contains("transfer-encoding: chunked"), "{head}");
        let mut body = Vec::new();
        loop {
            let size = self.until("\r\n").await;
            let chunk = self.bytes(usize::from_str_radix(&size, 16).expect("a size")).await;
            assert_eq!(self.until("\r\n").await, "", "each chunk has an end");
            if chunk.is_empty() {
                return body;
            }
            body.extend_from_slice(&chunk);
        }
    }

    async fn expect_end(mut self) {
        assert_eq!(self.stream.read_buf(&mut self.received).await.expect("the server ends"), 0);
        assert!(self.received.is_empty(), "{:?}", String::from_utf8_lossy(&self.received));
    }
}

fn get(length: usize) -> String {
    format!("GET /{length} HTTP/1.1\r\nHost: weir\r\n\r\n")
}

fn requests_on_one_connection_are_answered_in_order(rig: &mut Rig) {
    let pattern = rig.pattern.clone();
    rig.serve(serve_pattern(&pattern), async |address: Address| {
        let mut client = Client::connected(&address).await;
        for length in [0, 5, 70_000] {
            client.send(&get(length)).await;
            assert_eq!(client.body().await, pattern.bytes(0, length));
        }
        let lengths = [3, 1000, 0, 200_000, 7];
        client.send(&lengths.map(get).concat()).await;
        for length in lengths {
            assert_eq!(client.body().await, pattern.bytes(0, length));
        }
        client.send("GET /4 HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").await;
        assert_eq!(client.body().await, pattern.bytes(0, 4));
        client.expect_end().await;
    });
}

fn a_chunked_body_returns_whole(rig: &mut Rig) {
    let (pattern, mut random) = (rig.pattern.clone(), rig.random.fork());
    rig.serve(serve_pattern(&pattern), async |address: Address| {
        let mut client = Client::connected(&address).await;
        for total in [0, 1, 30_000] {
            client.send("POST / HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n").await;
            let mut offset = 0;
            while offset < total {
                let chunk = pattern.bytes(offset, random.between(1, 5000).min(total - offset));
                client.send(&format!("{:x}\r\n", chunk.len())).await;
                client.stream.write_all(&chunk).await.expect("the server receives");
                client.send("\r\n").await;
                if random.one_in(3) {
                    client.stream.flush().await.expect("the server receives");
                }
                offset += chunk.len();
            }
            client.send("0\r\n\r\n").await;
            assert_eq!(client.body().await, pattern.bytes(0, total));
        }
        client.stream.shutdown().await.expect("the server receives");
        client.expect_end().await;
    });
}

/// The answer is larger than what the buffers of both sides hold, and the client reads it in small parts.
fn a_large_answer_waits_for_a_slow_client(rig: &mut Rig) {
    const TOTAL: usize = 12 << 20;
    rig.config.limits.output_high_water_bytes = 64 << 10;
    rig.config.limits.output_low_water_bytes = 16 << 10;
    let pattern = rig.pattern.clone();
    rig.serve(serve_pattern(&pattern), async |address: Address| {
        let mut client = Client::connected(&address).await;
        client.send(&get(TOTAL)).await;
        client.until("\r\n\r\n").await;
        let (mut offset, mut buffer) = (client.received.len(), vec![0; 5000]);
        pattern.check(0, &client.received);
        while offset < TOTAL {
            let count = client.stream.read(&mut buffer).await.expect("the server answers");
            assert!(count > 0, "the end after {offset} bytes");
            pattern.check(offset, &buffer[..count]);
            offset += count;
        }
        client.received.clear();
        client.stream.shutdown().await.expect("the server receives");
        client.expect_end().await;
    });
}

fn the_timer_ends_a_connection_without_a_request(rig: &mut Rig) {
    const LIMIT: Duration = Duration::from_millis(50);
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let handler = move |stream: Stream| {
        let count = Arc::clone(&count);
        async move {
            let begin = weir_engine::time::now();
            let service =
                service_fn(async |_request| Ok::<_, Infallible>(Response::new(Full::<Bytes>::default())));
            let mut builder = http1::Builder::new();
            builder.timer(EngineTimer::new()).header_read_timeout(LIMIT);
            let error =
                builder.serve_connection(EngineIo::new(stream), service).await.expect_err("no request");
            assert!(error.is_timeout(), "{error}");
            assert!(weir_engine::time::now().since(begin) >= LIMIT);
            count.fetch_add(1, SeqCst);
        }
    };
    rig.serve(handler, async |address: Address| {
        for part in ["GET / HT", "GET / HTTP/1.1\r\nHost: weir\r\n"] {
            let mut client = Client::connected(&address).await;
            client.send(part).await;
            // The server may answer before it ends.
            client.stream.read_to_end(&mut client.received).await.expect("the server ends");
        }
    });
    assert_eq!(ended.load(SeqCst), 2);
}
