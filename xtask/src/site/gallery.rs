//! Results in the site: each stored run with its answer, its page, its study file, and the command that repeats it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::weir_program::WeirProgram;

/// Folders of stored runs: those in `results` that have a store, by name.
pub fn runs(results: &Path) -> Result<Vec<PathBuf>, String> {
    let entries =
        fs::read_dir(results).map_err(|error| format!("--results {}: {error}", results.display()))?;
    let folders = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let mut runs: Vec<PathBuf> = folders.filter(|folder| folder.join("study.db").is_file()).collect();
    runs.sort();
    if runs.is_empty() {
        return Err(format!("--results {}: no folder in it has a study.db", results.display()));
    }
    Ok(runs)
}

/// Writes the pages of the runs below `gallery`, drawn by this build, and the page that lists them.
pub fn write(weir: &WeirProgram, runs: &[PathBuf], gallery: &Path) -> Result<(), String> {
    let mut entries = Vec::new();
    for run in runs {
        let name = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let pages = gallery.join(&name);
        let (run, out) = (run.to_string_lossy(), pages.to_string_lossy());
        weir.output(&["report", &run, "--out", &out, "--quiet", "--lang", "en"])?;
        let comment = pages.join("comment.md");
        let answer =
            fs::read_to_string(&comment).map_err(|error| format!("{}: {error}", comment.display()))?;
        let study = built_in(&answer).map(str::to_owned);
        if let Some(study) = &study {
            let file = pages.join(format!("{study}.toml"));
            let text = weir.output(&["study", study, "--print"])?;
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        entries.push(Entry { name, answer, study });
    }
    let page = gallery.join("README.md");
    fs::write(&page, text(&entries)).map_err(|error| format!("{}: {error}", page.display()))
}

/// A run of the page.
struct Entry {
    /// Its folder's name.
    name: String,
    answer: String,
    /// The built-in study that it ran; absent for a file of its author.
    study: Option<String>,
}

/// The built-in study in the command of an answer: `quick` of `weir study quick --seed 7`.
fn built_in(answer: &str) -> Option<&str> {
    let (_, command) = answer.split_once("`weir study ")?;
    let name = command.split([' ', '`']).next()?;
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    (name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(is_letter))
        .then_some(name)
}

/// The page: name, answer and links of each run.
fn text(entries: &[Entry]) -> String {
    let mut out = "# Results\n\nStored runs, drawn by the build that made this site. Each holds for its machine and its \
                   minutes.\nThe command below an answer repeats it on yours.\n"
        .to_owned();
    for Entry { name, answer, study } in entries {
        let file = study.as_ref().map(|study| format!(" · [the study file]({name}/{study}.toml)"));
        let file = file.unwrap_or_default();
        let answer = answer.trim();
        out.push_str(&format!("\n## {name}\n\n{answer}\n\n[The whole report]({name}/report.html){file}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_answer_and_a_link_to_its_page() {
        let entry = |study: Option<&str>| Entry {
            name: "one".to_owned(),
            answer: "**less CPU**\n".to_owned(),
            study: study.map(str::to_owned),
        };
        let page = text(&[entry(None), entry(Some("quick"))]);
        let own = "\n## one\n\n**less CPU**\n\n[The whole report](one/report.html)\n";
        assert!(page.contains(own), "{page}");
        assert!(page.ends_with("(one/report.html) · [the study file](one/quick.toml)\n"), "{page}");
    }

    #[test]
    fn a_built_in_study_is_known_by_its_command_and_a_file_is_none() {
        assert_eq!(built_in("<sub>bench · `weir study quick --seed 7`</sub>"), Some("quick"));
        assert_eq!(built_in("`weir study tps-http`"), Some("tps-http"));
        for none in ["`weir study own.toml`", "`weir study --resume x`", "`weir study ./a/b`", "less CPU"] {
            assert_eq!(built_in(none), None, "{none}");
        }
    }
}
