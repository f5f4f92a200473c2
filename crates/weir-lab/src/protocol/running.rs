//! Arms that are servers which run already, as a file or a command line defines them: the address, and the processes
//! whose CPU is the server's. This module does not look for processes.

use weir_record::spec::{CellSpec, RunningServer};

use crate::{
    limits::SpecError,
    toml_table::{At, Entry, FieldError, Table},
};

/// Port of a URL without a port.
pub(super) const HTTP_PORT: u16 = 80;

/// Reads the keys of an arm that runs already. The caller has taken the value of `running`.
pub(super) fn read(
    arm: &mut Table<'_>,
    running: Entry<'_>,
    protocol: &str,
) -> Result<RunningServer, FieldError> {
    let at = running.at;
    let address = address(&running.text()?, protocol).at(at)?;
    let pid = arm.read("pid", |entry| {
        let wrong = entry.wrong("a process has a number from 1 on".to_owned());
        u32::try_from(entry.number()?).ok().filter(|pid| *pid > 0).ok_or(wrong)
    })?;
    let cgroup = arm.read("cgroup", Entry::text)?;
    if pid.is_some() && cgroup.is_some() {
        return Err(arm.wrong("give either `pid` or `cgroup`: the CPU of one of them is read"));
    }
    Ok(RunningServer { address, pid, cgroup })
}

/// Address of a server, as `HOST:PORT`, from `http://HOST[:PORT]`, `tcp://HOST:PORT` or `HOST:PORT`.
pub(super) fn address(text: &str, protocol: &str) -> Result<String, SpecError> {
    let wrong = |message: String| Err(SpecError::new("arm.running", message));
    let own = if protocol == "http" { "http" } else { "tcp" };
    let (scheme, rest) = text.split_once("://").unwrap_or((own, text));
    if scheme != own {
        return wrong(format!("{text:?}: a study of {protocol} needs {own}://HOST:PORT"));
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#', '@']) || rest.contains(char::is_whitespace) {
        let paths = match protocol {
            "http" => "; the path follows from `content`, or from the requests of a mix",
            _ => "",
        };
        return wrong(format!("{text:?}: write {own}://HOST:PORT and nothing more{paths}"));
    }
    let has_port = rest.rsplit_once(':').is_some_and(|(host, _)| host.ends_with(']') || !host.contains(':'));
    let whole = match has_port {
        false if own == "http" && !rest.is_empty() => format!("{rest}:{HTTP_PORT}"),
        _ => rest.to_owned(),
    };
    let is_right = whole
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_right { Ok(whole) } else { wrong(format!("{text:?}: write {own}://HOST:PORT")) }
}

/// Checks such an arm and the cells in which it runs.
pub(super) fn check<'c>(
    server: &RunningServer,
    protocol: &str,
    mut cells: impl Iterator<Item = &'c CellSpec>,
) -> Result<(), SpecError> {
    address(&server.address, protocol)?;
    if server.pid.is_some() && server.cgroup.is_some() {
        return Err(SpecError::new(
            "arm.cgroup",
            "it has a `pid` too; the CPU of one of them is read".to_owned(),
        ));
    }
    let is_whole = |cell: &&CellSpec| server.cgroup.is_some() && cell.alternation.is_none();
    match cells.find(is_whole) {
        Some(cell) => Err(SpecError::new(
            "arm.cgroup",
            format!(
                "the arms of {} do not take turns, and only where they do the CPU of a control group is read; give `pid`",
                cell.id
            ),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let http = |text: &str| address(text, "http").map_err(|error| error.to_string());
        assert_eq!(http("http://127.0.0.1:8080").as_deref(), Ok("127.0.0.1:8080"));
        assert_eq!(http("http://localhost/").as_deref(), Ok("localhost:80"));
        assert_eq!(http("http://[::1]").as_deref(), Ok("[::1]:80"));
        assert_eq!(http("[::1]:81").as_deref(), Ok("[::1]:81"));
        assert_eq!(address("tcp://127.0.0.1:7", "echo").as_deref(), Ok("127.0.0.1:7"));
        for (text, words) in [
            ("tcp://127.0.0.1:7", "needs http://HOST:PORT"),
            ("https://127.0.0.1", "needs http://HOST:PORT"),
            ("http://127.0.0.1/a", "the path follows from `content`"),
            ("http://", "write http://HOST:PORT"),
            ("http://:80", "write http://HOST:PORT"),
            ("http://a:0", "write http://HOST:PORT"),
            ("http://a:70000", "write http://HOST:PORT"),
        ] {
            let error = http(text).expect_err(text);
            assert!(error.starts_with("arm.running: ") && error.contains(words), "{error}");
        }
        assert!(address("tcp://a", "echo").is_err(), "echo has no usual port");
    }
}
