//! The answer in sentences, and figures as text.

use weir_record::sweep::{
    Estimate, FrontierRow, FrontierRule, Gain, GainStep, Outcome, PhaseResult, PollingResult, SweepPhase,
    SweepResult, SweepWorld,
};

use super::texts::{self, Text};
use crate::{
    format::{self, ABSENT},
    language::Language,
};

/// Source of traces that were made from seeds; any other trace was read from a file.
const MADE_TRACES: &str = "synthetic";

/// More than this left to the interrupt, and the interrupt is the answer.
const MOSTLY: f64 = 0.5;

/// What the study says as a whole; absent without a part that decides.
pub(super) fn outcome(result: &PollingResult) -> Option<Outcome> {
    result.outcome()
}

pub(super) fn badge(result: &PollingResult) -> Text {
    match outcome(result) {
        Some(Outcome::Holds) => Text::BadgeAhead,
        Some(Outcome::Fails) => Text::BadgeNot,
        Some(Outcome::Open) | None => Text::BadgeOpen,
    }
}

/// The paper's future work, answered from the figures: the first sentence is the headline.
pub(super) fn answer(result: &PollingResult, language: Language) -> Vec<String> {
    let judged = result
        .sweep(SweepWorld::Simulator)
        .and_then(|sweep| Some((sweep, headline(result, sweep, language)?)));
    let Some((sweep, headline)) = judged else {
        return vec![Text::NoJudgement.of(language).to_owned()];
    };
    let mut sentences = vec![headline];
    sentences.extend(margins(result, language));
    if let Some(last) = sweep.phases.last() {
        sentences.extend(mechanism(last, language));
        sentences.extend(quantile(sweep, last, language));
        sentences.extend(price(last, language));
    }
    sentences.extend(elsewhere(result, language));
    sentences.extend(falls_short(result, language));
    sentences
}

/// The margins, and what comes out when no operation a second may be lost.
fn margins(result: &PollingResult, language: Language) -> Option<String> {
    let asking: Vec<(Outcome, f64)> = result
        .deciding()
        .filter_map(|row| Some((row.outcome_without_margin()?, -row.iops.estimate.median)))
        .collect();
    let count = |outcome| asking.iter().filter(|(found, _)| *found == outcome).count().to_string();
    let most = asking.iter().map(|(_, loss)| loss.max(0.0)).reduce(f64::max)?;
    let (holding, failing) = (count(Outcome::Holds), count(Outcome::Fails));
    let (all, most) = (asking.len().to_string(), format!("{:.2}", most.abs() * 100.0));
    Some(Text::Margins.fill(language, &[&holding, &all, &failing, &most]))
}

/// How many lines of the other parts hold.
fn elsewhere(result: &PollingResult, language: Language) -> Vec<String> {
    let others = result.sweeps.iter().filter(|sweep| sweep.plan.world != SweepWorld::Simulator);
    let told = others.filter(|sweep| !sweep.frontier.is_empty()).map(|sweep| {
        let count = |outcome| sweep.frontier.iter().filter(|row| row.outcome == outcome).count().to_string();
        let all = sweep.frontier.len().to_string();
        let world = texts::world(sweep.plan.world).of(language);
        Text::Elsewhere.fill(language, &[world, &count(Outcome::Holds), &all, &count(Outcome::Fails)])
    });
    told.collect()
}

/// On which figure the deciding lines that fail do so.
fn falls_short(result: &PollingResult, language: Language) -> Option<String> {
    let failing: Vec<&FrontierRow> = result.deciding().filter(|row| row.outcome == Outcome::Fails).collect();
    let count = |of: fn(&FrontierRow) -> Outcome| {
        failing.iter().filter(|row| of(row) == Outcome::Fails).count().to_string()
    };
    if failing.is_empty() {
        return None;
    }
    let short = failing.iter().filter(|row| row.iops.outcome == Outcome::Fails);
    let least = short.map(|row| row.iops.estimate.median).fold(0.0, f64::min);
    let counts =
        [count(|row| row.misses.outcome), count(|row| row.cpu.outcome), count(|row| row.iops.outcome)];
    let [misses, cpu, iops] = &counts;
    Some(Text::FallsShort.fill(language, &[misses, cpu, iops, &format!("{:.1}", least.abs() * 100.0)]))
}

