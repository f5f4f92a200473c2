//! `weir dashboard`: stored studies in a browser.

use std::{env, net::SocketAddr, path::PathBuf};

use anyhow::{Context, Result};
use weir_dashboard::{ControlSettings, Origin, Settings, Token};
use weir_report::{Language, localized};

use super::{study, top};
use crate::{
    args::Dashboard,
    exit::{Exit, UsageError},
    language, output, signals,
};

/// In place of a socket's name: all servers of this user.
const AUTO: &str = "auto";

pub(crate) fn run(arguments: &Dashboard) -> Result<Exit> {
    let listen = arguments.listen.parse().map_err(|_| {
        let listen = &arguments.listen;
        UsageError(localized!(
            language::of_command_line(),
            "--listen {listen}: write an address and a port, such as 127.0.0.1:3000",
            "--listen {listen}: 127.0.0.1:3000처럼 주소와 포트를 쓰십시오",
            "--listen {listen}：请写地址和端口，例如 127.0.0.1:3000",
        ))
    })?;
    let language = language::chosen(arguments.lang.as_deref())?;
    let folder = match &arguments.folder {
        // A named folder must exist; the first study makes the default one.
        Some(folder) if !folder.exists() => {
            let folder = folder.display();
            return Err(UsageError(localized!(
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
    output::print(&listens(address, &shown, language))?;
    if !address.ip().is_loopback() {
        output::tell(&reachable(address, can_act, language));
    }
    dashboard.run();
    Ok(Exit::Ok)
}

/// Its address and its content. The address is first in every language, where programs look for it.
fn listens(address: SocketAddr, folder: &str, language: Language) -> String {
    localized!(
        language,
        "http://{address}/ shows the studies in {folder}",
        "http://{address}/ 에서 {folder} 폴더의 실험을 볼 수 있습니다",
        "http://{address}/ 可查看 {folder} 中的实验",
    )
}

/// Who can read and who can act, if other machines can connect.
fn reachable(address: SocketAddr, can_act: bool, language: Language) -> String {
    let acting = language.choose(match can_act {
        true => [
            "users with the token can start and stop studies",
            "토큰이 있는 사람은 실험을 시작하고 중지할 수 있습니다",
            "持有令牌的人可以启动和停止实验",
        ],
        false => ["nobody can change anything", "누구도 변경할 수 없습니다", "任何人都不能更改"],
    });
    localized!(
        language,
        "everybody who reaches {address} can read them; {acting}",
        "{address}에 접속할 수 있는 사람은 누구나 실험을 볼 수 있습니다. {acting}",
        "凡能访问 {address} 的人都可以查看实验；{acting}",
    )
}

/// The folder of recorded observations, which must exist.
fn records(arguments: &Dashboard) -> Result<Option<PathBuf>, UsageError> {
    match &arguments.records {
        Some(folder) if !folder.is_dir() => {
            let folder = folder.display();
            Err(UsageError(localized!(
                language::of_command_line(),
                "--records {folder}: name a folder of recorded observations",
                "--records {folder}: 관찰 기록이 있는 폴더를 지정하십시오",
                "--records {folder}：请指定存放观测记录的文件夹",
            )))
        }
        records => Ok(records.clone()),
    }
}

/// The named statistics sockets, at most as many as can be watched.
fn stats(arguments: &Dashboard) -> Result<Vec<String>, UsageError> {
    let named: Vec<String> = arguments.stats.iter().filter(|name| *name != AUTO).cloned().collect();
    let or_auto = |UsageError(text)| {
        UsageError(localized!(
            language::of_command_line(),
            "{text} or {AUTO}",
            "{text}. {AUTO}도 쓸 수 있습니다",
            "{text} 或 {AUTO}",
        ))
    };
    named.iter().try_for_each(|name| top::check_socket("--stats", name).map_err(or_auto))?;
    top::check_count(named.len())?;
    Ok(named)
}

/// The settings for acting, if a token was given.
fn control(arguments: &Dashboard) -> Result<Option<ControlSettings>> {
    let Some(path) = &arguments.token_file else { return Ok(None) };
    let origin = |text: &String| {
        UsageError(localized!(
            language::of_command_line(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_it_listens_stands_in_front_in_every_language() {
        let address: SocketAddr = "127.0.0.1:3000".parse().expect("an address");
        for language in Language::ALL {
            let said = listens(address, "results", language);
            assert!(said.starts_with("http://127.0.0.1:3000/ ") && said.contains("results"), "{said}");
            assert_eq!(said.contains("shows"), language == Language::English, "{said}");
        }
    }

    #[test]
    fn whoever_opens_it_to_others_is_told_in_every_language_who_can_do_what() {
        let address: SocketAddr = "192.0.2.1:3000".parse().expect("an address");
        for language in Language::ALL {
            let [reads, acts] = [false, true].map(|can_act| reachable(address, can_act, language));
            assert!(reads.contains("192.0.2.1:3000") && acts.contains("192.0.2.1:3000"), "{reads}\n{acts}");
            assert_ne!(reads, acts);
            assert_eq!(acts.contains("token"), language == Language::English, "{acts}");
        }
    }
}
