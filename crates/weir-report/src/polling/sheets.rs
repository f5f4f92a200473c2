//! The tables of the study.

use std::collections::BTreeSet;

use weir_record::{
    machine::Fingerprint,
    sweep::{
        DiskEnvironment, Estimate, FamilyVolume, MethodRole, Observation, ObservationKind, Outcome,
        PhaseResult, PlaneKind, PollingResult, Seen, SweepResult, SweepWorld,
    },
};

use super::{
    sentence::{self, optional_micros, share_estimate, signed_estimate},
    sheet::{Sheet, Tone},
    texts::{self, Text},
};
use crate::{
    format::{self, ABSENT},
    language::Language,
};

fn tone(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Holds => Tone::Good,
        Outcome::Fails => Tone::Bad,
        Outcome::Open => Tone::Doubt,
    }
}

fn titles<const N: usize>(language: Language, texts: [Text; N]) -> [&'static str; N] {
    texts.map(|text| text.of(language))
}

/// The candidate against each ratio; empty without one.
pub(super) fn frontier(sweep: &SweepResult, language: Language) -> Sheet {
    let head = titles(
        language,
        [
            Text::Phase,
            Text::Against,
            Text::Rule,
            Text::MissPoints,
            Text::CpuPoints,
            Text::IopsPercent,
            Text::NoMargin,
            Text::Result,
        ],
    );
    let mut sheet = Sheet::new(&head, 3).ending_in_text();
    for row in &sweep.frontier {
        let points = |estimate: &Estimate| signed_estimate(estimate, 100.0);
        let told = |outcome| texts::outcome(outcome).of(language).to_owned();
        sheet.push(
            tone(row.outcome),
            vec![
                row.phase.clone(),
                row.against.clone(),
                texts::rule(row.rule).of(language).to_owned(),
                points(&row.misses.estimate),
                points(&row.cpu.estimate),
                points(&row.iops.estimate),
                row.outcome_without_margin().map_or_else(|| ABSENT.to_owned(), told),
                told(row.outcome),
            ],
        );
    }
    sheet
}

/// Every method in one phase.
pub(super) fn methods(sweep: &SweepResult, phase: &PhaseResult, language: Language) -> Sheet {
    let head = titles(
        language,
        [
            Text::Method,
            Text::Role,
            Text::Misses,
            Text::Cpu,
            Text::Iops,
            Text::AddedP99,
            Text::AddedP50,
            Text::Sleep,
            Text::CpuPerIo,
            Text::Interrupted,
            Text::Harmful,
        ],
    );
    let mut sheet = Sheet::new(&head, 2).never_repeating();
    for method in &phase.methods {
        let role = sweep.method(&method.method).map_or(MethodRole::Variant, |it| it.role);
        let tone = if role == MethodRole::Candidate { Tone::Main } else { Tone::Plain };
        let medians = &method.medians;
        sheet.push(
            tone,
            vec![
                method.method.clone(),
                texts::role(role).of(language).to_owned(),
                share_estimate(&method.miss_rate),
                share_estimate(&method.cpu_share),
                format::grouped(method.iops.median),
                optional_micros(method.added_p99_us.map(|it| it.median)),
                optional_micros(medians.added_p50_us),
                format::micros(medians.sleep_effective_us),
                format::micros(medians.cpu_us),
                format::percent(medians.interrupted_rate),
                format::percent(medians.miss_harm_rate),
            ],
        );
    }
    sheet
}

/// Hypervolumes of the families, phase by phase.
pub(super) fn volumes(sweep: &SweepResult, language: Language) -> Sheet {
    let head = titles(
        language,
        [
            Text::Phase,
            Text::Family,
            Text::Settings,
            Text::VolumeMiss,
            Text::LessThis,
            Text::VolumeAdded,
            Text::LessThis,
        ],
    );
    let mut sheet = Sheet::new(&head, 2);
    let own =
        sweep.candidate.as_deref().and_then(|name| sweep.method(name)).map(|method| method.family.as_str());
    for phase in &sweep.phases {
        let of = |kind| phase.planes.iter().find(|plane| plane.kind == kind);
        let (miss, added) = (of(PlaneKind::Miss), of(PlaneKind::AddedP99));
        for volume in miss.into_iter().flat_map(|plane| &plane.volumes) {
            let other = added.and_then(|plane| plane.volumes.iter().find(|it| it.family == volume.family));
            let less =
                |volume: &FamilyVolume| volume.candidate_less_this.map(|it| signed_estimate(&it, 100.0));
            let share = |volume: &FamilyVolume| share_estimate(&volume.volume);
            let absent = || ABSENT.to_owned();
            let tone = if own == Some(volume.family.as_str()) { Tone::Main } else { Tone::Plain };
            sheet.push(
                tone,
                vec![
                    phase.name.clone(),
                    volume.family.clone(),
                    volume.settings.to_string(),
                    share(volume),
                    less(volume).unwrap_or_else(absent),
                    other.map_or_else(absent, share),
                    other.and_then(less).unwrap_or_else(absent),
                ],
            );
        }
    }
    sheet
}

