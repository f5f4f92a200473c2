//! What is tried: the candidate, the published ratios, baselines, published predictors, further settings, oracles.

use weir_record::{
    storage::StorageEngineOptions,
    sweep::{MethodRole, SweepMethod},
};

use crate::{
    predict::{ALL_DEFAULTS, CANDIDATE, CANDIDATE_ARMED},
    simulate::Method,
};

/// The kernel's default: half the mean.
pub const CLASSIC: &str = "linux-mean:0.5";
/// The same, told what the device took even after a sleep that was too long.
pub const CLASSIC_TRUE: &str = "linux-mean:0.5+true";
/// The quantile alone: a better sleep, and no other way to wait.
pub const QUANTILE: &str = "quantile:0.003";
/// Always the interrupt.
pub const INTERRUPT: &str = "interrupt";
/// Always polling.
pub const POLL: &str = "poll";
/// The kernel polls the device: `IORING_SETUP_IOPOLL`.
pub const IOPOLL: &str = "iopoll";
/// The kernel sleeps, then polls the device: `IORING_SETUP_HYBRID_IOPOLL`.
pub const IOPOLL_HYBRID: &str = "iopoll-hybrid";
/// Knows when each operation will be done.
pub const CLAIRVOYANT: &str = "clairvoyant";
/// Knows the best constant sleep with as many misses as [`QUANTILE`] may have.
pub const CONSTANT: &str = "constant:0.003";

/// The published ratios, in the published order.
pub const RATIOS: [&str; 7] = [
    "linux-mean:0.5",
    "linux-mean:0.4",
    "linux-mean:0.3",
    "linux-mean:0.2",
    "linux-mean:0.1",
    "linux-mean:0.05",
    "linux-mean:0.03",
];
const BASELINES: [&str; 2] = [INTERRUPT, POLL];
const RIVALS: [&str; 6] = ["lmd", "ehp", "hybrid-iopoll", "pas", "dpas", "dpas:no-poll"];
const ORACLES: [&str; 6] =
    [CLAIRVOYANT, CONSTANT, "constant:0.01", "constant:0.03", "constant:0.1", "constant:0.3"];
/// One setting of each further predictor.
const OTHERS: [&str; 4] = ["ewma:0.125", "quantile:0.01", "load-aware:0.003", "fixed:5us"];
/// Further settings, so that families are curves.
const SETTINGS: [&str; 16] = [
    "quantile:0.001",
    QUANTILE,
    "quantile:0.03",
    "quantile:0.1",
    "quantile:0.2",
    "regime:0.003,1",
    "regime:0.003,4",
    "regime:0.003,16",
    "regime:0.003,64",
    "regime:0.03",
    "regime:0.1",
    "load-aware:0.03",
    "ewma:0.125,1",
    "ewma:0.125,2",
    "fixed:2us",
    "fixed:10us",
];
const ARMED: [&str; 3] = ["linux-mean:0.5+armed", "quantile:0.2+armed", "regime:0.003+armed"];

/// What an armed method ends in.
const ARMED_ENDING: &str = "+armed";
/// What a method that is told the truth ends in.
const TRUE_ENDING: &str = "+true";

/// The candidate's name: its setting is fixed before anything here is run.
pub fn candidate_name() -> String {
    if CANDIDATE_ARMED { format!("{CANDIDATE}{ARMED_ENDING}") } else { CANDIDATE.to_owned() }
}

/// All methods of the study, in the order of its tables.
pub fn study() -> Vec<SweepMethod> {
    let candidate = candidate_name();
    let mut names = vec![candidate.as_str()];
    names.extend(RATIOS.into_iter().chain(BASELINES).chain(RIVALS).chain(OTHERS));
    names.extend(SETTINGS.into_iter().chain(ARMED).chain([CLASSIC_TRUE]).chain(ORACLES));
    methods(&names)
}

