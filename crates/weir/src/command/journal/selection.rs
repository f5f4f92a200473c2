//! Which records are shown.

use std::collections::{HashSet, VecDeque};

use anyhow::Result;
use weir_proto::{ouch::Symbol, soup::Name};
use weir_report::{Language, localized};
use weir_servers::orders::Described;

use super::moment;
use crate::{args::RecordSelection, exit::UsageError};

/// Orders that are followed. Older ones are forgotten, so that memory is bounded.
const FOLLOWED_MAX: usize = 1 << 20;

/// An order: its account, and its client's number.
type OrderKey = (Name<6>, u32);

/// Orders that were chosen, and their replacements.
#[derive(Debug, Default)]
struct Followed {
    known: HashSet<OrderKey>,
    in_order: VecDeque<OrderKey>,
}

impl Followed {
    fn has(&self, account: Option<Name<6>>, number: Option<u32>) -> bool {
        account.zip(number).is_some_and(|(account, number)| self.known.contains(&(account.folded(), number)))
    }

    fn add(&mut self, account: Option<Name<6>>, number: Option<u32>) {
        let Some(key) = account.map(|account| account.folded()).zip(number) else { return };
        if !self.known.insert(key) {
            return;
        }
        self.in_order.push_back(key);
        if self.in_order.len() > FOLLOWED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether a record is about an order that is followed, or that `is_chosen` chooses. Its order is followed then.
    fn takes(&mut self, record: &Described, is_chosen: bool) -> bool {
        let account = record.account;
        if is_chosen || self.has(account, record.order) || self.has(account, record.original) {
            self.add(account, record.order);
            return true;
        }
        false
    }
}

/// The selection, resolved.
#[derive(Debug, Default)]
pub(super) struct Selection {
    account: Option<Name<6>>,
    order: Option<(u32, Followed)>,
    symbol: Option<(Symbol, Followed)>,
    since_ns: u64,
    until_ns: Option<u64>,
    kinds: Vec<String>,
    is_of_operators: bool,
}

impl Selection {
    pub(super) fn new(typed: &RecordSelection, language: Language) -> Result<Self> {
        let account = typed.account.as_deref().map(|text| name(text, language)).transpose()?;
        let symbol = typed.symbol.as_deref().map(|text| symbol(text, language)).transpose()?;
        Ok(Self {
            account,
            order: typed.order.map(|number| (number, Followed::default())),
            symbol: symbol.map(|symbol| (symbol, Followed::default())),
            since_ns: time("--since", typed.since.as_deref(), language)?.unwrap_or(0),
            until_ns: time("--until", typed.until.as_deref(), language)?,
            kinds: typed.kind.clone(),
            is_of_operators: typed.operators,
        })
    }

    /// Whether a record is shown. Orders are followed from their begin on, so it has to see every record.
    pub(super) fn takes(&mut self, t_ns: u64, record: &Described) -> bool {
        let mut takes = true;
        if let Some((number, followed)) = &mut self.order {
            let is_it = record.order == Some(*number) || record.original == Some(*number);
            takes &= followed.takes(record, is_it);
        }
        if let Some((symbol, followed)) = &mut self.symbol {
            takes &= followed.takes(record, record.symbol == Some(*symbol));
        }
        let is_of = |account: &Name<6>| record.account.is_some_and(|own| own.eq_ignore_case(account));
        let is_kind = |kind: &String| kind == record.kind || record.message.is_some_and(|own| own == kind);
        takes
            && self.is_in_time(t_ns)
            && self.account.as_ref().is_none_or(is_of)
            && (self.kinds.is_empty() || self.kinds.iter().any(is_kind))
            && (!self.is_of_operators || record.is_operator)
    }

