//! hyper over TLS on the engine: an answer has the path and the version of TLS.
//!
//! ```sh
//! openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -keyout key.pem -out chain.pem \
//!     -subj /CN=localhost -addext subjectAltName=DNS:localhost
//! cargo run -p weir-engine-adapters --features tls --example https_server -- chain.pem key.pem 127.0.0.1:8443 uring
//! curl --cacert chain.pem https://localhost:8443/hello
//! ```
//!
//! The last argument is any driver but `sim`; without it, `auto` chooses.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program with a terminal")]

use std::{convert::Infallible, error::Error, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{Request, Response, body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use rustls::{
    ServerConfig as TlsConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use weir_engine::{
    Config,
    net::Stream,
    serve::{Server, ServerConfig},
};
use weir_engine_adapters::{EngineTimer, tls};

/// How long a client may take for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: https_server CHAIN.pem KEY.pem [ADDRESS [DRIVER]]";

fn tls_config(chain: &str, key: &str) -> Result<TlsConfig, Box<dyn Error>> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(chain)?.collect();
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = TlsConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain?, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

async fn serve(config: Arc<TlsConfig>, stream: Stream) -> Result<(), Box<dyn Error>> {
    let stream = tls::accept(config, stream).await?;
    let version = stream.connection().protocol_version();
    let answer = async |request: Request<Incoming>| {
        let text = format!("{} over {version:?}\n", request.uri().path());
        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text))))
    };
    let mut builder = http1::Builder::new();
    builder.timer(EngineTimer::new()).header_read_timeout(HEAD_MAX);
    builder.serve_connection(stream, service_fn(answer)).await?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (chain, key) = arguments.next().zip(arguments.next()).ok_or(USAGE)?;
    let config = Arc::new(tls_config(&chain, &key)?);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8443".into()).parse()?;
    let driver = arguments.next().unwrap_or_else(|| "auto".into()).parse()?;
    let engine = Config { driver, ..Config::default() };
    let handler = move |stream| {
        let config = Arc::clone(&config);
        async move {
            if let Err(error) = serve(config, stream).await {
                eprintln!("{error}");
            }
        }
    };
    let server = Server::start(ServerConfig::new(engine, address), handler)?;
    println!("https://{} on {}", server.address(), server.driver());
    match server.join().accept_error {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}
