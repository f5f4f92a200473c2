//! The file of `weir study --hosts`: one machine a line. Pure but for reading the file.
//!
//! A line is `[user@]HOST` and optional settings (`rsh=COMMAND`, `server-host=[user@]HOST`, `server-rsh=COMMAND`,
//! `server-address=IP`), with the quotes and comments of a shell.

use std::{net::IpAddr, path::Path};

use anyhow::Result;
use weir_lab::process::Transport;
use weir_report::{Language, localized};

use crate::exit::UsageError;

/// Most hosts of a file.
const HOSTS_MAX: usize = 1_000;

/// Settings of a line. The last three are flags of the study that runs there.
const RSH: &str = "rsh";
const SERVER_HOST: &str = "server-host";
const SERVER_RSH: &str = "server-rsh";
const SERVER_ADDRESS: &str = "server-address";

/// What stands in a command for the host's name.
const HOST: &str = "{host}";

/// A machine that runs the study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StudyHost {
    /// Its name in messages, and of its folder.
    pub(super) name: String,
    pub(super) way: Transport,
    /// Flags about another host of its servers.
    pub(super) flags: Vec<String>,
    pub(super) line: usize,
}

/// Reads the hosts of a file; `rsh` reaches those whose line names no command.
pub(super) fn read(file: &Path, rsh: Option<&str>, language: Language) -> Result<Vec<StudyHost>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        UsageError(localized!(
            language,
            "--hosts {shown}: it cannot be read: {error}",
            "--hosts {shown}: 읽을 수 없습니다: {error}",
            "--hosts {shown}：无法读取：{error}",
        ))
    })?;
    Ok(parse(&shown.to_string(), &text, rsh, language).map_err(UsageError)?)
}

fn parse(file: &str, text: &str, rsh: Option<&str>, language: Language) -> Result<Vec<StudyHost>, String> {
    let mut hosts: Vec<StudyHost> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let at = |reason: String| format!("{file}:{number}: {reason}");
        let Some(host) = host(line, number, rsh, language).map_err(at)? else { continue };
        if let Some(earlier) = hosts.iter().find(|earlier| earlier.name == host.name) {
            let (name, line) = (&host.name, earlier.line);
            return Err(at(localized!(
                language,
                "{name} is on line {line} already; write each host once (with rsh= the first word may be any name)",
                "{name}: {line}번째 줄에 이미 있습니다. 호스트마다 한 번만 쓰십시오(rsh=를 쓰면 첫 단어는 아무 이름이나 됩니다)",
                "{name} 已在第 {line} 行；每台主机只写一次（使用 rsh= 时第一个词可以是任意名称）",
            )));
        }
        hosts.push(host);
        if hosts.len() > HOSTS_MAX {
            return Err(at(localized!(
                language,
                "more than {HOSTS_MAX} hosts; divide the file",
                "호스트가 {HOSTS_MAX}대를 넘습니다. 파일을 나누십시오",
                "主机超过 {HOSTS_MAX} 台；请拆分文件",
            )));
        }
    }
    if hosts.is_empty() {
        return Err(localized!(
            language,
            "--hosts {file} names no host; write one [user@]HOST a line",
            "--hosts {file}: 호스트가 없습니다. 한 줄에 하나씩 [user@]HOST를 쓰십시오",
            "--hosts {file} 中没有主机；请每行写一个 [user@]HOST",
        ));
    }
    Ok(hosts)
}

/// The host of a line; `None` for an empty line or a comment.
fn host(
    line: &str,
    number: usize,
    rsh: Option<&str>,
    language: Language,
) -> Result<Option<StudyHost>, String> {
    let Some(words) = shlex::split(line) else {
        return Err(language
            .choose(["a quote is not closed", "따옴표가 닫히지 않았습니다", "引号没有闭合"])
            .to_owned());
    };
    let Some((typed, settings)) = words.split_first() else { return Ok(None) };
    let (mut own_rsh, mut flags) = (None, Vec::new());
    for word in settings {
        match word.split_once('=') {
            Some((RSH, command)) => own_rsh = Some(command),
            Some((key @ (SERVER_HOST | SERVER_RSH | SERVER_ADDRESS), value)) => {
                check(key, value, language)?;
                let flag = if key == SERVER_RSH { RSH } else { key };
                flags.push(format!("--{flag}={value}"));
            }
            _ => return Err(unknown(word, language)),
        }
    }
    let name = typed.rsplit_once('@').map_or(typed.as_str(), |(_, name)| name);
    if !is_name(typed) || !is_name(name) {
        return Err(localized!(
            language,
            "{typed:?} is no host; write [user@]HOST, as for ssh",
            "{typed:?}: 호스트가 아닙니다. ssh에 쓰는 것처럼 [user@]HOST로 쓰십시오",
            "{typed:?} 不是主机；请像 ssh 那样写 [user@]HOST",
        ));
    }
    let way = match own_rsh.or(rsh) {
        None => Transport::ssh(typed).map_err(|error| error.to_string())?,
        Some(command) => {
            let words = shlex::split(command).unwrap_or_default();
            let words = words.iter().map(|word| word.replace(HOST, typed)).collect();
            Transport::command(command, words, Some(name)).map_err(|_| no_command(command, language))?
        }
    };
    Ok(Some(StudyHost { name: name.to_owned(), way, flags, line: number }))
}