/// Distances to the oracles in both planes, for the methods that are ahead in one of them and for the candidate.
pub(super) fn distances(sweep: &SweepResult, language: Language) -> Sheet {
    let [phase_title, method_title] = titles(language, [Text::Phase, Text::Method]);
    let [miss, added] = titles(language, [Text::MissAxis, Text::AddedAxis]);
    let [clairvoyant, constant] = titles(language, [Text::ToClairvoyant, Text::ToConstant]);
    let numbers = [(miss, clairvoyant), (miss, constant), (added, clairvoyant), (added, constant)];
    let numbers = numbers.map(|(plane, oracle)| format!("{plane}{}{oracle}", language.colon()));
    let mut head = vec![phase_title, method_title];
    head.extend(numbers.iter().map(String::as_str));
    let mut sheet = Sheet::new(&head, 2);
    for phase in &sweep.phases {
        let is_ahead = |name: &str| phase.planes.iter().any(|plane| plane.ahead.iter().any(|it| it == name));
        let is_own = |name: &str| sweep.candidate.as_deref() == Some(name);
        let shown: BTreeSet<&str> = phase.methods.iter().map(|it| it.method.as_str()).collect();
        for name in shown.into_iter().filter(|name| is_ahead(name) || is_own(name)) {
            let mut cells = vec![phase.name.clone(), name.to_owned()];
            for kind in [PlaneKind::Miss, PlaneKind::AddedP99] {
                let plane = phase.planes.iter().find(|plane| plane.kind == kind);
                let found = plane.and_then(|plane| plane.distances.iter().find(|it| it.method == name));
                let number =
                    |value: Option<f64>| value.map_or_else(|| ABSENT.to_owned(), |it| format!("{it:.3}"));
                cells.push(number(found.and_then(|it| it.clairvoyant)));
                cells.push(number(found.and_then(|it| it.constant)));
            }
            sheet.push(if is_own(name) { Tone::Main } else { Tone::Plain }, cells);
        }
    }
    sheet
}

/// Where the gain is from.
pub(super) fn gains(sweep: &SweepResult, language: Language) -> Sheet {
    let added = format!("{}, µs", Text::AddedP99.of(language));
    let [phase, step, from_to, miss, cpu, iops] = titles(
        language,
        [Text::Phase, Text::Step, Text::FromTo, Text::MissPoints, Text::CpuPoints, Text::IopsPercent],
    );
    let mut sheet = Sheet::new(&[phase, step, from_to, miss, cpu, iops, &added], 3);
    for gain in &sweep.gains {
        let points = |estimate: &Estimate| signed_estimate(estimate, 100.0);
        sheet.push(
            Tone::Plain,
            vec![
                gain.phase.clone(),
                texts::step(gain.step).of(language).to_owned(),
                format!("{} → {}", gain.from, gain.to),
                points(&gain.misses),
                points(&gain.cpu),
                points(&gain.iops),
                gain.added_p99_us.map_or_else(|| ABSENT.to_owned(), |it| signed_estimate(&it, 1.0)),
            ],
        );
    }
    sheet
}

/// What the interrupt is worth.
pub(super) fn prices(sweep: &SweepResult, language: Language) -> Sheet {
    let head = titles(
        language,
        [Text::Phase, Text::Cheapest, Text::PriceUnit, Text::Saved, Text::PricePoll, Text::Interrupted],
    );
    let mut sheet = Sheet::new(&head, 2);
    for phase in &sweep.phases {
        let Some(price) = &phase.price else { continue };
        let estimate = |estimate: Option<Estimate>, unit: &str| match estimate {
            Some(Estimate { median, interval: Some((low, high)), .. }) => {
                format!("{median:.2}{unit} [{low:.2}, {high:.2}]")
            }
            Some(Estimate { median, .. }) => format!("{median:.2}{unit}"),
            None => ABSENT.to_owned(),
        };
        sheet.push(
            Tone::Plain,
            vec![
                phase.name.clone(),
                price.method.clone().unwrap_or_else(|| ABSENT.to_owned()),
                estimate(price.cpu_us_for_latency_us, ""),
                estimate(price.latency_saved_us, " µs"),
                estimate(price.poll_cpu_us_for_latency_us, ""),
                format::percent(price.candidate_interrupted_rate),
            ],
        );
    }
    sheet
}

