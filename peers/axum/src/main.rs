//! HTTP on axum: current-thread runtime, a router with two routes, one content shared by all replies.

#[path = "../../start.rs"]
mod start;

use std::{io, net::SocketAddr};

use axum::Router;
use axum::body::Bytes;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::routing::get;
use axum::serve::ListenerExt;
use tokio::net::{TcpListener, TcpSocket};

const BACKLOG: u32 = 4096;

fn main() -> io::Result<()> {
    let (address, [file, content_type]) = start::from_arguments(["FILE", "CONTENT_TYPE"]);
    let content = Bytes::from(std::fs::read(file)?);
    let content_type = HeaderValue::try_from(content_type).map_err(io::Error::other)?;
    // `get` answers HEAD as well, and refuses other methods.
    let answer = get(move || {
        let reply = ([(CONTENT_TYPE, content_type.clone())], content.clone());
        async move { reply }
    });
    let router = Router::new().route("/", answer.clone()).route("/{*path}", answer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = listen(address)?;
        println!("listening on {}", listener.local_addr()?);
        let listener = listener.tap_io(|stream| {
            // Fails only for a connection that is gone already.
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await
    })
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
