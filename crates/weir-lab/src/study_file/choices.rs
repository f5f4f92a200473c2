//! Applies the choices of a command line to a study file before it is parsed: its plan, levels of its factors, its
//! arms and its thresholds. Text in, text out, so that the study that runs can be printed and kept as a file.

use std::borrow::Cow;

use toml::{Table, Value};
use weir_record::{
    http::RequestMix,
    kernel::{AS_ON_KERNEL, lacking},
    quantity,
};

use super::{
    TIME_CAP,
    arm_keys::{self, ArmKey},
    builds::{self, Builds},
    choice_error::ChoiceError,
    left_out::{Kept, LeftOut},
    requests_instead,
};
use crate::{length::length_ns, limits::WARMUP_NS, protocol};

/// The choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// The plan whose keys replace the file's.
    pub plan: Option<String>,
    /// Levels of factors, each a number, a flag or a word.
    pub levels: Vec<(String, Vec<String>)>,
    /// Further arms: a name, and the words of a command, or no words for an arm of the file.
    pub arms: Vec<(String, Vec<String>)>,
    /// Keys of single arms: of the file's and of the further ones.
    pub arm_keys: Vec<ArmKey>,
    /// Older kernels to imitate. Each adds an arm of io_uring that uses only what that kernel offered, and an arm of
    /// epoll if epoll had less there too.
    pub kernels: Vec<String>,
    /// Whether the arms above replace all arms of the file.
    pub only_arms: bool,
    /// Warm-up of every arm, which replaces the file's.
    pub warmup: Option<String>,
    /// Rounds, or blocks of whole trials, of each claim.
    pub rounds: Option<u32>,
    /// Time after which no round or block starts; it replaces the file's time cap.
    pub time_cap: Option<String>,
    /// Requests over HTTP, which replace the study's content or requests.
    pub requests: Option<RequestMix>,
    /// Thresholds beside those of the file.
    pub fail_if: Vec<String>,
    /// Other builds of this program, as arms beside those of the file.
    pub builds: Option<Builds>,
}

/// The text of the study with these choices. A text that is not TOML is returned unchanged: its parser reports the
/// error.
pub fn chosen<'t>(text: &'t str, choices: &Choices) -> Result<Cow<'t, str>, ChoiceError> {
    let Ok(mut study) = text.parse::<Table>() else { return Ok(Cow::Borrowed(text)) };
    if *choices == Choices::default() {
        return Ok(Cow::Borrowed(text));
    }
    if let Some(plan) = &choices.plan {
        take_plan(&mut study, plan)?;
    }
    study.remove("plan");
    let is_mix = choices.requests.is_some() || study.contains_key("request");
    if is_mix && choices.levels.iter().any(|(factor, _)| factor == requests_instead::CONTENT) {
        return Err(ChoiceError::ContentOfMix);
    }
    for (factor, levels) in &choices.levels {
        set_levels(&mut study, factor, levels)?;
    }
    if let Some(rounds) = choices.rounds {
        set_rounds(&mut study, rounds);
    }
    if let Some(time_cap) = &choices.time_cap {
        study.insert("time_cap".to_owned(), Value::String(time_cap.clone()));
    }
    if let Some(mix) = &choices.requests {
        requests_instead::set(&mut study, mix)?;
    }
    let own = arm_names(&study);
    set_arms(&mut study, choices, true)?;
    let kept = kept(own, arm_names(&study), choices);
    if choices.only_arms {
        let left_out = kept.cut(&mut study);
        study.insert("title".to_owned(), title_of(&kept.names.join(", "), &left_out));
    } else {
        kept.add_to_cells(&mut study);
    }
    add_thresholds(&mut study, &choices.fail_if);
    let protocol = protocol_of(&study);
    if let Some(builds) = &choices.builds {
        study.entry("time_cap").or_insert_with(|| Value::String(TIME_CAP.to_owned()));
        builds::set(&mut study, &protocol, builds)?;
        study.insert("title".to_owned(), title_of_builds());
    }
    // If a driver does not run, other arms replace the file's.
    if let Some(Value::Table(without)) = study.get_mut("without") {
        for (_, instead) in without.iter_mut() {
            let Some(instead) = instead.as_table_mut() else { continue };
            if choices.only_arms {
                // The title is about the replacing arms.
                instead.remove("title");
                kept.cut(instead);
            }
            if instead.contains_key("arm") {
                set_arms_instead(instead, &protocol, choices)?;
            }
        }
    }
    // Every value came from a table that was parsed.
    Ok(toml::to_string(&study).map_or(Cow::Borrowed(text), Cow::Owned))
}

