//! The state of a gateway's recovery in a checkpoint. It is that between two records, with everything that later
//! records may change. Accounts and venues are stored by their names, so that others can be configured meanwhile; the
//! limits of the venues must be the same. The changes of operators are stored as they were made: what they mean
//! depends on the configuration of the start.
//!
//! Until when an order may be resent depends on the time of the start. A recovery for a checkpoint leaves that open:
//! it keeps the time of the record instead. Where it cannot, there is no checkpoint.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use foldhash::HashMap;
use weir_proto::{
    ouch::{ClientOrderId, Outbound},
    soup::Name,
};
use weir_trading::{AccountId, Origin, WhenFull};

use super::{Answers, Key, Moment, Recovering, SentReport, Session, SessionId, Unsent};
use crate::{
    gateway::{
        controls::Change,
        outstanding::{OutstandingLimits, OutstandingOrders},
        positions::Positions,
        upstream_session::Resume,
        venue_record::{endpoint_record, of_endpoint_record},
        worker::{RECORD_CONTROL, RECORD_ENDPOINT, RECORD_HOME, RECORD_SESSION},
    },
    journal::fields::{FieldReader, FieldWriter},
    orders::{Collector, KnownNumbers, Record, RecordKind},
};

/// Version of the gateway's part of the state.
const VERSION: u32 = 1;

/// Most bytes of operators' changes in a checkpoint.
const CHANGES_BYTES_MAX: usize = 16 << 20;

/// Until when an order may be resent, as long as the time of the start is open: the time of its record, and not 0,
/// which stands for never.
pub(super) fn open_resend_ns(sent_wall_ns: u64) -> u64 {
    sent_wall_ns.saturating_add(1)
}

impl Moment {
    /// The time of the start is not known yet.
    pub(in crate::gateway) const OPEN: Self = Self { wall_ns: u64::MAX, engine_ns: u64::MAX };

    pub(super) fn is_open(self) -> bool {
        (self.wall_ns, self.engine_ns) == (u64::MAX, u64::MAX)
    }
}

/// A recovery whose state a checkpoint can contain.
pub(in crate::gateway) struct Collected<'c> {
    pub(in crate::gateway) recovering: Recovering<'c>,
    /// The changes of operators, as they are in the journals, with their times. Those of reference prices are not
    /// among them: they are in the positions.
    changes: Vec<(u64, Vec<u8>)>,
    changes_bytes: usize,
    /// Why the state cannot be in a checkpoint.
    obstacle: Option<&'static str>,
}

impl<'c> Collected<'c> {
    pub(in crate::gateway) fn new(recovering: Recovering<'c>) -> Self {
        Self { recovering, changes: Vec::new(), changes_bytes: 0, obstacle: None }
    }

