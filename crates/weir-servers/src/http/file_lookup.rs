//! Files below a root: finds the file that a target names, and the answer to a request for it. If the file is cached
//! (`file_cache.rs`), the answer is determined when the head has arrived, without waiting; otherwise the path is
//! opened when the whole request has arrived, off the worker's thread if that may wait for a disk.
//!
//! Nothing outside the root is ever opened: targets with `..` are refused as text, and the kernel resolves the rest
//! (`weir_engine::fs::Folder`). So a symbolic link may point elsewhere within the root but not out of it, even if
//! somebody changes it meanwhile. Links in `/proc` are not followed.
//!
//! What this module does not do: it lists no folders, and guesses no content type from content.

use std::{fmt, io, path::Path, rc::Rc};

use rustix::io::Errno;
use weir_engine::fs::{File, Folder, Metadata};
use weir_proto::http1::{
    Headers, Method,
    conditional::{Evaluation, FileTag, Validators, evaluate, range_applies},
    content_coding::{Coding, Preferences},
    date::{self, DATE_BYTES},
    encode::{AfterMessage, Framing, reason},
    range::{ContentRange, Selection, select},
    target::{self, TargetError},
};

use super::{
    config::HttpConfig,
    file_body::{Content, FileSlice, Served, StoredForm},
    file_cache::WorkerFileCache,
    headers::ReplyHeaders,
    response_encoder::{Head, write_head},
};

/// The file that is served for a folder.
const INDEX: &[u8] = b"index.html";

/// The byte that ends the path in a cache key: no path contains it.
const CODINGS: u8 = 0;

/// A folder whose files are served.
#[derive(Clone, Debug)]
pub struct Root {
    folder: Folder,
    shows_dotfiles: bool,
    serves_precompressed: bool,
}

impl Root {
    /// Opens the folder; the root stays the same folder when it is renamed.
    ///
    /// # Errors
    /// Those of `open(2)`; `Unsupported` where the kernel has no `openat2` or forbids it.
    pub fn open(path: &Path) -> io::Result<Self> {
        Folder::open(path).map(|folder| Self { folder, shows_dotfiles: false, serves_precompressed: false })
    }

    /// Also serves files and folders whose names begin with a dot.
    #[must_use]
    pub fn with_dotfiles(self) -> Self {
        Self { shows_dotfiles: true, ..self }
    }

    /// Serves a compressed file beside the requested one instead, to clients that can read it.
    #[must_use]
    pub fn with_precompressed(self) -> Self {
        Self { serves_precompressed: true, ..self }
    }

    /// The first of these codings for which a file exists beside the original and is not older. A file that cannot be
    /// opened counts as missing.
    async fn open_encoded(
        &self,
        path: &[u8],
        codings: impl Iterator<Item = Coding>,
        plain: &Metadata,
        cache: Option<&Rc<WorkerFileCache>>,
    ) -> Option<(File, Metadata, Coding)> {
        for coding in codings {
            let path = [path, coding.extension().as_bytes()].concat();
            let Ok(file) = self.open_file(&path, cache).await else { continue };
            let Ok(metadata) = file.metadata().await else { continue };
            if metadata.is_file && metadata.modified >= plain.modified {
                return Some((file, metadata, coding));
            }
        }
        None
    }

    /// Opens a file; if descriptors have run out, the cached ones are closed for it.
    async fn open_file(&self, path: &[u8], cache: Option<&Rc<WorkerFileCache>>) -> io::Result<File> {
        match self.folder.open_file(path).await {
            Err(error) if FileError::of(&error) == FileError::Exhausted => {
                if cache.is_some_and(|cache| cache.close_all()) {
                    self.folder.open_file(path).await
                } else {
                    Err(error)
                }
            }
            outcome => outcome,
        }
    }
}

