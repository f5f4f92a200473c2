//! The application behind the sessions with firms: it reads the gateway's journals and emits copies.

use std::{
    cell::{Cell, RefCell},
    io,
    path::Path,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use weir_engine::{
    sync::Notify,
    time::{self, Instant},
    try_spawn,
};
use weir_proto::{drop_copy::Copied, soup::Name};
use weir_trading::AccountId;

use super::{
    JournalEnds,
    firms::{Firms, is_copied},
    place::{LastCopies, pack},
};
use crate::{
    journal::{JournalReader, Lsn, Position},
    orders::{
        Application, ClientMessage, Event, EventKind, Events, MessageOf, SessionStore, Waiting, message_of,
        session_name,
    },
};

/// How much of a journal is read at a time.
const READ_BYTES: usize = 64 << 10;
/// How often the journals are looked at. A commit does not wake the copier: that would cost the order path a call.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How often a journal that cannot be read is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What the copier starts with.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) ends: Arc<JournalEnds>,
    pub(super) firms: Firms,
    /// What earlier starts have copied.
    pub(super) copies: LastCopies,
    /// Name of the gateway's first session with clients.
    pub(super) session: Name<10>,
    pub(super) events: Events,
}

/// One of the gateway's journals.
struct Source {
    worker: u16,
    reader: JournalReader,
    next: Position,
}

/// Copies messages for as long as the sessions with firms last.
pub(super) struct Copier {
    store: Rc<SessionStore>,
    ends: Arc<JournalEnds>,
    firms: Firms,
    copies: RefCell<LastCopies>,
    session: Name<10>,
    events: Events,
    is_draining: Cell<bool>,
    /// Everything is copied, in a drain.
    has_ended: Rc<Cell<bool>>,
    ended: Rc<Notify>,
}

impl Copier {
    /// Starts to copy from the journals in this folder.
    ///
    /// # Errors
    /// The folder cannot be listed, or no task can be started.
    pub(super) fn start(store: Rc<SessionStore>, directory: &Path, begin: Begin) -> io::Result<Rc<Self>> {
        let Begin { ends, firms, mut copies, session, events } = begin;
        let sources = ends.workers().map(|worker| {
            // The gateway's workers have not started: a journal ends where its recovery has ended.
            let (reader, end) = (JournalReader::new(directory.to_owned(), worker), ends.durable(worker));
            let last = copies.last(worker).unwrap_or_default();
            if copies.cut(worker, end) {
                let text = "the journal lacks records of which firms have copies, as after a loss of power at level \
                            os; what is written from now on is copied";
                events.leave(Event::new(EventKind::DropCopy, text).at_worker(worker.into()));
            }
            // Files may have been archived since.
            let next = reader.begin()?.max(last.min(end));
            Ok(Source { worker, reader, next })
        });
        let sources = sources.collect::<io::Result<Vec<_>>>()?;
        let copier = Rc::new(Self {
            store,
            ends,
            firms,
            copies: RefCell::new(copies),
            session,
            events,
            is_draining: Cell::new(false),
            has_ended: Rc::default(),
            ended: Rc::default(),
        });
        try_spawn(copy_for_ever(Rc::clone(&copier), sources))?;
        Ok(copier)
    }

    /// Copies what is durable, one chunk of it. False: there was nothing.
    async fn copy_chunk(&self, source: &mut Source) -> io::Result<bool> {
        let end = self.ends.durable(source.worker);
        if source.next >= end || self.store.is_failed() {
            return Ok(false);
        }
        let chunk = source.reader.read_until(source.next, end, READ_BYTES).await?;
        self.store.tick();
        let mut last: Option<Lsn> = None;
        for (record, position) in chunk.records() {
            if let Some((account, generation, MessageOf::Stream { message, sequence, .. })) =
                message_of(&record)
                && is_copied(message)
            {
                let of = (account, generation, sequence);
                self.copy(of, message, (source.worker, position)).await?;
            }
            last = Some(record.lsn);
        }
        source.next = chunk.next();
        if let Some(last) = last {
            self.ends.note_seen(source.worker, last);
        }
        Ok(true)
    }

    async fn copy(
        &self,
        (account, generation, number): (Name<6>, u16, u64),
        message: &[u8],
        (worker, position): (u16, Position),
    ) -> io::Result<()> {
        let firms = self.firms.of(&account);
        if firms.is_empty() {
            return Ok(());
        }
        let place = pack(worker, position).ok_or_else(|| {
            let reason =
                format!("worker {worker} has a record at {position:?}, which is beyond what can be copied");
            io::Error::new(io::ErrorKind::Unsupported, reason)
        })?;
        // A session of that number existed, so it has a name, unless the configuration has another one now.
        let session = session_name(&self.session, generation.into()).unwrap_or_default();
        let head = Copied { account, session, number, message }.head();
        for firm in firms {
            if self.copies.borrow_mut().take(*firm, place) {
                while self.store.is_congested() {
                    self.store.room().await;
                }
                self.store.emit(*firm, &[&head, message], place);
            }
        }
        Ok(())
    }

    /// Reports that journals cannot be read, or can be again: once for each reason.
    fn note_trouble(&self, before: &mut Option<String>, now: Option<String>) {
        self.ends.set_stuck(now.is_some());
        if *before != now {
            let text = match &now {
                Some(reason) => {
                    format!("the drop copy stops, and is tried again every second: {reason}; orders go on")
                }
                None => "the drop copy goes on".to_owned(),
            };
            self.events.leave(Event::new(EventKind::DropCopy, text));
        }
        *before = now;
    }
}

/// Copies until a drain has begun and nothing is left.
async fn copy_for_ever(copier: Rc<Copier>, mut sources: Vec<Source>) {
    let mut trouble = None;
    loop {
        // Asked before the look: what is durable by then is copied.
        let is_draining = copier.is_draining.get();
        let (mut has_copied, mut wrong) = (false, None);
        for source in &mut sources {
            match copier.copy_chunk(source).await {
                Ok(has_some) => has_copied |= has_some,
                Err(error) => wrong = wrong.or(Some(error.to_string())),
            }
        }
        let is_wrong = wrong.is_some();
        copier.note_trouble(&mut trouble, wrong);
        match (has_copied, is_draining) {
            // The sessions have their turn.
            (true, _) => time::yield_now().await,
            (false, true) => break,
            (false, false) => time::sleep(if is_wrong { RETRY_EVERY } else { LOOK_EVERY }).await,
        }
    }
    copier.has_ended.set(true);
    copier.ended.notify_all();
}

impl Application for Copier {
    /// Never called: the sessions are read-only.
    fn on_message(&self, _: AccountId, _: &ClientMessage<'_>, _: Instant) {}

    fn emits_on_disconnect(&self) -> bool {
        false
    }

    fn on_drain(&self) {
        self.is_draining.set(true);
    }

    fn settled(&self) -> Waiting {
        let (has_ended, ended) = (Rc::clone(&self.has_ended), Rc::clone(&self.ended));
        Box::pin(async move { ended.until(|| has_ended.get()).await })
    }
}
