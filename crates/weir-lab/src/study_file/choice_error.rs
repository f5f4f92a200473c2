//! Why the choices of a command line do not fit a study file, in the reader's language.

use std::{error::Error, fmt};

use weir_report::{Language, localized};

use crate::limits::instead_in;

/// An error of a choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChoiceError {
    /// There is no such plan.
    Plan {
        /// The name that was given.
        name: String,
        /// The plans of the study.
        there: Vec<String>,
    },
    /// There are no combinations to choose from, for this factor.
    NoFactors(String),
    /// A bare name that is no arm of the file.
    Arm {
        /// The name that was given.
        name: String,
        /// The arms of the study.
        there: Vec<String>,
    },
    /// A flag names an arm that does not exist.
    ArmKey {
        /// The flag.
        flag: &'static str,
        /// The name that was given.
        name: String,
        /// The arms of the study.
        there: Vec<String>,
    },
    /// A flag sets the same key of an arm twice.
    ArmKeyTwice {
        /// The flag.
        flag: &'static str,
        /// The arm.
        name: String,
    },
    /// The study measures something else than sockets alone.
    Kernels,
    /// The study is not about HTTP.
    Requests,
    /// Contents are chosen although a mix of requests replaces them.
    ContentOfMix,
    /// The text is no length of a warm-up.
    Warmup(String),
    /// The warm-up of a job on a disk is set in its cells.
    NoWarmup,
    /// No arms are left.
    NoArms,
    /// A bare name, although all arms run.
    RunsAnyway(String),
    /// The study has no protocol that another build could serve.
    NoBuilds,
    /// No arm is a server of this program, so another build cannot replace it.
    NoDriver,
    /// Two arms have the same name.
    Twice(String),
}

impl ChoiceError {
    /// The error and its remedy.
    pub fn localized(&self, language: Language) -> String {
        match self {
            Self::Plan { name, there } => no_plan(name, there, language),
            Self::NoFactors(factor) => localized!(
                language,
                "--levels {factor}: the study has no [factors]; its cells are written one by one",
                "--levels {factor}: 이 실험에는 [factors]가 없습니다. 조건을 하나씩 적은 실험입니다",
                "--levels {factor}：该实验没有 [factors]，条件是逐个写出的",
            ),
            Self::Arm { name, there } => no_arm(name, there, language),
            Self::ArmKey { flag, name, there } => {
                let instead = instead_of(name, there, language);
                localized!(
                    language,
                    "{flag} {name}: the study has no arm of that name; {instead}",
                    "{flag} {name}: 이 실험에는 그런 이름의 비교 대상이 없습니다({instead})",
                    "{flag} {name}：该实验没有这个名称的方案（{instead}）",
                )
            }
            Self::ArmKeyTwice { flag, name } => localized!(
                language,
                "{flag} {name}: it is given twice; leave one out",
                "{flag} {name}: 두 번 지정했습니다. 하나를 빼십시오",
                "{flag} {name}：指定了两次；请去掉一个",
            ),
            Self::Warmup(length) => localized!(
                language,
                "--warmup {length}: write a length of time of at most 1min, such as 5s or 400ms",
                "--warmup {length}: 5s나 400ms처럼 1min 이하의 시간을 쓰십시오",
                "--warmup {length}：请写不超过 1min 的时长，例如 5s 或 400ms",
            ),
            Self::RunsAnyway(name) => localized!(
                language,
                "--arm {name}: it runs anyway; leave it out, or add --only-arms",
                "--arm {name}: 지정하지 않아도 실행되는 대상입니다. 빼거나 --only-arms를 추가하십시오",
                "--arm {name}：它本来就会运行；请去掉，或加上 --only-arms",
            ),
            Self::Twice(name) => localized!(
                language,
                "--arm {name}: an arm of that name is there already",
                "--arm {name}: 같은 이름의 비교 대상이 이미 있습니다",
                "--arm {name}：已有同名的方案",
            ),
            Self::Kernels
            | Self::Requests
            | Self::ContentOfMix
            | Self::NoWarmup
            | Self::NoArms
            | Self::NoBuilds
            | Self::NoDriver => language.choose(self.without_names()).to_owned(),
        }
    }

