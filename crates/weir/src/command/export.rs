//! `weir export`: a study's data on standard output, or the schema of its JSON.

use anyhow::Result;
use weir_lab::{stored::StoredRun, stored_folders};

use super::report;
use crate::{
    args::{Export, Format},
    exit::Exit,
    output,
};

pub(crate) fn run(arguments: &Export) -> Result<Exit> {
    // The parser requires one of the two.
    let Some(run) = arguments.run.as_deref().filter(|_| !arguments.schema) else {
        output::print(&format!("{}\n", weir_lab::export::schema()?))?;
        return Ok(Exit::Ok);
    };
    let (result, trials) = report::read(run)?;
    let text = match arguments.format {
        Format::Csv => weir_report::csv(&result),
        Format::Slices => weir_report::slices_csv(&trials),
        Format::Evidence => weir_report::evidence_csv(&trials),
        Format::Pidstat => weir_report::pidstat(&result, &trials),
        Format::Summary => weir_lab::export::summary(&result)?,
        Format::Json => {
            let mut placed = StoredRun::of(result, &trials);
            stored_folders::set_among(&mut placed, run);
            weir_lab::export::json(&placed.result, &trials)?
        }
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}
