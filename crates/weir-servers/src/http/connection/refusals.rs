//! Replies to refused requests and connections, and the list of methods.

use std::net::IpAddr;

use weir_proto::http1::{
    Method,
    encode::{AfterMessage, Framing},
};

use super::{Connection, Ending, Form, Head, Pause, Purpose, Refusal, Replies, Then, encode, write_refusal};

impl Connection {
    /// Counts the connection, or returns why there is no room for it.
    pub(super) fn enter(&mut self, client: Option<IpAddr>) -> Option<Refusal> {
        match self.worker.shared.admission.admit(client) {
            Ok(admitted) => self._admitted = Some(admitted),
            Err(refusal) => return Some(refusal),
        }
        None
    }

    /// Answers that there is no room, if only few connections are being turned away, and ends. The request is not
    /// read.
    pub(super) async fn turn_away(&mut self, refusal: Refusal) {
        self.count_refusal(refusal);
        let Some(_place) = self.worker.shared.admission.turn_away() else { return };
        let (status, sentence) = (refusal.status().unwrap_or(503), refusal.to_string());
        let replies = self.worker.replies();
        let allowed = self.worker.shared.config.body.methods();
        let (date, sentence) = (replies.date(), Some(sentence.as_str()));
        let bytes = write_refusal(self.batch(), status, date, allowed, sentence, AfterMessage::Close);
        self.log(status, &replies, bytes, false);
        if self.send(Pause::batch_then(Then::End(Ending::Ours)), &replies).await {
            self.linger().await;
        }
    }

    /// Sends `100 Continue`, which the client waits for; not if some of the content is already there. If the target
    /// does not support the method, the content is not needed: the refusal is sent at once, without waiting for
    /// content.
    pub(super) fn go_ahead(&mut self, nothing_came: bool, replies: &Replies) -> Option<Pause> {
        if self.request.is_some_and(|request| request.purpose == Purpose::Refused) {
            return Some(self.refuse(Refusal::Method, replies));
        }
        if nothing_came {
            self.batch().extend_from_slice(encode::CONTINUE);
        }
        None
    }

    /// Answers with the list of methods, which is the same for every target and for `*`.
    #[cold]
    pub(super) fn tell_options(&mut self, after: AfterMessage, replies: &Replies) {
        let allowed = self.worker.shared.config.body.methods().to_string();
        let fields = &[("Allow", allowed.as_bytes())];
        let head = Head { status: 204, date: replies.date(), fields, framing: Framing::NoContent, after };
        self.write_head(&head);
        self.log(204, replies, 0, false);
    }

    /// Refuses a method; the connection continues.
    #[cold]
    pub(super) fn refuse_method(&mut self, form: Form, replies: &Replies) {
        self.count_refusal(Refusal::Method);
        let (allowed, sentence) = (self.worker.shared.config.body.methods(), Refusal::Method.to_string());
        let sentence = (!form.head_only).then_some(sentence.as_str());
        let bytes = write_refusal(self.batch(), 405, replies.date(), allowed, sentence, form.after);
        self.log(405, replies, bytes, false);
    }

    /// The last reply of a connection, after a malformed or late request.
    #[cold]
    pub(super) fn refuse(&mut self, refusal: Refusal, replies: &Replies) -> Pause {
        self.count_refusal(refusal);
        if let Some(log) = &mut self.log
            && !log.has_request()
            && let Some(line) = self.decoder.request_line()
        {
            log.begin_refused(line);
        }
        let explains = self.may_explain();
        let request = self.request.take();
        // A reply that has started cannot be replaced: it stays unfinished, which the client sees.
        if let Some(status) = refusal.status()
            && !request.is_some_and(|request| request.is_replied)
        {
            let sentence = explains.then(|| refusal.to_string());
            let allowed = self.worker.shared.config.body.methods();
            let (date, sentence) = (replies.date(), sentence.as_deref());
            let bytes = write_refusal(self.batch(), status, date, allowed, sentence, AfterMessage::Close);
            self.log(status, replies, bytes, false);
        }
        Pause::batch_then(Then::End(Ending::Ours))
    }

    /// Whether a refusal may have content: not if the request is a HEAD, or may become one.
    fn may_explain(&self) -> bool {
        self.request.map_or(!self.decoder.may_be_head(), |request| request.method != Method::Head)
    }
}
