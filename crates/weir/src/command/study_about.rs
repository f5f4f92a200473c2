//! A short description of a built-in study, and the list of all.

use weir_lab::{builtin::BuiltIn, host_defaults::HostDefaults, outline};
use weir_record::spec::StudySpec;
use weir_report::{Language, localized};

use crate::args::{PEERS, all_study_names};

/// The built-in studies, each with the question that it answers.
pub(crate) fn list(language: Language) -> String {
    let line = |name: &str| {
        let spec = spec(files(name).first()?, None)?;
        Some(format!("{name:<23}{}\n", weir_report::localized(&spec.title, language)))
    };
    let mut text: String = all_study_names().into_iter().filter_map(line).collect();
    text.push_str(language.choose([
        "\n`weir study NAME --help` says more about one, and `weir study NAME --dry-run` what it does here.\n",
        "\n자세한 설명은 `weir study NAME --help`로, 이 머신에서의 계획은 `weir study NAME --dry-run`으로 볼 수 있습니다.\n",
        "\n`weir study NAME --help` 给出详细说明，`weir study NAME --dry-run` 给出在本机上的计划。\n",
    ]));
    text
}

/// The description of a study: its question, the comment of its file, its arms, its plans. None if the name is no
/// built-in study.
pub(crate) fn about(name: &str, language: Language) -> Option<String> {
    let mut text = String::new();
    for file in files(name) {
        let spec = spec(&file, None)?;
        text.push_str(&format!(
            "{name}{}{}\n",
            language.colon(),
            weir_report::localized(&spec.title, language)
        ));
        let comments: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix('#')).collect();
        if !comments.is_empty() {
            text.push('\n');
            comments
                .iter()
                .for_each(|line| text.push_str(&format!("{}\n", line.strip_prefix(' ').unwrap_or(line))));
        }
        text.push('\n');
        text.push_str(&extent(&spec, language));
        for plan in file.plans() {
            text.push_str(&of_plan(&file, &plan, language));
        }
        text.push('\n');
    }
    (!text.is_empty()).then(|| text + &ways_on(name, language))
}

/// The files behind a name: of the study of peers one for each protocol.
fn files(name: &str) -> Vec<BuiltIn> {
    let names = if name == PEERS { vec!["peers-echo", "peers-http"] } else { vec![name] };
    names.into_iter().filter_map(BuiltIn::named).collect()
}

fn spec(file: &BuiltIn, plan: Option<&str>) -> Option<StudySpec> {
    let host_defaults = HostDefaults { plan: plan.map(str::to_owned), ..HostDefaults::default() };
    file.study(&host_defaults).ok().map(|study| study.spec)
}

fn takes(spec: &StudySpec, language: Language) -> String {
    outline::shown_ns(outline::study_ns(spec).min(spec.time_cap_ns), language)
}

/// Arms, cells and the time they take.
fn extent(spec: &StudySpec, language: Language) -> String {
    let arms = spec.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(language.list());
    let (cells, length) = (spec.cells.len(), takes(spec, language));
    localized!(
        language,
        "  arms: {arms}\n  cells: {cells}, about {length}\n",
        "  비교 대상: {arms}\n  조건: {cells}개, 약 {length}\n",
        "  方案：{arms}\n  条件：{cells} 个，约需 {length}\n",
    )
}

fn of_plan(file: &BuiltIn, plan: &str, language: Language) -> String {
    let Some(spec) = spec(file, Some(plan)) else { return String::new() };
    let (cells, length) = (spec.cells.len(), takes(&spec, language));
    localized!(
        language,
        "  --levels {plan}: {cells} cells, about {length}\n",
        "  --levels {plan}: 조건 {cells}개, 약 {length}\n",
        "  --levels {plan}：{cells} 个条件，约需 {length}\n",
    )
}

fn ways_on(name: &str, language: Language) -> String {
    localized!(
        language,
        "weir study {name} --dry-run   what it does on this machine\n\
         weir study {name} --print     its file, to start your own from\n\
         weir study --help             every flag\n",
        "weir study {name} --dry-run   이 머신에서의 계획\n\
         weir study {name} --print     실험 파일(새로 만들 때의 출발점)\n\
         weir study --help             모든 옵션\n",
        "weir study {name} --dry-run   在本机上的计划\n\
         weir study {name} --print     实验文件，可据此编写自己的实验\n\
         weir study --help             所有选项\n",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_study_is_described_in_every_language() {
        for name in all_study_names() {
            for language in Language::ALL {
                let text = about(name, language).unwrap_or_else(|| panic!("{name}"));
                assert!(text.contains(&format!("weir study {name} --dry-run")), "{text}");
                assert!(text.lines().next().is_some_and(|line| line.contains(['?', '？'])), "{text}");
            }
        }
        assert_eq!(about("quik", Language::English), None);
        let tps = about("tps", Language::English).expect("it is built in");
        assert!(tps.contains("--levels quick: ") && tps.contains("arms: epoll, uring"), "{tps}");
    }
}