fn headline(result: &PollingResult, sweep: &SweepResult, language: Language) -> Option<String> {
    let last = sweep.phases.last()?;
    let candidate = sweep.candidate.as_deref()?;
    let count = |rows: &dyn Fn(&&FrontierRow) -> bool| sweep.frontier.iter().filter(rows).count().to_string();
    let is_main = |row: &&FrontierRow| row.phase == last.name && row.rule == FrontierRule::Ahead;
    let ahead = count(&|row| is_main(row) && row.outcome == Outcome::Holds);
    let asked = count(&|row| is_main(row));
    let of_all = |outcome| result.deciding().filter(|row| row.outcome == outcome).count().to_string();
    let (holding, failing) = (of_all(Outcome::Holds), of_all(Outcome::Fails));
    let text = match result.outcome()? {
        Outcome::Holds => Text::Ahead,
        Outcome::Fails => Text::NotAhead,
        Outcome::Open => Text::OpenAhead,
    };
    let all = result.deciding().count().to_string();
    Some(text.fill(language, &[candidate, &ahead, &asked, &last.name, &holding, &all, &failing]))
}

fn mechanism(phase: &PhaseResult, language: Language) -> Option<String> {
    let rate = phase.price.as_ref()?.candidate_interrupted_rate;
    let text = if rate > MOSTLY { Text::ByInterrupt } else { Text::BySleep };
    Some(text.fill(language, &[&phase.name, &format::percent(rate)]))
}

fn quantile(sweep: &SweepResult, phase: &PhaseResult, language: Language) -> Option<String> {
    let is_it = |gain: &&Gain| gain.phase == phase.name && gain.step == GainStep::BetterQuantile;
    let gain = sweep.gains.iter().find(is_it)?;
    let lowers_both = gain.misses.median < 0.0 && gain.cpu.median < 0.0;
    let text = if lowers_both { Text::QuantileHelps } else { Text::QuantileTrades };
    let (misses, cpu) = (signed_points(gain.misses.median), signed_points(gain.cpu.median));
    Some(text.fill(language, &[&phase.name, &misses, &cpu]))
}

fn price(phase: &PhaseResult, language: Language) -> Option<String> {
    let price = phase.price.as_ref()?;
    Some(match (&price.method, &price.cpu_us_for_latency_us) {
        (Some(method), Some(cpu)) => {
            Text::PriceAnswer.fill(language, &[&phase.name, &format::micros(cpu.median), method])
        }
        _ => Text::PriceNone.fill(language, &[&phase.name]),
    })
}

/// A phase with its load: `Job3 (background: 4 × depth 32)`.
pub(super) fn phase(phase: &SweepPhase, world: SweepWorld, language: Language) -> String {
    if world == SweepWorld::Trace {
        return phase.name.clone();
    }
    let load = if phase.background_cores == 0 || phase.background_depth == 0 {
        Text::BackgroundNone.of(language).to_owned()
    } else {
        let (cores, depth) = (phase.background_cores.to_string(), phase.background_depth.to_string());
        Text::Background.fill(language, &[&cores, &depth])
    };
    format!("{} ({load})", phase.name)
}

