//! `weir journal export`: the messages of sessions as packets, for programs that read captures.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write},
    net::Ipv4Addr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use weir_proto::soup::{LoginAccepted, Name, SEQUENCED, UNSEQUENCED, encode_frame};
use weir_report::{Language, localized};
use weir_servers::{
    gateway::{Flow, WireMessage, WireMessages, describe},
    journal::inspect_all,
    orders::is_answer,
};

use super::{
    capture::{Connection, DATA_BYTES_MAX, file_header},
    problem,
    selection::Selection,
    workers,
};
use crate::{
    args::JournalExport,
    exit::{Exit, UsageError},
    language, output,
};

/// Ports of the gateway, for clients, and of an exchange.
const CLIENTS_PORT: u16 = 7001;
const VENUES_PORT: u16 = 7002;
/// First port of the other end, and how many follow.
const FIRST_PORT: u16 = 32_768;
const PORTS: u16 = 32_000;
/// Clients with their own address: as many as accounts may be.
const CLIENTS_MAX: usize = 1 << 16;
/// Only the owner reads the orders of all clients.
const FILE_MODE: u32 = 0o600;

/// A connection, and the number of its next message.
struct Stream {
    connection: Connection,
    next: u64,
}

/// The connections so far.
#[derive(Default)]
struct Streams {
    all: HashMap<Flow, Stream>,
    clients: HashMap<Name<6>, u16>,
    packets: u64,
    left_out: u64,
}

impl Streams {
    /// Appends the packets of a message.
    fn add(&mut self, t_ns: u64, message: &WireMessage, out: &mut Vec<u8>) {
        let mut frames = Vec::new();
        let kind = if message.sequence.is_some() { SEQUENCED } else { UNSEQUENCED };
        encode_frame(kind, &message.message, &mut frames);
        if frames.len() > DATA_BYTES_MAX || !self.make(message.flow) {
            self.left_out += 1;
            return;
        }
        let Some(stream) = self.all.get_mut(&message.flow) else { return };
        if let Some(sequence) = message.sequence {
            if stream.next != sequence {
                let mut accepted = Vec::new();
                login_accepted(message.flow, sequence, &mut accepted);
                stream.connection.send(true, t_ns, &accepted, out);
                self.packets += 1;
            }
            stream.next = sequence + 1;
        }
        stream.connection.send(message.sequence.is_some(), t_ns, &frames, out);
        self.packets += 1;
    }

    /// Makes a connection, unless it exists. False: no address is left for it.
    fn make(&mut self, flow: Flow) -> bool {
        if self.all.contains_key(&flow) {
            return true;
        }
        let port = |count: u16| FIRST_PORT + count % PORTS;
        let connection = match flow {
            Flow::Client { account, generation } => {
                let known = self.clients.len();
                if known >= CLIENTS_MAX && !self.clients.contains_key(&account) {
                    return false;
                }
                let [high, low] = self.clients.entry(account).or_insert(known as u16).to_be_bytes();
                let client = (Ipv4Addr::new(10, 1, high, low), port(generation));
                Connection::new(client, (Ipv4Addr::new(10, 0, 0, 1), CLIENTS_PORT))
            }
            Flow::Venue { worker, venue, session } => {
                let [high, low] = worker.to_be_bytes();
                let gateway = (Ipv4Addr::new(10, 3, high, low), port(session));
                let [high, low] = venue.to_be_bytes();
                Connection::new(gateway, (Ipv4Addr::new(10, 2, high, low), VENUES_PORT))
            }
        };
        self.all.insert(flow, Stream { connection, next: 0 });
        true
    }
}

/// A reader of SoupBinTCP counts a stream's messages from the last packet of this kind on. The session has no name in
/// the journal of every version, so its count stands for it.
fn login_accepted(flow: Flow, next: u64, out: &mut Vec<u8>) {
    let count = match flow {
        Flow::Client { generation, .. } => generation,
        Flow::Venue { session, .. } => session,
    };
    let session = count.to_string().parse().unwrap_or_default();
    LoginAccepted { session, next_sequence: next }.encode(out);
}

