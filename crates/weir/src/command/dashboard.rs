//! `weir dashboard`: stored studies in a browser.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use weir_dashboard::{ControlSettings, Origin, Settings, Token};

use super::{report, study, top};
use crate::{
    args::Dashboard,
    exit::{Exit, UsageError},
    output, signals,
};

/// In place of a socket's name: whatever servers this user runs.
const AUTO: &str = "auto";

pub(crate) fn run(arguments: &Dashboard) -> Result<Exit> {
    let listen = arguments.listen.parse().map_err(|_| {
        let text =
            format!("--listen {}: write an address and a port, such as 127.0.0.1:3000", arguments.listen);
        UsageError(text)
    })?;
    let language = report::language(arguments.lang.as_deref())?;
    let folder = match &arguments.folder {
        // One that was named is meant; the other is made by the first study.
        Some(folder) if !folder.exists() => {
            let text = format!("{} is not there; name a folder that `weir study` wrote to", folder.display());
            return Err(UsageError(text).into());
        }
        Some(folder) => folder.clone(),
        None => PathBuf::from(study::RESULTS),
    };
    let control = control(arguments)?;
    let can_act = control.is_some();
    let (records, stats) = (records(arguments)?, stats(arguments)?);
    let (hosts, finds_servers) = (arguments.host.clone(), arguments.stats.iter().any(|name| name == AUTO));
    let settings = Settings { folder, listen, hosts, language, control, records, stats, finds_servers };
    let shown = settings.folder.display().to_string();
    let dashboard = weir_dashboard::Dashboard::bind(settings)?;
    let (address, stop) = (dashboard.address(), dashboard.stop());
    signals::on_stop(move |_| stop.stop())?;
    output::print(&format!("http://{address}/ shows the studies in {shown}"))?;
    if !address.ip().is_loopback() {
        let acting = match can_act {
            true => "who has the token can start and stop studies",
            false => "nobody can change anything",
        };
        output::tell(&format!("whoever reaches {address} can read them; {acting}"));
    }
    dashboard.run();
    Ok(Exit::Ok)
}

/// The folder of recorded observations, which must be there.
fn records(arguments: &Dashboard) -> Result<Option<PathBuf>, UsageError> {
    match &arguments.records {
        Some(folder) if !folder.is_dir() => {
            let text = format!("--records {}: name a folder of recorded observations", folder.display());
            Err(UsageError(text))
        }
        records => Ok(records.clone()),
    }
}

/// Statistics sockets that were named, as many as can be watched.
fn stats(arguments: &Dashboard) -> Result<Vec<String>, UsageError> {
    let named: Vec<String> = arguments.stats.iter().filter(|name| *name != AUTO).cloned().collect();
    named.iter().try_for_each(|name| {
        top::check_socket("--stats", name).map_err(|UsageError(text)| UsageError(format!("{text} or {AUTO}")))
    })?;
    top::check_count(named.len())?;
    Ok(named)
}

/// What lets somebody act, where a token was given.
fn control(arguments: &Dashboard) -> Result<Option<ControlSettings>> {
    let Some(path) = &arguments.token_file else { return Ok(None) };
    let origin = |text: &String| {
        let text = format!(
            "--origin {text}: write a scheme, a host and perhaps a port, such as http://lab.example:3000"
        );
        UsageError(text)
    };
    let origins = arguments.origin.iter().map(|text| Origin::parse(text).ok_or_else(|| origin(text)));
    Ok(Some(ControlSettings {
        token: Token::read(path)?,
        program: env::current_exe().context("cannot find the weir program itself")?,
        studies: arguments.studies.clone(),
        origins: origins.collect::<Result<_, _>>()?,
    }))
}