/// What answers the question in little time: the candidate, the ratios, the baselines, the published predictors, the
/// tracked quantile and both oracles.
pub fn brief() -> Vec<SweepMethod> {
    let candidate = candidate_name();
    let mut names = vec![candidate.as_str()];
    names.extend(RATIOS.into_iter().chain(BASELINES).chain(RIVALS));
    names.extend([QUANTILE, "regime:0.003+armed", CLAIRVOYANT, CONSTANT]);
    methods(&names)
}

/// Every predictor once, with its defaults.
pub fn predictors() -> Vec<SweepMethod> {
    methods(ALL_DEFAULTS)
}

/// What shows the paper's observations: the ratios and the baselines.
pub fn observed() -> Vec<SweepMethod> {
    methods(&RATIOS.into_iter().chain(BASELINES).collect::<Vec<_>>())
}

/// What a disk is asked in little time; no oracle is among them. The interrupt comes first: it is the baseline.
pub fn disk() -> Vec<SweepMethod> {
    let candidate = candidate_name();
    let mut names =
        vec![INTERRUPT, POLL, candidate.as_str(), "regime:0.003+armed", QUANTILE, "quantile:0.01"];
    names.extend(["linux-mean:0.5", "linux-mean:0.3", "linux-mean:0.1", "linux-mean:0.03", "ehp", "pas"]);
    methods(&names)
}

/// The same with every ratio and every published predictor.
pub fn disk_in_full() -> Vec<SweepMethod> {
    let mut found = disk();
    for method in brief().into_iter().filter(|method| method.role != MethodRole::Oracle) {
        if found.iter().all(|known| known.name != method.name) {
            found.push(method);
        }
    }
    found
}

/// The ways of the kernel itself, for a disk whose queues can be polled.
pub fn kernel_polls() -> Vec<SweepMethod> {
    methods(&[IOPOLL, IOPOLL_HYBRID])
}

/// What the ring of a method is asked for.
pub fn engine_options(name: &str) -> StorageEngineOptions {
    let iopoll = [IOPOLL, IOPOLL_HYBRID].contains(&name);
    StorageEngineOptions { iopoll, hybrid_iopoll: name == IOPOLL_HYBRID, ..StorageEngineOptions::default() }
}

/// Methods of our own lists; one that is there already is left out.
fn methods(names: &[&str]) -> Vec<SweepMethod> {
    let mut found: Vec<SweepMethod> = Vec::new();
    for name in names {
        if found.iter().all(|method| method.name != *name) {
            found.push(parse_one(name).unwrap_or_else(|error| panic!("a method of our own: {error}")));
        }
    }
    found
}

/// Methods as people write them, with blanks between: `study`, `brief`, `predictors`, `disk`, `ratios`, `baselines`,
/// `published`, `oracles`, `candidate` for a group of them, or a predictor, `clairvoyant`, `constant:SHARE`, each with
/// `+armed` or `+true` at its end; for a disk also `iopoll` and `iopoll-hybrid`.
pub fn parse(text: &str) -> Result<Vec<SweepMethod>, String> {
    let mut found: Vec<SweepMethod> = Vec::new();
    for word in text.split_whitespace() {
        let group = match word {
            "study" => study(),
            "brief" => brief(),
            "predictors" => predictors(),
            "disk" => disk(),
            "ratios" => methods(&RATIOS),
            "baselines" => methods(&BASELINES),
            "published" => methods(&RIVALS),
            "oracles" => methods(&ORACLES),
            "candidate" => methods(&[&candidate_name()]),
            _ => vec![parse_one(word)?],
        };
        for method in group {
            if found.iter().all(|known| known.name != method.name) {
                found.push(method);
            }
        }
    }
    Ok(found)
}

