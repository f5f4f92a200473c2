//! The protocols that can be measured, one file each: factors, further keys of cells and arms in a study file, and
//! the conditions between them. A study has one protocol.

mod echo;
mod factor;
pub(crate) mod http;
mod orders;
mod running;
pub(crate) mod start;
pub(crate) mod storage;

use std::{collections::BTreeMap, time::Duration};

use weir_proto::content::Content;
use weir_record::{
    finding::NoTurns,
    gateway::ChainTotals,
    orders::NodeStats,
    spec::{ArmSpec, CellSpec, LoadMode, StudySpec, Subject},
};

pub(crate) use echo::{DRIVERS, driver_name};
pub(crate) use factor::{Factor, Kind, Machine, Value};
use start::ServerStart;

use crate::{
    host_defaults::HostDefaults,
    launch::TrialRequest,
    limits::{SpecError, instead},
    toml_table::{FieldError, Table},
};

/// Sets a key of the file in a cell.
pub(crate) type Setting = Box<dyn Fn(&mut CellSpec)>;

/// A protocol: one kind of message and its answer.
pub(crate) trait Protocol: Sync {
    /// Name in a study file.
    fn name(&self) -> &'static str;

    /// Its factors, in the order of a cell's identifier.
    fn factors(&self) -> &'static [Factor];

    /// Adds the part that only this protocol has to a cell, without any operations yet.
    fn begin(&self, _cell: &mut CellSpec) {}

    /// Whether a file may define the requests of a mix.
    fn has_requests(&self) -> bool {
        false
    }

    /// Default of a cell's longest warm-up, in nanoseconds.
    fn warmup_ns_max(&self) -> u64 {
        // The generator needs 0.6 s to consider a load steady, and often a little more.
        800_000_000
    }

    /// Keys that a file may have for all of its cells, or in a single cell.
    fn settings(&self, _table: &mut Table<'_>) -> Result<Vec<Setting>, FieldError> {
        Ok(Vec::new())
    }

    /// Arguments of a generator of this protocol; `None` if the arm itself is the load.
    fn generator(&self) -> Option<LoadWords>;

    /// Arguments of the generator for the server of one arm.
    fn arm_words(&self, _arm: &ArmSpec) -> Vec<String> {
        Vec::new()
    }

    /// The servers of an arm in a cell, in the order in which they start. The last is loaded, and each is in front of
    /// the server started before it. Empty if an arm does its work itself.
    fn servers(&self, request: &TrialRequest<'_>) -> Vec<ServerStart> {
        start::single(request, self.name(), |own| self.server_words(request.cell, own))
    }

    /// Arguments of a server of this protocol, beside those that the arm has for it.
    fn server_words(&self, _cell: &CellSpec, _own: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// The content that foreign servers of a cell serve, if it is a file.
    fn content(&self, _cell: &CellSpec) -> Option<Content> {
        None
    }

    /// Totals of servers behind each other, from the counters of each, the loaded one first.
    fn chain_totals(&self, _cell: &CellSpec, _nodes: &[NodeStats]) -> Option<ChainTotals> {
        None
    }

    /// Time before the warm-up in which connections are opened, in nanoseconds.
    fn ramp_up_ns(&self, _cell: &CellSpec) -> u64 {
        0
    }

    /// Longest waits of the generator for a connection and for an answer, in nanoseconds; zero for its default.
    fn timeouts_ns(&self, _cell: &CellSpec) -> [u64; 2] {
        [0; 2]
    }

    /// Whether shares are of the baseline's capacity, and not of the smallest capacity of all arms.
    fn has_capacity_of_baseline(&self) -> bool {
        false
    }

    /// Whether claims are about a rate that all arms are offered, unless a file asks for saturation. Otherwise each
    /// cell defines its load.
    fn has_rungs(&self) -> bool {
        self.generator().is_some()
    }

    /// The subject of an arm, from its keys: a server, unless the protocol defines something else.
    fn subject(&self, arm: &mut Table<'_>) -> Result<Subject, FieldError> {
        echo::subject(arm, self.name())
    }

    /// The command line of an arm, for display.
    fn runs(&self, subject: &Subject) -> Vec<String> {
        echo::runs(subject)
    }

    /// Sets the CPUs and drivers that the file leaves to the machine.
    fn place(&self, spec: &mut StudySpec, host_defaults: &HostDefaults) {
        spec.server_cpus.clone_from(&host_defaults.server_cpus);
        spec.load_cpus.clone_from(&host_defaults.load_cpus);
    }

    /// Text of its load in a cell's identifier.
    fn load_shown(&self, cell: &CellSpec) -> Option<String> {
        Some(factor::load_shown(&cell.load))
    }

    /// Why the arms of such a cell cannot take turns, if the protocol is the reason.
    fn obstacle(&self, _cell: &CellSpec) -> Option<NoTurns> {
        None
    }

    /// The same for an arm.
    fn obstacle_of_arm(&self, arm: &ArmSpec) -> Option<NoTurns> {
        echo::obstacle_of_arm(arm)
    }

    /// Shortest slice in nanoseconds. In a shorter one the burst at its beginning appears as an effect of going
    /// first.
    fn slice_ns_min(&self) -> u64 {
        25_000_000
    }

    /// Time of a message for a server that is not among the fastest, on few connections, in nanoseconds. If every arm
    /// is at least this fast, the slices of a plan hold enough messages on each connection.
    fn message_ns(&self) -> u64 {
        8_000
    }

    /// Total length of the slices of a round over all runs, in nanoseconds. Fresh processes differ from each other,
    /// so rounds should be short and many.
    fn round_ns(&self) -> u64 {
        600_000_000
    }

    /// Time that an arm of a round takes to start and to end, in nanoseconds.
    fn start_ns(&self, _cell: &CellSpec) -> u64 {
        40_000_000
    }

    /// Checks a cell beyond the ranges of its levels.
    fn check_cell(&self, _cell: &CellSpec) -> Result<(), SpecError> {
        Ok(())
    }

    /// Checks the conditions between arms and cells.
    fn check_arms(&self, spec: &StudySpec) -> Result<(), SpecError> {
        echo::check_servers(spec)
    }
}

/// Arguments of `weir load` that define the messages, for a cell and the address of a server.
pub(crate) type LoadWords = fn(&CellSpec, &str) -> Vec<String>;

/// Words and their values as a command line has them.
fn options(head: &[&str], options: &[(&str, String)]) -> Vec<String> {
    let words = options.iter().flat_map(|(name, value)| [(*name).to_owned(), value.clone()]);
    head.iter().map(|word| (*word).to_owned()).chain(words).collect()
}

/// Engine options in short form.
pub(crate) fn shown_options(options: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    options.iter().map(|(name, value)| format!("-o {name}={value}"))
}

/// Open connections and messages in flight of a generator.
fn connected(cell: &CellSpec) -> [(&'static str, String); 2] {
    [("--connections", cell.connections.to_string()), ("--depth", cell.depth.to_string())]
}

/// A length of time as the command line takes it.
pub(crate) fn seconds(nanoseconds: u64) -> String {
    format!("{}s", Duration::from_nanos(nanoseconds).as_secs_f64())
}

/// All protocols.
pub(crate) const ALL: [&dyn Protocol; 4] = [&echo::Echo, &http::Http, &storage::Storage, &orders::Orders];

/// The protocol of this name.
pub(crate) fn named(name: &str) -> Result<&'static dyn Protocol, SpecError> {
    let found = ALL.into_iter().find(|protocol| protocol.name() == name);
    found.ok_or_else(|| {
        let message = format!("there is no protocol {name:?}; {}", instead(name, &ALL.map(Protocol::name)));
        SpecError::new("protocol", message)
    })
}

/// The protocol of a cell. An unknown one was refused with its study.
pub(crate) fn of(cell: &CellSpec) -> &'static dyn Protocol {
    named(cell.protocol()).unwrap_or(&echo::Echo)
}