    /// Why a record is none for a checkpoint, before it is processed.
    fn obstacle_in(&self, record: &Record<'_>) -> Option<&'static str> {
        let recovering = &self.recovering;
        let names_session = match record.kind {
            RecordKind::Inbound { upstream, .. } if upstream != 0 => {
                return Some("an earlier version has sent orders, and only the configuration says where");
            }
            RecordKind::Sent { .. } => true,
            RecordKind::Sequenced { upstream_sequence, .. } => upstream_sequence != 0,
            RecordKind::Application { kind: RECORD_SESSION | RECORD_HOME | RECORD_ENDPOINT, .. } => true,
            _ => false,
        };
        if names_session && !recovering.numbers.contains_key(&record.worker) {
            return Some("a journal of an earlier version does not name its venues");
        }
        let clients = recovering.clients;
        let ends_numbers = clients.numbers_restart
            && record.generation > clients.last
            && !matches!(record.kind, RecordKind::Application { .. });
        let awaits_replace = |session: &Session| session.outstanding.awaits_replace();
        if ends_numbers && recovering.sessions.values().any(awaits_replace) {
            return Some(
                "a session with clients has ended before the answer to a replace, whose age matters",
            );
        }
        None
    }

    /// Whether a record has filled a table of open orders: which ones it still has depends on the time of the start.
    fn has_filled(&self, record: &Record<'_>) -> bool {
        let worker = usize::from(record.worker);
        let mut sessions = self.recovering.sessions.range((worker, 0)..(worker + 1, 0));
        matches!(record.kind, RecordKind::Sent { .. })
            && sessions.any(|(_, session)| {
                let limits = session.outstanding.limits();
                let is_full = session.outstanding.open() >= limits.open_max || !session.later.is_empty();
                is_full && limits.when_full == WhenFull::Refuse
            })
    }

    fn note_change(&mut self, record: &Record<'_>) {
        let RecordKind::Application { kind: RECORD_CONTROL, payload, .. } = record.kind else { return };
        if matches!(serde_json::from_slice::<Change>(payload), Err(_) | Ok(Change::References { .. })) {
            return;
        }
        self.changes_bytes += payload.len();
        if self.changes_bytes > CHANGES_BYTES_MAX {
            self.obstacle = self.obstacle.or(Some("operators have made too many changes"));
            return;
        }
        self.changes.push((record.t_ns, payload.to_vec()));
    }
}

impl Collector for Collected<'_> {
    fn take(&mut self, record: &Record<'_>) {
        if self.obstacle.is_none() {
            self.obstacle = self.obstacle_in(record);
        }
        self.note_change(record);
        self.recovering.take(record);
        if self.obstacle.is_none() && self.has_filled(record) {
            self.obstacle = Some("as many orders were open as may be");
        }
    }

    fn obstacle(&self) -> Option<&'static str> {
        self.obstacle
    }

    fn save(&self, fields: &mut FieldWriter) -> Result<(), String> {
        if let Some(obstacle) = self.obstacle {
            return Err(obstacle.to_owned());
        }
        fields.number(VERSION);
        fields.count(self.changes.len());
        for (t_ns, payload) in &self.changes {
            fields.number(*t_ns);
            fields.bytes(payload);
        }
        self.recovering.save(fields)
    }

    fn load(
        &mut self,
        fields: &mut FieldReader<'_>,
        account: &dyn Fn(u32) -> Option<AccountId>,
    ) -> Result<(), String> {
        let malformed = || "it has another form".to_owned();
        check_version(fields)?;
        for _ in 0..fields.count(2).ok_or_else(malformed)? {
            let t_ns = fields.number().ok_or_else(malformed)?;
            let payload = fields.bytes().ok_or_else(malformed)?;
            let change = serde_json::from_slice::<Change>(payload).map_err(|_| malformed())?;
            self.recovering.change(t_ns, &change);
            self.changes_bytes += payload.len();
            self.changes.push((t_ns, payload.to_vec()));
        }
        let (workers, now) = (self.recovering.workers, self.recovering.now);
        self.recovering.load(fields, &Loading::new(account, workers, now))
    }
}

fn check_version(fields: &mut FieldReader<'_>) -> Result<(), String> {
    match fields.number::<u32>() {
        Some(VERSION) => Ok(()),
        Some(_) => Err("another version has written it".to_owned()),
        None => Err("it has another form".to_owned()),
    }
}

/// Takes a checkpoint as its own configuration would: of the gateway's part only the version is read.
pub(in crate::gateway) struct OfAnyConfiguration;

impl Collector for OfAnyConfiguration {
    fn take(&mut self, _record: &Record<'_>) {}

    fn save(&self, _fields: &mut FieldWriter) -> Result<(), String> {
        Err("it has collected nothing".to_owned())
    }

    fn load(
        &mut self,
        fields: &mut FieldReader<'_>,
        _account: &dyn Fn(u32) -> Option<AccountId>,
    ) -> Result<(), String> {
        check_version(fields)?;
        *fields = FieldReader::new(&[]);
        Ok(())
    }
}

/// What the numbers in a checkpoint mean now.
pub(in crate::gateway) struct Loading<'l> {
    account: &'l dyn Fn(u32) -> Option<AccountId>,
    workers: usize,
    now: Moment,
}