fn parse_one(name: &str) -> Result<SweepMethod, String> {
    if engine_options(name).iopoll {
        return Ok(SweepMethod {
            name: name.to_owned(),
            predictor: INTERRUPT.to_owned(),
            family: name.to_owned(),
            role: MethodRole::Variant,
            ..SweepMethod::default()
        });
    }
    let (text, true_times) = name.strip_suffix(TRUE_ENDING).map_or((name, false), |text| (text, true));
    let (text, armed) = text.strip_suffix(ARMED_ENDING).map_or((text, false), |text| (text, true));
    let family = match Method::parse(text, armed)? {
        Method::Predicted { predictor, .. } => predictor.family(),
        Method::Clairvoyant => CLAIRVOYANT,
        Method::ConstantSleep { .. } => "constant",
    };
    if true_times && matches!(family, CLAIRVOYANT | "constant") {
        return Err(format!("{name}: an oracle knows the device's times by itself; leave {TRUE_ENDING} out"));
    }
    let family = if armed { format!("{family}{ARMED_ENDING}") } else { family.to_owned() };
    let plain = !armed && !true_times;
    let role = if name == candidate_name() {
        MethodRole::Candidate
    } else if plain && RATIOS.contains(&text) {
        MethodRole::Ratio
    } else if BASELINES.contains(&name) {
        MethodRole::Baseline
    } else if RIVALS.contains(&name) {
        MethodRole::Rival
    } else if matches!(family.as_str(), CLAIRVOYANT | "constant") {
        MethodRole::Oracle
    } else {
        MethodRole::Variant
    };
    Ok(SweepMethod { name: name.to_owned(), predictor: text.to_owned(), family, role, armed, true_times })
}

/// A method as the simulator takes it.
pub fn simulated(method: &SweepMethod) -> Result<Method, String> {
    if engine_options(&method.name).iopoll {
        let name = &method.name;
        return Err(format!("{name} is the kernel's way to poll a disk, and here is none; use --world disk"));
    }
    let parsed = Method::parse(&method.predictor, method.armed)?;
    Ok(match parsed {
        Method::Predicted { predictor, armed, .. } => {
            Method::Predicted { predictor, armed, true_times: method.true_times }
        }
        oracle => oracle,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_ours_can_be_simulated_and_names_nothing_twice() {
        for list in [study(), brief(), observed(), predictors(), disk(), disk_in_full()] {
            let mut names: Vec<&str> = list.iter().map(|method| method.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), list.len());
            assert!(list.iter().all(|method| simulated(method).is_ok()));
        }
    }

    #[test]
    fn the_study_has_what_the_figures_need() {
        let study = study();
        let count = |role| study.iter().filter(|method| method.role == role).count();
        assert_eq!(count(MethodRole::Candidate), 1);
        assert_eq!(count(MethodRole::Ratio), 7);
        assert_eq!(count(MethodRole::Baseline), 2);
        for name in [CLASSIC, CLASSIC_TRUE, QUANTILE, INTERRUPT, POLL, CLAIRVOYANT, CONSTANT] {
            assert!(study.iter().any(|method| method.name == name), "{name}");
        }
        for default in crate::predict::ALL_DEFAULTS {
            assert!(study.iter().any(|method| method.predictor == *default), "{default}");
        }
        // The same predictor armed is another family, so that curves do not mix.
        let armed = study.iter().find(|method| method.name == "quantile:0.2+armed").unwrap();
        assert_eq!((armed.family.as_str(), armed.armed), ("quantile+armed", true));
    }

    #[test]
    fn the_kernels_own_polls_are_for_disks() {
        let [poll, hybrid] = &kernel_polls()[..] else { panic!("two") };
        assert_eq!((poll.predictor.as_str(), poll.armed), (INTERRUPT, false));
        assert!(engine_options(&poll.name).iopoll && !engine_options(&poll.name).hybrid_iopoll);
        assert!(engine_options(&hybrid.name).iopoll && engine_options(&hybrid.name).hybrid_iopoll);
        assert!(simulated(hybrid).unwrap_err().contains("--world disk"));
        assert_eq!(engine_options(INTERRUPT), StorageEngineOptions::default());
    }

    #[test]
    fn words_and_groups_are_read_and_mistakes_told() {
        let found = parse("ratios poll linux-mean:0.5 fixed:7us+armed").unwrap();
        assert_eq!(found.len(), 9);
        assert_eq!(found[8].role, MethodRole::Variant);
        assert!(parse("purple").unwrap_err().contains("purple"));
        assert!(parse("clairvoyant+true").unwrap_err().contains("leave +true out"));
        assert!(parse("  ").unwrap().is_empty());
    }
}