    /// Messages of the errors that name nothing of the study.
    fn without_names(&self) -> [&'static str; 3] {
        match self {
            Self::Kernels => [
                "--kernels: it belongs to studies of echo and http; leave it out",
                "--kernels는 echo와 http 실험에만 씁니다. 빼십시오",
                "--kernels 只用于 echo 和 http 实验；请去掉",
            ],
            Self::Requests => [
                "--request-mix: it belongs to studies of HTTP; leave it out",
                "--request-mix는 HTTP 실험에만 씁니다. 빼십시오",
                "--request-mix 只用于 HTTP 实验；请去掉",
            ],
            Self::ContentOfMix => [
                "--levels content: the study asks for a mix of requests, and its paths decide what is served; leave \
                 `content` out",
                "--levels content: 이 실험은 혼합 요청을 보내며 응답 내용은 각 요청의 경로가 정합니다. `content`를 빼십시오",
                "--levels content：本实验发送一组混合请求，响应内容由各请求的路径决定；请去掉 `content`",
            ],
            Self::NoWarmup => [
                "--warmup: arms of storage have none; leave it out, and write `warmup_max` into the file",
                "--warmup: 스토리지 실험의 비교 대상에는 예열이 없습니다. 빼고, 파일에 `warmup_max`를 쓰십시오",
                "--warmup：存储实验的方案没有预热；请去掉，并在文件中写 `warmup_max`",
            ],
            Self::NoBuilds => [
                "--baseline: it belongs to studies of echo, http and orders; leave it out",
                "--baseline은 echo, http, orders 실험에만 씁니다. 빼십시오",
                "--baseline 只用于 echo、http 和 orders 实验；请去掉",
            ],
            Self::NoDriver => [
                "--baseline: no arm of the study names a driver; write the commands as arms",
                "--baseline: 드라이버를 지정한 비교 대상이 없습니다. 명령을 비교 대상으로 쓰십시오",
                "--baseline：没有指定驱动的方案；请把各命令写成方案",
            ],
            _ => [
                "--only-arms: no arm is given; add --arm NAME or --arm NAME=COMMAND",
                "--only-arms: 비교 대상이 없습니다. --arm NAME이나 --arm NAME=COMMAND를 추가하십시오",
                "--only-arms：没有指定方案；请加上 --arm NAME 或 --arm NAME=COMMAND",
            ],
        }
    }
}

fn no_plan(name: &str, there: &[String], language: Language) -> String {
    let instead = match there {
        [] => language.choose(["it has one plan only", "계획이 하나뿐임", "它只有一个计划"]).to_owned(),
        _ => instead_of(name, there, language),
    };
    localized!(
        language,
        "--levels {name}: the study has no plan of that name; {instead}, or FACTOR=LEVEL,LEVEL",
        "--levels {name}: 이 실험에는 그런 이름의 계획이 없습니다({instead}). FACTOR=LEVEL,LEVEL로 수준을 고를 수도 있습니다",
        "--levels {name}：该实验没有这个名称的计划（{instead}）；也可用 FACTOR=LEVEL,LEVEL 选择水平",
    )
}

fn no_arm(name: &str, there: &[String], language: Language) -> String {
    let instead = instead_of(name, there, language);
    localized!(
        language,
        "--arm {name}: the study has no arm of that name; {instead}, or NAME=COMMAND",
        "--arm {name}: 이 실험에는 그런 이름의 비교 대상이 없습니다({instead}). NAME=COMMAND로 새로 추가할 수도 있습니다",
        "--arm {name}：该实验没有这个名称的方案（{instead}）；也可用 NAME=COMMAND 添加",
    )
}

fn instead_of(name: &str, there: &[String], language: Language) -> String {
    instead_in(language, name, &there.iter().map(String::as_str).collect::<Vec<_>>())
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.localized(Language::English))
    }
}

impl Error for ChoiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_told_in_every_language_with_what_was_asked_for() {
        let name = || "quik".to_owned();
        let there = || vec!["quick".to_owned(), "wide".to_owned()];
        let errors: [(ChoiceError, &[&str]); 16] = [
            (ChoiceError::Plan { name: name(), there: there() }, &["--levels quik", "quick", "FACTOR="]),
            (ChoiceError::Plan { name: name(), there: Vec::new() }, &["--levels quik", "FACTOR="]),
            (ChoiceError::NoFactors(name()), &["--levels quik", "[factors]"]),
            (ChoiceError::Arm { name: name(), there: there() }, &["--arm quik", "quick", "NAME=COMMAND"]),
            (
                ChoiceError::ArmKey { flag: "--arm-env", name: name(), there: there() },
                &["--arm-env quik", "quick"],
            ),
            (ChoiceError::ArmKeyTwice { flag: "--arm-dir", name: name() }, &["--arm-dir quik"]),
            (ChoiceError::Requests, &["--request-mix", "HTTP"]),
            (ChoiceError::ContentOfMix, &["--levels content"]),
            (ChoiceError::Kernels, &["--kernels", "echo", "http"]),
            (ChoiceError::Warmup(name()), &["--warmup quik", "1min", "400ms"]),
            (ChoiceError::NoWarmup, &["--warmup", "`warmup_max`"]),
            (ChoiceError::NoArms, &["--only-arms", "--arm NAME=COMMAND"]),
            (ChoiceError::RunsAnyway(name()), &["--arm quik", "--only-arms"]),
            (ChoiceError::NoBuilds, &["--baseline", "orders"]),
            (ChoiceError::NoDriver, &["--baseline"]),
            (ChoiceError::Twice(name()), &["--arm quik"]),
        ];
        for (error, words) in errors {
            let texts = Language::ALL.map(|language| error.localized(language));
            assert_eq!(error.to_string(), texts[0]);
            assert!(texts[0] != texts[1] && texts[1] != texts[2], "{texts:?}");
            for text in texts {
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }
}
