//! The smallest server: every byte comes back. `cargo run -p weir-engine --example echo -- 127.0.0.1:7007 uring`

use weir_engine::{
    Config, Runtime,
    net::{Listener, Stream},
    spawn,
};

async fn echo(stream: Stream) -> std::io::Result<()> {
    while let Some(bytes) = stream.recv().await? {
        stream.send(bytes).await?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7007".into()).parse()?;
    let driver = arguments.next().unwrap_or_else(|| "auto".into()).parse()?;
    let runtime = Runtime::new(&Config { driver, ..Config::default() })?;
    runtime.block_on(async {
        let listener = Listener::bind(&address, Default::default())?;
        loop {
            let stream = listener.accept().await?;
            spawn(echo(stream));
        }
    })
}
