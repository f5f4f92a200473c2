//! Echo on tokio: current-thread runtime, one task and one buffer a connection.

#[path = "../../start.rs"]
mod start;

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BUFFER_BYTES: usize = 16 * 1024;

fn main() -> io::Result<()> {
    let (address, []) = start::from_arguments([]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(echo(stream));
        }
    })
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let received = stream.read(&mut buffer).await?;
        if received == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..received]).await?;
    }
}
