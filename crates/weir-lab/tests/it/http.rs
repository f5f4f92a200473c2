//! Studies of HTTP on the fake machine: arms that run in some cells only, names of requests, and published figures.

use weir_lab::{
    fake::{FakeArm, FakeFault, FakeLauncher, FakeStates, NEVER},
    host_defaults::{DriverFound, HostDefaults},
    run::{self, Callbacks, Ended},
    study_file::Study,
};
use weir_record::{
    check::CheckName,
    effect::{Effect, Question},
    finding::{Finding, MessageKind},
    metric::Metric,
    spec::StudySpec,
    verdict::Verdict,
};
use weir_report::Language;
use weir_store::NewStudy;

use crate::{
    fixture::{built_in, comparison, fresh_folder, new_study, start, study_on},
    weight::{COMPRESSED_BYTES_MAX, compressed_bytes, unfolded_words},
};

/// Most words of a page of the study `http` before anything is unfolded. It stands between `quick`, which has one
/// question, and `tps`, which has a map.
const WORDS_MAX: usize = 2_400;

/// A healthy machine on which all arms cost the same, except those named.
fn launcher(spec: &StudySpec, costs: &[(&str, f64)]) -> FakeLauncher {
    let cost = |name: &str| costs.iter().find(|(arm, _)| *arm == name).map_or(20.0, |(_, cost)| *cost);
    let arms: Vec<(&str, FakeArm)> =
        spec.arms.iter().map(|arm| (arm.name.as_str(), FakeArm::costing(cost(&arm.name)))).collect();
    FakeLauncher::new(3, FakeStates::Near, &arms)
}

#[test]
fn an_arm_runs_in_its_own_cells_only_and_the_study_is_complete() {
    let spec = built_in("http-confounders");
    let mut launcher = launcher(&spec, &[("epoll-log-lines", 24.0), ("uring", 18.0)]);
    let outcome = start("confounders", &spec, &mut launcher).expect("a healthy study runs");
    assert_eq!((outcome.ended, outcome.result.complete), (Ended::Complete, true));
    for trial in &outcome.trials {
        let cell = spec.cells.iter().find(|cell| trial.cell_id.starts_with(&cell.id)).expect("it is planned");
        assert!(cell.has_arm(&trial.arm), "{} in {}", trial.arm, trial.cell_id);
    }
    for comparison in outcome.result.effects.comparisons() {
        let cell = spec.cells.iter().find(|cell| cell.id == comparison.cell_id).expect("it is planned");
        assert!(cell.has_arm(&comparison.arm), "{} in {}", comparison.arm, comparison.cell_id);
    }
    let interleaving = outcome.result.checks.iter().find(|check| check.name == CheckName::Interleaving);
    assert!(interleaving.is_some_and(|check| check.passed), "{interleaving:?}");
    let primary = comparison(&outcome, "c100-d1-html-reconnect-closed", Metric::ServerCpuPerMessage);
    assert_eq!((primary.arm.as_str(), primary.verdict), ("uring", Verdict::Better));
    let causes: usize = spec.published.iter().map(|claim| claim.causes.len()).sum();
    let shares = || {
        let of_cpu = outcome.result.effects.rows.iter().filter(|it| it.metric == Metric::ServerCpuPerMessage);
        of_cpu.filter_map(|it| match it.question {
            Question::PublishedShare(claim, _) => Some((&spec.published[claim as usize], it)),
            _ => None,
        })
    };
    assert_eq!(shares().count(), causes);
    // The log line costs a fifth more: 1.2 of the published 1.2.
    let (claim, log) = shares().find(|(_, it)| it.baseline == "epoll-log-lines").expect("there");
    assert_eq!(claim.id, "S2-08 page");
    assert!((log.estimate.expect("there are units") - 1.0).abs() < 0.1, "{log:?}");
    // The study has arms with a short accept queue, so the result lists how connections were established.
    assert!(outcome.result.listening.iter().any(|it| it.arm == "epoll-backlog-10"));
}

fn kind_of(found: &Finding, code: &str) -> Option<MessageKind> {
    match found {
        Finding::LowerBound { kind, .. }
        | Finding::LittlesLaw { kind, .. }
        | Finding::AgainstItself { kind, .. } => (found.code() == code).then_some(*kind),
        _ => None,
    }
}