/// The path below the root that a target names, in `buffer`. True: it names a folder.
///
/// If compressed files are served, [`CODINGS`] follows, and then the codings that the client reads: the cache has an
/// entry for each order of them.
pub(super) fn name(
    root: &Root,
    target: &str,
    headers: Headers<'_>,
    buffer: &mut Vec<u8>,
) -> Result<bool, FileError> {
    let path = target::decode(target, buffer).map_err(FileError::Target)?;
    if !root.shows_dotfiles && is_hidden(path) {
        return Err(FileError::Hidden);
    }
    let names_folder = path.ends_with_slash();
    if names_folder {
        if !buffer.is_empty() {
            buffer.push(b'/');
        }
        buffer.extend_from_slice(INDEX);
    }
    if root.serves_precompressed {
        buffer.push(CODINGS);
        buffer.extend(Preferences::of(headers).ordered().map(|coding| coding as u8));
    }
    Ok(names_folder)
}

/// The path, and the codings that follow it.
fn split_codings(name: &[u8]) -> (&[u8], impl Iterator<Item = Coding>) {
    let end = name.iter().position(|byte| *byte == CODINGS).unwrap_or(name.len());
    let (path, codings) = name.split_at(end);
    let coding = |byte: &u8| Coding::ALL.into_iter().find(|coding| *coding as u8 == *byte);
    (path, codings.iter().skip(1).filter_map(coding))
}

/// The reply to a request for a file.
#[derive(Debug)]
pub(super) enum FileReply {
    /// A whole cached file, as a reply without conditions.
    Plain(Rc<Served>),
    Response(Box<FileResponse>),
    /// The file of the path must be opened first.
    Unopened(Box<Unopened>),
}

/// A request whose file is not open yet.
#[derive(Debug)]
pub(super) struct Unopened {
    /// Its path, and the codings that the client reads.
    name: Vec<u8>,
    names_folder: bool,
    method: Method,
    /// The target's query with its question mark, or empty.
    query: String,
    header_lines: Vec<u8>,
}

impl Unopened {
    pub(super) fn new(name: &[u8], names_folder: bool, target: &str, request: &FileRequest<'_>) -> Self {
        let header_lines = request.headers.lines().to_vec();
        let query = target.find('?').map_or_else(String::new, |start| target[start..].to_owned());
        Self { name: name.to_vec(), names_folder, method: request.method, query, header_lines }
    }

    /// Opens the file, caches it if there is a cache, and answers.
    pub(super) async fn answer(
        &self,
        root: &Root,
        cache: Option<&Rc<WorkerFileCache>>,
        config: &HttpConfig,
    ) -> Box<FileResponse> {
        Box::new(self.find(root, cache, config).await.unwrap_or_else(FileResponse::of_error))
    }

    async fn find(
        &self,
        root: &Root,
        cache: Option<&Rc<WorkerFileCache>>,
        config: &HttpConfig,
    ) -> Result<FileResponse, FileError> {
        let looked_at = config.clock.now();
        let failed = |error: io::Error| FileError::of(&error);
        let (path, codings) = split_codings(&self.name);
        let file = root.open_file(path, cache).await.map_err(failed)?;
        let metadata = file.metadata().await.map_err(failed)?;
        if metadata.is_folder && !self.names_folder {
            return Ok(FileResponse::redirect(path, &self.query));
        }
        if !metadata.is_file {
            return Err(FileError::Missing);
        }
        let (file, metadata, coding) = match root.open_encoded(path, codings, &metadata, cache).await {
            Some((file, metadata, coding)) => (file, metadata, Some(coding)),
            None => (file, metadata, None),
        };
        let content = Content::of(&file, &metadata, cache.is_some()).await.map_err(failed)?;
        let now_seconds = config.clock.wall().as_secs().min(date::SECONDS_MAX);
        let form = StoredForm { coding, is_one_of_several: root.serves_precompressed };
        let served = Served::new(path, &metadata, form, content, now_seconds, &config.headers);
        if let Some(cache) = cache {
            cache.keep(&self.name, &served, looked_at);
        }
        let headers = Headers::of_lines(&self.header_lines);
        Ok(FileResponse::of(&served, &FileRequest { method: self.method, headers, now_seconds }))
    }
}