/// What the packets are written to: a new file, under another name until it is whole, or standard output.
enum Target {
    File { partial: PathBuf, path: PathBuf, file: BufWriter<File> },
    Output(BufWriter<io::StdoutLock<'static>>),
}

impl Target {
    fn new(path: &Path, language: Language) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Output(BufWriter::new(io::stdout().lock())));
        }
        let shown = path.display();
        if fs::symlink_metadata(path).is_ok() {
            return Err(UsageError(localized!(
                language,
                "--pcap {shown} exists already; name a file that does not exist",
                "--pcap {shown}: 이미 있습니다. 없는 파일을 지정하십시오",
                "--pcap {shown}：已存在；请指定不存在的文件",
            ))
            .into());
        }
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = PathBuf::from(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(FILE_MODE);
        let file = options.open(&partial).with_context(|| format!("--pcap {shown}"))?;
        Ok(Self::File { partial, path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::File { file, .. } => file.write_all(bytes),
            Self::Output(output) => output.write_all(bytes),
        }
    }

    /// Gives the file its name. A reader of standard output that has gone away is no error.
    fn end(self) -> io::Result<()> {
        match self {
            Self::File { partial, path, mut file } => file
                .flush()
                .and_then(|()| fs::rename(&partial, &path))
                .inspect_err(|_| _ = fs::remove_file(&partial)),
            Self::Output(mut output) => match output.flush() {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                flushed => flushed,
            },
        }
    }

    /// Leaves nothing behind.
    fn give_up(self) {
        if let Self::File { partial, .. } = self {
            // The error that is reported is worse.
            let _ = fs::remove_file(partial);
        }
    }
}

pub(super) fn run(export: &JournalExport) -> Result<Exit> {
    let language = language::chosen(export.lang.as_deref())?;
    let mut selection = Selection::new(&export.selection, language)?;
    let workers = workers(&export.directory, language)?;
    let mut target = Target::new(&export.pcap, language)?;
    let (mut wire, mut streams, mut bytes) = (WireMessages::default(), Streams::default(), file_header());
    let mut failure = None;
    let visited = inspect_all(&export.directory, &workers, is_answer, &mut |record, _| {
        // All of them are read: later ones are understood by them.
        let messages = wire.of(&record);
        if !selection.takes(record.t_ns, &describe(&record)) {
            return Ok(());
        }
        messages.iter().flatten().for_each(|message| streams.add(record.t_ns, message, &mut bytes));
        let written = target.write(&bytes);
        bytes.clear();
        written.map_err(|error| {
            let reason = error.to_string();
            failure = Some(error);
            reason
        })
    });
    if failure.is_none() {
        // There was no record, or only others.
        failure = target.write(&bytes).err();
    }
    if let Some(error) = failure {
        target.give_up();
        let is_reader_gone = export.pcap == Path::new("-") && error.kind() == io::ErrorKind::BrokenPipe;
        return if is_reader_gone { Ok(Exit::Ok) } else { Err(error).with_context(|| shown(export)) };
    }
    let outcomes = match visited {
        Ok(outcomes) => outcomes,
        Err(error) => {
            target.give_up();
            bail!(problem::sentence(&error, language));
        }
    };
    target.end().with_context(|| shown(export))?;
    tell(export, &streams, language)?;
    // What could be read is in the file.
    let mut errors = outcomes.into_iter().filter_map(|(_, outcome)| outcome.err());
    let Some(first) = errors.next() else { return Ok(Exit::Ok) };
    errors.for_each(|error| output::tell(&format!("weir: {}", problem::sentence(&error, language))));
    let sentence = problem::sentence(&first, language);
    match problem::is_damage(&first) {
        true => Err(anyhow!("{sentence}; {}", problem::way_out(&export.directory, language))),
        false => Err(anyhow!(sentence)),
    }
}

fn shown(export: &JournalExport) -> String {
    format!("--pcap {}", export.pcap.display())
}

/// What was written, unless that was standard output.
fn tell(export: &JournalExport, streams: &Streams, language: Language) -> Result<()> {
    let (messages, connections, left_out) = (streams.packets, streams.all.len(), streams.left_out);
    if left_out > 0 {
        output::tell(&localized!(
            language,
            "weir: messages that do not fit into a packet, or whose client has no address, are left out: {left_out}",
            "weir: 패킷에 들어가지 않거나 고객 주소가 없는 메시지 {left_out}개를 뺐습니다",
            "weir：有 {left_out} 条消息放不进一个数据包，或其客户没有地址，已略去",
        ));
    }
    if export.pcap == Path::new("-") {
        return Ok(());
    }
    let path = export.pcap.display();
    output::print(&localized!(
        language,
        "{path}: {messages} packets with messages in {connections} connections\n\
         tshark -r {path} -d tcp.port=={CLIENTS_PORT},soupbintcp -d tcp.port=={VENUES_PORT},soupbintcp\n",
        "{path}: 연결 {connections}개에 메시지가 든 패킷 {messages}개\n\
         tshark -r {path} -d tcp.port=={CLIENTS_PORT},soupbintcp -d tcp.port=={VENUES_PORT},soupbintcp\n",
        "{path}：{connections} 个连接中有 {messages} 个带消息的数据包\n\
         tshark -r {path} -d tcp.port=={CLIENTS_PORT},soupbintcp -d tcp.port=={VENUES_PORT},soupbintcp\n",
    ))?;
    Ok(())
}
