//! HTTP on actix-web: one worker, one handler for every path, one content shared by all replies.

#[path = "../../start.rs"]
mod start;

use std::{io, time::Duration};

use actix_web::http::KeepAlive;
use actix_web::http::header::{CONTENT_TYPE, HeaderValue};
use actix_web::rt::{System, net::TcpStream};
use actix_web::web::{self, Bytes};
use actix_web::{App, HttpResponse, HttpServer};

const BACKLOG: u32 = 4096;

fn main() -> io::Result<()> {
    let (address, [file, content_type]) = start::from_arguments(["FILE", "CONTENT_TYPE"]);
    let content = Bytes::from(std::fs::read(file)?);
    let content_type = HeaderValue::from_str(&content_type).map_err(io::Error::other)?;
    let answer = move || {
        let mut reply = HttpResponse::Ok();
        reply.insert_header((CONTENT_TYPE, content_type.clone()));
        let reply = reply.body(content.clone());
        async move { reply }
    };
    System::new().block_on(async {
        let server = HttpServer::new(move || App::new().default_service(web::to(answer.clone())))
            .workers(1)
            .backlog(BACKLOG)
            // No separate timer for each request and each pause between two.
            .keep_alive(KeepAlive::Os)
            .client_request_timeout(Duration::ZERO)
            .on_connect(|stream, _| {
                if let Some(stream) = stream.downcast_ref::<TcpStream>() {
                    // Fails only for a connection that is gone already.
                    let _ = stream.set_nodelay(true);
                }
            })
            // It would wait for connections that stay open; SIGTERM ends the process at once, as it ends other peers.
            .disable_signals()
            .bind(address)?;
        for address in server.addrs() {
            println!("listening on {address}");
        }
        server.run().await
    })
}
