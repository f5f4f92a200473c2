//! The machines of a study: this one, or another host for the servers (`--server-host`, `--rsh`, `--server-address`)
//! and this one for the load.

use std::{cell::RefCell, net::IpAddr, path::Path, rc::Rc, sync::atomic::AtomicBool, time::Duration};

use anyhow::Result;
use weir_evidence::load_link;
use weir_lab::{
    host_defaults::DriverFound,
    launch::LaunchError,
    process::{Deadlines, ProcessLauncher, RemoteHost, Transport},
    run::RunError,
};
use weir_record::{
    machine::{FactDifference, Fingerprint},
    spec::{ServerHost, StudySpec},
};
use weir_report::{Language, localized};

use crate::{
    args::{Doctor, Study},
    exit::UsageError,
    language, output,
};

/// The machines that a study is planned for.
pub(super) struct Machines {
    /// The machine of the servers, with the machine of the load if it is another.
    pub(super) fingerprint: Fingerprint,
    /// The other host, if the servers run on one.
    pub(super) elsewhere: Option<Elsewhere>,
}

/// Another host, and the flags that named it.
pub(super) struct Elsewhere {
    host: Rc<RefCell<RemoteHost>>,
    address: IpAddr,
    pub(super) asked: ServerHost,
    /// The agent's findings about drivers, and about congestion control.
    pub(super) drivers: Vec<DriverFound>,
    pub(super) congestion_controls: Vec<String>,
}

impl Machines {
    /// This machine alone.
    pub(super) fn here() -> Self {
        Self { fingerprint: weir_evidence::fingerprint::fingerprint(), elsewhere: None }
    }

    /// This machine, and a connected host of the servers if the flags name one. `None` if the user ended the
    /// connection.
    pub(super) fn find(
        asked: Option<ServerHost>,
        interrupt: &AtomicBool,
        language: Language,
    ) -> Result<Option<Self>> {
        let here = Self::here();
        let Some(asked) = asked else { return Ok(Some(here)) };
        let Some(mut host) = connect(&asked, interrupt)? else { return Ok(None) };
        let address = match asked.address.parse() {
            Ok(address) => address,
            Err(_) => host.address().map_err(refused)?,
        };
        host.check_address(address).map_err(refused)?;
        if unless_ended(host.find_load_link(address, interrupt))?.is_none() {
            return Ok(None);
        }
        let delay = host.delay();
        tell_found(&host, address, delay, language);
        let facts = host.facts();
        let interface = if host.shares_network() { None } else { load_link::towards(address) };
        let load_link = load_link::facts_of(interface.as_deref());
        let load_host = Some(Box::new(Fingerprint { load_link, ..here.fingerprint }));
        let fingerprint = Fingerprint { load_host, ..facts.fingerprint.clone() };
        let (drivers, congestion_controls) = (facts.drivers.clone(), facts.congestion_controls.clone());
        let control_delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        let asked = ServerHost { address: address.to_string(), control_delay_ns, ..asked };
        let host = Rc::new(RefCell::new(host));
        let elsewhere = Some(Elsewhere { host, address, asked, drivers, congestion_controls });
        Ok(Some(Self { fingerprint, elsewhere }))
    }

    /// A launcher that runs servers on their host. `None` if the user ended its preparation.
    pub(super) fn launcher(
        &self,
        program: &Path,
        spec: &StudySpec,
        interrupt: &AtomicBool,
    ) -> Result<Option<ProcessLauncher>> {
        let (program, deadlines) = (program.to_path_buf(), Deadlines::default());
        let Some(there) = &self.elsewhere else {
            return Ok(Some(ProcessLauncher::new(program, spec, deadlines)));
        };
        let host = (Rc::clone(&there.host), there.address);
        unless_ended(ProcessLauncher::elsewhere(program, spec, deadlines, host, interrupt))
    }

    /// The process that leads to the other host: a child of ours, although no trial waits for it.
    pub(super) fn transport(&self) -> Option<u32> {
        self.elsewhere.as_ref()?.host.try_borrow().ok()?.pid()
    }

