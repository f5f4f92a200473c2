//! A file that is served: the data that its replies are made from, and the part that one of them sends.

use std::{io, rc::Rc, time::SystemTime};

use weir_engine::{
    SendBuf,
    fs::{File, FilePart, Metadata},
};
use weir_proto::http1::{
    conditional::FileTag,
    content_coding::Coding,
    date::{DATE_BYTES, format},
    encode::AfterMessage,
    media_type,
};

use super::{file_lookup::FileResponse, headers::ReplyHeaders};

/// Files up to this size are cached as bytes, longer ones as descriptors: above it, sending pages costs less than
/// copying.
pub(super) const MEMORY_BYTES_MAX: u64 = 32 << 10;

/// The stored form of a file's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredForm {
    pub(super) coding: Option<Coding>,
    /// Other clients may get another form: caches have to know that.
    pub(super) is_one_of_several: bool,
}

/// A file as it was when it was opened. Shared between the replies that send it.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) media_type: &'static str,
    pub(super) bytes: u64,
    pub(super) modified_seconds: u64,
    pub(super) tag: FileTag,
    pub(super) form: StoredForm,
    content: Content,
    /// The head of the reply to an unconditional GET, with an older date in it.
    head: Vec<u8>,
    date_offset: usize,
}

/// The content of a file.
#[derive(Debug)]
pub(super) enum Content {
    /// Bytes in memory.
    Memory(Rc<[u8]>),
    /// Bytes in the page cache, through this descriptor.
    Open(FilePart),
}

impl Content {
    /// The whole of a file that was just opened. Its bytes are read if that is requested and they are few. They are
    /// used if the file did not change meanwhile.
    pub(super) async fn of(file: &File, metadata: &Metadata, wants_bytes: bool) -> io::Result<Self> {
        if wants_bytes && metadata.len <= MEMORY_BYTES_MAX {
            let bytes = file.read_at(0, metadata.len as usize).await?;
            if bytes.len() as u64 == metadata.len && file.metadata().await? == *metadata {
                return Ok(Content::Memory(bytes[..].into()));
            }
        }
        Ok(Content::Open(file.part(0, metadata.len)?))
    }
}

impl Served {
    pub(super) fn new(
        path: &[u8],
        metadata: &Metadata,
        form: StoredForm,
        content: Content,
        now_seconds: u64,
        headers: &ReplyHeaders,
    ) -> Rc<Self> {
        // Times before 1970 count as 1970.
        let modified = metadata.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut served = Self {
            media_type: media_type::of_path(path),
            bytes: metadata.len,
            modified_seconds: modified.as_secs(),
            tag: FileTag::encoded(form.coding, metadata.len, modified.as_secs(), modified.subsec_nanos()),
            form,
            content,
            head: Vec::new(),
            date_offset: 0,
        };
        let date = format(0);
        let mut head = Vec::new();
        FileResponse::whole(&served, now_seconds).write(
            &mut head,
            headers,
            &date,
            AfterMessage::Unsaid,
            true,
        );
        served.date_offset = head.windows(DATE_BYTES).position(|window| window == date).unwrap_or(0);
        served.head = head;
        Rc::new(served)
    }

    /// Whether it uses a descriptor.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.content, Content::Open(_))
    }

    /// Writes the head of a reply with the whole file. The head states nothing about the connection.
    #[inline]
    pub(super) fn write_head(&self, output: &mut Vec<u8>, date: &[u8; DATE_BYTES]) {
        let at = output.len() + self.date_offset;
        output.extend_from_slice(&self.head);
        output[at..at + DATE_BYTES].copy_from_slice(date);
    }
}

/// A range of a file, to be sent.
#[derive(Debug)]
pub(super) struct FileSlice {
    pub(super) file: Rc<Served>,
    pub(super) offset: u64,
    pub(super) length: u64,
}

impl FileSlice {
    pub(super) fn whole(file: Rc<Served>) -> Self {
        let length = file.bytes;
        Self { file, offset: 0, length }
    }

    /// The bytes, if they are in memory.
    pub(super) fn in_memory(&self) -> Option<&[u8]> {
        let (first, end) = (self.offset as usize, (self.offset + self.length) as usize);
        match &self.file.content {
            Content::Memory(bytes) => bytes.get(first..end),
            Content::Open(_) => None,
        }
    }

    /// The bytes in a form that can be sent, if they are in memory.
    pub(super) fn to_send_buf(&self) -> Option<SendBuf> {
        match &self.file.content {
            Content::Memory(bytes) if self.length == self.file.bytes => Some(Rc::clone(bytes).into()),
            Content::Memory(_) => self.in_memory().map(|bytes| bytes.to_vec().into()),
            Content::Open(_) => None,
        }
    }

    /// The open file, if the bytes are not in memory.
    pub(super) fn part(&self) -> Option<&FilePart> {
        match &self.file.content {
            Content::Memory(_) => None,
            Content::Open(part) => Some(part),
        }
    }
}
