//! What each machine of `weir study --hosts` is asked to run: the study and the flags of this command line. Pure.

use weir_lab::process::WholeStudy;
use weir_record::origin::Origin;
use weir_report::Language;

use super::{study_hosts_file::StudyHost, study_plan::Written};
use crate::args::Study;

/// The study that all hosts have in common.
pub(super) struct Asked {
    study: WholeStudy,
    seed: Option<u64>,
}

impl Asked {
    pub(super) fn of(arguments: &Study, written: &Written, origin: &Origin, language: Language) -> Self {
        let text = written.file_text().map(str::to_owned);
        let mut asked = of_study(arguments);
        asked.extend(of_origin(origin));
        asked.push(format!("--lang={}", language.code()));
        let study = WholeStudy { study: written.name.clone(), text, arguments: asked };
        Self { study, seed: arguments.seed }
    }

    /// The study of one host. Seeds of a command line count up, so that no two hosts have the same order of rounds.
    pub(super) fn for_host(&self, host: &StudyHost, place: usize) -> WholeStudy {
        let mut study = self.study.clone();
        study.arguments.extend(host.flags.iter().cloned());
        if let Some(seed) = self.seed {
            study.arguments.push(format!("--seed={}", seed.wrapping_add(place as u64)));
        }
        study
    }
}

/// Flags that mean the same on each host. The other fields are of this machine, or `--hosts` refuses them; a new flag
/// must be named here.
fn of_study(arguments: &Study) -> Vec<String> {
    let Study {
        protocol,
        published_plan,
        levels,
        arm,
        arms,
        kernels,
        only_arms,
        warmup,
        rounds,
        time,
        storage,
        file,
        quiet,
        task: _,
        study: _,
        list: _,
        request_mix: _,
        baseline: _,
        placebo: _,
        fail_if: _,
        inconclusive_passes: _,
        server_host: _,
        rsh: _,
        server_address: _,
        hosts: _,
        at_once: _,
        print: _,
        dry_run: _,
        earlier: _,
        observed: _,
        repeat: _,
        every: _,
        origin: _,
        out: _,
        resume: _,
        seed: _,
        lang: _,
        json: _,
        long: _,
        asked_as: _,
    } = arguments;
    let one = |flag: &str, value: Option<String>| value.map(|value| format!("--{flag}={value}"));
    let each = |flag: &str, values: &[String]| -> Vec<String> {
        values.iter().map(|value| format!("--{flag}={value}")).collect()
    };
    let set = |flag: &str, is_set: &bool| is_set.then(|| format!("--{flag}"));
    let kernels = Some(kernels.join(",")).filter(|kernels| !kernels.is_empty());
    let mut asked = Vec::new();
    asked.extend(one("protocol", protocol.clone()));
    asked.extend(set("published-plan", published_plan));
    asked.extend(each("levels", levels));
    asked.extend(each("arm", arm));
    asked.extend(arms.all().iter().flat_map(|(flag, values)| each(&flag[2..], values)));
    asked.extend(one("kernels", kernels));
    asked.extend(set("only-arms", only_arms));
    asked.extend(one("warmup", warmup.clone()));
    asked.extend(one("rounds", rounds.map(|rounds| rounds.to_string())));
    asked.extend(one("time", time.clone()));
    asked.extend(set("storage", storage));
    asked.extend(one("file", file.as_ref().map(|file| file.display().to_string())));
    asked.extend(set("quiet", quiet));
    asked
}

/// The commit and the branch of this machine's folder are those of the run, whatever folder it has there.
fn of_origin(origin: &Origin) -> Vec<String> {
    let dirty = if origin.is_dirty == Some(true) { "-dirty" } else { "" };
    let commit = origin.commit.as_ref().map(|commit| format!("--commit={commit}{dirty}"));
    let branch = origin.branch.as_ref().map(|branch| format!("--branch={branch}"));
    let labels = origin.labels.iter().map(|(key, value)| format!("--label={key}={value}"));
    let note = origin.note.as_ref().map(|note| format!("--note={note}"));
    commit.into_iter().chain(branch).chain(labels).chain(note).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn study(words: &[&str]) -> Study {
        let words = ["weir", "study"].iter().chain(words);
        match Arguments::try_parse_from(words).expect("it is right").command {
            Command::Study(study) => *study,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_host_gets_the_flags_that_its_own_command_line_takes() {
        let typed = [
            "quick",
            "--levels=depth=1,4",
            "--arm=own=./s --port {port}",
            "--arm-env=own=A=b",
            "--rounds=4",
            "--time=5min",
            "--kernels=5.19,6.1",
            "--quiet",
        ];
        let own = ["--hosts=h", "--at-once=2", "--out=o", "--seed=7", "--lang=ko"];
        let asked = of_study(&study(&[&typed[..], &own[..]].concat()));
        let again: Vec<&str> = std::iter::once("quick").chain(asked.iter().map(String::as_str)).collect();
        let there = study(&again);
        let alone = study(&typed);
        assert_eq!(format!("{there:?}"), format!("{alone:?}"));
    }

    #[test]
    fn the_origin_is_that_of_the_machine_on_which_it_was_typed() {
        let origin = Origin {
            commit: Some("abc".to_owned()),
            is_dirty: Some(true),
            branch: Some("main".to_owned()),
            labels: [("kind".to_owned(), "a=b".to_owned())].into(),
            note: Some("as is".to_owned()),
            ..Origin::default()
        };
        let flags = ["--commit=abc-dirty", "--branch=main", "--label=kind=a=b", "--note=as is"];
        assert_eq!(of_origin(&origin), flags);
        assert!(of_origin(&Origin::default()).is_empty());
    }

    #[test]
    fn seeds_count_up_from_host_to_host() {
        let host = StudyHost {
            name: "b".to_owned(),
            way: weir_lab::process::Transport::ssh("b").expect("a host"),
            flags: vec!["--server-host=c".to_owned()],
            line: 1,
        };
        let study = WholeStudy { study: "quick".to_owned(), text: None, arguments: Vec::new() };
        let asked = Asked { study: study.clone(), seed: Some(u64::MAX) };
        let words = |place| asked.for_host(&host, place).arguments;
        assert_eq!(words(0), ["--server-host=c".to_owned(), format!("--seed={}", u64::MAX)]);
        assert_eq!(words(1)[1], "--seed=0");
        assert_eq!(Asked { study, seed: None }.for_host(&host, 3).arguments, ["--server-host=c"]);
    }
}
