//! `weir export`: a study's data on standard output.

use anyhow::Result;

use super::report;
use crate::{
    args::{Export, Format},
    exit::Exit,
    output,
};

pub(crate) fn run(arguments: &Export) -> Result<Exit> {
    let (result, trials) = report::read(&arguments.run)?;
    let text = match arguments.format {
        Format::Csv => weir_report::csv(&result),
        Format::Slices => weir_report::slices_csv(&trials),
        Format::Evidence => weir_report::evidence_csv(&trials),
        Format::Pidstat => weir_report::pidstat(&result, &trials),
        Format::Json => weir_lab::export::json(&result, &trials)?,
    };
    output::print(&text)?;
    Ok(Exit::Ok)
}
