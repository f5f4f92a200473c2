//! Where the server CPU goes, part by part, and where one arm uses more of it than the baseline. Places, not causes.

use weir_record::{
    cpu_account::{Amount, CpuAccount, CpuDifference, CpuPart, Explained},
    evidence::ArmEvidence,
    goal::Outcome,
};

use crate::{
    cited::{Sentence, distinct},
    format,
    rung::SOFTIRQS_ARE_APART,
    section::{Content, Section},
    table::Table,
    view::View,
    words::Word,
};

const BEYOND: [&str; 3] = ["EXPLAINS MORE THAN THERE IS", "실제보다 많이 설명됨", "解释多于实际"];

/// The section: differences first, because they answer the question.
pub(crate) fn section(view: &View<'_>) -> Content {
    let accounts: Vec<(&ArmEvidence, &CpuAccount)> =
        view.result.evidence.iter().filter_map(|arm| Some((arm, arm.account.as_ref()?))).collect();
    Content::unless(accounts.is_empty(), || {
        let differences = differences(view);
        let tables = (!differences.rows.is_empty()).then_some(differences).into_iter();
        let apart = accounts.iter().filter(|(arm, _)| arm.softirqs_are_apart == Some(true));
        let cells = distinct(apart.map(|(arm, _)| &arm.cell_id));
        let text = view.language.choose(SOFTIRQS_ARE_APART).to_owned();
        Section {
            sentences: if cells.is_empty() { Vec::new() } else { vec![Sentence { text, cells }] },
            tables: tables.chain([closings(view, &accounts)]).collect(),
            ..Section::new(Word::AccountTitle, Word::AccountHelp)
        }
    })
}

fn differences(view: &View<'_>) -> Table {
    let of_pair = |found: &CpuDifference| {
        let first = [view.cell_label(&found.cell_id), format!("{} − {}", found.arm, found.baseline)];
        let row =
            |name: String, ns: Amount| first.iter().cloned().chain([name, amount(ns, signed)]).collect();
        let whole = row(view.word(Word::WholeDifference).to_owned(), found.whole);
        let places = with_softirqs(view, &found.parts, &found.with_softirqs).into_iter();
        places.map(|(place, ns)| row(place, ns)).chain([whole]).collect::<Vec<Vec<String>>>()
    };
    let rows = view.result.cpu_differences.iter().flat_map(of_pair).collect();
    Table::new(view, &[Word::Cell, Word::DifferenceOf, Word::CpuPlace], &[Word::ServerCpuHere], rows)
}

/// Whether the parts of each arm add up to its CPU.
fn closings(view: &View<'_>, accounts: &[(&ArmEvidence, &CpuAccount)]) -> Table {
    let row = |(arm, account): &(&ArmEvidence, &CpuAccount)| {
        let (outcome, share) = match &account.explained {
            Some(explained) => (outcome(view, explained), share(explained)),
            None => (view.word(Word::NoClock).to_owned(), format::ABSENT.to_owned()),
        };
        vec![
            view.cell_label(&arm.cell_id),
            arm.arm.clone(),
            outcome,
            share,
            amount(account.server_cpu, format::nanos),
            account.rounds.to_string(),
        ]
    };
    let text = [Word::Cell, Word::Arm, Word::AccountOutcome];
    let numbers = [Word::AccountExplained, Word::AccountCpu, Word::Pairs];
    Table::new(view, &text, &numbers, accounts.iter().map(row).collect())
}

fn outcome(view: &View<'_>, explained: &Explained) -> String {
    if explained.is_beyond {
        return view.language.choose(BEYOND).to_owned();
    }
    let word = match explained.outcome {
        Outcome::Met => Word::AccountCloses,
        Outcome::Missed => Word::AccountDoesNotClose,
        Outcome::Open => Word::AccountOpen,
    };
    view.word(word).to_owned()
}

fn share(explained: &Explained) -> String {
    match explained.interval {
        Some((low, high)) => {
            let [share, low, high] = [explained.share, low, high].map(format::percent);
            format!("{share} [{low}, {high}]")
        }
        None => format::percent(explained.share),
    }
}

/// The parts of each account.
pub(crate) fn parts(view: &View<'_>, accounts: &[(&ArmEvidence, &CpuAccount)]) -> Table {
    let of_arm = |(arm, account): &(&ArmEvidence, &CpuAccount)| {
        let row = |(place, ns): (String, Amount)| {
            vec![
                view.cell_label(&arm.cell_id),
                arm.arm.clone(),
                place,
                amount(ns, format::nanos),
                format::percent(ns.ns / account.server_cpu.ns),
            ]
        };
        let places = with_softirqs(view, &account.parts, &account.with_softirqs);
        places.into_iter().map(row).collect::<Vec<_>>()
    };
    let text = [Word::Cell, Word::Arm, Word::CpuPlace];
    let rows = accounts.iter().flat_map(of_arm).collect();
    Table::new(view, &text, &[Word::ServerCpuHere, Word::CallShare], rows)
}

/// Places by name, each call followed by its sum with the softirqs within it.
fn with_softirqs(
    view: &View<'_>,
    parts: &[(CpuPart, Amount)],
    both: &[(String, Amount)],
) -> Vec<(String, Amount)> {
    let places = |(part, ns): &(CpuPart, Amount)| {
        let is_call = |own: &&(String, Amount)| matches!(part, CpuPart::Call(name) if *name == own.0);
        let with = both.iter().find(is_call);
        let with = with.map(|(call, ns)| (format!("{call}{}", view.word(Word::WithSoftirqs)), *ns));
        [Some((name(view, part), *ns)), with].into_iter().flatten()
    };
    parts.iter().flat_map(places).collect()
}

/// A place, in the language of the report.
pub(crate) fn name(view: &View<'_>, part: &CpuPart) -> String {
    let word = match part {
        CpuPart::Call(name) => return name.clone(),
        CpuPart::OtherCalls => Word::OtherCalls,
        CpuPart::Softirqs => Word::SoftirqsOfServer,
        CpuPart::UringThreads => Word::UringThreads,
        CpuPart::Switching => Word::Switching,
        CpuPart::Server => Word::ServerWork,
        CpuPart::Unexplained => Word::Unexplained,
        CpuPart::OutsideCalls => Word::OutsideCalls,
    };
    view.word(word).to_owned()
}

/// `1.20 µs [1.10 µs, 1.30 µs]`.
fn amount(amount: Amount, text: fn(f64) -> String) -> String {
    match amount.interval {
        Some((low, high)) => format!("{} [{}, {}]", text(amount.ns), text(low), text(high)),
        None => text(amount.ns),
    }
}

fn signed(ns: f64) -> String {
    format!("{}{}", if ns >= 0.0 { "+" } else { "" }, format::nanos(ns))
}