    fn is_in_time(&self, t_ns: u64) -> bool {
        t_ns >= self.since_ns && self.until_ns.is_none_or(|until_ns| t_ns < until_ns)
    }
}

fn name(text: &str, language: Language) -> Result<Name<6>, UsageError> {
    text.parse().map_err(|_| {
        UsageError(localized!(
            language,
            "--account {text:?} is no login name: it has up to 6 characters",
            "--account {text:?}: 로그인 이름이 아닙니다. 최대 6자입니다",
            "--account {text:?}：不是登录名；最多 6 个字符",
        ))
    })
}

fn symbol(text: &str, language: Language) -> Result<Symbol, UsageError> {
    text.parse().map_err(|_| {
        UsageError(localized!(
            language,
            "--symbol {text:?} is no symbol: it has up to 8 printable characters",
            "--symbol {text:?}: 종목이 아닙니다. 출력 가능한 문자 최대 8자입니다",
            "--symbol {text:?}：不是代码；最多 8 个可打印字符",
        ))
    })
}

fn time(flag: &str, text: Option<&str>, language: Language) -> Result<Option<u64>, UsageError> {
    let Some(text) = text else { return Ok(None) };
    let wrong = || {
        UsageError(localized!(
            language,
            "{flag} {text:?} is no time; write 2026-03-02 or 2026-03-02T09:00:00Z",
            "{flag} {text:?}: 시각이 아닙니다. 2026-03-02나 2026-03-02T09:00:00Z처럼 쓰십시오",
            "{flag} {text:?}：不是时间；请写成 2026-03-02 或 2026-03-02T09:00:00Z",
        ))
    };
    moment::parse(text).map(Some).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(account: &str, order: u32) -> Described {
        Described { account: account.parse().ok(), order: Some(order), ..Described::default() }
    }

    fn selection(typed: RecordSelection) -> Selection {
        Selection::new(&typed, Language::English).expect("it is right")
    }

    #[test]
    fn an_order_is_followed_through_its_replacements() {
        let mut chosen = selection(RecordSelection { order: Some(5), ..RecordSelection::default() });
        assert!(!chosen.takes(0, &described("C1", 4)));
        assert!(chosen.takes(0, &described("C1", 5)));
        let replace = Described { original: Some(5), ..described("C1", 9) };
        assert!(chosen.takes(0, &replace));
        assert!(chosen.takes(0, &described("c1", 9)), "case does not matter");
        assert!(!chosen.takes(0, &described("C2", 9)), "it is another account's");
    }

    #[test]
    fn orders_of_a_symbol_are_followed_in_messages_that_do_not_name_it() {
        let typed = RecordSelection { symbol: Some("WEIR".into()), ..RecordSelection::default() };
        let mut chosen = selection(typed);
        let symbol = |text: &str| text.parse().ok();
        assert!(!chosen.takes(0, &described("C1", 1)), "its symbol is not known yet");
        assert!(chosen.takes(0, &Described { symbol: symbol("WEIR"), ..described("C1", 1) }));
        assert!(chosen.takes(0, &described("C1", 1)));
        assert!(!chosen.takes(0, &Described { symbol: symbol("OTHER"), ..described("C1", 2) }));
        assert!(!chosen.takes(0, &described("C1", 2)));
    }

    #[test]
    fn a_time_range_includes_its_begin_and_not_its_end_and_orders_before_it_are_known() {
        let typed = RecordSelection {
            symbol: Some("WEIR".into()),
            since: Some("1970-01-01T00:00:01Z".into()),
            until: Some("1970-01-01T00:00:02Z".into()),
            ..RecordSelection::default()
        };
        let mut chosen = selection(typed);
        let enter = Described { symbol: "WEIR".parse().ok(), ..described("C1", 1) };
        assert!(!chosen.takes(999_999_999, &enter));
        assert!(chosen.takes(1_000_000_000, &described("C1", 1)));
        assert!(chosen.takes(1_999_999_999, &described("C1", 1)));
        assert!(!chosen.takes(2_000_000_000, &described("C1", 1)));
    }

    #[test]
    fn kinds_are_chosen_by_their_name_or_by_their_message_and_operators_by_themselves() {
        let typed =
            RecordSelection { kind: vec!["executed".into(), "control".into()], ..RecordSelection::default() };
        let mut chosen = selection(typed);
        let executed = Described { kind: "sequenced", message: Some("executed"), ..described("C1", 1) };
        assert!(chosen.takes(0, &executed));
        assert!(!chosen.takes(0, &Described { message: Some("accepted"), ..executed.clone() }));
        let control = Described { kind: "control", is_operator: true, ..Described::default() };
        assert!(chosen.takes(0, &control));
        let mut of_operators = selection(RecordSelection { operators: true, ..RecordSelection::default() });
        assert!(of_operators.takes(0, &control) && !of_operators.takes(0, &executed));
    }

    #[test]
    fn only_so_many_orders_are_followed() {
        let mut followed = Followed::default();
        let account = "C1".parse().ok();
        for number in 0..=FOLLOWED_MAX as u32 {
            followed.add(account, Some(number));
        }
        assert_eq!(followed.known.len(), FOLLOWED_MAX);
        assert!(!followed.has(account, Some(0)) && followed.has(account, Some(1)));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_flag() {
        for (typed, flag) in [
            (RecordSelection { account: Some("TOOLONG".into()), ..RecordSelection::default() }, "--account"),
            (
                RecordSelection { symbol: Some("TOOLONGSYMBOL".into()), ..RecordSelection::default() },
                "--symbol",
            ),
            (RecordSelection { since: Some("now".into()), ..RecordSelection::default() }, "--since"),
            (RecordSelection { until: Some("2026-13-01".into()), ..RecordSelection::default() }, "--until"),
        ] {
            let error = Selection::new(&typed, Language::English).expect_err("it is wrong").to_string();
            assert!(error.starts_with(flag), "{error}");
        }
    }
}
