//! Files below a root: which one a target names, and what a request gets of it. Decided when the head is there, without
//! waiting, if the file is kept (`kept.rs`); else the path is opened, off the worker's thread where that may wait for a
//! disk, when the whole request is there.
//!
//! Nothing outside the root is ever opened: targets with `..` are refused as text, and the kernel resolves what is left
//! (`weir_engine::fs::Folder`), so that a symbolic link may point elsewhere within the root but not out of it, whoever
//! changes it meanwhile. Links of `/proc` are not followed.
//!
//! What it is not: it lists no folders, and guesses no content type from content.

use std::{fmt, io, path::Path, rc::Rc};

use rustix::io::Errno;
use weir_engine::fs::{File, Folder};
use weir_proto::http1::{
    Headers, Method,
    conditional::{FileTag, Validators, Verdict, evaluate, range_applies},
    date::{self, DATE_BYTES},
    encode::{AfterMessage, Framing, reason},
    range::{ContentRange, Selection, select},
    target::{self, TargetFault},
};

use super::{
    config::Clock,
    kept::KeptFiles,
    replies::write_head,
    served::{Content, FileSlice, Served},
};

/// What a folder is answered with.
const INDEX: &[u8] = b"index.html";

/// A folder whose files are served.
#[derive(Clone, Debug)]
pub struct Root {
    folder: Folder,
}

impl Root {
    /// Opens the folder; it stays the same one when it is renamed.
    ///
    /// # Errors
    /// Those of `open(2)`; `Unsupported` where the kernel has no `openat2` or forbids it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Folder::open(path).map(|folder| Self { folder })
    }

    /// Opens a file; if descriptors have run out, at the price of those that are kept.
    async fn open_file(&self, path: &[u8], kept: Option<&Rc<KeptFiles>>) -> io::Result<File> {
        match self.folder.open_file(path).await {
            Err(error) if FileFault::of(&error) == FileFault::Exhausted => {
                if kept.is_some_and(|kept| kept.close_all()) {
                    self.folder.open_file(path).await
                } else {
                    Err(error)
                }
            }
            outcome => outcome,
        }
    }
}

/// The path below the root that a target names, in `buffer`. True: it was named as a folder.
pub(super) fn name(target: &str, buffer: &mut Vec<u8>) -> Result<bool, FileFault> {
    let path = target::decode(target, buffer).map_err(FileFault::Target)?;
    let names_folder = path.ends_with_slash();
    if names_folder {
        if !buffer.is_empty() {
            buffer.push(b'/');
        }
        buffer.extend_from_slice(INDEX);
    }
    Ok(names_folder)
}

/// What a request for a file gets.
#[derive(Debug)]
pub(super) enum FileReply {
    /// All of a file that is kept, as everybody gets it who has no conditions.
    Plain(Rc<Served>),
    Answer(Box<Answer>),
    /// What the path names must be found out first.
    Unopened(Box<Unopened>),
}

/// A request whose file is not open yet.
#[derive(Debug)]
pub(super) struct Unopened {
    path: Vec<u8>,
    names_folder: bool,
    method: Method,
    header_lines: Vec<u8>,
}

impl Unopened {
    pub(super) fn new(path: &[u8], names_folder: bool, asked: &Asked<'_>) -> Self {
        let header_lines = asked.headers.lines().to_vec();
        Self { path: path.to_vec(), names_folder, method: asked.method, header_lines }
    }

    /// Opens the file, keeps it if files are kept, and answers.
    pub(super) async fn answer(
        &self,
        root: &Root,
        kept: Option<&Rc<KeptFiles>>,
        clock: Clock,
    ) -> Box<Answer> {
        Box::new(self.find(root, kept, clock).await.unwrap_or_else(Answer::of_fault))
    }

