//! `weir dashboard`: stored studies in a browser.

use std::{env, path::PathBuf};

use anyhow::Result;
use weir_dashboard::{Settings, accepted};
use weir_report::Language;

use super::{report, study};
use crate::{
    args::Dashboard,
    exit::{Exit, UsageError},
    output, signals,
};

pub(crate) fn run(arguments: &Dashboard) -> Result<Exit> {
    let listen = arguments.listen.parse().map_err(|_| {
        let text =
            format!("--listen {}: write an address and a port, such as 127.0.0.1:3000", arguments.listen);
        UsageError(text)
    })?;
    let language = match &arguments.lang {
        Some(code) => report::language(code)?,
        None => locale(),
    };
    let folder = match &arguments.folder {
        // One that was named is meant; the other is made by the first study.
        Some(folder) if !folder.exists() => {
            let text = format!("{} is not there; name a folder that `weir study` wrote to", folder.display());
            return Err(UsageError(text).into());
        }
        Some(folder) => folder.clone(),
        None => PathBuf::from(study::RESULTS),
    };
    let settings = Settings { folder, listen, hosts: arguments.host.clone(), language };
    let shown = settings.folder.display().to_string();
    let dashboard = weir_dashboard::Dashboard::bind(settings)?;
    let (address, stop) = (dashboard.address(), dashboard.stop());
    signals::on_stop(move |_| stop.stop())?;
    output::print(&format!("http://{address}/ shows the studies in {shown}"))?;
    if !address.ip().is_loopback() {
        output::tell(&format!("whoever reaches {address} can read them; nobody can change anything"));
    }
    dashboard.run();
    Ok(Exit::Ok)
}

/// The language that the environment asks for: the first of these variables that says something.
fn locale() -> Language {
    let said = ["LC_ALL", "LC_MESSAGES", "LANG"].iter().filter_map(|name| env::var(name).ok());
    said.into_iter()
        .find(|locale| !locale.is_empty())
        .and_then(|locale| accepted(&locale))
        .unwrap_or_default()
}