/// Column of the explanations in [`observations`].
pub(super) const REASONS: usize = 2;

/// Published beside measured.
pub(super) fn observations(result: &PollingResult, language: Language) -> Sheet {
    let head = titles(language, [Text::PublishedSays, Text::Measured, Text::Why, Text::Result]);
    let mut sheet = Sheet::new(&head, 4).never_repeating();
    for observation in &result.observations {
        let (says, why) = texts::observation(observation.kind);
        let tone = match observation.seen {
            Seen::Shown => Tone::Good,
            Seen::Partly | Seen::Unknown => Tone::Doubt,
            Seen::NotShown => Tone::Bad,
        };
        sheet.push(
            tone,
            vec![
                says.of(language).to_owned(),
                found(observation, language),
                why.of(language).to_owned(),
                seen(observation, language),
            ],
        );
    }
    sheet
}

fn seen(observation: &Observation, language: Language) -> String {
    let own = texts::seen(observation.seen).of(language);
    match observation.seen_with_hypotheses {
        Some(other) => format!("{own} ({})", texts::seen(other).of(language)),
        None => own.to_owned(),
    }
}

/// Measured figures as text; in brackets those with the hypotheses switched on.
fn found(observation: &Observation, language: Language) -> String {
    let own = figures(observation.kind, &observation.measured, language);
    if observation.with_hypotheses.is_empty() {
        return own;
    }
    format!("{own} ({})", figures(observation.kind, &observation.with_hypotheses, language))
}

fn figures(kind: ObservationKind, values: &[f64], language: Language) -> String {
    let percent =
        |index: usize| values.get(index).map_or_else(|| ABSENT.to_owned(), |it| format::percent(*it));
    if values.is_empty() {
        return ABSENT.to_owned();
    }
    match kind {
        ObservationKind::FirstJobQuiet => Text::FoundMissAndPeak.fill(language, &[&percent(0), &percent(1)]),
        ObservationKind::SecondJobIops | ObservationKind::ThirdJobIops => {
            Text::FoundOfFirst.fill(language, &[&percent(0)])
        }
        ObservationKind::RatioLowersMisses => {
            let all: Vec<String> = values.iter().map(|value| format!("{:.1}", value * 100.0)).collect();
            format!("{} %", all.join(" → "))
        }
        ObservationKind::ThreePercentMisses => {
            Text::FoundThreePercent.fill(language, &[&percent(0), &percent(1)])
        }
        ObservationKind::IopsFlat => Text::FoundFlat.fill(language, &[&percent(0)]),
        ObservationKind::IopsMoments => {
            let all: Vec<String> = values.iter().map(|value| format::grouped(*value)).collect();
            Text::FoundMoments.fill(language, &all.iter().map(String::as_str).collect::<Vec<_>>())
        }
        ObservationKind::NoRatioLowersBoth => Text::FoundPairs.fill(language, &[&format::grouped(values[0])]),
        ObservationKind::SecondJobMisses
        | ObservationKind::ThirdJobPeak
        | ObservationKind::ThirdJobMisses
        | ObservationKind::FivePercentMisses
        | ObservationKind::CpuAtHalf
        | ObservationKind::CpuAtThreePercent => percent(0),
    }
}

/// The kernel's default fed in two ways.
pub(super) fn feeding(result: &PollingResult, language: Language) -> Sheet {
    let [phase, observed, known, misses, cpu, sleep, points, difference] = titles(
        language,
        [
            Text::Phase,
            Text::Observed,
            Text::TrueTimes,
            Text::Misses,
            Text::Cpu,
            Text::Sleep,
            Text::MissPoints,
            Text::SleepDifference,
        ],
    );
    let both = |what: &str| [format!("{what}, {observed}"), format!("{what}, {known}")];
    let pairs: Vec<String> = [misses, cpu, sleep].into_iter().flat_map(both).collect();
    let mut head = vec![phase];
    head.extend(pairs.iter().map(String::as_str));
    head.extend([points, difference]);
    let mut sheet = Sheet::new(&head, 1);
    for row in &result.feeding {
        sheet.push(
            Tone::Plain,
            vec![
                row.phase.clone(),
                format::percent(row.observed.miss_rate),
                format::percent(row.true_times.miss_rate),
                format::percent(row.observed.cpu_share),
                format::percent(row.true_times.cpu_share),
                format::micros(row.observed.sleep_effective_us),
                format::micros(row.true_times.sleep_effective_us),
                signed_estimate(&row.misses, 100.0),
                signed_estimate(&row.sleep_effective_us, 1.0),
            ],
        );
    }
    sheet
}

