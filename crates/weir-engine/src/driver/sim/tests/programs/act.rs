//! The two ends of a connection at work, and the log of each.

use std::{cell::RefCell, io, rc::Rc, time::Duration};

use rustix::{fs::MemfdFlags, io::Errno};

use super::{
    super::pattern_bytes,
    plan::{Client, Plan, Reader, Script, Server},
};
use crate::{
    JoinHandle,
    driver::AnyDriver,
    executor,
    fs::File,
    net::{Address, Listener, Stream},
    spawn,
    time::{sleep, timeout},
};

/// Bytes in front of the script's: the client's number.
const HEADER: usize = 2;

/// How often a client tries to connect while descriptors or places are short.
const CONNECT_TRIES_MAX: usize = 100_000;

/// How a byte stream ended for its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With an end of stream.
    Whole,
    Failed(io::ErrorKind),
    /// The reader did not wait for the end.
    Unread,
}

/// The log of one end.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) received: Vec<u8>,
    pub(super) end: End,
    /// The error of a send.
    pub(super) send_error: Option<io::ErrorKind>,
}

/// The logs of both ends of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) client: Option<Seen>,
    pub(super) server: Option<Seen>,
}

/// The state of the program.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Plan,
    pub(super) logs: RefCell<Vec<Log>>,
    pub(super) servers: RefCell<Vec<JoinHandle<()>>>,
}

/// The two directions have different byte patterns.
pub(super) fn sent_by_client(plan: &Plan, script: &Script) -> Vec<u8> {
    pattern_bytes(plan.seed.wrapping_add(u64::from(script.number) * 2), script.bytes)
}

pub(super) fn sent_by_server(plan: &Plan, script: &Script, bytes: usize) -> Vec<u8> {
    pattern_bytes(plan.seed.wrapping_add(u64::from(script.number) * 2 + 1), bytes)
}

async fn pause(length: Option<Duration>) {
    if let Some(length) = length {
        sleep(length).await;
    }
}

/// The next bytes, copied, read in this reader's way.
async fn next(stream: &Stream, reader: Reader) -> io::Result<Option<Vec<u8>>> {
    let received = match reader.patience {
        None => stream.recv().await?,
        Some(mut patience) => loop {
            if let Ok(outcome) = timeout(patience, stream.recv()).await {
                break outcome?;
            }
            // Doubled each time, because many short waits would take forever.
            patience *= 2;
        },
    };
    let Some(lease) = received else { return Ok(None) };
    let bytes = lease.to_vec();
    let held = reader.holds.then_some(lease);
    pause(reader.pause).await;
    drop(held);
    Ok(Some(bytes))
}

/// Reads until the end, or until there are `most` bytes.
async fn read(stream: &Stream, reader: Reader, most: usize, received: &mut Vec<u8>) -> End {
    while received.len() < most {
        match next(stream, reader).await {
            Ok(Some(bytes)) => received.extend(bytes),
            Ok(None) => return End::Whole,
            Err(error) => return End::Failed(error.kind()),
        }
    }
    End::Unread
}

/// Connects; `None`: refused, for a reason that the plan allows.
async fn connect(plan: &Plan, bound: &Address) -> Option<Stream> {
    for _ in 0..CONNECT_TRIES_MAX {
        match Stream::connect(bound).await {
            Ok(stream) => return Some(stream),
            Err(error)
                if error.raw_os_error() == Some(Errno::MFILE.raw_os_error())
                    || error.kind() == io::ErrorKind::QuotaExceeded =>
            {
                sleep(Duration::from_millis(1)).await;
            }
            Err(error) if error.kind() == io::ErrorKind::TimedOut && plan.may_refuse() => return None,
            // The connection was lost, or the runtime drains and no longer accepts.
            Err(_) => return None,
        }
    }
    None
}

/// Sends the number and the bytes in pieces.
async fn send_all(stream: &Stream, script: &Script, bytes: &[u8], pieces_max: usize) -> io::Result<()> {
    stream.send_slice(&script.number.to_le_bytes()).await?;
    for (number, piece) in bytes.chunks(script.piece).take(pieces_max).enumerate() {
        match number % 2 {
            0 => stream.send_slice(piece).await?,
            _ => stream.send(piece.to_vec()).await?,
        }
        pause(script.pause).await;
    }
    Ok(())
}