#[test]
fn findings_of_an_http_study_speak_of_requests() {
    let spec = built_in("http");
    let mut launcher = launcher(&spec, &[("uring", 16.0)]);
    launcher.generator_us_per_message = 17.0;
    let outcome = start("http-words", &spec, &mut launcher).expect("a healthy study runs");
    let comparisons = outcome.result.effects.comparisons();
    let own = comparisons.flat_map(|comparison| comparison.reasons.iter().chain(&comparison.notes));
    let found: Vec<&Finding> = own.chain(outcome.result.checks.iter().map(|check| &check.detail)).collect();
    for (code, kind) in [
        ("lower-bound", found.iter().find_map(|found| kind_of(found, "lower-bound"))),
        ("littles-law", found.iter().find_map(|found| kind_of(found, "littles-law"))),
        ("against-itself", found.iter().find_map(|found| kind_of(found, "against-itself"))),
    ] {
        assert_eq!(kind, Some(MessageKind::Request), "{code} in {found:?}");
    }
    let checked = outcome.result.checks.iter().find(|check| check.name == CheckName::ResponsesChecked);
    // The fake compares no responses, and the check reports it.
    let is_seen = |it: &Finding| matches!(it, Finding::ResponsesChecked { compared: 0, .. });
    assert!(checked.is_some_and(|check| !check.passed && is_seen(&check.detail)), "{checked:?}");
    assert!(outcome.result.elapsed_ns < 600_000_000_000, "{}", outcome.result.elapsed_ns);
}

#[test]
fn every_published_sentence_of_the_built_in_studies_is_translated() {
    let studies = [built_in("http"), built_in("http-confounders"), built_in("survey")];
    for spec in studies {
        let mut launcher = launcher(&spec, &[]);
        let outcome = start(&format!("told-{}", spec.name), &spec, &mut launcher).expect("it runs");
        assert!(!spec.published.is_empty());
        for language in [Language::Korean, Language::Chinese] {
            let text = weir_report::markdown(&outcome.result, language);
            for claim in &spec.published {
                assert!(text.contains(&claim.id), "{}", claim.id);
                for sentence in [&claim.source.en, &claim.claim.en, &claim.explanation.en] {
                    assert!(!text.contains(sentence), "{language:?}: {sentence}");
                }
            }
        }
        let english = weir_report::markdown(&outcome.result, Language::English);
        let whole = spec.published.iter().all(|claim| english.contains(&claim.explanation.en));
        assert!(whole, "{english}");
    }
}

#[test]
fn published_pairs_of_other_arms_are_judged_and_stand_beside_their_claim() {
    let spec = built_in("survey");
    // Reading costs half more; uring reads at a fifth less than epoll, and sendfile costs a quarter less than
    // reading.
    let costs = [("epoll-read", 30.0), ("uring-read", 24.0), ("epoll-sendfile", 22.5)];
    let outcome = start("survey-files", &spec, &mut launcher(&spec, &costs)).expect("it runs");
    assert_eq!((outcome.ended, outcome.result.complete), (Ended::Complete, true));
    assert!(outcome.result.elapsed_ns < 600_000_000_000, "{}", outcome.result.elapsed_ns);
    let found = |cell_id: &str, arm: &str, baseline: &str| {
        let cpu = outcome.result.effects.comparisons().find(|it| {
            it.metric == Metric::ServerCpuPerMessage
                && (it.cell_id.as_str(), it.arm.as_str(), it.baseline.as_str()) == (cell_id, arm, baseline)
        });
        let cpu = cpu.unwrap_or_else(|| panic!("{arm} / {baseline} in {cell_id}"));
        let itself = outcome.result.effects.itself(cpu);
        let has_floor = itself.and_then(Effect::reach).is_some();
        (cpu.verdict, cpu.estimate.expect("there are units"), cpu.units, has_floor)
    };
    // They are exploratory: there is no claim about them.
    for (cell_id, arm, baseline, expected) in [
        ("c100-d1-html-reconnect-closed", "epoll-read", "epoll", 1.5),
        ("c100-d1-html-reconnect-closed", "uring-read", "epoll-read", 0.8),
        ("c300-d1-b307200-closed", "uring-read", "epoll-read", 0.8),
        ("c300-d1-b307200-closed", "epoll-sendfile", "epoll-read", 0.75),
        ("c300-d1-b307200-open50pct", "epoll-sendfile", "epoll-read", 0.75),
    ] {
        let (found, ratio, units, has_floor) = found(cell_id, arm, baseline);
        let cell = spec.cells.iter().find(|cell| cell.id == cell_id).expect("it is asked");
        let all = (Verdict::NoClaim, cell.blocks, true);
        assert_eq!((found, units, has_floor), all, "{arm} / {baseline} in {cell_id}");
        assert!((ratio / expected).ln().abs() < 0.03, "{arm} / {baseline} in {cell_id}: {ratio}");
    }
    // Only claimed pairs are added, each once.
    let other = outcome.result.effects.comparisons().filter(|it| it.baseline != "epoll");
    let cpu = other.filter(|it| it.metric == Metric::ServerCpuPerMessage);
    let mut pairs: Vec<(&str, &str)> = cpu.map(|it| (it.cell_id.as_str(), it.arm.as_str())).collect();
    pairs.sort_unstable();
    assert_eq!(
        pairs,
        [
            ("c100-d1-html-reconnect-closed", "uring-read"),
            ("c300-d1-b307200-closed", "epoll-sendfile"),
            ("c300-d1-b307200-closed", "uring-read"),
            ("c300-d1-b307200-open50pct", "epoll-sendfile"),
            ("c300-d1-b307200-open50pct", "uring-read"),
        ]
    );
    let text = weir_report::markdown(&outcome.result, Language::English);
    let row = text.lines().find(|line| line.contains("S4-11 sendfile")).expect("the claim is told");
    assert!(row.contains("epoll-sendfile / epoll-read") && row.contains("| 1.116 |"), "{row}");
    assert!(row.trim_end().ends_with("no claim |"), "{row}");
}