/// The arms of a table that replaces the file's arms if a driver does not run.
fn set_arms_instead(instead: &mut Table, protocol: &str, choices: &Choices) -> Result<(), ChoiceError> {
    set_arms(instead, choices, false)?;
    if let Some(builds) = &choices.builds {
        builds::set(instead, protocol, builds)?;
        instead.insert("title".to_owned(), title_of_builds());
    }
    // One arm is no comparison: then the chosen arms stay, and the one that does not run is named.
    if instead["arm"].as_array().is_none_or(|arms| arms.len() < 2) {
        instead.remove("arm");
    }
    Ok(())
}

/// Refuses a plan that the study does not have. A text that is not TOML passes: its parser reports the error.
pub fn check_plan(text: &str, name: &str) -> Result<(), ChoiceError> {
    text.parse::<Table>().map_or(Ok(()), |mut study| take_plan(&mut study, name))
}

fn take_plan(study: &mut Table, name: &str) -> Result<(), ChoiceError> {
    let mut plans = study.get("plan").and_then(Value::as_table).cloned().unwrap_or_default();
    match plans.remove(name) {
        Some(Value::Table(plan)) => {
            study.extend(plan);
            Ok(())
        }
        _ => Err(ChoiceError::Plan { name: name.to_owned(), there: plans.keys().cloned().collect() }),
    }
}

/// Sets the rounds of each claim, by the keys that the file uses for them: a study whose arms all take turns has no
/// blocks, and a study whose arms never do has no rounds.
fn set_rounds(study: &mut Table, rounds: u32) {
    const KEYS: [&str; 2] = ["rounds", "blocks"];
    let is_whole = study.get("alternate").and_then(Value::as_bool) == Some(false)
        || !["echo", "http"].contains(&protocol_of(study).as_str());
    let usual = KEYS[usize::from(is_whole)];
    let is_there = |key: &&str| study.contains_key(*key);
    let own: Vec<&str> = KEYS.into_iter().filter(is_there).collect();
    for key in if own.is_empty() { vec![usual] } else { own } {
        study.insert(key.to_owned(), Value::Integer(rounds.into()));
    }
    let cells = study.get_mut("cell").and_then(Value::as_array_mut).into_iter().flatten();
    for cell in cells.filter_map(Value::as_table_mut) {
        let claims = cell.get("role").is_some_and(is_claim);
        for key in KEYS.into_iter().filter(|_| claims) {
            if let Some(own) = cell.get_mut(key) {
                *own = Value::Integer(rounds.into());
            }
        }
    }
}

/// Sets the levels of a factor. Claims about removed combinations are removed; the primary one moves to the first
/// remaining level. If a further factor makes a combination of an additional cell, the cell is not kept twice.
fn set_levels(study: &mut Table, factor: &str, levels: &[String]) -> Result<(), ChoiceError> {
    let in_digits = |level| if counts_bytes(factor) { quantity::in_digits(level) } else { level.into() };
    let levels: Vec<Cow<'_, str>> = levels.iter().map(|level| in_digits(level.as_str())).collect();
    let value = |level: &Cow<'_, str>| match (level.parse::<i64>(), level.parse::<bool>()) {
        (Ok(number), _) => Value::Integer(number),
        (_, Ok(flag)) => Value::Boolean(flag),
        _ => Value::String(level.to_string()),
    };
    let levels: Vec<Value> = levels.iter().map(value).collect();
    let protocol = protocol_of(study);
    let Some(Value::Table(factors)) = study.get_mut("factors") else {
        return Err(ChoiceError::NoFactors(factor.to_owned()));
    };
    let is_further = factors.insert(factor.to_owned(), Value::Array(levels.clone())).is_none();
    let factors = factors.clone();
    if factor == "pattern" {
        fit_units(study, &levels);
    }
    let is_there = |table: &Table| table.get(factor).is_some_and(|level| levels.contains(level));
    if let (Some(Value::Table(primary)), Some(first)) = (study.get_mut("primary"), levels.first())
        && !is_there(primary)
    {
        primary.insert(factor.to_owned(), first.clone());
    }
    if let Some(Value::Array(claims)) = study.get_mut("confirmatory") {
        claims.retain(|claim| {
            claim.as_table().is_none_or(|claim| !claim.contains_key(factor) || is_there(claim))
        });
    }
    if let Some(Value::Array(cells)) = study.get_mut("cell") {
        let kept = |cell: &mut Table| {
            let is_twice = is_further && cell.contains_key(factor);
            cut_levels(cell, factor, &levels) && !(is_twice && is_combination(cell, &factors, &protocol))
        };
        cells.retain_mut(|cell| cell.as_table_mut().is_none_or(kept));
    }
    if let Some(Value::Array(contrasts)) = study.get_mut("contrast") {
        contrasts.retain_mut(|contrast| {
            let is_left = |side: &str| {
                let side = contrast.get_mut(side).and_then(Value::as_table_mut);
                side.is_none_or(|side| cut_levels(side, factor, &levels))
            };
            ["of", "to"].into_iter().all(is_left)
        });
    }
    Ok(())
}