/// A client's whole life.
pub(super) async fn client(shared: Rc<Shared>, script: Script, bound: Address) {
    sleep(script.start).await;
    let Some(stream) = connect(&shared.plan, &bound).await else { return };
    let bytes = sent_by_client(&shared.plan, &script);
    let seen = match script.client {
        Client::Reads => read_and_send(stream, script, bytes).await,
        Client::Asks => ask(&stream, &script, &bytes).await,
        Client::Leaves => {
            let sent = send_all(&stream, &script, &bytes, usize::MAX).await;
            Seen { received: Vec::new(), end: End::Unread, send_error: sent.err().map(|error| error.kind()) }
        }
        Client::Aborts { pieces } => {
            // It does not read, so a server that replies may block it forever.
            let patience = Duration::from_millis(pieces as u64 + 1);
            let sent = timeout(patience, send_all(&stream, &script, &bytes, pieces)).await;
            stream.abort();
            let send_error = sent.ok().and_then(Result::err).map(|error| error.kind());
            Seen { received: Vec::new(), end: End::Unread, send_error }
        }
    };
    shared.logs.borrow_mut()[usize::from(script.number)].client = Some(seen);
}

async fn read_and_send(stream: Stream, script: Script, bytes: Vec<u8>) -> Seen {
    let stream = Rc::new(stream);
    let sender = Rc::clone(&stream);
    let sent = spawn(async move {
        send_all(&sender, &script, &bytes, usize::MAX).await?;
        sender.shutdown().await
    });
    let mut received = Vec::new();
    let end = read(&stream, script.client_reader, usize::MAX, &mut received).await;
    let send_error = sent.await.err().map(|error| error.kind());
    Seen { received, end, send_error }
}

async fn ask(stream: &Stream, script: &Script, bytes: &[u8]) -> Seen {
    let mut received = Vec::new();
    let mut send_error =
        stream.send_slice(&script.number.to_le_bytes()).await.err().map(|error| error.kind());
    for piece in bytes.chunks(script.piece) {
        if send_error.is_some() {
            break;
        }
        send_error = stream.send(piece.to_vec()).await.err().map(|error| error.kind());
        let expected = received.len() + piece.len();
        let end = read(stream, script.client_reader, expected, &mut received).await;
        if end != End::Unread {
            return Seen { received, end, send_error };
        }
    }
    let ended = stream.shutdown().await.err().map(|error| error.kind());
    let end = read(stream, script.client_reader, usize::MAX, &mut received).await;
    Seen { received, end, send_error: send_error.or(ended) }
}

/// Accepts until it is aborted, or the runtime drains.
pub(super) async fn accept(shared: Rc<Shared>, listener: Listener) {
    while let Ok(stream) = listener.accept().await {
        let handle = spawn(server(Rc::clone(&shared), stream));
        shared.servers.borrow_mut().push(handle);
    }
}

/// A server's whole life. A connection that ends before it has sent its number is not logged.
async fn server(shared: Rc<Shared>, stream: Stream) {
    let reader = shared.plan.scripts[0].server_reader;
    let mut received = Vec::new();
    if read(&stream, reader, HEADER, &mut received).await != End::Unread {
        return;
    }
    let number = usize::from(u16::from_le_bytes([received[0], received[1]]));
    let Some(script) = shared.plan.scripts.get(number).copied() else {
        panic!("seed {}: a connection says that it is number {number}", shared.plan.seed);
    };
    received.drain(..HEADER);
    let seen = serve(&shared.plan, script, stream, received).await;
    shared.logs.borrow_mut()[number].server = Some(seen);
}

async fn serve(plan: &Plan, script: Script, stream: Stream, mut received: Vec<u8>) -> Seen {
    let mut stream = stream;
    if script.moves {
        stream = match hand_over(stream).await {
            Ok(stream) => stream,
            Err(error) => {
                return Seen { received, end: End::Failed(error.kind()), send_error: Some(error.kind()) };
            }
        };
    }
    let reader = script.server_reader;
    let mut sent = Ok(());
    let end = match script.server {
        Server::Echoes { copies } => {
            let end;
            (end, sent) = echo(&stream, reader, copies, &mut received).await;
            end
        }
        Server::Collects => {
            let end = read(&stream, reader, usize::MAX, &mut received).await;
            for piece in received.chunks(script.piece) {
                sent = sent.and(stream.send_slice(piece).await);
            }
            end
        }
        Server::Pushes { bytes } => {
            sent = push(&stream, &sent_by_server(plan, &script, bytes), script.piece).await;
            read(&stream, reader, usize::MAX, &mut received).await
        }
        Server::SendsFile { bytes } => {
            sent = send_file(&stream, &sent_by_server(plan, &script, bytes)).await;
            read(&stream, reader, usize::MAX, &mut received).await
        }
        Server::Swallows => read(&stream, reader, usize::MAX, &mut received).await,
        Server::Aborts { bytes } => {
            let end = read(&stream, reader, bytes, &mut received).await;
            stream.abort();
            return Seen { received, end, send_error: None };
        }
        Server::Leaves { bytes } => read(&stream, reader, bytes, &mut received).await,
    };
    if script.shuts_down && !matches!(script.server, Server::Pushes { .. } | Server::SendsFile { .. }) {
        sent = sent.and(stream.shutdown().await);
    }
    Seen { received, end, send_error: sent.err().map(|error| error.kind()) }
}