/// Checks that a study has one protocol, and the protocol's conditions on its arms.
pub(crate) fn check(spec: &StudySpec) -> Result<&'static dyn Protocol, SpecError> {
    let Some(first) = spec.cells.first() else { return Ok(&echo::Echo) };
    let protocol = named(first.protocol())?;
    if let Some(cell) = spec.cells.iter().find(|cell| cell.protocol() != protocol.name()) {
        let message = format!(
            "{} is of {} and {} of {}; a study has one protocol",
            first.id,
            protocol.name(),
            cell.id,
            cell.protocol()
        );
        return Err(SpecError::new("protocol", message));
    }
    protocol.check_arms(spec)?;
    Ok(protocol)
}

/// Identifier of a cell, from its levels: `c100-d1-m64-closed`, `c50-d1-b1024-reconnect-closed`, `randread-b4096-qd1`,
/// `closed-uring-w2`.
pub fn cell_id(cell: &CellSpec) -> String {
    let protocol = of(cell);
    let levels = protocol.factors().iter().filter_map(|factor| (factor.shown)(cell));
    let beside = cell.neighbours.iter().map(|name| format!("beside-{name}"));
    let parts: Vec<String> = levels.chain(protocol.load_shown(cell)).chain(beside).collect();
    parts.join("-")
}

/// Whether the load is a closed loop.
fn is_closed(cell: &CellSpec) -> bool {
    cell.load == LoadMode::Closed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the documented table of factors.
    fn documented() -> Vec<Vec<&'static str>> {
        let text = include_str!("../../../../docs/study-file.md");
        let (_, table) = text.split_once("| factor | protocol |").expect("there is a table");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }

    #[test]
    fn every_factor_is_documented_with_its_default_and_its_range() {
        let rows = documented();
        for protocol in ALL {
            for factor in protocol.factors() {
                let is_its = |row: &&Vec<&str>| {
                    row[0] == format!("`{}`", factor.key)
                        && row[1].split(", ").any(|it| it == protocol.name())
                };
                let found: Vec<&Vec<&str>> = rows.iter().filter(is_its).collect();
                let [row] = found[..] else { panic!("{} of {}: {found:?}", factor.key, protocol.name()) };
                let default = factor.default.as_ref().map(Value::to_string).unwrap_or_default();
                assert_eq!(row[2], default, "{} of {}", factor.key, protocol.name());
                if let Kind::Number(level) = &factor.kind {
                    let range = level.range();
                    let text = format!("{} to {}", range.start(), range.end());
                    assert!(row[3].starts_with(&text), "{}: {text}, not {}", factor.key, row[3]);
                }
            }
        }
        let factors: usize = ALL.iter().map(|protocol| protocol.factors().len()).sum();
        let told: usize = rows.iter().map(|row| row[1].split(", ").count()).sum();
        assert_eq!(factors, told, "a factor is documented that is not there");
    }
}
