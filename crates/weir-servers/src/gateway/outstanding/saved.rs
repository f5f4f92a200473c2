//! Outstanding orders in a checkpoint of a recovery. What a running gateway alone has is not in it.

use std::collections::{BTreeMap, VecDeque};

use foldhash::HashMap;
use weir_proto::ouch::ClientOrderId;
use weir_trading::{AccountId, Origin, UpstreamNumbers};

use super::{
    OutstandingLimits, OutstandingOrders, Owners,
    messages::{About, Passed, Unanswered},
};
use crate::{
    gateway::{recovery::checkpoint::Loading, worker_message::MESSAGE_BYTES_MAX},
    journal::fields::{FieldReader, FieldWriter},
};

impl OutstandingOrders {
    /// Whether a replace has no answer.
    pub(in crate::gateway) fn awaits_replace(&self) -> bool {
        self.unanswered.iter().any(Unanswered::is_replace)
    }

    /// Writes them into a checkpoint.
    ///
    /// # Errors
    /// They are not as a recovery has them between two records.
    pub(in crate::gateway) fn save(&self, fields: &mut FieldWriter) -> Result<(), String> {
        let Self {
            // The configuration has them.
            limits: _,
            upstream_numbers,
            owners,
            unanswered,
            skipped,
            passed,
            passed_count,
            ignored,
            given_up,
            is_new,
            handled,
            has_gap,
            answered,
            answers_unswept,
        } = self;
        if !ignored.is_empty() || *is_new || *handled != 0 || *has_gap {
            return Err("orders have a state that no journal has".to_owned());
        }
        save_numbers(upstream_numbers, fields);
        owners.save(fields);
        fields.count(unanswered.len());
        unanswered.iter().for_each(|sent| save_unanswered(sent, fields));
        fields.count(skipped.len());
        skipped.values().for_each(|sent| save_unanswered(sent, fields));
        let mut numbers: Vec<&u32> = passed.keys().collect();
        numbers.sort_unstable();
        fields.count(numbers.len());
        for number in numbers {
            fields.number(*number);
            let About { cancel, change } = &passed[number];
            for message in [cancel, change] {
                save_passed(message.as_ref(), fields);
            }
        }
        fields.number(*passed_count);
        fields.count(given_up.len());
        given_up.iter().for_each(|number| fields.number(*number));
        let answered: Vec<_> = answered.iter().zip(0_u32..).filter(|(last, _)| **last != 0).collect();
        fields.count(answered.len());
        for (last, account) in answered {
            fields.number(account);
            fields.number(*last);
        }
        fields.count(*answers_unswept);
        Ok(())
    }

    /// Reads them from a checkpoint.
    pub(in crate::gateway) fn load(
        fields: &mut FieldReader<'_>,
        limits: OutstandingLimits,
        loading: &Loading<'_>,
    ) -> Option<Self> {
        let mut found = Self::new(1, limits);
        load_numbers(&mut found.upstream_numbers, fields, loading)?;
        found.owners = Owners::load(fields, |account, number| loading.origin(account, number))?;
        let count = fields.count(18)?;
        found.unanswered =
            (0..count).map(|_| load_unanswered(fields, limits, loading)).collect::<Option<VecDeque<_>>>()?;
        let count = fields.count(18)?;
        let skipped =
            (0..count).map(|_| load_unanswered(fields, limits, loading)).collect::<Option<Vec<_>>>()?;
        found.skipped = skipped.into_iter().map(|sent| (sent.number, sent)).collect::<BTreeMap<_, _>>();
        let count = fields.count(3)?;
        let mut about =
            || Some((fields.number()?, About { cancel: load_passed(fields)?, change: load_passed(fields)? }));
        found.passed = (0..count).map(|_| about()).collect::<Option<HashMap<_, _>>>()?;
        found.passed_count = fields.number()?;
        let count = fields.count(1)?;
        found.given_up = (0..count).map(|_| fields.number()).collect::<Option<_>>()?;
        for _ in 0..fields.count(2)? {
            let place = loading.account(fields)?.0 as usize;
            if place >= found.answered.len() {
                found.answered.resize(place + 1, 0);
            }
            found.answered[place] = fields.number()?;
        }
        found.answers_unswept = fields.number()?;
        Some(found)
    }
}

