//! Results in the site: each stored run with its answer, its page, and the command that repeats it.

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
        entries.push((name, answer));
    }
    let page = gallery.join("README.md");
    fs::write(&page, text(&entries)).map_err(|error| format!("{}: {error}", page.display()))
}

/// The page: name, answer and link of each run.
fn text(entries: &[(String, String)]) -> String {
    let mut out = "# Results\n\nStored runs, drawn by the build that made this site. Each holds for its machine and its \
                   minutes.\nThe command below an answer repeats it on yours.\n"
        .to_owned();
    for (name, answer) in entries {
        out.push_str(&format!(
            "\n## {name}\n\n{}\n\n[The whole report]({name}/report.html)\n",
            answer.trim()
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_answer_and_a_link_to_its_page() {
        let page = text(&[("quick".to_owned(), "**less CPU**\n".to_owned())]);
        assert!(
            page.ends_with("\n## quick\n\n**less CPU**\n\n[The whole report](quick/report.html)\n"),
            "{page}"
        );
    }
}