async fn echo(
    stream: &Stream,
    reader: Reader,
    copies: bool,
    received: &mut Vec<u8>,
) -> (End, io::Result<()>) {
    // The bytes that came with the number.
    let mut sent = stream.send_slice(received).await;
    loop {
        if sent.is_err() {
            return (End::Unread, sent);
        }
        if copies {
            match next(stream, reader).await {
                Ok(Some(bytes)) => {
                    sent = stream.send_slice(&bytes).await;
                    received.extend(bytes);
                }
                Ok(None) => return (End::Whole, sent),
                Err(error) => return (End::Failed(error.kind()), sent),
            }
        } else {
            match stream.recv().await {
                Ok(Some(lease)) => {
                    received.extend_from_slice(&lease);
                    sent = stream.send(lease).await;
                }
                Ok(None) => return (End::Whole, sent),
                Err(error) => return (End::Failed(error.kind()), sent),
            }
        }
    }
}

async fn push(stream: &Stream, bytes: &[u8], piece: usize) -> io::Result<()> {
    for piece in bytes.chunks(piece) {
        stream.send_slice(piece).await?;
    }
    stream.shutdown().await
}

async fn send_file(stream: &Stream, bytes: &[u8]) -> io::Result<()> {
    let descriptor = rustix::fs::memfd_create("program", MemfdFlags::CLOEXEC)?;
    rustix::io::pwrite(&descriptor, bytes, 0)?;
    let file = File::from_descriptor(descriptor)?;
    let half = bytes.len() / 2;
    stream.send_file(&file, 0, half as u64).await?;
    stream.send_slice(&bytes[half..bytes.len() * 3 / 4]).await?;
    let rest = bytes.len() * 3 / 4;
    // Read through the driver and sent as bytes.
    let read = file.read_at(rest as u64, bytes.len() - rest).await?;
    stream.send_slice(&read).await?;
    stream.shutdown().await
}

/// Gives the connection away and takes it back, as between two runtimes.
async fn hand_over(stream: Stream) -> io::Result<Stream> {
    stream.flush().await?;
    let core = executor::current()?;
    let slot = match &mut *core.driver.borrow_mut() {
        AnyDriver::Sim(driver) => driver.hand_over(stream.slot())?,
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(Stream::new(core, slot))
}

/// The driver's inconsistencies now.
pub(super) fn inconsistencies() -> Vec<String> {
    let core = executor::current().expect("inside the program");
    let AnyDriver::Sim(driver) = &*core.driver.borrow() else { return Vec::new() };
    let watched = driver.kernel().machine.borrow().descriptors.watched();
    driver.inconsistencies(&watched)
}

/// The list of waiting sockets.
pub(super) fn waiting() -> String {
    let core = executor::current().expect("inside the program");
    let AnyDriver::Sim(driver) = &*core.driver.borrow() else { return String::new() };
    driver.explain(io::ErrorKind::Deadlock.into()).to_string()
}

/// The number of open sockets.
pub(super) fn open_sockets() -> usize {
    executor::current().map_or(0, |core| core.with_driver(|driver| driver.sockets()))
}

/// State that remains in the driver and in the kernel when every handle is gone.
pub(super) fn left_over() -> Vec<String> {
    let core = executor::current().expect("inside the program");
    let AnyDriver::Sim(driver) = &*core.driver.borrow() else { return Vec::new() };
    let mut left = driver.left_over();
    let machine = driver.kernel().machine.borrow();
    for (count, what) in [
        (machine.descriptors.len(), "descriptors"),
        (machine.descriptors.watched().len(), "watched descriptors"),
        (machine.network.open(), "connections in the network"),
    ] {
        if count > 0 {
            left.push(format!("{count} {what}"));
        }
    }
    left
}

/// The number of connections that faults have broken.
pub(super) fn broken() -> u64 {
    let core = executor::current().expect("inside the program");
    let AnyDriver::Sim(driver) = &*core.driver.borrow() else { return 0 };
    driver.kernel().machine.borrow().network.broken()
}