impl<'l> Loading<'l> {
    pub(super) fn new(account: &'l dyn Fn(u32) -> Option<AccountId>, workers: usize, now: Moment) -> Self {
        Self { account, workers, now }
    }

    /// The account whose number at that time is next.
    pub(in crate::gateway) fn account(&self, fields: &mut FieldReader<'_>) -> Option<AccountId> {
        (self.account)(fields.number()?)
    }

    /// The next order.
    pub(in crate::gateway) fn key(&self, fields: &mut FieldReader<'_>) -> Option<Key> {
        Some((self.account(fields)?.0, fields.number()?))
    }

    /// An order of the account that had this number.
    pub(in crate::gateway) fn origin(&self, account: u32, user_ref_num: u32) -> Option<Origin> {
        let account = (self.account)(account)?;
        let home = (account.0 as usize % self.workers) as u16;
        Some(Origin { account, user_ref_num, home, received_ns: 0 })
    }

    /// From what was kept instead.
    pub(in crate::gateway) fn resend_until_ns(&self, open_ns: u64, age_max_ns: u64) -> u64 {
        self.now.resend_until_ns(open_ns.saturating_sub(1), age_max_ns)
    }
}

impl Recovering<'_> {
    fn save(&self, fields: &mut FieldWriter) -> Result<(), String> {
        let Self {
            // The configuration, and the time of the start.
            workers: _,
            configured: _,
            symbols: _,
            limits: _,
            endpoints_now: _,
            now,
            accounts: _,
            // The changes have these.
            controls: _,
            venues,
            numbers,
            endpoints,
            certain,
            sessions,
            former,
            positions,
            unsent,
            refused_in_stream,
            sent_first,
            last_sent,
            early,
            is_empty,
            clients,
        } = self;
        if !now.is_open() {
            return Err("it is not open when the gateway starts".to_owned());
        }
        fields.flag(clients.numbers_restart);
        fields.number(clients.last);
        fields.flag(*is_empty);
        fields.count(venues.len());
        for (venue, name) in venues.iter().enumerate() {
            fields.bytes(name.as_bytes());
            save_limits(self.limits_of(venue), fields);
        }
        save_numbers(numbers, fields);
        let certain: BTreeSet<u16> = certain.iter().copied().collect();
        fields.count(certain.len());
        certain.into_iter().for_each(|journal| fields.number(journal));
        fields.count(endpoints.len());
        for (place, endpoint) in endpoints {
            save_place(*place, fields);
            fields.bytes(&endpoint_record(endpoint));
        }
        fields.count(sessions.len());
        sessions.iter().try_for_each(|(place, session)| session.save(*place, fields))?;
        fields.count(former.len());
        former.iter().try_for_each(|(place, session)| session.save(*place, fields))?;
        positions.save(fields);
        save_unsent(unsent, fields);
        let refused: BTreeSet<&Key> = refused_in_stream.iter().collect();
        fields.count(refused.len());
        refused.into_iter().for_each(|key| save_key(*key, fields));
        save_sent(sent_first, last_sent, fields);
        save_early(early, fields);
        Ok(())
    }

    fn load(&mut self, fields: &mut FieldReader<'_>, loading: &Loading<'_>) -> Result<(), String> {
        let malformed = || "it has another form".to_owned();
        if fields.flag().ok_or_else(malformed)? != self.clients.numbers_restart {
            return Err("order numbers began otherwise in each session with clients then".to_owned());
        }
        self.clients.last = fields.number().ok_or_else(malformed)?;
        self.is_empty = fields.flag().ok_or_else(malformed)?;
        let venues = self.load_venues(fields)?;
        self.load_tables(fields, &venues, loading).ok_or_else(malformed)
    }

    /// The venues by their numbers at that time.
    fn load_venues(&mut self, fields: &mut FieldReader<'_>) -> Result<Vec<usize>, String> {
        let malformed = || "it has another form".to_owned();
        let count = fields.count(1).ok_or_else(malformed)?;
        let mut venues = Vec::with_capacity(count);
        for _ in 0..count {
            let name =
                fields.bytes().and_then(|name| std::str::from_utf8(name).ok()).ok_or_else(malformed)?;
            let (open_max, forgets): (usize, bool) =
                (fields.number().ok_or_else(malformed)?, fields.flag().ok_or_else(malformed)?);
            let venue = self.venue(name.to_owned());
            let now = self.limits_of(venue);
            if (open_max, forgets) != (now.open_max, now.when_full == WhenFull::ForgetOldest) {
                return Err(format!("the limits of venue {name} were others then"));
            }
            venues.push(venue);
        }
        Ok(venues)
    }

    fn load_tables(
        &mut self,
        fields: &mut FieldReader<'_>,
        venues: &[usize],
        loading: &Loading<'_>,
    ) -> Option<()> {
        let venue = |number: usize| venues.get(number).copied();
        let place = |fields: &mut FieldReader<'_>| -> Option<SessionId> {
            Some((fields.number()?, venue(fields.number()?)?))
        };
        for _ in 0..fields.count(2)? {
            let journal = fields.number()?;
            let count = fields.count(1)?;
            let numbers = (0..count).map(|_| venue(fields.number()?)).collect::<Option<Vec<_>>>()?;
            self.numbers.insert(journal, numbers);
        }
        for _ in 0..fields.count(1)? {
            self.certain.insert(fields.number()?);
        }
        for _ in 0..fields.count(3)? {
            self.endpoints.insert(place(fields)?, of_endpoint_record(fields.bytes()?)?);
        }
        for _ in 0..fields.count(3)? {
            let place = place(fields)?;
            let session = Session::load(fields, self.limits_of(place.1), loading)?;
            self.sessions.insert(place, session);
        }
        for _ in 0..fields.count(3)? {
            let place = place(fields)?;
            let session = Session::load(fields, self.limits_of(place.1), loading)?;
            self.former.push((place, session));
        }
        self.positions = Positions::load(fields, loading)?;
        for _ in 0..fields.count(18)? {
            let key = loading.key(fields)?;
            let client_order_id = ClientOrderId(fields.fixed()?);
            let reason = if fields.flag()? { Some(fields.number()?) } else { None };
            self.unsent.insert(key, Unsent { client_order_id, reason, is_certain: fields.flag()? });
        }
        for _ in 0..fields.count(2)? {
            self.refused_in_stream.insert(loading.key(fields)?);
        }
        for _ in 0..fields.count(3)? {
            self.sent_first.insert(loading.account(fields)?, KnownNumbers::load(fields)?);
        }
        for _ in 0..fields.count(2)? {
            self.last_sent.insert(loading.account(fields)?, fields.number()?);
        }
        for _ in 0..fields.count(3)? {
            let key = loading.key(fields)?;
            let count = fields.count(2)?;
            let mut report = || {
                let is_end = fields.flag()?;
                let (message, _) = Outbound::decode(fields.bytes()?).ok()?;
                Some(SentReport { is_end, message })
            };
            let reports = (0..count).map(|_| report()).collect::<Option<Vec<_>>>()?;
            self.early.insert(key, reports);
        }
        Some(())
    }
}