/// Keeps only the units that apply. Arms take turns where a disk is read, and run in whole trials where it is
/// written. If a file gives both rounds and blocks and only one kind of cell is left, only its key stays.
fn fit_units(study: &mut Table, patterns: &[Value]) {
    let is_read = |pattern: &Value| matches!(pattern.as_str(), Some("read" | "randread"));
    let of_blocks = ["blocks", "exploratory_blocks"];
    if !study.contains_key("rounds") || !of_blocks.iter().any(|key| study.contains_key(*key)) {
        return;
    }
    if patterns.iter().all(is_read) {
        of_blocks.iter().for_each(|key| drop(study.remove(*key)));
    } else if !patterns.iter().any(is_read) {
        let rounds = study.remove("rounds");
        study.remove("exploratory_rounds");
        if let Some(rounds) = rounds {
            study.entry("blocks").or_insert(rounds);
        }
    }
}

/// Whether levels of a factor may be sizes: `4k`.
fn counts_bytes(factor: &str) -> bool {
    factor == "content" || factor.ends_with("_bytes")
}

/// Removes levels that are gone from an additional cell, or from a side of a contrast. Returns whether any level is
/// left. A table that does not name the factor stays.
pub(super) fn cut_levels(cell: &mut Table, factor: &str, levels: &[Value]) -> bool {
    match cell.get_mut(factor) {
        Some(Value::Array(own)) => {
            own.retain(|level| levels.contains(level));
            !own.is_empty()
        }
        Some(level) => levels.contains(level),
        None => true,
    }
}

/// Whether a cell asks only for combinations of the factors, with the same load and turns: then it would have their
/// identifiers.
pub(super) fn is_combination(cell: &Table, factors: &Table, protocol: &str) -> bool {
    const APART: [&str; 5] = ["share", "rate", "slice", "alternate", "neighbours"];
    if APART.iter().any(|key| cell.contains_key(*key)) || cell.get("role").is_some_and(is_claim) {
        return false;
    }
    let Ok(protocol) = protocol::named(protocol) else { return false };
    protocol.factors().iter().all(|factor| {
        let levels = |table: &Table| match table.get(factor.key) {
            Some(Value::Array(levels)) => levels.iter().map(shown).collect(),
            Some(level) => vec![shown(level)],
            None => factor.default.iter().map(ToString::to_string).collect::<Vec<_>>(),
        };
        let combined = levels(factors);
        let own = levels(cell);
        own.iter().all(|level| combined.contains(level)) && own.is_empty() == combined.is_empty()
    })
}

fn is_claim(role: &Value) -> bool {
    role.as_str() != Some("exploratory")
}

pub(super) fn shown(level: &Value) -> String {
    level.as_str().map_or_else(|| level.to_string(), str::to_owned)
}

pub(super) fn protocol_of(study: &Table) -> String {
    study.get("protocol").and_then(Value::as_str).unwrap_or("echo").to_owned()
}

/// Appends thresholds to those of the file, which may be a single one without a list.
fn add_thresholds(study: &mut Table, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let mut all = match study.remove("fail_if") {
        Some(Value::Array(all)) => all,
        Some(one) => vec![one],
        None => Vec::new(),
    };
    all.extend(lines.iter().cloned().map(Value::String));
    study.insert("fail_if".to_owned(), Value::Array(all));
}

/// Sets the arms of the file, or of the table that replaces them; in the latter some may be missing.
fn set_arms(study: &mut Table, choices: &Choices, is_file: bool) -> Result<(), ChoiceError> {
    let own = study.get("arm").and_then(Value::as_array).cloned().unwrap_or_default();
    let name_of = |arm: &Value| arm.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut arms = if choices.only_arms { Vec::new() } else { own.clone() };
    for (name, command) in &choices.arms {
        let known = own.iter().find(|arm| name_of(arm) == *name);
        let arm = match (command.as_slice(), known) {
            ([], Some(known)) if choices.only_arms => known.clone(),
            ([], Some(_)) => return Err(ChoiceError::RunsAnyway(name.clone())),
            ([], None) if !is_file => continue,
            ([], None) => {
                return Err(ChoiceError::Arm {
                    name: name.clone(),
                    there: own.iter().map(name_of).collect(),
                });
            }
            (words, _) => further_arm(name, words),
        };
        if arms.iter().any(|other| name_of(other) == *name) {
            return Err(ChoiceError::Twice(name.clone()));
        }
        arms.push(arm);
    }
    let protocol = study.get("protocol").and_then(Value::as_str).unwrap_or("echo");
    if !choices.kernels.is_empty() && is_file && !["echo", "http"].contains(&protocol) {
        return Err(ChoiceError::Kernels);
    }
    for (driver, kernel) in as_on_kernels(&choices.kernels, is_file) {
        let name = format!("{driver}-as-on-{kernel}");
        if arms.iter().any(|other| name_of(other) == name) {
            return Err(ChoiceError::Twice(name));
        }
        arms.push(as_on_kernel(name, driver, kernel));
    }
    if arms.is_empty() && is_file {
        return Err(ChoiceError::NoArms);
    }
    set_warmup(&mut arms, protocol, choices.warmup.as_deref())?;
    arm_keys::set(&mut arms, &choices.arm_keys, is_file)?;
    study.insert("arm".to_owned(), Value::Array(arms));
    Ok(())
}