    async fn find(
        &self,
        root: &Root,
        kept: Option<&Rc<KeptFiles>>,
        clock: Clock,
    ) -> Result<Answer, FileFault> {
        let looked_at = clock.now();
        let fault = |error: io::Error| FileFault::of(&error);
        let file = root.open_file(&self.path, kept).await.map_err(fault)?;
        let metadata = file.metadata().await.map_err(fault)?;
        if metadata.is_folder && !self.names_folder {
            return Ok(Answer::redirect(&self.path));
        }
        if !metadata.is_file {
            return Err(FileFault::Missing);
        }
        let content = Content::of(&file, &metadata, kept.is_some()).await.map_err(fault)?;
        let now_seconds = clock.wall().as_secs().min(date::SECONDS_MAX);
        let served = Served::new(&self.path, &metadata, content, now_seconds);
        if let Some(kept) = kept {
            kept.keep(&self.path, &served, looked_at);
        }
        let headers = Headers::of_lines(&self.header_lines);
        Ok(Answer::of(&served, &Asked { method: self.method, headers, now_seconds }))
    }
}

/// How the content of files reaches the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// Read into memory of ours, then sent.
    Read,
    /// From the page cache to the socket, without passing through this program.
    #[default]
    Sendfile,
}

/// A request for a file, as far as its answer depends on it.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) headers: Headers<'a>,
    pub(super) now_seconds: u64,
}

impl Asked<'_> {
    /// Whether all of the file is asked for, whatever the client has already.
    pub(super) fn is_plain(&self) -> bool {
        let is_condition = |name: &[u8]| match name {
            [b'i' | b'I', b'f' | b'F', b'-', ..] => true,
            name => name.eq_ignore_ascii_case(b"range"),
        };
        !self.headers.iter().any(|(name, _)| is_condition(name))
    }
}

/// Why a file is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// The target is no path below a root.
    Target(TargetFault),
    /// Nothing is there, or nothing that has content.
    Missing,
    /// It may not be read, or lies outside the root.
    Forbidden,
    /// There are no descriptors or no memory at the moment.
    Exhausted,
    /// The file system failed.
    Failed,
    /// It became shorter while it was sent.
    Shrunk,
}

impl FileFault {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error).unwrap_or(Errno::IO) {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO => FileFault::Missing,
            Errno::ACCESS | Errno::PERM | Errno::XDEV | Errno::LOOP => FileFault::Forbidden,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => FileFault::Exhausted,
            _ => FileFault::Failed,
        }
    }

    pub(super) fn status(self) -> Option<u16> {
        match self {
            FileFault::Target(fault) => Some(fault.status()),
            FileFault::Missing => Some(404),
            FileFault::Forbidden => Some(403),
            FileFault::Exhausted => Some(503),
            FileFault::Failed => Some(500),
            FileFault::Shrunk => None,
        }
    }
}

impl fmt::Display for FileFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FileFault::Target(fault) => return fault.fmt(formatter),
            FileFault::Missing => "no such file",
            FileFault::Forbidden => "a file that may not be read",
            FileFault::Exhausted => "no descriptor or memory for a file",
            FileFault::Failed => "the file system failed",
            FileFault::Shrunk => "a file that became shorter while it was sent",
        })
    }
}

/// What a request gets: a head and, behind it, a text or a part of a file.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) fault: Option<FileFault>,
    /// Content behind the head, except for HEAD.
    pub(super) content_bytes: u64,
    pub(super) part: Option<FileSlice>,
    /// Content that is no file.
    text: String,
    media_type: &'static str,
    modified: Option<[u8; DATE_BYTES]>,
    tag: Option<FileTag>,
    range: Option<String>,
    location: Option<String>,
}

impl Answer {
    /// All of a file.
    pub(super) fn whole(file: &Served, now_seconds: u64) -> Self {
        Self {
            status: 200,
            fault: None,
            media_type: file.media_type,
            // A clock that was set back makes no file younger than its reply.
            modified: Some(date::format(file.modified_seconds.min(now_seconds))),
            tag: Some(file.tag),
            range: None,
            location: None,
            text: String::new(),
            part: None,
            content_bytes: file.bytes,
        }
    }

