//! Echo on glommio: one local executor, one task and one buffer a connection.

#[path = "../../start.rs"]
mod start;

use std::io;

use futures_lite::{AsyncReadExt, AsyncWriteExt};
use glommio::net::{TcpListener, TcpStream};
use glommio::{LocalExecutorBuilder, Placement};

const BUFFER_BYTES: usize = 16 * 1024;

fn main() -> io::Result<()> {
    let (address, []) = start::from_arguments([]);
    let executor = LocalExecutorBuilder::new(Placement::Unbound).make()?;
    executor.run(async {
        let listener = TcpListener::bind(address)?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let stream = listener.accept().await?;
            glommio::spawn_local(echo(stream)).detach();
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