/// An arm that is not in the file: a command, or the address of a server that runs already.
fn further_arm(name: &str, words: &[String]) -> Value {
    let runs = match words {
        [address] if address.contains("://") => ("running".to_owned(), Value::String(address.clone())),
        words => {
            let words = words.iter().cloned().map(Value::String).collect();
            ("command".to_owned(), Value::Array(words))
        }
    };
    Value::Table(Table::from_iter([("name".to_owned(), Value::String(name.to_owned())), runs]))
}

/// The file's arms that are kept.
fn kept(own: Vec<String>, names: Vec<String>, choices: &Choices) -> Kept {
    let gone = own.into_iter().filter(|name| !names.contains(name)).collect();
    let further = choices.arms.iter().filter(|(_, command)| !command.is_empty());
    Kept { further: further.map(|(name, _)| name.clone()).collect(), names, gone }
}

fn arm_names(study: &Table) -> Vec<String> {
    let arms = study.get("arm").and_then(Value::as_array).into_iter().flatten();
    arms.filter_map(|arm| arm.get("name")?.as_str().map(str::to_owned)).collect()
}

/// Sets the warm-up of every arm, whatever the file says.
fn set_warmup(arms: &mut [Value], protocol: &str, warmup: Option<&str>) -> Result<(), ChoiceError> {
    let Some(warmup) = warmup else { return Ok(()) };
    if length_ns(warmup).is_none_or(|ns| !WARMUP_NS.contains(&ns)) {
        return Err(ChoiceError::Warmup(warmup.to_owned()));
    }
    if protocol::named(protocol).is_ok_and(|protocol| protocol.generator().is_none()) {
        return Err(ChoiceError::NoWarmup);
    }
    for arm in arms.iter_mut().filter_map(Value::as_table_mut) {
        arm.insert("warmup".to_owned(), Value::String(warmup.to_owned()));
    }
    Ok(())
}

/// The title of a study whose arms were all chosen, because the file's title may be about other arms. It lists the
/// parts that were removed with the other arms.
fn title_of(names: &str, left_out: &LeftOut) -> Value {
    let listed = |language: usize, unit: &str, separator: &str| {
        let one = |(texts, count): &([&str; 3], usize)| match language {
            0 => format!("{count} {}", texts[0]),
            _ => format!("{} {count}{unit}", texts[language]),
        };
        left_out.iter().map(one).collect::<Vec<_>>().join(separator)
    };
    let [en, ko, zh] = [listed(0, "", ", "), listed(1, "개", ", "), listed(2, " 项", "、")];
    let is_whole = left_out.is_empty();
    let behind = |text: String| if is_whole { String::new() } else { text };
    text_of([
        format!("Which of these needs least CPU: {names}?")
            + &behind(format!(" (left out, because it is about arms that do not run: {en})")),
        format!("CPU를 가장 적게 쓰는 것은? {names}")
            + &behind(format!(" (실행하지 않는 대상에 관한 것이라 뺌: {ko})")),
        format!("哪个最省 CPU：{names}？") + &behind(format!("（涉及未运行的方案，故略去：{zh}）")),
    ])
}

/// The title of a study with an older build beside each arm.
fn title_of_builds() -> Value {
    text_of([
        "Does this build need more CPU than the older one?".to_owned(),
        "이 빌드는 이전 빌드보다 CPU를 더 쓰는가?".to_owned(),
        "这个构建是否比旧构建更耗 CPU？".to_owned(),
    ])
}

/// A text in English, Korean and Chinese.
fn text_of(texts: [String; 3]) -> Value {
    let texts = ["en", "ko", "zh"].into_iter().zip(texts);
    Value::Table(texts.map(|(language, text)| (language.to_owned(), Value::String(text))).collect())
}

/// Drivers as on older kernels. If io_uring does not run here, it does not run as on an older kernel either.
fn as_on_kernels(kernels: &[String], has_uring: bool) -> impl Iterator<Item = (&'static str, &str)> {
    // An invalid version is reported for the arm of io_uring.
    let epoll_lacks =
        |kernel: &str| kernel.parse().is_ok_and(|version| lacking(version, "epoll").next().is_some());
    kernels.iter().flat_map(move |kernel| {
        let uring = has_uring.then_some(("uring", kernel.as_str()));
        uring.into_iter().chain(epoll_lacks(kernel).then_some(("epoll", kernel.as_str())))
    })
}

