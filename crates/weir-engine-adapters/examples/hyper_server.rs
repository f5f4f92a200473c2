//! hyper on the engine: a GET returns the path, a POST returns the body.
//! `cargo run -p weir-engine-adapters --example hyper_server -- 127.0.0.1:8080 uring`, then
//! `curl 127.0.0.1:8080/hello`. The second argument is any driver but `sim`; without it, `auto` chooses.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program with a terminal")]

use std::{convert::Infallible, error::Error, time::Duration};

use http_body_util::{Either, Full};
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use weir_engine::{
    Config,
    net::Stream,
    serve::{Server, ServerConfig},
};
use weir_engine_adapters::{EngineIo, EngineTimer};

/// How long a client may take for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);

type Body = Either<Full<Bytes>, Incoming>;

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.method() == Method::POST {
        return Ok(Response::new(Either::Right(request.into_body())));
    }
    let path = request.uri().path().to_owned();
    Ok(Response::new(Either::Left(Full::new(path.into()))))
}

async fn serve(stream: Stream) {
    let mut builder = http1::Builder::new();
    builder.timer(EngineTimer::new()).header_read_timeout(HEAD_MAX);
    if let Err(error) = builder.serve_connection(EngineIo::new(stream), service_fn(answer)).await {
        eprintln!("{error}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into()).parse()?;
    let driver = arguments.next().unwrap_or_else(|| "auto".into()).parse()?;
    let engine = Config { driver, ..Config::default() };
    let server = Server::start(ServerConfig::new(engine, address), serve)?;
    println!("http://{} on {}", server.address(), server.driver());
    match server.join().accept_error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
