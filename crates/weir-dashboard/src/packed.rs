//! A page or a file as it leaves: with a tag of its content, and compressed if the reader takes that. Both take time,
//! so they are done where stores are read, and not between connections.

use std::io::{self, Write};

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use blake2::{Blake2b128, Digest};
use flate2::{Compression, write::GzEncoder};

/// Longest text that is not compressed: it fits a packet or two in any case.
const PLAIN_BYTES_MAX: usize = 1 << 10;

/// What a request says about the answers that its reader takes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    has_gzip: bool,
    /// The tags of the content that the reader has, as they were sent.
    tags: String,
}

impl Taken {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let lines = |name| headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
        let encodings: Vec<&str> = lines(header::ACCEPT_ENCODING).collect();
        let tags: Vec<&str> = lines(header::IF_NONE_MATCH).collect();
        Self { has_gzip: takes_gzip(&encodings.join(",")), tags: tags.join(",") }
    }

    /// Whether the reader has the content of this tag. All tags are weak: they are of the text, not of its packing.
    fn knows(&self, tag: &str) -> bool {
        let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let tag = opaque(tag);
        self.tags.split(',').any(|own| own.trim() == "*" || opaque(own) == tag)
    }
}

/// Whether an `Accept-Encoding` header allows gzip.
fn takes_gzip(header: &str) -> bool {
    let weight = |wanted: &str| {
        header.split(',').find_map(|part| {
            let (coding, parameters) = part.split_once(';').unwrap_or((part, ""));
            let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |text| text.parse().ok());
            coding.trim().eq_ignore_ascii_case(wanted).then_some(weight.unwrap_or(0.0))
        })
    };
    weight("gzip").or_else(|| weight("*")).is_some_and(|weight: f64| weight > 0.0)
}

/// A text on its way.
pub(crate) struct Packed {
    tag: String,
    content: Content,
}

enum Content {
    /// The reader has it.
    Known,
    Plain(String),
    Gzip(Vec<u8>),
}

impl Packed {
    pub(crate) fn of(text: String, taken: &Taken) -> Self {
        let hash = Blake2b128::digest(text.as_bytes());
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let tag = format!("W/\"{hash}\"");
        let is_compressed = taken.has_gzip && text.len() > PLAIN_BYTES_MAX;
        let content = if taken.knows(&tag) {
            Content::Known
        } else if let Some(bytes) = is_compressed.then(|| compressed(&text).ok()).flatten() {
            Content::Gzip(bytes)
        } else {
            Content::Plain(text)
        };
        Self { tag, content }
    }

    /// The answer, of this type.
    pub(crate) fn answer(self, kind: &'static str) -> Response {
        let tag = self.tag.as_str();
        let mut answer = match self.content {
            Content::Known => return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response(),
            Content::Plain(text) => text.into_response(),
            Content::Gzip(bytes) => ([(header::CONTENT_ENCODING, "gzip")], bytes).into_response(),
        };
        answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            answer.headers_mut().insert(header::ETAG, tag);
        }
        answer
    }
}

/// Compressed quickly: a report gets a tenth as long, and more effort would save little more.
fn compressed(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 8), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        for header in
            ["gzip", "GZIP", "br, gzip;q=0.5", "deflate, *", "identity;q=0, *;q=0.1", "gzip;q=1.0,*;q=0"]
        {
            assert!(takes_gzip(header), "{header}");
        }
        for header in ["", "br", "gzip;q=0", "*;q=0", "gzip;q=0.0, *", "gzip;q=x", "xgzip", "identity"] {
            assert!(!takes_gzip(header), "{header}");
        }
    }

    #[test]
    fn a_reader_who_has_the_content_gets_none_again() {
        let of = |tags: &str, text: &str| {
            let taken = Taken { has_gzip: true, tags: tags.to_owned() };
            Packed::of(text.to_owned(), &taken)
        };
        let text = "a page ".repeat(1_000);
        let first = of("", &text);
        assert!(matches!(&first.content, Content::Gzip(bytes) if bytes.len() < text.len() / 10));
        let strong = first.tag.trim_start_matches("W/");
        for tags in
            [first.tag.clone(), strong.to_owned(), format!("\"other\", {}", first.tag), "*".to_owned()]
        {
            assert!(matches!(of(&tags, &text).content, Content::Known), "{tags}");
            assert_eq!(of(&tags, &text).answer("text/html").status(), StatusCode::NOT_MODIFIED);
        }
        for tags in ["", "\"other\"", "W/", &first.tag[..8]] {
            assert!(matches!(of(tags, &text).content, Content::Gzip(_)), "{tags}");
        }
        assert_ne!(of("", "another page").tag, first.tag);
        assert!(matches!(of("", &"x".repeat(PLAIN_BYTES_MAX)).content, Content::Plain(_)));
    }
}
