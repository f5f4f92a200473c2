//! Sends one file on every connection, from the page cache to the socket.
//! `cargo run -p weir-engine --example send_file -- Cargo.toml 127.0.0.1:7008 epoll`

use std::{path::PathBuf, rc::Rc};

use weir_engine::{
    Config, Runtime,
    fs::File,
    net::{Listener, Stream},
    spawn,
};

async fn answer(stream: Stream, file: Rc<File>) -> std::io::Result<()> {
    let length = file.metadata().await?.len;
    stream.send(format!("{length} bytes\n").into_bytes()).await?;
    stream.send_file(&file, 0, length).await?;
    stream.shutdown().await
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path: PathBuf = arguments.next().ok_or("which file?")?.into();
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:7008".into()).parse()?;
    let driver = arguments.next().unwrap_or_else(|| "auto".into()).parse()?;
    let runtime = Runtime::new(&Config { driver, ..Config::default() })?;
    runtime.block_on(async {
        let file = Rc::new(File::open(&path).await?);
        let listener = Listener::bind(&address, Default::default())?;
        loop {
            let stream = listener.accept().await?;
            spawn(answer(stream, Rc::clone(&file)));
        }
    })
}