    /// The same, with the content behind it.
    pub(super) fn of_whole(file: Rc<Served>, now_seconds: u64) -> Self {
        Self { part: Some(FileSlice::whole(Rc::clone(&file))), ..Self::whole(&file, now_seconds) }
    }

    /// What a request gets of a file. Preconditions first, then the range (RFC 9110, 13.2.2).
    pub(super) fn of(file: &Rc<Served>, asked: &Asked<'_>) -> Self {
        let modified_seconds = Some(file.modified_seconds);
        let validators = Validators { tag: Some(file.tag.tag()), modified_seconds };
        let mut answer = Self { content_bytes: 0, ..Self::whole(file, asked.now_seconds) };
        match evaluate(asked.method, asked.headers, &validators, asked.now_seconds) {
            Verdict::Proceed => {}
            Verdict::NotModified => return Answer { status: 304, ..answer },
            Verdict::Failed => return Answer { status: 412, ..answer },
        }
        let selection = if range_applies(asked.headers, &validators, asked.now_seconds) {
            select(asked.method, asked.headers, file.bytes)
        } else {
            Selection::Whole
        };
        let (offset, length) = match selection {
            Selection::Whole => (0, file.bytes),
            Selection::Part(part) => {
                answer.status = 206;
                let range = ContentRange { part: Some(part), content_bytes: file.bytes };
                answer.range = Some(range.to_string());
                (part.first(), part.length())
            }
            Selection::Unsatisfiable => {
                let range = ContentRange { part: None, content_bytes: file.bytes };
                return Answer { status: 416, range: Some(range.to_string()), ..answer };
            }
        };
        answer.content_bytes = length;
        answer.part = Some(FileSlice { file: Rc::clone(file), offset, length });
        answer
    }

    fn of_text(status: u16, sentence: &str) -> Self {
        let text = format!("{status} {}: {sentence}\n", reason(status));
        Self {
            status,
            fault: None,
            content_bytes: text.len() as u64,
            part: None,
            text,
            media_type: "text/plain; charset=utf-8",
            modified: None,
            tag: None,
            range: None,
            location: None,
        }
    }

    pub(super) fn of_fault(fault: FileFault) -> Self {
        let status = fault.status().unwrap_or(500);
        Self { fault: Some(fault), ..Self::of_text(status, &fault.to_string()) }
    }

    /// To the folder's own name, so that relative links lead where they should. Written anew from the decoded path:
    /// what was asked for may begin with two slashes, and then a reader would take its first name for a host.
    fn redirect(path: &[u8]) -> Self {
        let mut location = String::from("/");
        for byte in path.iter().copied().chain([b'/']) {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => location.push(byte.into()),
                byte if byte.is_ascii_alphanumeric() => location.push(byte.into()),
                byte => location.push_str(&format!("%{byte:02X}")),
            }
        }
        Self { location: Some(location), ..Self::of_text(301, "a folder's name ends with a slash") }
    }

    /// Writes the head, and the text behind it for a GET.
    pub(super) fn write(
        &self,
        output: &mut Vec<u8>,
        date: &[u8; DATE_BYTES],
        after: AfterMessage,
        head_only: bool,
    ) {
        let mut fields: Vec<(&str, &[u8])> = Vec::with_capacity(6);
        if self.content_bytes > 0 || self.status == 200 {
            fields.push(("Content-Type", self.media_type.as_bytes()));
        }
        if let Some(modified) = &self.modified {
            fields.push(("Last-Modified", modified));
        }
        if let Some(tag) = &self.tag {
            fields.push(("ETag", tag.as_bytes()));
            fields.push(("Accept-Ranges", b"bytes"));
        }
        if let Some(range) = &self.range {
            fields.push(("Content-Range", range.as_bytes()));
        }
        if let Some(location) = &self.location {
            fields.push(("Location", location.as_bytes()));
        }
        let framing = match self.status {
            304 => Framing::NoContent,
            _ => Framing::Length(self.content_bytes),
        };
        write_head(output, self.status, date, &fields, framing, after);
        if !head_only {
            output.extend_from_slice(self.text.as_bytes());
        }
    }
}
