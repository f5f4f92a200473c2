//! Factors as data: the possible levels, the setting of a level in a cell, and its text in the cell's identifier.

use std::{borrow::Cow, fmt};

use weir_record::spec::{CellSpec, LoadMode};
use weir_sys::affinity::cpu_set;

use crate::{
    host_defaults::{HostDefaults, cpu_list},
    limits::{Level, SpecError},
    toml_table::{At, Entry, FieldError},
};

/// A level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u32),
    Word(Cow<'static, str>),
    Flag(bool),
}

impl Value {
    pub(crate) fn number(&self) -> u32 {
        if let Self::Number(number) = self { *number } else { 0 }
    }

    pub(crate) fn word(&self) -> &str {
        if let Self::Word(word) = self { word } else { "" }
    }

    pub(crate) fn is_true(&self) -> bool {
        *self == Self::Flag(true)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Word(word) => formatter.write_str(word),
            Self::Flag(flag) => write!(formatter, "{flag}"),
        }
    }
}

/// Kinds of levels.
pub(crate) enum Kind {
    /// Whole numbers.
    Number(Level),
    /// Numbers of threads. `"cpus"` is the number of the server side's CPUs; `"up-to-cpus"` is 1, 2, 4 and so on, up
    /// to that number.
    Threads,
    /// Sets of CPUs, as `"0,2"` or `"2-3"`.
    Cpus,
    /// The same for the server side. `"all"` is the side's own CPUs; `"fewer"` is its first 1, 2, 4 and so on, but
    /// not all of them: none if it has one.
    ServerCpus,
    /// Yes or no.
    Flag,
    /// Words. The function checks each and converts it to the form in which it is stored.
    Word(fn(&str) -> Result<String, SpecError>),
    /// The same for drivers: those that do not run here are left out.
    Driver(fn(&str) -> Result<String, SpecError>),
}

/// Something that a study varies.
pub(crate) struct Factor {
    /// Key in a study file.
    pub(crate) key: &'static str,
    /// Kind of its levels.
    pub(crate) kind: Kind,
    /// The level of a cell that names none; `None` if something else decides.
    pub(crate) default: Option<Value>,
    /// Sets a level in a cell.
    pub(crate) set: fn(&mut CellSpec, &Value),
    /// Text of the cell's level in its identifier; `None` for the default level.
    pub(crate) shown: fn(&CellSpec) -> Option<String>,
}

/// Values for levels that have a name instead of a number.
#[derive(Clone, Copy)]
pub(crate) struct Machine<'s> {
    pub(crate) host_defaults: &'s HostDefaults,
    /// CPUs of the server side, from the file or the machine.
    pub(crate) server_cpus: &'s [usize],
}

impl Factor {
    /// Whether its levels are drivers, of which this machine may lack some.
    pub(crate) fn is_driver(&self) -> bool {
        matches!(self.kind, Kind::Driver(_))
    }

    /// The levels of one value in a file: one, unless the value is a name for several or for none.
    pub(crate) fn read(&self, entry: Entry<'_>, machine: Machine<'_>) -> Result<Vec<Value>, FieldError> {
        let at = entry.at;
        type Read = fn(&str) -> Result<String, SpecError>;
        let word = |read: Read, entry: Entry<'_>| read(&entry.word()?).at(at);
        match self.kind {
            Kind::Number(level) => Ok(vec![Value::Number(entry.level(level)?)]),
            Kind::Threads if entry.is_text() => threads(entry, machine.server_cpus),
            Kind::Threads => Ok(vec![Value::Number(entry.level(Level::Workers)?)]),
            Kind::Cpus => {
                let text = entry.wrong(CPUS.to_owned());
                let cpus = cpu_set(&entry.text()?).ok_or(text)?;
                Ok(vec![Value::Word(Cow::Owned(cpu_list(&cpus)))])
            }
            Kind::ServerCpus => server_cpus(entry, machine.server_cpus),
            Kind::Flag => Ok(vec![Value::Flag(entry.flag()?)]),
            Kind::Word(read) => Ok(vec![Value::Word(Cow::Owned(word(read, entry)?))]),
            Kind::Driver(read) => {
                let driver: String = word(read, entry)?;
                let runs = machine.host_defaults.refused(&driver).is_none();
                Ok(if runs { vec![Value::Word(Cow::Owned(driver))] } else { Vec::new() })
            }
        }
    }
}

const CPUS: &str = "it must name CPUs, such as \"1\", \"0,2\" or \"2-3\"";

fn server_cpus(entry: Entry<'_>, all: &[usize]) -> Result<Vec<Value>, FieldError> {
    let wrong = entry.wrong(format!("{CPUS}, \"fewer\" or \"all\""));
    let value = |cpus: &[usize]| Value::Word(Cow::Owned(cpu_list(cpus)));
    match entry.word()?.as_str() {
        "all" => Ok(vec![Value::Word(Cow::Borrowed("all"))]),
        "fewer" => {
            let doubled = std::iter::successors(Some(1_usize), |count| count.checked_mul(2));
            Ok(doubled.take_while(|count| *count < all.len()).map(|count| value(&all[..count])).collect())
        }
        text => cpu_set(text).map(|cpus| vec![value(&cpus)]).ok_or(wrong),
    }
}

fn threads(entry: Entry<'_>, server_cpus: &[usize]) -> Result<Vec<Value>, FieldError> {
    let unknown = entry.wrong(
        "it is not known which CPUs the server's side has here; give server_cpus, or a number".to_owned(),
    );
    let neither = |text: &str| format!("{text:?} is none; write a number, \"cpus\" or \"up-to-cpus\"");
    let (key, at) = (entry.key.clone(), entry.at);
    let text = entry.text()?;
    let Some(cpus) = u32::try_from(server_cpus.len()).ok().filter(|cpus| *cpus > 0) else {
        return Err(unknown);
    };
    match text.as_str() {
        "cpus" => Ok(vec![Value::Number(cpus)]),
        "up-to-cpus" => {
            let doubled = std::iter::successors(Some(1_u32), |workers| workers.checked_mul(2));
            let below = doubled.take_while(|workers| *workers < cpus);
            Ok(below.chain([cpus]).map(Value::Number).collect())
        }
        other => Err(FieldError::new(at, &key, neither(other))),
    }
}

/// Text of a load in an identifier.
pub(super) fn load_shown(load: &LoadMode) -> String {
    match load {
        LoadMode::Closed => "closed".to_owned(),
        LoadMode::Open { rate_per_second, .. } => format!("open{rate_per_second:.0}"),
        LoadMode::OpenShare { share, .. } => format!("open{:.0}pct", 100.0 * share),
    }
}

/// Text of a level that is not the default, with a letter before it.
pub(super) fn unusual(letter: &str, level: u32, usual: u32) -> Option<String> {
    (level != usual).then(|| format!("{letter}{level}"))
}
