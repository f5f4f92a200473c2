//! The check itself is checked: a server that answers right passes, and each way to be wrong is seen.

use super::*;

/// What a server of these tests does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    Byte,
    Length,
    MediaType,
    Status,
    Chunked,
    BodyAfterHead,
    BytesAfterTheLast,
    SaysNoClose,
    ClosesAlways,
    DropsPipelined,
}

/// Serves every connection on its own thread for as long as the tests run.
fn server(content: &Content, mistake: Mistake) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let (media_type, bytes) = (content.media_type, content.bytes.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = bytes.clone();
            std::thread::spawn(move || serve(&stream, media_type, &bytes, mistake));
        }
    });
    address
}

/// Reads request after request until the other side ends.
fn serve(mut stream: &TcpStream, media_type: &str, bytes: &[u8], mistake: Mistake) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let closes = head.contains("Connection: close");
        stream.write_all(&reply(&head, media_type, bytes, mistake))?;
        if mistake == Mistake::DropsPipelined && !reader.buffer().is_empty() {
            return Ok(());
        }
        if closes || mistake == Mistake::ClosesAlways {
            return Ok(());
        }
    }
}

fn reply(request: &str, media_type: &str, bytes: &[u8], mistake: Mistake) -> Vec<u8> {
    let (closes, is_head) = (request.contains("Connection: close"), request.starts_with("HEAD"));
    let status = if mistake == Mistake::Status { "404 Not Found" } else { "200 OK" };
    let media_type = if mistake == Mistake::MediaType { "text/plain" } else { media_type };
    let length = bytes.len() + usize::from(mistake == Mistake::Length);
    let mut head = format!("HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n");
    if closes && mistake != Mistake::SaysNoClose {
        head.push_str("Connection: close\r\n");
    }
    if mistake == Mistake::Chunked {
        head.push_str("Transfer-Encoding: chunked\r\n");
    }
    let mut reply = (head + "\r\n").into_bytes();
    if !is_head || mistake == Mistake::BodyAfterHead {
        reply.extend_from_slice(bytes);
        if let Some(last) = reply.last_mut().filter(|_| mistake == Mistake::Byte) {
            *last ^= 1;
        }
    }
    if closes && mistake == Mistake::BytesAfterTheLast {
        reply.push(b'x');
    }
    reply
}

/// What the check says about a server with this mistake.
fn verdict(mistake: Mistake) -> Result<(), String> {
    let [content, ..] = contents();
    ask(server(&content, mistake), &content)
}

#[test]
fn a_server_that_answers_right_passes() {
    for content in contents() {
        let asked = ask(server(&content, Mistake::None), &content);
        assert_eq!(asked, Ok(()), "{}", content.name);
    }
}

#[test]
fn every_mistake_is_seen_and_named() {
    for (mistake, words) in [
        (Mistake::Byte, "byte 599 of the content is wrong"),
        (Mistake::Length, "601 bytes instead of 600"),
        (Mistake::MediaType, "content type is Some(\"text/plain\")"),
        (Mistake::Status, "404 Not Found"),
        (Mistake::Chunked, "the body is chunked"),
        (Mistake::BodyAfterHead, "on a connection that stays, the status line is"),
        (Mistake::BytesAfterTheLast, "on a connection that closes, bytes come after the reply"),
        (Mistake::SaysNoClose, "does not say close"),
        (Mistake::ClosesAlways, "on a connection that stays, "),
    ] {
        let said = verdict(mistake).expect_err(words);
        assert!(said.contains(words), "{said:?} does not say {words:?}");
    }
}

#[test]
fn a_server_that_drops_what_it_read_ahead_is_seen() {
    let said = verdict(Mistake::DropsPipelined).expect_err("15 replies are missing");
    assert!(said.starts_with("in a pipeline of 16, "), "{said}");
}

#[test]
fn a_peer_that_cannot_run_here_is_missing_and_one_that_fails_is_wrong() {
    let folder = env::temp_dir().join(format!("weir-peers-check-test-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder can be made");
    let script = folder.join("peer");
    let [content, ..] = contents();
    let outcome = |text: &str| {
        fs::write(&script, text).expect("a script can be written");
        let made = Command::new("chmod").arg("755").arg(&script).status();
        assert!(made.expect("chmod runs").success());
        check(&script, &content, &folder)
    };
    let missing = outcome("#!/bin/sh\necho not installed >&2\nexit 13\n");
    assert!(matches!(missing, Err(Fault::Missing(said)) if said == "not installed"));
    let wrong = outcome("#!/bin/sh\necho broken >&2\nexit 1\n");
    assert!(matches!(wrong, Err(Fault::Wrong(said)) if said.contains("broken")));
    fs::remove_dir_all(&folder).expect("the folder is there");
}