    /// Prints the other host's messages, with its name before each line, and what changed there while the connection
    /// was lost.
    pub(super) fn tell_said(&self, language: Language) {
        let Some(Ok(mut host)) = self.elsewhere.as_ref().map(|there| there.host.try_borrow_mut()) else {
            return;
        };
        host.take_said().iter().for_each(|line| output::tell(line));
        tell_changes(host.take_changes(), language);
    }
}

/// Reports what changed on the machines since the study began.
pub(super) fn tell_changes(changes: Vec<FactDifference>, language: Language) {
    for FactDifference { name, one, other } in changes {
        output::tell(&localized!(
            language,
            "changed since the study began: {name}, {one} then, {other} now",
            "연구를 시작한 뒤 바뀐 것: {name}, 그때 {one}, 지금 {other}",
            "研究开始后有变化：{name}，当时 {one}，现在 {other}",
        ));
    }
}

/// Connects to a host. `None` if the user ended that.
pub(super) fn connect(asked: &ServerHost, interrupt: &AtomicBool) -> Result<Option<RemoteHost>> {
    unless_ended(RemoteHost::connect(way(asked)?, interrupt))
}

/// The result of a step, or `None` if the user ended it.
pub(super) fn unless_ended<T>(result: Result<T, LaunchError>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(LaunchError::Interrupted) => Ok(None),
        Err(error) => Err(refused(error)),
    }
}

/// The doctor's host, if it is not this machine.
pub(super) fn of_doctor(Doctor { host, rsh, .. }: &Doctor) -> Option<ServerHost> {
    let is_another = host.is_some() || rsh.is_some();
    is_another.then(|| ServerHost { host: host.clone(), rsh: rsh.clone(), ..ServerHost::default() })
}

/// The host of the servers, if the command line names another.
pub(super) fn asked(arguments: &Study) -> Result<Option<ServerHost>, UsageError> {
    let Study { server_host, rsh, server_address, .. } = arguments;
    if server_host.is_none() && rsh.is_none() {
        if server_address.is_some() {
            let text = language::of_command_line().choose([
                "--server-address is of another host; add --server-host or --rsh, or leave it out",
                "--server-address는 다른 호스트의 주소입니다. --server-host나 --rsh를 더하거나 빼십시오",
                "--server-address 是另一台主机的地址；请加上 --server-host 或 --rsh，或去掉它",
            ]);
            return Err(UsageError(text.to_owned()));
        }
        return Ok(None);
    }
    let address = server_address.map(|address| address.to_string()).unwrap_or_default();
    let (host, rsh) = (server_host.clone(), rsh.clone());
    Ok(Some(ServerHost { host, rsh, address, control_delay_ns: 0 }))
}

fn way(asked: &ServerHost) -> Result<Transport, UsageError> {
    let host = asked.host.as_deref();
    let way = match &asked.rsh {
        Some(text) => Transport::command(text, shlex::split(text).unwrap_or_default(), host),
        None => Transport::ssh(host.unwrap_or_default()),
    };
    way.map_err(|error| UsageError(error.to_string()))
}

/// Reports where the servers run.
fn tell_found(host: &RemoteHost, address: IpAddr, delay: Duration, language: Language) {
    let name = host.name();
    let delay = delay.as_secs_f64() * 1e3;
    output::tell(&localized!(
        language,
        "servers run on {name} and listen at {address}; a question to it takes {delay:.2} ms",
        "서버 호스트 {name}, 수신 주소 {address}. 제어 왕복 시간 {delay:.2} ms",
        "服务器运行于 {name}，监听地址 {address}；控制往返耗时 {delay:.2} 毫秒",
    ));
}

/// An error of the laboratory as an error of the command line.
fn refused(error: LaunchError) -> anyhow::Error {
    match error {
        LaunchError::Usage(reason) => UsageError(reason).into(),
        LaunchError::Environment(reason) => RunError::Environment(reason).into(),
        LaunchError::Interrupted => RunError::Environment("interrupted".to_owned()).into(),
    }
}
