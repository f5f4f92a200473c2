//! Fetches one page and prints it, in two seconds or not at all.
//! `cargo run -p weir-engine --example http_client -- 127.0.0.1:8080 /`

use std::{error::Error, io::Write, time::Duration};

use weir_engine::{
    Config, Runtime,
    net::{Address, Stream},
    time::timeout,
};

/// Bytes of an answer that are taken, head included.
const ANSWER_BYTES_MAX: usize = 16 << 20;

async fn fetch(address: &Address, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let stream = Stream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.send(request.into_bytes()).await?;
    let mut answer = Vec::new();
    // Asked to close, the server ends the answer by ending the connection.
    while let Some(bytes) = stream.recv().await? {
        if answer.len() + bytes.len() > ANSWER_BYTES_MAX {
            return Err(format!("the answer is longer than {ANSWER_BYTES_MAX} bytes").into());
        }
        answer.extend_from_slice(&bytes);
    }
    Ok(answer)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    // May ask a name server, and blocks meanwhile: before the runtime has anything to do.
    let address = Address::resolve(&arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into()))?;
    let path = arguments.next().unwrap_or_else(|| "/".into());
    let runtime = Runtime::new(&Config::default())?;
    // The limit is over all of it. A future that is dropped at its limit closes the connection that it owns.
    let answer = runtime.block_on(timeout(Duration::from_secs(2), fetch(&address, &path)))??;
    std::io::stdout().write_all(&answer)?;
    Ok(())
}
