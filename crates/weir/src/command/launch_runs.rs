//! `weir launch-runs` (hidden): starts the runs of `weir compare`.

use anyhow::Result;

use crate::exit::Exit;

pub(crate) fn run() -> Result<Exit> {
    weir_compare::run::launcher_main()?;
    Ok(Exit::Ok)
}
