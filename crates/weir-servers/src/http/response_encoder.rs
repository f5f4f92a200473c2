//! Replies as bytes: a fixed one rendered in advance in every form it can have, the others on demand.

use weir_proto::http1::{
    MethodSet, Version,
    date::{DATE_BYTES, format},
    encode::{AfterMessage, EncodeError, Framing, HeadWriter, reason},
};

use super::{headers::ReplyHeaders, static_body::Stored};

/// Content up to this size is copied behind its head; larger content is sent from where it is stored.
pub(super) const COPIED_BYTES_MAX: usize = 8 << 10;

/// Selects one of the forms of a fixed reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) after: AfterMessage,
    /// The request was a HEAD.
    pub(super) head_only: bool,
}

/// A rendered head, and its content if that was copied.
#[derive(Clone, Debug, Default)]
struct Rendered {
    bytes: Vec<u8>,
    head_bytes: usize,
    date_offset: usize,
}

/// The data for the replies of one second.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    seconds: u64,
    date: [u8; DATE_BYTES],
    rendered: [Rendered; 3],
    /// Sent behind a rendered head; empty if it was copied there.
    content: Stored,
    content_bytes: usize,
}

impl Replies {
    /// Replies with this content, dated the first second of 1970: call `set_date` next.
    pub(super) fn new(media_type: &str, content: Stored, headers: &ReplyHeaders) -> Self {
        let date = format(0);
        let (copied, behind) = match content {
            Stored::Memory(bytes) if bytes.len() <= COPIED_BYTES_MAX => (bytes, Stored::NOTHING),
            content => (&[][..], content),
        };
        let render = |after| {
            let mut bytes = Vec::new();
            let framing = Framing::Length(content.len() as u64);
            let fields = &[("Content-Type", media_type.as_bytes())];
            write_head(&mut bytes, headers, &Head { status: 200, date: &date, fields, framing, after });
            let head_bytes = bytes.len();
            let date_offset = bytes.windows(DATE_BYTES).position(|window| window == date).unwrap_or(0);
            bytes.extend_from_slice(copied);
            Rendered { bytes, head_bytes, date_offset }
        };
        let rendered = [AfterMessage::Unsaid, AfterMessage::KeepAlive, AfterMessage::Close].map(render);
        Self { seconds: 0, date, rendered, content: behind, content_bytes: content.len() }
    }

    /// Sets the date when a new second has begun.
    pub(super) fn set_date(&mut self, seconds: u64) {
        self.seconds = seconds;
        self.date = format(seconds);
        for Rendered { bytes, date_offset, .. } in &mut self.rendered {
            bytes[*date_offset..*date_offset + DATE_BYTES].copy_from_slice(&self.date);
        }
    }

    /// The second, since 1970.
    pub(super) fn seconds(&self) -> u64 {
        self.seconds
    }

    pub(super) fn date(&self) -> &[u8; DATE_BYTES] {
        &self.date
    }

    /// The fixed reply, complete or up to where [`Self::behind`] follows.
    #[inline]
    pub(super) fn bytes(&self, form: Form) -> &[u8] {
        let rendered = &self.rendered[match form.after {
            AfterMessage::Unsaid => 0,
            AfterMessage::KeepAlive => 1,
            AfterMessage::Close => 2,
        }];
        let end = if form.head_only { rendered.head_bytes } else { rendered.bytes.len() };
        &rendered.bytes[..end]
    }

    /// Content that is sent from where it is stored, behind the bytes of this form; often empty.
    #[inline]
    pub(super) fn behind(&self, form: Form) -> Stored {
        if form.head_only { Stored::NOTHING } else { self.content }
    }

    /// The size of the content, for a log.
    pub(super) fn content_bytes(&self, form: Form) -> u64 {
        if form.head_only { 0 } else { self.content_bytes as u64 }
    }
}

/// The parameters of a head.
pub(super) struct Head<'a> {
    pub(super) status: u16,
    pub(super) date: &'a [u8; DATE_BYTES],
    pub(super) fields: &'a [(&'a str, &'a [u8])],
    pub(super) framing: Framing,
    pub(super) after: AfterMessage,
}

/// Writes a head; `headers` are added unless it is a refusal.
pub(super) fn write_head(output: &mut Vec<u8>, headers: &ReplyHeaders, head: &Head<'_>) {
    let written = try_write_head(output, headers, head);
    // Our own heads contain nothing from a peer, and added fields were checked.
    written.expect("our own heads are valid");
}

fn try_write_head(output: &mut Vec<u8>, headers: &ReplyHeaders, head: &Head<'_>) -> Result<(), EncodeError> {
    let mut writer = HeadWriter::response(output, Version::Http11, head.status, reason(head.status))?;
    writer.header("Date", head.date)?;
    for (name, value) in head.fields {
        writer.header(name, value)?;
    }
    if head.status < 400 {
        for (name, value) in headers.iter() {
            writer.header(name, value)?;
        }
    }
    writer.finish(head.framing, head.after)
}