/// The table of its environment that the paper has (its table 1), and the same of this machine; empty where nothing is
/// known of it.
pub(super) fn environment(result: &PollingResult, language: Language) -> Sheet {
    let head = titles(language, [Text::Item, Text::PublishedSays, Text::Measured]);
    let mut sheet = Sheet::new(&head, 3).never_repeating();
    let (machine, disk) = (result.fingerprint.as_ref(), result.environment.as_ref());
    if machine.is_none() && disk.is_none() {
        return sheet;
    }
    let kernel = |machine: &Fingerprint| format!("Linux {} {}", machine.kernel_release, machine.architecture);
    let cpu = |machine: &Fingerprint| {
        let mut parts = vec![machine.cpu_model.clone(), format!("{} CPU", machine.cpus_online)];
        parts.extend(machine.hypervisor.clone());
        parts
    };
    let rows = [
        (Text::OperatingSystem, "Ubuntu 18.04", vec![disk.map(|it| it.operating_system.clone())]),
        (Text::Kernel, "Linux 5.11", vec![machine.map(kernel)]),
        (
            Text::Cpu,
            "Intel Xeon Gold 6230",
            machine.map(cpu).unwrap_or_default().into_iter().map(Some).collect(),
        ),
        (Text::Memory, "192 GB", vec![machine.map(|it| format::bytes(it.memory_bytes))]),
        (Text::Ssd, "Samsung 983 ZET, 480 GB", disk.map(disk_parts).unwrap_or_default()),
        (Text::Generator, "fio 3.26", vec![machine.map(|it| format!("Weir {}", it.weir_version))]),
    ];
    for (item, published, parts) in rows {
        let here: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        let here = if here.is_empty() { ABSENT.to_owned() } else { here.join(", ") };
        sheet.push(Tone::Plain, vec![item.of(language).to_owned(), published.to_owned(), here]);
    }
    sheet
}

/// `vda, virtio_blk, 20 GiB, ext4`.
fn disk_parts(environment: &DiskEnvironment) -> Vec<Option<String>> {
    let disk = environment.disk.as_ref();
    vec![
        disk.map(|it| it.name.clone()),
        disk.and_then(|it| it.model.clone()),
        disk.and_then(|it| it.driver.clone()),
        disk.map(|it| format::bytes(it.bytes)),
        Some(environment.filesystem.clone()),
    ]
}

/// Parts and methods that could not run.
pub(super) fn missing(result: &PollingResult, language: Language) -> Vec<(String, String)> {
    let of_sweeps = result.sweeps.iter().flat_map(|sweep| {
        let world = texts::world(sweep.plan.world).of(language);
        sweep
            .missing
            .iter()
            .map(move |it| (format!("{world}{}{}", language.colon(), it.name), it.reason.clone()))
    });
    let parts = result.missing.iter().map(|it| (it.name.clone(), it.reason.clone()));
    parts.chain(of_sweeps).collect()
}

/// Those that have figures, which may be fewer than were asked for: `6 blocks`, or `2–4 of 6 blocks`.
fn seeds(sweep: &SweepResult, unit: &str, language: Language) -> String {
    let planned = sweep.plan.seeds.len();
    match sweep.seeds_with_figures() {
        (least, most) if least == planned && most == planned => format!("{planned} {unit}"),
        (least, most) => {
            let found = if least == most { least.to_string() } else { format!("{least}–{most}") };
            Text::SeedsFound.fill(language, &[&found, &planned.to_string(), unit])
        }
    }
}

/// Heading of a sweep: its world, source and how often each method ran.
pub(super) fn world(sweep: &SweepResult, language: Language) -> (String, String) {
    let unit = match sweep.plan.world {
        SweepWorld::Disk => Text::Blocks,
        SweepWorld::Recording => Text::Pieces,
        SweepWorld::Simulator | SweepWorld::Trace => Text::Seeds,
    };
    let phases: Vec<String> =
        sweep.plan.phases.iter().map(|phase| sentence::phase(phase, sweep.plan.world, language)).collect();
    let mut detail = vec![sweep.plan.source.clone(), phases.join(", ")];
    detail.push(seeds(sweep, unit.of(language), language));
    detail.retain(|part| !part.is_empty());
    (texts::world(sweep.plan.world).of(language).to_owned(), detail.join(" · "))
}