#[test]
fn without_io_uring_the_claims_of_its_arms_have_no_figure_and_the_others_do() {
    let gone = DriverFound {
        driver: "uring".to_owned(),
        available: false,
        detail: Finding::IoUringDisabled { level: 2 },
        unlock: None,
    };
    let Study { spec, missing_arms } =
        study_on("survey", &HostDefaults { seed: 3, tried: vec![gone], ..HostDefaults::default() });
    let mut launcher = launcher(&spec, &[("epoll-sendfile", 15.0)]);
    let study = NewStudy { missing_arms, ..new_study(spec) };
    let callbacks = Callbacks { launcher: &mut launcher, interrupt: &NEVER, progress: &mut |_| {} };
    let outcome = run::start(&fresh_folder("survey-without-uring"), &study, callbacks).expect("it runs");
    let names: Vec<&str> = outcome.result.missing_arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["uring", "uring-read"]);
    let of_uring = |it: &&Effect| it.arm.starts_with("uring") || it.baseline.starts_with("uring");
    assert_eq!(outcome.result.effects.comparisons().find(of_uring), None);
    assert!(outcome.result.effects.comparisons().any(|it| it.baseline == "epoll-read"));
}

#[test]
fn a_peer_that_is_not_there_is_named_with_what_builds_it_and_the_others_are_compared() {
    let spec = built_in("survey");
    let mut launcher = launcher(&spec, &[("uring", 16.0)]);
    launcher.arms.get_mut("go").expect("it is an arm").fault = FakeFault::Environment;
    let outcome = start("survey-without-go", &spec, &mut launcher).expect("it runs");
    let peers_build = Finding::RunCommand { command: "peers/build".to_owned() };
    let [go] = outcome.result.missing_arms.as_slice() else { panic!("{:?}", outcome.result.missing_arms) };
    assert_eq!((go.name.as_str(), &go.unlock), ("go", &Some(peers_build)));
    assert_eq!((outcome.result.verdict, outcome.result.complete), (Verdict::Better, true));
    assert!(outcome.result.elapsed_ns < 600_000_000_000, "{}", outcome.result.elapsed_ns);
}

#[test]
fn the_page_of_http_shows_few_words_and_is_light_on_a_network() {
    let spec = built_in("http");
    let mut launcher = launcher(&spec, &[("uring", 18.0)]);
    let outcome = start("http-page", &spec, &mut launcher).expect("a healthy study runs");
    assert!(outcome.result.complete && !outcome.result.spec.published.is_empty());
    for language in Language::ALL {
        let page = weir_report::html(&outcome.result, language);
        let bytes = compressed_bytes(&page);
        assert!(bytes <= COMPRESSED_BYTES_MAX, "{language:?}: {bytes} bytes");
    }
    let words = unfolded_words(&weir_report::html(&outcome.result, Language::English));
    assert!((WORDS_MAX / 4..=WORDS_MAX).contains(&words), "{words} words");
}