/// The open orders, the oldest first, and the next number.
fn save_numbers(numbers: &UpstreamNumbers, fields: &mut FieldWriter) {
    fields.count(numbers.len());
    for (number, Origin { account, user_ref_num, home: _, received_ns: _ }) in numbers.all_open_orders() {
        fields.number(number);
        fields.number(account.0);
        fields.number(user_ref_num);
        fields.number(numbers.shares_of(number).unwrap_or(0));
        let original = numbers.original_of(number);
        let original = original.and_then(|it| numbers.upstream_of(it.account, it.user_ref_num));
        // No order has the number 0.
        fields.number(original.unwrap_or(0));
    }
    fields.number(numbers.next());
}

fn load_numbers(
    numbers: &mut UpstreamNumbers,
    fields: &mut FieldReader<'_>,
    loading: &Loading<'_>,
) -> Option<()> {
    for _ in 0..fields.count(5)? {
        let number: u32 = fields.number()?;
        let origin = loading.origin(fields.number()?, fields.number()?)?;
        let (shares, original): (u32, u32) = (fields.number()?, fields.number()?);
        if number < numbers.next() {
            return None;
        }
        numbers.restore(number, origin, Some(original).filter(|original| *original != 0)).ok()?;
        numbers.assume(number, shares);
    }
    numbers.advance(fields.number()?);
    Some(())
}

fn save_unanswered(sent: &Unanswered, fields: &mut FieldWriter) {
    let Unanswered {
        // Times of a running gateway.
        received_ns: _,
        sent_ns: _,
        resend_until_ns,
        number,
        account,
        quantity,
        original,
        client_order_id,
        refusal,
        length: _,
        is_restored,
        is_answered,
        message: _,
    } = sent;
    fields.number(*resend_until_ns);
    fields.number(*number);
    fields.number(account.0);
    fields.number(*quantity);
    fields.flag(original.is_some());
    fields.number(original.unwrap_or(0));
    fields.fixed(&client_order_id.0);
    fields.number(*refusal);
    fields.flag(*is_restored);
    fields.flag(*is_answered);
    fields.bytes(sent.message());
}

fn load_unanswered(
    fields: &mut FieldReader<'_>,
    limits: OutstandingLimits,
    loading: &Loading<'_>,
) -> Option<Unanswered> {
    let resend_until_ns = loading.resend_until_ns(fields.number()?, limits.resend_age_max_ns);
    let number = fields.number()?;
    let account: AccountId = loading.account(fields)?;
    let quantity = fields.number()?;
    let (is_replace, original) = (fields.flag()?, fields.number()?);
    let client_order_id = ClientOrderId(fields.fixed()?);
    let (refusal, is_restored, is_answered) = (fields.number()?, fields.flag()?, fields.flag()?);
    let (length, message) = load_message(fields)?;
    let (received_ns, sent_ns) = (0, 0);
    Some(Unanswered {
        received_ns,
        sent_ns,
        resend_until_ns,
        number,
        account,
        quantity,
        original: is_replace.then_some(original),
        client_order_id,
        refusal,
        length,
        is_restored,
        is_answered,
        message,
    })
}

fn save_passed(passed: Option<&Passed>, fields: &mut FieldWriter) {
    fields.flag(passed.is_some());
    let Some(passed) = passed else { return };
    let Passed { after, place, quantity, length: _, message: _ } = passed;
    fields.number(*after);
    fields.number(*place);
    fields.number(*quantity);
    fields.bytes(passed.message());
}

fn load_passed(fields: &mut FieldReader<'_>) -> Option<Option<Passed>> {
    if !fields.flag()? {
        return Some(None);
    }
    let (after, place, quantity) = (fields.number()?, fields.number()?, fields.number()?);
    let (length, message) = load_message(fields)?;
    Some(Some(Passed { after, place, quantity, length, message }))
}

/// A message that is not empty.
fn load_message(fields: &mut FieldReader<'_>) -> Option<(u8, [u8; MESSAGE_BYTES_MAX])> {
    let bytes = fields.bytes().filter(|bytes| !bytes.is_empty())?;
    let mut message = [0; MESSAGE_BYTES_MAX];
    message.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some((bytes.len() as u8, message))
}