impl Session {
    fn save(&self, place: SessionId, fields: &mut FieldWriter) -> Result<(), String> {
        save_place(place, fields);
        let Self { outstanding, later, resume, kept, delivered, begun } = self;
        if !later.is_empty() {
            return Err("orders wait for room".to_owned());
        }
        outstanding.save(fields)?;
        // The rest is known when everything has been read.
        let Resume { session, epoch, next: _, heard: _, delivered: _ } = resume;
        fields.flag(session.is_some());
        session.iter().for_each(|name| fields.fixed(name.as_bytes()));
        fields.number(*epoch);
        fields.count(kept.len());
        for ((epoch, journal), sequence) in kept {
            fields.number(*epoch);
            fields.number(*journal);
            fields.number(*sequence);
        }
        let delivered: BTreeMap<_, _> = delivered.iter().collect();
        fields.count(delivered.len());
        for ((epoch, journal, account), sequence) in delivered {
            fields.number(*epoch);
            fields.number(*journal);
            fields.number(account.0);
            fields.number(*sequence);
        }
        fields.count(begun.len());
        begun.iter().for_each(|epoch| fields.number(*epoch));
        Ok(())
    }

    fn load(fields: &mut FieldReader<'_>, limits: OutstandingLimits, loading: &Loading<'_>) -> Option<Self> {
        let outstanding = OutstandingOrders::load(fields, limits, loading)?;
        let session = match fields.flag()? {
            true => Some(Name::from_padded(&fields.fixed::<10>()?).ok()?),
            false => None,
        };
        let resume = Resume { session, epoch: fields.number()?, ..Resume::default() };
        let count = fields.count(3)?;
        let mut kept = || Some(((fields.number()?, fields.number()?), fields.number()?));
        let kept = (0..count).map(|_| kept()).collect::<Option<BTreeMap<_, _>>>()?;
        let count = fields.count(4)?;
        let mut delivered = || {
            let (epoch, journal) = (fields.number()?, fields.number()?);
            Some(((epoch, journal, loading.account(fields)?), fields.number()?))
        };
        let delivered = (0..count).map(|_| delivered()).collect::<Option<HashMap<_, _>>>()?;
        let count = fields.count(1)?;
        let begun = (0..count).map(|_| fields.number()).collect::<Option<BTreeSet<_>>>()?;
        Some(Self { outstanding, later: VecDeque::new(), resume, kept, delivered, begun })
    }
}

