//! Files below a root: which one a target names, and what a request gets of it. Decided when the head is there, without
//! waiting; what waits is only the content, in `connection`.
//!
//! Nothing outside the root is ever opened: targets with `..` are refused as text, and the kernel resolves what is left
//! with `openat2` and `RESOLVE_BENEATH`, so that a symbolic link may point elsewhere within the root but not out of it,
//! whoever changes it meanwhile. Links of `/proc` are not followed.
//!
//! What it is not: it lists no folders, guesses no content type from content, and keeps no file open between requests.

use std::{fmt, io, os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2},
    io::Errno,
};
use weir_proto::http1::{
    Headers, Method,
    conditional::{FileTag, Validators, Verdict, evaluate, range_applies},
    date::{self, DATE_BYTES},
    encode::{AfterMessage, Framing, reason},
    media_type,
    range::{ContentRange, Selection, select},
    target::{self, TargetFault},
};

use super::replies::write_head;

/// What a folder is answered with.
const INDEX: &[u8] = b"index.html";

/// How often a resolution that a rename has disturbed is tried.
const RESOLVE_TRIES_MAX: usize = 4;

/// A folder whose files are served.
#[derive(Clone, Debug)]
pub struct Root {
    folder: Arc<OwnedFd>,
}

impl Root {
    /// Opens the folder; it stays the same one when it is renamed.
    ///
    /// # Errors
    /// Those of `open(2)`; `Unsupported` where the kernel has no `openat2` or forbids it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = Self { folder: Arc::new(open(path, flags, Mode::empty())?) };
        match root.open_below(b".") {
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {
                let reason =
                    "the kernel does not let this process use openat2, which keeps files below the root";
                Err(io::Error::new(io::ErrorKind::Unsupported, reason))
            }
            outcome => outcome.map(|_| root).map_err(io::Error::from),
        }
    }

    /// Opens what a path names below the root. Never waits for the other end of a pipe.
    fn open_below(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut outcome = Err(Errno::AGAIN);
        for _ in 0..RESOLVE_TRIES_MAX {
            outcome = openat2(&*self.folder, path, flags, Mode::empty(), resolve);
            if !matches!(outcome, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        outcome
    }

    /// What a request gets.
    pub(super) fn answer(&self, asked: &Asked<'_>) -> Answer {
        self.find(asked).unwrap_or_else(Answer::of_fault)
    }

    fn find(&self, asked: &Asked<'_>) -> Result<Answer, FileFault> {
        let mut buffer = Vec::new();
        let path = target::decode(asked.target, &mut buffer).map_err(FileFault::Target)?;
        let names_folder = path.ends_with_slash();
        if names_folder {
            if !buffer.is_empty() {
                buffer.push(b'/');
            }
            buffer.extend_from_slice(INDEX);
        }
        let descriptor = self.open_below(&buffer).map_err(FileFault::of)?;
        let found = fstat(&descriptor).map_err(FileFault::of)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory if !names_folder => return Ok(Answer::redirect(&buffer)),
            _ => return Err(FileFault::Missing),
        }
        let file = Served {
            descriptor,
            media_type: media_type::of_path(&buffer),
            bytes: u64::try_from(found.st_size).unwrap_or(0),
            modified_seconds: u64::try_from(found.st_mtime as i64).unwrap_or(0),
            modified_nanoseconds: found.st_mtime_nsec as u32,
        };
        Ok(file.answer(asked))
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

/// A request for a file.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) target: &'a str,
    pub(super) headers: Headers<'a>,
    pub(super) now_seconds: u64,
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
    fn of(error: Errno) -> Self {
        match error {
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

/// A file that is there.
struct Served {
    descriptor: OwnedFd,
    media_type: &'static str,
    bytes: u64,
    modified_seconds: u64,
    modified_nanoseconds: u32,
}

impl Served {
    /// Preconditions first, then the range (RFC 9110, 13.2.2).
    fn answer(self, asked: &Asked<'_>) -> Answer {
        let tag = FileTag::new(self.bytes, self.modified_seconds, self.modified_nanoseconds);
        let validators = Validators { tag: Some(tag.tag()), modified_seconds: Some(self.modified_seconds) };
        let mut answer = Answer {
            status: 200,
            fault: None,
            media_type: self.media_type,
            // A clock that was set back makes no file younger than its reply.
            modified: Some(date::format(self.modified_seconds.min(asked.now_seconds))),
            tag: Some(tag),
            range: None,
            location: None,
            text: String::new(),
            part: None,
            content_bytes: 0,
        };
        match evaluate(asked.method, asked.headers, &validators, asked.now_seconds) {
            Verdict::Proceed => {}
            Verdict::NotModified => return Answer { status: 304, ..answer },
            Verdict::Failed => return Answer { status: 412, ..answer },
        }
        let selection = if range_applies(asked.headers, &validators, asked.now_seconds) {
            select(asked.method, asked.headers, self.bytes)
        } else {
            Selection::Whole
        };
        let (offset, length) = match selection {
            Selection::Whole => (0, self.bytes),
            Selection::Part(part) => {
                answer.status = 206;
                let range = ContentRange { part: Some(part), content_bytes: self.bytes };
                answer.range = Some(range.to_string());
                (part.first(), part.length())
            }
            Selection::Unsatisfiable => {
                let range = ContentRange { part: None, content_bytes: self.bytes };
                return Answer { status: 416, range: Some(range.to_string()), ..answer };
            }
        };
        answer.content_bytes = length;
        answer.part = Some(FileSlice { descriptor: self.descriptor, offset, length });
        answer
    }
}

/// Bytes of an open file.
#[derive(Debug)]
pub(super) struct FileSlice {
    pub(super) descriptor: OwnedFd,
    pub(super) offset: u64,
    pub(super) length: u64,
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

    fn of_fault(fault: FileFault) -> Self {
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