/// An arm of a driver that does not use features of later kernels.
fn as_on_kernel(name: String, driver: &str, kernel: &str) -> Value {
    let text = |text: &str| Value::String(text.to_owned());
    let options = Table::from_iter([(AS_ON_KERNEL.to_owned(), text(kernel))]);
    Value::Table(Table::from_iter([
        ("name".to_owned(), Value::String(name)),
        ("driver".to_owned(), text(driver)),
        ("options".to_owned(), Value::Table(options)),
    ]))
}

#[cfg(test)]
mod tests {
    use weir_record::spec::{CellRole, LoadMode};

    use super::*;
    use crate::{builtin::BuiltIn, host_defaults::HostDefaults, outline, study_file};

    fn tps(choices: &Choices) -> study_file::Study {
        let text = BuiltIn::named("tps").expect("it is built in").text;
        let text = chosen(text, choices).expect("they fit");
        let host_defaults =
            HostDefaults { server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
        study_file::parse(std::path::Path::new("tps.toml"), &text, &host_defaults).expect("it is a study")
    }

    fn levels(factor: &str, levels: &[&str]) -> (String, Vec<String>) {
        (factor.to_owned(), levels.iter().map(|level| (*level).to_owned()).collect())
    }

    #[test]
    fn nothing_chosen_is_the_file_itself() {
        let text = "name = \"x\" # a comment";
        assert_eq!(chosen(text, &Choices::default()), Ok(Cow::Borrowed(text)));
        let named = Choices { plan: Some("quick".to_owned()), ..Choices::default() };
        assert_eq!(chosen("this is [no toml", &named), Ok(Cow::Borrowed("this is [no toml")));
    }

    #[test]
    fn a_plan_and_levels_cut_the_map() {
        let count = |choices: &Choices| {
            let cells = tps(choices).spec.cells;
            let open = cells.iter().filter(|cell| !matches!(cell.load, LoadMode::Closed)).count();
            (cells.len() - open, open)
        };
        // The combinations; additional cells: one with idle connections, one with a connection for each message, and
        // two whose connections the kernel distributes; four rates of three combinations, and one rate of all others
        // but those with most connections.
        assert_eq!(count(&Choices::default()), (30 + 4, 4 * 3 + 22));
        let quick = Choices { plan: Some("quick".to_owned()), ..Choices::default() };
        assert_eq!(count(&quick), (8, 3 + 8));
        let few = vec![levels("connections", &["1", "10"]), levels("workers", &["1"])];
        assert_eq!(count(&Choices { levels: few, ..Choices::default() }), (2, 3 + 4));
        let own = vec![levels("connections", &["5", "50"]), levels("workers", &["2"])];
        let cut = tps(&Choices { levels: own, ..quick });
        let closed = cut.spec.cells.iter().filter(|cell| matches!(cell.load, LoadMode::Closed));
        let cells: Vec<&str> = closed.map(|cell| cell.id.as_str()).collect();
        assert_eq!(cells, ["c5-d1-m64-w2-closed", "c50-d1-m64-w2-closed"]);
        assert_eq!(cut.spec.cells[0].role, CellRole::Primary);
    }

    #[test]
    fn a_disk_that_is_only_read_or_only_written_to_has_units_of_one_kind() {
        let of = |pattern: &[&str]| {
            let choices = Choices { levels: vec![levels("pattern", pattern)], ..Choices::default() };
            let survey = BuiltIn::named("survey-storage").expect("it is built in").text;
            let text = chosen(survey, &choices).expect("there are such levels");
            let host_defaults =
                HostDefaults { server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
            let study = study_file::parse(std::path::Path::new("survey-storage.toml"), &text, &host_defaults);
            let cells = study.expect("the file can be read").spec.cells;
            let primary = cells.iter().find(|cell| cell.role == CellRole::Primary).expect("there is one");
            (primary.blocks, cells.iter().filter(|cell| cell.alternation.is_some()).count(), cells.len())
        };
        assert_eq!(of(&["randread"]), (14, 2, 2));
        assert_eq!(of(&["randwrite"]), (14, 0, 2));
    }

    #[test]
    fn contrasts_about_levels_that_are_gone_go_with_them() {
        let text = "[factors]\nworkers = [1, 2, 4]\n\
                    [[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n\
                    [[contrast]]\nof = { workers = [2, 4] }\nto = { workers = 1 }\n\
                    [[contrast]]\nof = { workers = 4 }\nto = { workers = 2 }\n";
        let left = |kept: &[&str]| {
            let choices = Choices { levels: vec![levels("workers", kept)], ..Choices::default() };
            let study: Table = chosen(text, &choices).expect("they fit").parse().expect("it is a table");
            study["contrast"].as_array().expect("a list").clone()
        };
        let [one] = &left(&["1", "4"])[..] else { panic!("one is about levels that are left") };
        assert_eq!(one["of"]["workers"], Value::Array(vec![Value::Integer(4)]));
        assert_eq!(left(&["1", "2", "4"]).len(), 2);
        assert!(left(&["1"]).is_empty());
    }

    #[test]
    fn the_contrasts_of_the_map_are_between_equal_rates_and_can_be_decided_in_every_plan() {
        let contrasts = |plan: Option<&str>, few: Vec<(String, Vec<String>)>| {
            let plan = plan.map(str::to_owned);
            let spec = tps(&Choices { plan, levels: few, ..Choices::default() }).spec;
            let ids = spec.contrasts.iter().flat_map(|it| it.of.iter().chain(&it.to)).cloned();
            ids.collect::<Vec<String>>()
        };
        for (plan, share) in [(None, 50), (Some("quick"), 50), (Some("full"), 50)] {
            let cells = ["c1000-d1-m64", "c10-d1-m64", "c1000-d1-m64", "c100-d1-m64"];
            let cells = cells.map(|cell| format!("{cell}-open{share}pct"));
            assert_eq!(contrasts(plan, Vec::new()), cells, "{plan:?}");
        }
        assert_eq!(contrasts(None, vec![levels("connections", &["10", "1000"])]).len(), 2);
        for (factor, few) in [("workers", ["2", "4"]), ("connections", ["1", "10"])] {
            assert!(contrasts(None, vec![levels(factor, &few)]).is_empty(), "{factor}");
        }
    }

    #[test]
    fn levels_are_numbers_flags_and_words() {
        let text = BuiltIn::named("peers-http").expect("it is built in").text;
        let chosen_levels = vec![
            levels("connections", &["5"]),
            levels("close", &["false"]),
            levels("content", &["html", "64"]),
        ];
        let choices = Choices { levels: chosen_levels, ..Choices::default() };
        let text = chosen(text, &choices).expect("they fit");
        let study: Table = text.parse().expect("it is a study");
        assert_eq!(study["factors"]["close"], Value::Array(vec![Value::Boolean(false)]));
        let content = study["factors"]["content"].as_array().expect("a list");
        assert!(content[0].is_str() && content[1].is_integer(), "{content:?}");
    }

    #[test]
    fn arms_of_a_command_line_stand_beside_those_of_the_file_or_alone() {
        let command = vec!["./server".to_owned(), "--port".to_owned(), "{port}".to_owned()];
        let arms = vec![("own".to_owned(), command.clone())];
        let names = |choices: &Choices| -> Vec<String> {
            tps(choices).spec.arms.iter().map(|arm| arm.name.clone()).collect()
        };
        let beside = Choices { arms: arms.clone(), ..Choices::default() };
        assert_eq!(names(&beside), ["epoll", "uring", "own"]);
        let alone = Choices {
            arms: vec![("uring".to_owned(), Vec::new()), ("own".to_owned(), command)],
            only_arms: true,
            ..Choices::default()
        };
        assert_eq!(names(&alone), ["uring", "own"]);
        let title = tps(&alone).spec.title.en;
        assert!(title.starts_with("Which of these needs least CPU: uring, own? (left out"), "{title}");
        assert!(title.ends_with("11 published tables)"), "{title}");
        let tables = |choices: &Choices| tps(choices).spec.published_tables.len();
        assert_eq!((tables(&beside), tables(&alone)), (11, 0), "a table is about arms that are there");
    }

    fn command(words: &str) -> Vec<String> {
        words.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_arm_that_is_not_told_how_many_workers_runs_where_there_are_fewest() {
        let with = |arms: &[(&str, &str)], only_arms: bool| {
            let arms = arms.iter().map(|(name, words)| ((*name).to_owned(), command(words))).collect();
            let plan = Some("quick".to_owned());
            tps(&Choices { plan, arms, only_arms, ..Choices::default() })
        };
        let workers_of = |study: &study_file::Study, arm: &str| -> Vec<u32> {
            let own =
                study.spec.cells.iter().filter(|cell| cell.has_arm(arm) && cell.load == LoadMode::Closed);
            own.map(|cell| cell.workers).collect()
        };
        let study = with(&[("own", "./server -p {port}"), ("told", "./server {port} {workers}")], false);
        assert_eq!(workers_of(&study, "own"), [1; 4]);
        assert_eq!(workers_of(&study, "told"), [1, 2, 1, 2, 1, 2, 1, 2]);
        let not_told = |arm: &str| study.spec.workers_not_told(arm);
        assert_eq!([not_told("own"), not_told("told"), not_told("uring")], [Some(1), None, None]);
        let plan = outline::text(&study, weir_report::Language::English);
        assert!(plan.contains("(not told {workers}, so in the cells with fewest alone: 1)"), "{plan}");
        let alone = with(&[("one", "./one {port}"), ("other", "./other {port}")], true);
        assert_eq!(workers_of(&alone, "one"), [1; 4], "there is nothing to compare elsewhere");
        assert!(alone.spec.cells.iter().all(|cell| cell.workers == 1), "{:?}", alone.spec.cells);
    }

    #[test]
    fn a_file_may_say_with_how_many_workers_an_arm_runs() {
        let study = |further: &str, primary: u32| {
            let text = format!(
                "name = \"own\"\n[factors]\nworkers = [1, 2, 4]\n[primary]\nworkers = {primary}\n[[arm]]\nname = \
                 \"epoll\"\ndriver = \"epoll\"\n[[arm]]\nname = \"go\"\ncommand = [\"./go\", \"{{port}}\"]\n{further}"
            );
            study_file::parse(std::path::Path::new("own.toml"), &text, &HostDefaults::default())
        };
        let workers = |further: &str| -> Vec<u32> {
            let spec = study(further, 1).expect("it is a study").spec;
            let closed = spec.cells.iter().filter(|cell| cell.load == LoadMode::Closed);
            closed.filter(|cell| cell.has_arm("go")).map(|cell| cell.workers).collect()
        };
        assert_eq!(workers(""), [1]);
        assert_eq!(workers("where = { workers = [1, 4] }\n"), [1, 4]);
        // A cell that names the arm is taken as it is written.
        let cell = "[[cell]]\nconnections = 7\nworkers = 2\narms = [\"epoll\", \"go\"]\n";
        assert_eq!(workers(cell), [1, 2]);
        let error = study("", 4).expect_err("it is not told").to_string();
        for words in ["own.toml:11: ", "{workers}", "cells with 1 alone", "primary comparison has 4", "where"]
        {
            assert!(error.contains(words), "no {words}: {error}");
        }
    }

    #[test]
    fn an_older_kernel_is_an_arm_of_io_uring_with_its_version() {
        let study =
            tps(&Choices { kernels: vec!["5.19".to_owned(), "6.1".to_owned()], ..Choices::default() });
        let names: Vec<&str> = study.spec.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names, ["epoll", "uring", "uring-as-on-5.19", "uring-as-on-6.1"]);
        let weir_record::spec::Subject::Weir { driver, options, .. } = &study.spec.arms[2].subject else {
            panic!("it is Weir's own")
        };
        assert_eq!((driver.as_str(), options["as-on-kernel"].as_str()), ("uring", "5.19"));
    }

    #[test]
    fn epoll_is_an_arm_as_on_a_kernel_that_had_less_for_it() {
        let choices = Choices { kernels: vec!["6.1".to_owned(), "5.7".to_owned()], ..Choices::default() };
        let names: Vec<String> = tps(&choices).spec.arms.iter().map(|arm| arm.name.clone()).collect();
        assert_eq!(names, ["epoll", "uring", "uring-as-on-6.1", "uring-as-on-5.7", "epoll-as-on-5.7"]);
        let text = chosen(BuiltIn::named("tps").expect("it is built in").text, &choices).expect("they fit");
        let study: Table = text.parse().expect("it is a study");
        let arms = study["without"]["uring"]["arm"].as_array().expect("a list");
        let names: Vec<Option<&str>> = arms.iter().map(|arm| arm["name"].as_str()).collect();
        assert_eq!(names, ["epoll", "poll", "epoll-as-on-5.7"].map(Some), "io_uring does not run there");
    }

    #[test]
    fn a_further_factor_takes_cells_beside_the_combinations_in() {
        for (plan, factor, own, twice) in [
            ("standard", "accept", ["acceptor", "reuseport"], "c100-d1-m64-w2-reuseport-closed"),
            ("full", "accept", ["acceptor", "reuseport"], "c100-d1-m64-w2-reuseport-closed"),
            ("standard", "idle_connections", ["0", "3900"], "c100-d1-m64-i3900-closed"),
            ("full", "idle_connections", ["0", "3900"], "c100-d1-m64-i3900-closed"),
            ("standard", "close", ["false", "true"], "c100-d1-m64-reconnect-closed"),
        ] {
            let plan = Some(plan.to_owned());
            let chosen = vec![levels("connections", &["100"]), levels(factor, &own)];
            let cells = tps(&Choices { plan, levels: chosen, ..Choices::default() });
            let ids: Vec<&str> = cells.spec.cells.iter().map(|cell| cell.id.as_str()).collect();
            assert_eq!(ids.iter().filter(|id| **id == twice).count(), 1, "{factor}: {ids:?}");
            assert!(ids.contains(&"c100-d1-m64-closed"), "{factor}: {ids:?}");
        }
        // A cell that is no combination stays: its depth is the default, which the factor does not contain.
        let own = vec![levels("depth", &["4"]), levels("accept", &["acceptor", "reuseport"])];
        let text = BuiltIn::named("tps").expect("it is built in").text;
        let study = chosen(text, &Choices { levels: own, ..Choices::default() }).expect("they fit");
        let study: Table = study.parse().expect("it is a study");
        let cells = study["cell"].as_array().expect("a list");
        assert!(cells.iter().any(|cell| cell.get("accept").is_some()), "{cells:?}");
    }

    #[test]
    fn where_a_driver_does_not_run_the_arms_in_its_place_are_chosen_from_too() {
        let text = BuiltIn::named("tps").expect("it is built in").text;
        let own = ("own".to_owned(), vec!["./server".to_owned(), "{port}".to_owned()]);
        let arms = |choices: &Choices| -> Vec<String> {
            let text = chosen(text, choices).expect("they fit");
            let study: Table = text.parse().expect("it is a study");
            let arms = study["without"]["uring"].get("arm").and_then(Value::as_array).cloned();
            arms.unwrap_or_default()
                .iter()
                .filter_map(|arm| Some(arm.get("name")?.as_str()?.to_owned()))
                .collect()
        };
        let beside = Choices { arms: vec![own.clone()], ..Choices::default() };
        assert_eq!(arms(&beside), ["epoll", "poll", "own"]);
        let named = vec![("uring".to_owned(), Vec::new()), own];
        assert_eq!(arms(&Choices { arms: named, only_arms: true, ..Choices::default() }), [""; 0]);
    }

    #[test]
    fn a_warm_up_is_that_of_every_arm_and_of_its_builds() {
        let text = "name = \"x\"\n[[arm]]\nname = \"a\"\ndriver = \"epoll\"\nwarmup = \"1s\"\n\
                    [[arm]]\nname = \"b\"\ndriver = \"uring\"\n[without.uring]\n\
                    [[without.uring.arm]]\nname = \"a\"\ndriver = \"poll\"\n\
                    [[without.uring.arm]]\nname = \"c\"\ndriver = \"epoll\"\n";
        let warmed = |warmup: &str| {
            let own = vec![("own".to_owned(), vec!["./server".to_owned(), "{port}".to_owned()])];
            chosen(text, &Choices { arms: own, warmup: Some(warmup.to_owned()), ..Choices::default() })
        };
        let study: Table = warmed("5s").expect("they fit").parse().expect("it is a study");
        for arms in [&study["arm"], &study["without"]["uring"]["arm"]] {
            let arms = arms.as_array().expect("there are arms");
            assert!(
                arms.len() == 3 && arms.iter().all(|arm| arm["warmup"].as_str() == Some("5s")),
                "{arms:?}"
            );
        }
        for wrong in ["5", "2min", "soon"] {
            assert_eq!(warmed(wrong), Err(ChoiceError::Warmup(wrong.to_owned())));
        }
        let choices = Choices { warmup: Some("5s".to_owned()), ..Choices::default() };
        let storage = chosen(BuiltIn::named("polling").expect("it is built in").text, &choices);
        assert_eq!(storage, Err(ChoiceError::NoWarmup));
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let text = BuiltIn::named("tps").expect("it is built in").text;
        let message = |choices: Choices| chosen(text, &choices).expect_err("it is wrong").to_string();
        let plan = message(Choices { plan: Some("quik".to_owned()), ..Choices::default() });
        assert!(plan.contains("no plan of that name") && plan.contains("quick"), "{plan}");
        let arm = message(Choices { arms: vec![("uringg".to_owned(), Vec::new())], ..Choices::default() });
        assert!(arm.contains("no arm of that name") && arm.contains("uring"), "{arm}");
        let twice =
            message(Choices { arms: vec![("epoll".to_owned(), vec!["x".to_owned()])], ..Choices::default() });
        assert!(twice.contains("there already"), "{twice}");
        let anyway = message(Choices { arms: vec![("uring".to_owned(), Vec::new())], ..Choices::default() });
        assert!(anyway.contains("it runs anyway"), "{anyway}");
        let none = message(Choices { only_arms: true, ..Choices::default() });
        assert!(none.contains("--only-arms"), "{none}");
        let kernels = vec!["6.1".to_owned()];
        let again =
            message(Choices { kernels: [kernels.clone(), kernels.clone()].concat(), ..Choices::default() });
        assert!(again.contains("uring-as-on-6.1") && again.contains("there already"), "{again}");
        let storage = chosen(
            BuiltIn::named("polling").expect("it is built in").text,
            &Choices { kernels, ..Choices::default() },
        );
        assert_eq!(storage, Err(ChoiceError::Kernels));
        let choices = Choices { levels: vec![levels("depth", &["1"])], ..Choices::default() };
        let cells =
            chosen("name = \"x\"\n[[cell]]\nconnections = 1", &choices).expect_err("it has no factors");
        assert!(cells.to_string().contains("no [factors]"), "{cells}");
    }
}