/// Whether a name in the path begins with a dot. `/.well-known/` is meant to be public (RFC 8615).
fn is_hidden(path: target::Path<'_>) -> bool {
    let mut segments = path.segments().enumerate();
    segments.any(|(depth, name)| name.starts_with(b".") && !(depth == 0 && name == b".well-known"))
}

/// How the content of files is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileIo {
    /// Read into the program's memory, then sent.
    Read,
    /// From the page cache to the socket, bypassing the program's memory.
    #[default]
    Sendfile,
}

/// The parts of a request for a file that its answer depends on.
pub(super) struct FileRequest<'a> {
    pub(super) method: Method,
    pub(super) headers: Headers<'a>,
    pub(super) now_seconds: u64,
}

impl FileRequest<'_> {
    /// Whether the whole file is requested, without conditions.
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
pub enum FileError {
    /// The target is not a path below a root.
    Target(TargetError),
    /// There is no such file, or it has no content.
    Missing,
    /// A name in its path begins with a dot. Its existence was not checked.
    Hidden,
    /// Permission denied.
    Forbidden,
    /// A symbolic link in the path leads out of the root, or is absolute.
    LinkOutside,
    /// The path has too many symbolic links, or one of `/proc`.
    LinkRefused,
    /// Descriptors or memory are exhausted at the moment.
    Exhausted,
    /// The file system returned an error.
    Failed,
    /// It became shorter while it was being sent.
    Shrunk,
}

impl FileError {
    fn of(error: &io::Error) -> Self {
        match Errno::from_io_error(error).unwrap_or(Errno::IO) {
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO => FileError::Missing,
            Errno::ACCESS | Errno::PERM => FileError::Forbidden,
            Errno::XDEV => FileError::LinkOutside,
            Errno::LOOP => FileError::LinkRefused,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => FileError::Exhausted,
            _ => FileError::Failed,
        }
    }

    pub(super) fn status(self) -> Option<u16> {
        match self {
            FileError::Target(error) => Some(error.status()),
            FileError::Missing | FileError::Hidden => Some(404),
            FileError::Forbidden | FileError::LinkOutside | FileError::LinkRefused => Some(403),
            FileError::Exhausted => Some(503),
            FileError::Failed => Some(500),
            FileError::Shrunk => None,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            FileError::Target(error) => return error.fmt(formatter),
            FileError::Missing => "no such file",
            FileError::Hidden => "a name that begins with a dot",
            FileError::Forbidden => "a file that may not be read",
            FileError::LinkOutside => "a symbolic link that is absolute or leads out of the root",
            FileError::LinkRefused => "a symbolic link that leads in a circle and is not followed",
            FileError::Exhausted => "no descriptor or memory for a file",
            FileError::Failed => "the file system failed",
            FileError::Shrunk => "a file that became shorter while it was sent",
        })
    }
}

/// The answer to a request: a head and, behind it, a text or a part of a file.
#[derive(Debug)]
pub(super) struct FileResponse {
    pub(super) status: u16,
    pub(super) error: Option<FileError>,
    /// Content behind the head, except for HEAD.
    pub(super) content_bytes: u64,
    pub(super) part: Option<FileSlice>,
    /// Content that is not a file.
    text: String,
    media_type: &'static str,
    modified: Option<[u8; DATE_BYTES]>,
    tag: Option<FileTag>,
    form: StoredForm,
    range: Option<String>,
    location: Option<String>,
}

impl FileResponse {
    /// The answer with a whole file.
    pub(super) fn whole(file: &Served, now_seconds: u64) -> Self {
        Self {
            status: 200,
            error: None,
            media_type: file.media_type,
            // After the clock was set back, a file must not look newer than its reply.
            modified: Some(date::format(file.modified_seconds.min(now_seconds))),
            tag: Some(file.tag),
            form: file.form,
            range: None,
            location: None,
            text: String::new(),
            part: None,
            content_bytes: file.bytes,
        }
    }

