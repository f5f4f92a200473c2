//! Writes the reports of every study of the test fixtures into a folder: `cargo run -p weir-report --example sample
//! -- FOLDER`.

#[path = "../tests/it/every_study.rs"]
mod every_study;
#[path = "../tests/it/fixture.rs"]
mod fixture;
#[path = "../tests/it/jitter.rs"]
mod jitter;

use std::{fs, io, path::PathBuf};

use weir_report::Language;

fn main() -> io::Result<()> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("usage: sample FOLDER"))?;
    fs::create_dir_all(&folder)?;
    for (name, result) in every_study::all() {
        for language in Language::ALL {
            let file = |ending: &str| {
                folder.join(format!("{}-{}.{ending}", name.replace(' ', "-"), language.code()))
            };
            fs::write(file("html"), weir_report::html(&result, language))?;
            fs::write(file("md"), weir_report::markdown(&result, language))?;
            fs::write(file("txt"), weir_report::terminal(&result, language, 80, false))?;
        }
        fs::write(folder.join(format!("{}.csv", name.replace(' ', "-"))), weir_report::csv(&result))?;
    }
    Ok(())
}
