//! Echo on compio: one runtime on io_uring, one task and one owned buffer a connection.

#[path = "../../start.rs"]
mod start;

use std::io;

use compio::BufResult;
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};

const BUFFER_BYTES: usize = 16 * 1024;

fn main() -> io::Result<()> {
    let (address, []) = start::from_arguments([]);
    let mut proactor = compio::driver::ProactorBuilder::new();
    proactor.capacity(4096).coop_taskrun(true).single_issuer(true).defer_taskrun(true);
    let runtime = compio::runtime::RuntimeBuilder::new().with_proactor(proactor).build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            compio::runtime::spawn(echo(stream)).detach();
        }
    })
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        buffer.clear();
        let BufResult(received, filled) = stream.read(buffer).await;
        if received? == 0 {
            return Ok(());
        }
        let BufResult(sent, filled) = stream.write_all(filled).await;
        sent?;
        buffer = filled;
    }
}
