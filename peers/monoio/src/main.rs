//! Echo on monoio: its io_uring driver, one task and one owned buffer a connection.

#[path = "../../start.rs"]
mod start;

use std::io;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};

const BUFFER_BYTES: usize = 16 * 1024;
const RING_ENTRIES: u32 = 4096;

fn main() -> io::Result<()> {
    let (address, []) = start::from_arguments([]);
    let mut runtime =
        monoio::RuntimeBuilder::<monoio::IoUringDriver>::new().with_entries(RING_ENTRIES).build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address)?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (stream, _) = listener.accept().await?;
            monoio::spawn(echo(stream));
        }
    })
}

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let (received, filled) = stream.read(buffer).await;
        if received? == 0 {
            return Ok(());
        }
        // `read` set the length to what arrived, so the whole vector is the reply.
        let (sent, filled) = stream.write_all(filled).await;
        sent?;
        buffer = filled;
    }
}
