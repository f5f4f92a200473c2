//! How the servers of an arm are started, as data. The launcher starts processes from it and fills in what is known
//! only then.

use std::collections::BTreeMap;

use weir_record::spec::{CellSpec, Subject};

use crate::{host_defaults::cpu_list, launch::TrialRequest};

/// Placeholder of the statistics socket in the words of one of Weir's own servers.
pub(crate) const STATS_SOCKET: &str = "{stats_socket}";

/// Placeholder of the listen address of one of Weir's own servers, with a port that the system chooses.
pub(crate) const LISTEN: &str = "{listen}";

/// Placeholder of the address of the server that was started before.
pub(crate) const UPSTREAM: &str = "{upstream}";

/// One server of an arm. Its words may contain the placeholders for files and folders that a command may contain.
pub(crate) struct ServerStart {
    /// Its name among the processes of a trial.
    pub(crate) name: &'static str,
    /// Kind of its program.
    pub(crate) program: Program,
    /// Its command line.
    pub(crate) words: Vec<String>,
    /// Another build of `weir` to start, if it is not the running one.
    pub(crate) build: Option<String>,
}

/// Kind of a server's program, which determines how it reports that it is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// `weir`: it reports the address on which it listens, and has a statistics socket.
    Weir,
    /// A foreign program, below a supervisor: it receives a port, and is ready when that port accepts connections.
    Foreign,
}

/// The single server of an arm with none behind it: `weir serve` on a driver, or a command. Empty for an arm that
/// serves no connections.
pub(super) fn single(
    request: &TrialRequest<'_>,
    protocol: &str,
    server_words: impl FnOnce(&[String]) -> Vec<String>,
) -> Vec<ServerStart> {
    let (program, words) = match &request.arm.subject {
        Subject::Weir { driver, options, arguments } => {
            let mut words = serve(protocol, driver, request.cell.workers, request.server_cpus);
            words.extend(accept(request.cell, arguments));
            words.extend(server_words(arguments));
            words.extend(engine_options(options));
            words.extend(congestion_control(request.cell, options));
            words.extend(arguments.iter().cloned());
            (Program::Weir, words)
        }
        Subject::Command { argv } => (Program::Foreign, argv.clone()),
        Subject::Running(_) | Subject::Gateway(_) | Subject::Storage(_) | Subject::Fio { .. } => {
            return Vec::new();
        }
    };
    vec![ServerStart { name: "server", program, words, build: None }]
}

/// How connections reach several workers, unless the arm sets it itself.
fn accept(cell: &CellSpec, own: &[String]) -> Vec<String> {
    let is_own = own.iter().any(|word| word == "--accept" || word.starts_with("--accept="));
    let accept = Some(&cell.accept).filter(|accept| cell.workers > 1 && !accept.is_empty() && !is_own);
    accept.map_or(Vec::new(), |accept| vec!["--accept".to_owned(), accept.clone()])
}

/// Arguments of every server of Weir's.
pub(super) fn serve(what: &str, driver: &str, workers: u32, cpus: &[usize]) -> Vec<String> {
    let workers = workers.to_string();
    let mut words = vec![
        ("--driver", driver.to_owned()),
        ("--listen", LISTEN.to_owned()),
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

/// Congestion control of the cell as an argument, unless the options of that side set it themselves.
pub(crate) fn congestion_control(cell: &CellSpec, options: &BTreeMap<String, String>) -> Vec<String> {
    const OPTION: &str = "congestion-control";
    let name =
        Some(&cell.congestion_control).filter(|name| !name.is_empty() && !options.contains_key(OPTION));
    name.map_or(Vec::new(), |name| vec!["--option".to_owned(), format!("{OPTION}={name}")])
}

#[cfg(test)]
mod tests {
    use weir_judge::sample;

    use super::*;

    #[test]
    fn both_sides_are_told_a_cells_congestion_control_unless_they_have_one() {
        let mut cell = sample::study(&["epoll"], 1, 1).cells.remove(0);
        assert!(congestion_control(&cell, &BTreeMap::new()).is_empty(), "the kernel's own");
        cell.congestion_control = "bbr".to_owned();
        assert_eq!(congestion_control(&cell, &BTreeMap::new()), ["--option", "congestion-control=bbr"]);
        let own = BTreeMap::from([("congestion-control".to_owned(), "cubic".to_owned())]);
        assert!(congestion_control(&cell, &own).is_empty());
    }

    #[test]
    fn several_workers_are_told_how_connections_reach_them_unless_the_arm_says_it() {
        let mut cell = sample::study(&["epoll"], 1, 1).cells.remove(0);
        cell.accept = "acceptor".to_owned();
        assert!(accept(&cell, &[]).is_empty(), "one worker gets all of them");
        cell.workers = 2;
        assert_eq!(accept(&cell, &["--backlog".to_owned()]), ["--accept", "acceptor"]);
        assert!(accept(&cell, &["--accept=reuseport".to_owned()]).is_empty());
        cell.accept.clear();
        assert!(accept(&cell, &[]).is_empty(), "a study of an earlier version goes on as it began");
    }
}
