//! Fetches one page and prints it, within two seconds.
//! `cargo run -p weir-engine --example http_client -- 127.0.0.1:8080 /`

use std::{error::Error, io::Write, time::Duration};

use weir_engine::{
    Config, Runtime,
    net::{Address, Stream},
    time::timeout,
};

/// Most bytes of an answer, including the head.
const ANSWER_BYTES_MAX: usize = 16 << 20;

async fn fetch(address: &Address, path: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let stream = Stream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.send(request.into_bytes()).await?;
    let mut answer = Vec::new();
    // Because the request asks to close, the connection's end is the answer's end.
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
    // This may ask a name server and block meanwhile: do it before the runtime has work.
    let address = Address::resolve(&arguments.next().unwrap_or_else(|| "127.0.0.1:8080".into()))?;
    let path = arguments.next().unwrap_or_else(|| "/".into());
    let runtime = Runtime::new(&Config::default())?;
    // The limit covers the whole request. When the limit drops the future, the connection that it owns is closed.
    let answer = runtime.block_on(timeout(Duration::from_secs(2), fetch(&address, &path)))??;
    std::io::stdout().write_all(&answer)?;
    Ok(())
}
