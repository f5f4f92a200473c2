//! How the servers of an arm are started, as data: the launcher makes processes of it and fills in what is only known
//! then.

use std::collections::BTreeMap;

use weir_record::spec::Subject;

use crate::{host_defaults::cpu_list, launch::TrialRequest};

/// What stands for the statistics socket in the words of one of Weir's own servers.
pub(crate) const STATS_SOCKET: &str = "{stats_socket}";

/// What stands for the address of the server that was started before.
pub(crate) const UPSTREAM: &str = "{upstream}";

/// One server of an arm. Its words may name files and folders as those of a command do.
pub(crate) struct ServerStart {
    /// What it is called among the processes of a trial.
    pub(crate) name: &'static str,
    /// Whose program it is.
    pub(crate) program: Program,
    /// Its command line.
    pub(crate) words: Vec<String>,
    /// Another build of `weir` that is started, if it is not the one that runs.
    pub(crate) build: Option<String>,
}

/// Whose program a server is, and so how it says that it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `weir`: it says where it listens, and has a statistics socket.
    Weir,
    /// Somebody else's, below a supervisor: told a port, and ready when that accepts.
    Foreign,
}

/// The one server of an arm that has no others behind it: `weir serve` on a driver, or a command; none for what serves
/// no connections.
pub(super) fn single(
    request: &TrialRequest<'_>,
    protocol: &str,
    server_words: impl FnOnce(&[String]) -> Vec<String>,
) -> Vec<ServerStart> {
    let (program, words) = match &request.arm.subject {
        Subject::Weir { driver, options, arguments } => {
            let mut words = serve(protocol, driver, request.cell.workers, request.server_cpus);
            words.extend(server_words(arguments));
            words.extend(engine_options(options));
            words.extend(arguments.iter().cloned());
            (Program::Weir, words)
        }
        Subject::Command { argv } => (Program::Foreign, argv.clone()),
        Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => return Vec::new(),
    };
    vec![ServerStart { name: "server", program, words, build: None }]
}

/// What every server of Weir's is told.
pub(super) fn serve(what: &str, driver: &str, workers: u32, cpus: &[usize]) -> Vec<String> {
    let workers = workers.to_string();
    let mut words = vec![
        ("--driver", driver.to_owned()),
        ("--listen", "127.0.0.1:0".to_owned()),
        ("--workers", workers),
        ("--stats-socket", STATS_SOCKET.to_owned()),
    ];
    words.extend((!cpus.is_empty()).then(|| ("--pin", cpu_list(cpus))));
    super::options(&["serve", what], &words)
}

/// Engine options as `weir serve` and `weir load` take them.
pub(crate) fn engine_options(options: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    options.iter().flat_map(|(name, value)| ["--option".to_owned(), format!("{name}={value}")])
}