/// Whether a text may name a host and a folder.
fn is_name(text: &str) -> bool {
    let is_plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && letter != '/';
    !text.is_empty() && !text.starts_with(['-', '.']) && text.chars().all(is_plain)
}

/// Refuses a value that the study there would refuse.
fn check(key: &str, value: &str, language: Language) -> Result<(), String> {
    match key {
        SERVER_ADDRESS if value.parse::<IpAddr>().is_err() => Err(localized!(
            language,
            "{key}={value} is no IP address",
            "{key}={value}: IP 주소가 아닙니다",
            "{key}={value} 不是 IP 地址",
        )),
        SERVER_HOST if !is_name(value) => Err(localized!(
            language,
            "{key}={value} is no host; write [user@]HOST, as for ssh",
            "{key}={value}: 호스트가 아닙니다. ssh에 쓰는 것처럼 [user@]HOST로 쓰십시오",
            "{key}={value} 不是主机；请像 ssh 那样写 [user@]HOST",
        )),
        SERVER_RSH if shlex::split(value).unwrap_or_default().is_empty() => Err(no_command(value, language)),
        _ => Ok(()),
    }
}

fn no_command(command: &str, language: Language) -> String {
    localized!(
        language,
        "rsh {command:?} is no command; write one that runs the words behind it on the host",
        "rsh {command:?}: 명령이 아닙니다. 뒤에 붙는 명령을 그 호스트에서 실행하는 명령을 쓰십시오",
        "rsh {command:?} 不是命令；请写在该主机上执行其后命令的命令",
    )
}

fn unknown(word: &str, language: Language) -> String {
    localized!(
        language,
        "{word:?} is not known; behind a host stand {RSH}=COMMAND, {SERVER_HOST}=[user@]HOST, {SERVER_RSH}=COMMAND or \
         {SERVER_ADDRESS}=IP",
        "{word:?}: 알 수 없는 값입니다. 호스트 뒤에는 {RSH}=COMMAND, {SERVER_HOST}=[user@]HOST, {SERVER_RSH}=COMMAND, {SERVER_ADDRESS}=IP를 쓸 \
         수 있습니다",
        "{word:?}：未知的值；主机之后可写 {RSH}=COMMAND、{SERVER_HOST}=[user@]HOST、{SERVER_RSH}=COMMAND 或 {SERVER_ADDRESS}=IP",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str, rsh: Option<&str>) -> Result<Vec<StudyHost>, String> {
        parse("hosts", text, rsh, Language::English)
    }

    fn command(text: &str, words: &[&str], name: &str) -> Transport {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Transport::command(text, words, Some(name)).expect("a command")
    }

    #[test]
    fn a_line_is_a_host_and_its_settings() {
        let text = "# all of rack 3\n\nme@b.example\nc rsh=\"docker exec -i c\" # a container\n\
                    d server-host=e server-address=10.0.0.5 server-rsh='nsenter -t 1 -n'\n";
        let hosts = parsed(text, None).expect("it is right");
        assert_eq!(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>(), ["b.example", "c", "d"]);
        assert_eq!(hosts[0].way, Transport::ssh("me@b.example").expect("a host"));
        assert_eq!(hosts[1].way, command("docker exec -i c", &["docker", "exec", "-i", "c"], "c"));
        let flags = ["--server-host=e", "--server-address=10.0.0.5", "--rsh=nsenter -t 1 -n"];
        assert_eq!(hosts[2].flags, flags);
        assert!(hosts[0].flags.is_empty());
    }

    #[test]
    fn a_command_for_all_hosts_has_the_name_of_each() {
        let hosts = parsed("node1\nnode2 rsh='env'\n", Some("srun -w {host}")).expect("it is right");
        assert_eq!(hosts[0].way, command("srun -w {host}", &["srun", "-w", "node1"], "node1"));
        assert_eq!(hosts[1].way, command("env", &["env"], "node2"));
    }

    #[test]
    fn a_mistake_names_its_line_and_the_way_out() {
        for (text, wrong) in [
            ("a\n'b\n", "hosts:2: a quote is not closed"),
            ("a\n\nme@a\n", "hosts:3: a is on line 1 already; write each host once"),
            ("-oProxyCommand=x\n", "hosts:1: \"-oProxyCommand=x\" is no host; write [user@]HOST"),
            ("../b\n", "hosts:1: \"../b\" is no host"),
            ("me@../b\n", "hosts:1: \"me@../b\" is no host"),
            ("a slots=4\n", "hosts:1: \"slots=4\" is not known; behind a host stand rsh=COMMAND"),
            ("a b\n", "hosts:1: \"b\" is not known"),
            ("a rsh=\n", "hosts:1: rsh \"\" is no command"),
            ("a server-rsh=\n", "hosts:1: rsh \"\" is no command"),
            ("a server-address=b\n", "hosts:1: server-address=b is no IP address"),
            ("a server-host=-x\n", "hosts:1: server-host=-x is no host"),
            ("# none\n", "--hosts hosts names no host"),
        ] {
            let said = parsed(text, None).expect_err(text);
            assert!(said.starts_with(wrong), "{said}");
        }
        let many = |count: usize| (0..count).map(|number| format!("h{number}\n")).collect::<String>();
        assert_eq!(parsed(&many(HOSTS_MAX), None).map(|hosts| hosts.len()), Ok(HOSTS_MAX));
        let said = parsed(&many(HOSTS_MAX + 1), None).expect_err("one too many");
        assert!(said.starts_with("hosts:1001: more than 1000 hosts"), "{said}");
    }
}