fn save_limits(limits: OutstandingLimits, fields: &mut FieldWriter) {
    let OutstandingLimits {
        open_max,
        when_full,
        // A recovery does not look at these between two records.
        unanswered_max: _,
        resend_age_max_ns: _,
    } = limits;
    fields.count(open_max);
    fields.flag(when_full == WhenFull::ForgetOldest);
}

fn save_numbers(numbers: &HashMap<u16, Vec<usize>>, fields: &mut FieldWriter) {
    let numbers: BTreeMap<&u16, &Vec<usize>> = numbers.iter().collect();
    fields.count(numbers.len());
    for (journal, venues) in numbers {
        fields.number(*journal);
        fields.count(venues.len());
        venues.iter().for_each(|venue| fields.count(*venue));
    }
}

fn save_unsent(unsent: &BTreeMap<Key, Unsent>, fields: &mut FieldWriter) {
    fields.count(unsent.len());
    for (key, Unsent { client_order_id, reason, is_certain }) in unsent {
        save_key(*key, fields);
        fields.fixed(&client_order_id.0);
        fields.flag(reason.is_some());
        reason.iter().for_each(|reason| fields.number(*reason));
        fields.flag(*is_certain);
    }
}

fn save_sent(
    sent_first: &HashMap<AccountId, KnownNumbers>,
    last_sent: &HashMap<AccountId, u32>,
    fields: &mut FieldWriter,
) {
    let sent_first: BTreeMap<&AccountId, &KnownNumbers> = sent_first.iter().collect();
    fields.count(sent_first.len());
    for (account, known) in sent_first {
        fields.number(account.0);
        known.save(fields);
    }
    let last_sent: BTreeMap<&AccountId, &u32> = last_sent.iter().collect();
    fields.count(last_sent.len());
    for (account, number) in last_sent {
        fields.number(account.0);
        fields.number(*number);
    }
}

fn save_early(early: &Answers, fields: &mut FieldWriter) {
    fields.count(early.len());
    for (key, reports) in early {
        save_key(*key, fields);
        fields.count(reports.len());
        for SentReport { message, is_end } in reports {
            let mut raw = Vec::new();
            message.encode(&mut raw);
            fields.flag(*is_end);
            fields.bytes(&raw);
        }
    }
}

fn save_place((worker, venue): SessionId, fields: &mut FieldWriter) {
    fields.count(worker);
    fields.count(venue);
}

fn save_key((account, user_ref_num): Key, fields: &mut FieldWriter) {
    fields.number(account);
    fields.number(user_ref_num);
}
