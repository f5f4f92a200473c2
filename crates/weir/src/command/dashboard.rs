//! `weir dashboard`: stored studies in a browser.

use std::{env, path::PathBuf};

use anyhow::{Context, Result};
use weir_dashboard::{ControlSettings, Origin, Settings, Token};
use weir_report::told;

use super::{report, study, top};
use crate::{
    args::Dashboard,
    command_line,
    exit::{Exit, UsageError},
    output, signals,
};

/// In place of a socket's name: whatever servers this user runs.
const AUTO: &str = "auto";

pub(crate) fn run(arguments: &Dashboard) -> Result<Exit> {
    let listen = arguments.listen.parse().map_err(|_| {
        let listen = &arguments.listen;
        UsageError(told!(
            command_line::language(),
            "--listen {listen}: write an address and a port, such as 127.0.0.1:3000",
            "--listen {listen}: 127.0.0.1:3000처럼 주소와 포트를 쓰십시오",
            "--listen {listen}：请写地址和端口，例如 127.0.0.1:3000",
        ))
    })?;
    let language = report::language(arguments.lang.as_deref())?;
    let folder = match &arguments.folder {
        // One that was named is meant; the other is made by the first study.
        Some(folder) if !folder.exists() => {
            let folder = folder.display();
            return Err(UsageError(told!(
                language,
                "{folder} is not there; name a folder that `weir study` wrote to",
                "{folder} 폴더가 없습니다. `weir study`가 결과를 저장한 폴더를 지정하십시오",
                "{folder} 不存在；请指定 `weir study` 写入结果的文件夹",
            ))
            .into());
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
            let folder = folder.display();
            Err(UsageError(told!(
                command_line::language(),
                "--records {folder}: name a folder of recorded observations",
                "--records {folder}: 관찰 기록이 있는 폴더를 지정하십시오",
                "--records {folder}：请指定存放观察记录的文件夹",
            )))
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
        UsageError(told!(
            command_line::language(),
            "--origin {text}: write a scheme, a host and perhaps a port, such as http://lab.example:3000",
            "--origin {text}: http://lab.example:3000처럼 스킴과 호스트를, 필요하면 포트까지 쓰십시오",
            "--origin {text}：请写协议、主机，必要时加端口，例如 http://lab.example:3000",
        ))
    };
    let origins = arguments.origin.iter().map(|text| Origin::parse(text).ok_or_else(|| origin(text)));
    Ok(Some(ControlSettings {
        token: Token::read(path)?,
        program: env::current_exe().context("cannot find the weir program itself")?,
        studies: arguments.studies.clone(),
        origins: origins.collect::<Result<_, _>>()?,
    }))
}