/// Facts about the run: a title and a detail each.
pub(super) fn chips(result: &PollingResult, language: Language) -> Vec<(String, String)> {
    let complete = if result.complete { Text::Complete } else { Text::Incomplete };
    let (mut done, mut planned) = (0_u64, 0_u64);
    for sweep in &result.sweeps {
        done += u64::from(sweep.parts_done);
        planned += (sweep.plan.methods.len() * sweep.plan.seeds.len()) as u64;
    }
    let parts = Text::Parts.fill(language, &[&done.to_string(), &planned.to_string()]);
    let mut chips = vec![(complete.of(language).to_owned(), parts)];
    if let Some(sweep) = result.sweep(SweepWorld::Simulator) {
        let seeds = &sweep.plan.seeds;
        if let (Some(first), Some(last)) = (seeds.first(), seeds.last()) {
            chips.push((Text::HeldOutSeeds.of(language).to_owned(), format!("{first}–{last}")));
        }
        if let Some(first) = sweep.plan.phases.first() {
            chips.push((Text::JobLength.of(language).to_owned(), format::nanos(first.length_ns as f64)));
        }
    }
    if let Some(machine) = &result.fingerprint {
        let mut parts = vec![machine.cpu_model.clone(), format!("{} CPU", machine.cpus_online)];
        parts.push(format::bytes(machine.memory_bytes));
        parts.retain(|part| !part.is_empty());
        chips.push((Text::Machine.of(language).to_owned(), parts.join(" · ")));
    }
    chips
}

/// What a reader must know about where the figures are from.
pub(super) fn notes(result: &PollingResult, language: Language) -> Vec<String> {
    let told = |text: Text| text.of(language).to_owned();
    let unrecorded = result.unrecorded.as_ref();
    let sweeps = result.sweeps.iter().map(note).map(told);
    sweeps
        .chain(unrecorded.map(|reason| Text::NotRecorded.fill(language, &[reason])))
        .chain([Text::FixedBefore, Text::BaselinesAlways].map(told))
        .collect()
}

/// What is emulated in one sweep.
pub(super) fn note(sweep: &SweepResult) -> Text {
    match sweep.plan.world {
        SweepWorld::Simulator => Text::EmulatedSimulator,
        SweepWorld::Trace if sweep.plan.source == MADE_TRACES => Text::EmulatedTrace,
        SweepWorld::Trace => Text::EmulatedReplay,
        SweepWorld::Recording => Text::EmulatedRecording,
        SweepWorld::Disk => Text::EmulatedDisk,
    }
}

/// A share in points, signed: `+0.43`.
pub(super) fn signed_points(share: f64) -> String {
    signed(share * 100.0)
}

fn signed(value: f64) -> String {
    let decimals = if value.abs() < 9.995 { 2 } else { 1 };
    if value.is_finite() { format!("{value:+.decimals$}").replace('-', "−") } else { ABSENT.to_owned() }
}

/// An estimate times a factor, signed, with its interval: `+0.43 [+0.40, +0.47]`.
pub(super) fn signed_estimate(estimate: &Estimate, factor: f64) -> String {
    let number = |value: f64| signed(value * factor);
    match estimate.interval {
        Some((low, high)) => format!("{} [{}, {}]", number(estimate.median), number(low), number(high)),
        None => number(estimate.median),
    }
}

/// A share with its interval: `31.2 % [30.8, 31.5]`.
pub(super) fn share_estimate(estimate: &Estimate) -> String {
    let number = |value: f64| format!("{:.1}", value * 100.0);
    match estimate.interval {
        Some((low, high)) => format!("{} % [{}, {}]", number(estimate.median), number(low), number(high)),
        None => format!("{} %", number(estimate.median)),
    }
}

/// Microseconds, or a dash.
pub(super) fn optional_micros(us: Option<f64>) -> String {
    us.map_or_else(|| ABSENT.to_owned(), format::micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_always_written() {
        assert_eq!(signed_points(0.0043), "+0.43");
        assert_eq!(signed_points(-0.5), "−50.0");
        assert_eq!(signed_points(f64::NAN), ABSENT);
        let estimate = Estimate { median: -0.01, interval: Some((-0.02, 0.001)), values: 20 };
        assert_eq!(signed_estimate(&estimate, 100.0), "−1.00 [−2.00, +0.10]");
        assert_eq!(share_estimate(&Estimate { median: 0.312, interval: None, values: 3 }), "31.2 %");
    }
}
