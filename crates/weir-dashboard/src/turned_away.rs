//! The answer to one connection too many of an address: 503, in the reader's language. Only the head of its request is
//! read, for a moment, and only a few such connections are read at a time.

use std::{io, net::Shutdown, sync::Arc, time::Duration};

use socket2::SockRef;
use tokio::{net::TcpStream, sync::Semaphore, time::timeout};
use weir_report::Language;

use crate::{
    app::App,
    pages,
    query::{accepted, value},
    reader::Reader,
    words,
};

/// Most such connections whose requests are read; further ones get the dashboard's language.
const READ_MAX: usize = 16;

/// Longest wait for the head of a request, and then for the peer to take the answer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Longest part of a head that is read.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Content policy of the answer, which may be in the frame of a chart.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// Places of connections that are turned away.
#[derive(Clone, Debug)]
pub(crate) struct TurnedAway(Arc<Semaphore>);

impl Default for TurnedAway {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READ_MAX)))
    }
}

impl TurnedAway {
    /// Answers and closes, without waiting for it.
    pub(crate) fn answer(&self, stream: TcpStream, app: &App) {
        let (has_servers, has_observations) = (app.top.is_some(), app.has_observations());
        let reader = move |language| Reader::of_no_request(language, has_servers, has_observations);
        let fallback = app.settings.language;
        let Ok(place) = Arc::clone(&self.0).try_acquire_owned() else {
            // The socket's buffer has room for it; a peer that does not read it loses nothing.
            let _ = SockRef::from(&stream).send(&written(&reader(fallback)));
            return;
        };
        tokio::spawn(async move {
            // Without its request read, closing a connection can take the answer from its peer.
            let head = timeout(WAIT_MAX, head(&stream)).await.unwrap_or_default();
            let text = written(&reader(language_of(&head, fallback)));
            let _ = timeout(WAIT_MAX, send(&stream, &text)).await;
            drop(place);
        });
    }
}

/// What comes of a request's head.
async fn head(stream: &TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut piece = [0; 1_024];
    let is_whole = |head: &[u8]| head.windows(4).any(|end| end == b"\r\n\r\n");
    while !is_whole(&head) && head.len() < HEAD_BYTES_MAX && stream.readable().await.is_ok() {
        match stream.try_read(&mut piece) {
            Ok(0) => break,
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    head
}

/// Sends all of it, and waits until the peer closes.
async fn send(stream: &TcpStream, mut text: &[u8]) {
    while !text.is_empty() && stream.writable().await.is_ok() {
        match stream.try_write(text) {
            Ok(count) => text = &text[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
    let _ = SockRef::from(stream).shutdown(Shutdown::Write);
    let mut rest = [0; 1_024];
    while stream.readable().await.is_ok() {
        match stream.try_read(&mut rest) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

/// The language of a request: of its address, else the preferred one, else the dashboard's.
fn language_of(head: &[u8], fallback: Language) -> Language {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines();
    let target = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or_default();
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let chosen = value(query, "lang").and_then(|code| String::from_utf8(code).ok()?.parse().ok());
    let fields = lines.filter_map(|line| line.split_once(':'));
    let preferred = || {
        let mut named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("accept-language"));
        named.next().and_then(|(_, languages)| accepted(languages.trim()))
    };
    chosen.or_else(preferred).unwrap_or(fallback)
}

/// The whole answer.
fn written(reader: &Reader) -> Vec<u8> {
    let page = pages::message(reader, reader.say(words::TOO_MANY_CONNECTIONS));
    let (length, language) = (page.len(), reader.language.tag());
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html; charset=utf-8\r\nContent-Language: {language}\r\n\
         Content-Security-Policy: {POLICY}\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n\
         Retry-After: 5\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream as StdStream,
    };

    use tokio::{net::TcpListener, runtime::Builder};

    use super::*;

    #[test]
    fn the_language_is_that_of_the_address_and_else_the_preferred_one() {
        for (head, language) in [
            ("GET /?lang=ko HTTP/1.1\r\nAccept-Language: zh\r\n\r\n", Language::Korean),
            ("GET /study/a?b=c HTTP/1.1\r\nHost: a\r\naccept-language: zh-CN,en\r\n\r\n", Language::Chinese),
            ("GET / HTTP/1.1\r\nAccept-Language: fr\r\n\r\n", Language::English),
            ("GET / HTTP/1.1\r\nAccept-Lang", Language::English),
            ("\u{0}\r\n", Language::English),
            ("", Language::English),
        ] {
            assert_eq!(language_of(head.as_bytes(), Language::English), language, "{head}");
        }
        assert_eq!(language_of(b"", Language::Korean), Language::Korean);
        assert_eq!(language_of(&[0xff; 64], Language::Chinese), Language::Chinese);
    }

    #[test]
    fn a_peer_gets_the_whole_answer_in_its_language() {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build().expect("a runtime");
        let (mut peer, stream) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let peer = StdStream::connect(listener.local_addr().expect("an address")).expect("it listens");
            (peer, listener.accept().await.expect("a connection").0)
        });
        peer.write_all(b"GET /?lang=zh HTTP/1.1\r\nHost: a\r\n\r\n").expect("it takes a request");
        let reader = |language| Reader::of_no_request(language, false, false);
        let reading = std::thread::spawn(move || {
            let mut answer = String::new();
            peer.read_to_string(&mut answer).expect("an answer");
            answer
        });
        runtime.block_on(async {
            let head = head(&stream).await;
            send(&stream, &written(&reader(language_of(&head, Language::English)))).await;
        });
        drop(stream);
        let answer = reading.join().expect("it reads");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 5"), "{head}");
        assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
        assert!(body.contains("连接") && body.contains("lang=\"zh-Hans\""), "{body}");
    }
}
