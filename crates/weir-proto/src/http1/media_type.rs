//! Media types by the extension of a file name (RFC 9110, 8.3; names as registered with IANA).
//!
//! A short table of the types that web servers send. The content is not inspected.

/// The type for every unknown extension.
pub const UNKNOWN: &str = "application/octet-stream";

/// Extensions in lower case.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bin", UNKNOWN),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("gif", "image/gif"),
    ("gz", "application/gzip"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("otf", "font/otf"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("ttf", "font/ttf"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/vnd.wave"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("woff", "font/woff"),
    ("woff2", "font/woff2"),
    ("xml", "application/xml"),
    ("zip", "application/zip"),
];

/// The type of a file with this path, by the text after the last dot of its name, in any case. A name whose only dot
/// is its first character has no extension.
pub fn of_path(path: &[u8]) -> &'static str {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match name.iter().rposition(|byte| *byte == b'.') {
        Some(dot @ 1..) => of_extension(&name[dot + 1..]),
        _ => UNKNOWN,
    }
}

/// The type of an extension without its dot.
pub fn of_extension(extension: &[u8]) -> &'static str {
    let known = TYPES.iter().find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(extension));
    known.map_or(UNKNOWN, |(_, media_type)| media_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_of_the_last_name_decides() {
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a.b/IMAGE.JPG", "image/jpeg"),
            ("archive.tar.gz", "application/gzip"),
            ("a.html/b", UNKNOWN),
            (".html", UNKNOWN),
            ("a/.css", UNKNOWN),
            ("html", UNKNOWN),
            ("a.", UNKNOWN),
            ("a.htmlx", UNKNOWN),
            ("", UNKNOWN),
        ] {
            assert_eq!(of_path(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn the_table_is_sorted_and_in_lower_case() {
        assert!(TYPES.is_sorted_by(|one, next| one.0 < next.0));
        for (extension, media_type) in TYPES {
            assert_eq!(extension.to_ascii_lowercase(), *extension);
            assert!(
                media_type.split_once('/').is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty())
            );
        }
    }
}
