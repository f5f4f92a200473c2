//! HTTP on hyper: current-thread runtime, one task a connection, one content shared by all replies.

#[path = "../../start.rs"]
mod start;

use std::{convert::Infallible, future::ready, io, net::SocketAddr};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const BACKLOG: u32 = 4096;

/// Largest content that is copied behind its head, so that replies to pipelined requests leave in one write.
const FLATTENED_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone)]
struct Content {
    bytes: Bytes,
    content_type: HeaderValue,
}

fn main() -> io::Result<()> {
    let (address, [file, content_type]) = start::from_arguments(["FILE", "CONTENT_TYPE"]);
    let content = Content {
        bytes: std::fs::read(file)?.into(),
        content_type: HeaderValue::try_from(content_type).map_err(io::Error::other)?,
    };
    let mut protocol = http1::Builder::new();
    // It copies every body into the buffer of the head. A small one gains by it, also without pipelining: one plain
    // write instead of a vectored one. A large one must not be copied.
    protocol.pipeline_flush(content.bytes.len() <= FLATTENED_BYTES_MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = listen(address)?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(serve(stream, protocol.clone(), content.clone()));
        }
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn serve(stream: TcpStream, protocol: http1::Builder, content: Content) {
    let service =
        service_fn(|request: Request<Incoming>| ready(Ok::<_, Infallible>(content.reply(request.method()))));
    if stream.set_nodelay(true).is_ok() {
        // A connection that ends badly is for the generator to count.
        let _ = protocol.serve_connection(TokioIo::new(stream), service).await;
    }
}

impl Content {
    fn reply(&self, method: &Method) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            let mut refusal = Response::new(Full::default());
            *refusal.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let mut reply = Response::new(Full::new(self.bytes.clone()));
        reply.headers_mut().insert(CONTENT_TYPE, self.content_type.clone());
        reply
    }
}
