//! A whole study that an agent runs: `weir study` as its child, in a folder of the agent. One study in a connection.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha256};
use weir_store::Store;

use super::{AgentError, Session};
use crate::process::{
    group::{Bond, Group},
    remote::{
        codec::{Answer, Question, Refused},
        link::hexadecimal,
        whole::{CHUNK_BYTES, Progress, STORE_BYTES_MAX, StoredThere, WholeEnd, WholeStudy},
    },
};

/// Longest wait for a line before the laboratory is answered that there is none.
const QUIET_MAX: Duration = Duration::from_secs(2);

/// Time between two looks for the end of the input: rare, because the study measures on this machine.
const LOOK: Duration = Duration::from_millis(200);

/// Folder of the results.
const RESULTS: &str = "study";

/// The program, and the agent's own folder.
pub(super) struct Place<'a> {
    pub(super) weir: &'a Path,
    pub(super) folder: &'a Path,
}

/// Runs a study until the laboratory closes the connection, which ends it.
pub(super) fn run(
    session: &mut Session<'_>,
    place: &Place<'_>,
    asked: &WholeStudy,
    interrupt: &AtomicBool,
) -> Result<(), AgentError> {
    let begun = Study::begin(place, asked);
    let mut study = match begun {
        Ok(study) => {
            session.answer(Ok(Answer::Nothing))?;
            Some(study)
        }
        Err(error) => {
            session.refuse(&format!("cannot start the study: {error}"))?;
            None
        }
    };
    while let Some(question) = session.next()? {
        let answer = match (&mut study, question) {
            (Some(study), Question::Progress) => Ok(Answer::Progress(Box::new(study.progress(interrupt)))),
            (Some(study), Question::EndWhole) => {
                study.end_early();
                Ok(Answer::Nothing)
            }
            (Some(study), Question::StoreBytes(offset)) => study.bytes(offset).map(Answer::StoreBytes),
            (_, Question::Nothing) => Ok(Answer::Nothing),
            (Some(_), _) => Err(Refused::Environment("a study runs here".to_owned())),
            (None, _) => Err(Refused::Environment("no study has begun".to_owned())),
        };
        session.answer(answer)?;
    }
    Ok(())
}

/// The length of a file, and its hash.
fn hashed(file: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut hash, mut bytes) = (File::open(file)?, Sha256::new(), 0);
    let mut piece = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok((bytes, hexadecimal(&hash.finalize()))),
            length => {
                hash.update(&piece[..length]);
                bytes += length as u64;
            }
        }
    }
}

/// The child. Dropping it kills it, and its servers with it.
struct Study {
    child: Group,
    results: PathBuf,
    /// Its last line.
    last: String,
}

impl Study {
    fn begin(place: &Place<'_>, asked: &WholeStudy) -> io::Result<Self> {
        let results = place.folder.join(RESULTS);
        let mut command = Command::new(place.weir);
        command.arg("study");
        match &asked.text {
            None => command.arg(&asked.study),
            Some(text) => {
                let file = place.folder.join("study.toml");
                fs::write(&file, text)?;
                command.arg(file)
            }
        };
        command.arg("--asked-as").arg(&asked.study).args(&asked.arguments).arg("--out").arg(&results);
        Ok(Self { child: Group::start(&mut command, Bond::Dies)?, results, last: String::new() })
    }

    /// The lines since the last question, after a wait for the first of them. A burst is cut to its last 4 KiB.
    fn progress(&mut self, interrupt: &AtomicBool) -> Progress {
        let deadline = Instant::now() + QUIET_MAX;
        loop {
            // Looked at first: the last lines are read after the end.
            let has_ended = self.child.has_ended();
            self.child.drain();
            let lines = self.child.take_errors();
            if let Some(last) = lines.last() {
                last.clone_into(&mut self.last);
            }
            if has_ended {
                return Progress { lines, ended: Some(self.ended()) };
            }
            let is_over = interrupt.load(Ordering::Relaxed) || Instant::now() >= deadline;
            if is_over || !lines.is_empty() {
                return Progress { lines, ended: None };
            }
            self.child.wait_output(LOOK);
        }
    }

    fn ended(&mut self) -> WholeEnd {
        let last = self.last.trim_start_matches("weir: ");
        let separator = if last.is_empty() { "" } else { ": " };
        let how = format!("{}{separator}{last}", self.child.exit_reason());
        let code = self.child.end().ok().and_then(|status| status.code());
        match self.stored() {
            Ok(store) => WholeEnd { code, how, store },
            Err(error) => {
                WholeEnd { code, how: format!("{how}; its store cannot be read: {error}"), store: None }
            }
        }
    }

    /// The store as one file, also if the study was killed while it wrote.
    fn stored(&self) -> Result<Option<StoredThere>, String> {
        if !self.file().exists() {
            return Ok(None);
        }
        Store::open(&self.results).map(Store::settle).map_err(|error| error.to_string())?;
        let (bytes, hash) = hashed(&self.file()).map_err(|error| error.to_string())?;
        if bytes > STORE_BYTES_MAX {
            return Err(format!("it has {bytes} bytes, and at most {STORE_BYTES_MAX} are sent"));
        }
        Ok(Some(StoredThere { bytes, hash }))
    }

    fn file(&self) -> PathBuf {
        self.results.join(weir_store::FILE_NAME)
    }

    /// Asks the study to end, as Ctrl-C does.
    fn end_early(&self) {
        let pid = Pid::from_raw(self.child.pid().cast_signed());
        if let Some(pid) = pid.filter(|_| !self.child.has_ended()) {
            // Fails only if it has ended since. It stays unreaped, so its number is not another's.
            let _ = kill_process(pid, Signal::INT);
        }
    }

    fn bytes(&self, offset: u64) -> Result<String, Refused> {
        let read = || {
            let mut file = File::open(self.file())?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::with_capacity(CHUNK_BYTES);
            file.take(CHUNK_BYTES as u64).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes: io::Result<Vec<u8>> = read();
        bytes
            .map(|bytes| hexadecimal(&bytes))
            .map_err(|error| Refused::Environment(format!("its store cannot be read: {error}")))
    }
}
