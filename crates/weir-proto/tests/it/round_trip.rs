//! The decoder reads what the encoder writes: the same method, target, status, fields and content.

use proptest::prelude::*;
use weir_proto::http1::{
    Ending, Limits, Method, Version,
    encode::{AfterMessage, CHUNK_END, Framing, HeadWriter, LAST_CHUNK, chunk_start, reason},
};

use crate::transcript::{Reader, Seen, cut};

#[derive(Clone, Debug)]
struct Message {
    fields: Vec<(String, String)>,
    content: Vec<Vec<u8>>,
    framing: Kind,
    after: AfterMessage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Length,
    Chunked,
}

fn message() -> impl Strategy<Value = Message> {
    // `X-` keeps generated names away from fields that have a meaning.
    let field = ("X-[!#$%&'*+.^_`|~0-9A-Za-z-]{0,8}", "([!-~]([ -~\t]{0,10}[!-~])?)?");
    let content = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..4);
    let after = prop::sample::select(vec![AfterMessage::Unsaid, AfterMessage::KeepAlive]);
    let framing = prop::sample::select(vec![Kind::Length, Kind::Chunked]);
    (prop::collection::vec(field, 0..6), content, framing, after)
        .prop_map(|(fields, content, framing, after)| Message { fields, content, framing, after })
}

impl Message {
    fn finish(&self, mut head: HeadWriter<'_, Vec<u8>>) {
        for (name, value) in &self.fields {
            head.header(name, value.as_bytes()).expect("a valid field");
        }
        head.finish(self.framing(), self.after).expect("a valid framing");
    }

    fn framing(&self) -> Framing {
        match self.framing {
            Kind::Length => Framing::Length(self.content.concat().len() as u64),
            Kind::Chunked => Framing::Chunked,
        }
    }

    fn append_content(&self, output: &mut Vec<u8>) {
        for part in &self.content {
            if self.framing == Kind::Chunked {
                chunk_start(output, part.len() as u64).expect("not empty");
            }
            output.extend_from_slice(part);
            if self.framing == Kind::Chunked {
                output.extend_from_slice(CHUNK_END);
            }
        }
        if self.framing == Kind::Chunked {
            output.extend_from_slice(LAST_CHUNK);
        }
    }

    /// The transcript of this message, with `start` at the beginning of its head and `flags` in front of its fields.
    fn expected(&self, start: &str, flags: &str, mut fields: Vec<String>) -> Vec<Seen> {
        fields.extend(self.fields.iter().map(|(name, value)| {
            format!("{}={}", name.as_bytes().escape_ascii(), value.as_bytes().escape_ascii())
        }));
        let content = self.content.concat();
        let length = match self.framing {
            Kind::Length => {
                fields.push(format!("Content-Length={}", content.len()));
                format!("Length({})", content.len())
            }
            Kind::Chunked => {
                fields.push("Transfer-Encoding=chunked".into());
                "Chunked".into()
            }
        };
        if self.after == AfterMessage::KeepAlive {
            fields.push("Connection=keep-alive".into());
        }
        let mut expected = vec![Seen::Head(format!("{start} {length} keep-alive=true {flags}{fields:?}"))];
        expected.extend((!content.is_empty()).then_some(Seen::Body(content)));
        expected.push(Seen::End(Vec::new()));
        expected
    }
}

proptest! {
    #[test]
    fn requests_come_back(
        messages in prop::collection::vec((message(), 0..9_usize, "/[!-\"$-~]{0,20}"), 1..4),
        places in prop::collection::vec(0..600_usize, 0..6),
    ) {
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        for (message, method, target) in &messages {
            // CONNECT ends the connection and has another target form.
            let method = if Method::ALL[*method] == Method::Connect { Method::Get } else { Method::ALL[*method] };
            message.finish(HeadWriter::request(&mut stream, method, target, "x:80").expect("valid"));
            message.append_content(&mut stream);
            let start = format!("{} {target} Http11", method.name());
            expected.extend(message.expected(&start, "expects=false ", vec!["Host=x:80".into()]));
        }
        let seen = Reader::Server.read(Limits::default(), cut(&stream, &places));
        expected.push(Seen::Ending(Ending::BetweenMessages));
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn responses_come_back(
        messages in prop::collection::vec((message(), 200..600_u16), 1..4),
        places in prop::collection::vec(0..600_usize, 0..6),
    ) {
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        for (message, status) in &messages {
            let status = if [204, 304].contains(status) { 200 } else { *status };
            let head = HeadWriter::response(&mut stream, Version::Http11, status, reason(status));
            message.finish(head.expect("valid"));
            message.append_content(&mut stream);
            let start = format!("{status} {} Http11", reason(status));
            expected.extend(message.expected(&start, "", Vec::new()));
        }
        let seen = Reader::Client(Method::Get).read(Limits::default(), cut(&stream, &places));
        expected.push(Seen::Ending(Ending::BetweenMessages));
        prop_assert_eq!(seen, expected);
    }
}