/// The whole answer to a refused request, and the size of its content. `sentence` is that content; `None` for a
/// client that sent a HEAD, or may have.
pub(super) fn write_refusal(
    output: &mut Vec<u8>,
    status: u16,
    date: &[u8; DATE_BYTES],
    allowed: MethodSet,
    sentence: Option<&str>,
    after: AfterMessage,
) -> u64 {
    let allow = allowed.to_string();
    let mut fields: Vec<(&str, &[u8])> = Vec::new();
    if status == 405 {
        fields.push(("Allow", allow.as_bytes()));
    }
    let text = sentence.map(|sentence| format!("{status} {}: {sentence}\n", reason(status)));
    if text.is_some() {
        fields.push(("Content-Type", b"text/plain; charset=utf-8"));
    }
    let content = text.as_deref().unwrap_or_default().as_bytes();
    let framing = Framing::Length(content.len() as u64);
    let head = Head { status, date, fields: &fields, framing, after };
    write_head(output, &ReplyHeaders::default(), &head);
    output.extend_from_slice(content);
    content.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form = Form { after: AfterMessage::Unsaid, head_only: false };

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).expect("ASCII")
    }

    #[test]
    fn a_small_reply_lies_whole_in_each_form() {
        let mut replies = Replies::new("text/plain", Stored::Memory(b"hello"), &ReplyHeaders::default());
        replies.set_date(784_111_777);
        let head = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: text/plain\r\n\
                    Content-Length: 5\r\n";
        assert_eq!(text(replies.bytes(FORM)), format!("{head}\r\nhello"));
        assert_eq!(text(replies.bytes(Form { head_only: true, ..FORM })), format!("{head}\r\n"));
        let close = Form { after: AfterMessage::Close, ..FORM };
        assert_eq!(text(replies.bytes(close)), format!("{head}Connection: close\r\n\r\nhello"));
        let keep = Form { after: AfterMessage::KeepAlive, head_only: true };
        assert_eq!(text(replies.bytes(keep)), format!("{head}Connection: keep-alive\r\n\r\n"));
        assert_eq!(replies.behind(FORM).len(), 0);
        assert_eq!((replies.content_bytes(FORM), replies.content_bytes(keep)), (5, 0));
    }

    #[test]
    fn added_fields_are_in_what_is_sent_and_in_no_refusal() {
        let mut headers = ReplyHeaders::default();
        headers.add("Cache-Control: no-store").expect("a field");
        let head = |status, framing| {
            let mut output = Vec::new();
            let head = Head { status, date: &format(0), fields: &[], framing, after: AfterMessage::Unsaid };
            write_head(&mut output, &headers, &head);
            text(&output).contains("\r\nCache-Control: no-store\r\n")
        };
        assert!(head(200, Framing::Length(1)) && head(304, Framing::NoContent));
        assert!(!head(404, Framing::Length(1)) && !head(503, Framing::Length(1)));
        let replies = Replies::new("text/plain", Stored::Memory(b"hello"), &headers);
        assert!(text(replies.bytes(FORM)).contains("\r\nCache-Control: no-store\r\n"));
    }

    #[test]
    fn a_large_reply_is_a_head_and_the_content_where_it_lies() {
        static LARGE: [u8; COPIED_BYTES_MAX + 1] = [b'x'; COPIED_BYTES_MAX + 1];
        let replies = Replies::new("image/jpeg", Stored::Memory(&LARGE), &ReplyHeaders::default());
        assert!(replies.bytes(FORM).ends_with(b"Content-Length: 8193\r\n\r\n"));
        let Stored::Memory(behind) = replies.behind(FORM) else { panic!("it lies in memory") };
        assert!(std::ptr::eq(behind, LARGE.as_slice()));
        assert_eq!(replies.behind(Form { head_only: true, ..FORM }).len(), 0);
        let limit = Replies::new("image/jpeg", Stored::Memory(&LARGE[1..]), &ReplyHeaders::default());
        assert!(limit.behind(FORM).len() == 0 && limit.bytes(FORM).ends_with(b"xxx"));
    }

    #[test]
    fn a_refusal_names_what_is_allowed() {
        use weir_proto::http1::Method;
        let allowed = MethodSet::of(&[Method::Get, Method::Head]);
        let mut output = Vec::new();
        let bytes = write_refusal(&mut output, 405, &format(0), allowed, Some("no"), AfterMessage::Close);
        assert_eq!(bytes, 27);
        let line = text(&output).to_owned();
        assert!(line.starts_with("HTTP/1.1 405 Method Not Allowed\r\nDate: "), "{line}");
        assert!(line.contains("\r\nAllow: GET, HEAD\r\n") && line.contains("\r\nConnection: close\r\n"));
        assert!(line.ends_with("\r\n\r\n405 Method Not Allowed: no\n"), "{line}");
        output.clear();
        assert_eq!(write_refusal(&mut output, 431, &format(0), allowed, None, AfterMessage::Close), 0);
        let mute = text(&output);
        assert!(mute.contains("\r\nContent-Length: 0\r\n") && mute.ends_with("\r\n\r\n"), "{mute}");
        assert!(!mute.contains("Allow"));
    }
}