    /// As [`Self::whole`], with the content behind it.
    pub(super) fn of_whole(file: Rc<Served>, now_seconds: u64) -> Self {
        Self { part: Some(FileSlice::whole(Rc::clone(&file))), ..Self::whole(&file, now_seconds) }
    }

    /// The answer to a request for a file. Preconditions first, then the range (RFC 9110, 13.2.2).
    pub(super) fn of(file: &Rc<Served>, request: &FileRequest<'_>) -> Self {
        let modified_seconds = Some(file.modified_seconds);
        let validators = Validators { tag: Some(file.tag.tag()), modified_seconds };
        let mut answer = Self { content_bytes: 0, ..Self::whole(file, request.now_seconds) };
        match evaluate(request.method, request.headers, &validators, request.now_seconds) {
            Evaluation::Proceed => {}
            Evaluation::NotModified => return FileResponse { status: 304, ..answer },
            Evaluation::PreconditionFailed => return FileResponse { status: 412, ..answer },
        }
        let selection = if range_applies(request.headers, &validators, request.now_seconds) {
            select(request.method, request.headers, file.bytes)
        } else {
            Selection::Whole
        };
        let (offset, length) = match selection {
            Selection::Whole => (0, file.bytes),
            Selection::Partial(range) => {
                answer.status = 206;
                let sent = ContentRange { range: Some(range), content_bytes: file.bytes };
                answer.range = Some(sent.to_string());
                (range.first(), range.length())
            }
            Selection::Unsatisfiable => {
                let unsatisfied = ContentRange { range: None, content_bytes: file.bytes };
                return FileResponse { status: 416, range: Some(unsatisfied.to_string()), ..answer };
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
            error: None,
            content_bytes: text.len() as u64,
            part: None,
            text,
            media_type: "text/plain; charset=utf-8",
            modified: None,
            tag: None,
            form: StoredForm::default(),
            range: None,
            location: None,
        }
    }

    pub(super) fn of_error(error: FileError) -> Self {
        let status = error.status().unwrap_or(500);
        Self { error: Some(error), ..Self::of_text(status, &error.to_string()) }
    }

    /// A redirect to the folder's name with a slash, so that relative links work. It is written from the decoded
    /// path: the requested target may begin with two slashes, and then a reader would take its first name for a host.
    /// The query stays as requested: the decoder accepts no bytes in a target that end a line or begin a fragment.
    fn redirect(path: &[u8], query: &str) -> Self {
        let mut location = String::from("/");
        for byte in path.iter().copied().chain([b'/']) {
            match byte {
                b'/' | b'-' | b'.' | b'_' | b'~' => location.push(byte.into()),
                byte if byte.is_ascii_alphanumeric() => location.push(byte.into()),
                byte => location.push_str(&format!("%{byte:02X}")),
            }
        }
        location.push_str(query);
        Self { location: Some(location), ..Self::of_text(301, "a folder's name ends with a slash") }
    }

    /// Writes the head, and the text behind it for a GET.
    pub(super) fn write(
        &self,
        output: &mut Vec<u8>,
        headers: &ReplyHeaders,
        date: &[u8; DATE_BYTES],
        after: AfterMessage,
        head_only: bool,
    ) {
        let mut fields: Vec<(&str, &[u8])> = Vec::with_capacity(8);
        if self.content_bytes > 0 || self.status == 200 {
            fields.push(("Content-Type", self.media_type.as_bytes()));
        }
        if let (Some(coding), 200 | 206) = (self.form.coding, self.status) {
            fields.push(("Content-Encoding", coding.name().as_bytes()));
        }
        if self.form.is_one_of_several {
            fields.push(("Vary", b"Accept-Encoding"));
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
        let head = Head { status: self.status, date, fields: &fields, framing, after };
        write_head(output, headers, &head);
        if !head_only {
            output.extend_from_slice(self.text.as_bytes());
        }
    }
}
