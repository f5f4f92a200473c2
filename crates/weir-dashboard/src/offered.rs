//! Studies that may be started from a page: built-in ones, with each of their plans, and the files of one folder. A
//! request names one of this list and never a path.

use std::{
    ffi::OsString,
    fs, iter,
    path::Path,
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use weir_evidence::{
    fingerprint::fingerprint,
    placement::{self, Topology},
};
use weir_lab::{
    builtin::{self, BuiltIn},
    host_defaults::{HostDefaults, OrderCpus},
    outline, run_folder,
};
use weir_record::text::Text;

/// Most files of the folder that are offered: the first by name.
pub const OFFERED_MAX: usize = 200;

/// Most entries of the folder that are looked at.
const ENTRIES_MAX: usize = 10_000;

/// Longest part of a results folder's name that comes from a file's.
const STEM_BYTES_MAX: usize = 64;

/// Separates a built-in study from its plan, as in `tps/quick`. No name of a file contains it.
const PLAN_MARK: char = '/';

/// A study that may be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    /// The name of a built-in one, perhaps with its plan, or that of a file.
    pub name: String,
    /// Its name on the command line.
    pub argument: OsString,
    /// Which of its plans, as `--levels` takes it; absent for the default plan.
    pub levels: Option<String>,
    /// About how long it takes here; absent where this is not computed.
    pub takes_ns: Option<u64>,
    /// Its question; absent where the file was not read.
    pub title: Option<Text>,
}

impl Offered {
    /// The built-in studies, then those of the folder. A folder that cannot be read offers nothing.
    pub(crate) fn all(folder: Option<&Path>) -> Vec<Self> {
        built_in().iter().cloned().chain(folder.map(files).unwrap_or_default()).collect()
    }

    /// Whether a built-in study is named with a plan, whether or not that plan exists.
    pub(crate) fn names_plan(name: &[u8]) -> bool {
        let name = String::from_utf8_lossy(name);
        name.split_once(PLAN_MARK).is_some_and(|(study, _)| BuiltIn::named(study).is_some())
    }

    /// Its form on a command line.
    pub(crate) fn shown(&self) -> String {
        self.name.replace(PLAN_MARK, " --levels ")
    }

    /// The study with this name.
    pub(crate) fn named(folder: Option<&Path>, name: &[u8]) -> Option<Self> {
        Self::all(folder).into_iter().find(|study| study.name.as_bytes() == name)
    }

    /// The folder of its results if it begins now.
    pub(crate) fn results_folder(&self) -> OsString {
        let stem = self.name.strip_suffix(".toml").unwrap_or(&self.name);
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' };
        let stem: String = stem.chars().map(plain).take(STEM_BYTES_MAX).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        run_folder::name(&stem, now.as_secs()).into()
    }
}

/// The built-in studies, each with its plans. They are computed once: the program contains them, and their lengths
/// follow from them and the CPUs of this machine.
fn built_in() -> &'static [Offered] {
    static FOUND: OnceLock<Vec<Offered>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let host_defaults = host_defaults();
        builtin::ALL.iter().flat_map(|study| with_plans(study, &host_defaults)).collect()
    })
}

/// A study with its default plan, then each of its plans, the shortest first.
fn with_plans(study: &BuiltIn, host_defaults: &HostDefaults) -> Vec<Offered> {
    let offered = |levels: Option<String>| {
        let name = match &levels {
            Some(levels) => format!("{}{PLAN_MARK}{levels}", study.name),
            None => study.name.to_owned(),
        };
        let asked = HostDefaults { plan: levels.clone(), ..host_defaults.clone() };
        let spec = study.study(&asked).ok().map(|study| study.spec);
        let takes_ns = spec.as_ref().map(|spec| outline::study_ns(spec).min(spec.time_cap_ns));
        Offered { name, argument: study.name.into(), levels, takes_ns, title: spec.map(|spec| spec.title) }
    };
    let mut plans: Vec<Offered> = study.plans().into_iter().map(|plan| offered(Some(plan))).collect();
    plans.sort_by_key(|plan| plan.takes_ns);
    iter::once(offered(None)).chain(plans).collect()
}

/// The environment for planning. No driver is tried: one that does not run takes no time, but is counted here.
fn host_defaults() -> HostDefaults {
    let topology = Topology::from(&fingerprint());
    let placement = placement::place(&topology);
    let (server_cpus, load_cpus) = placement.map(|place| (place.server, place.load)).unwrap_or_default();
    let order_cpus = OrderCpus::of(&placement::cores(&topology));
    HostDefaults { server_cpus, load_cpus, order_cpus, ..HostDefaults::default() }
}

/// Study files of a folder: no links, and none whose name is hidden or not UTF-8.
fn files(folder: &Path) -> Vec<Offered> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_study = name.ends_with(".toml") && !name.starts_with('.');
        let is_file = is_study && entry.file_type().is_ok_and(|kind| kind.is_file());
        let argument = folder.join(&name).into();
        is_file.then_some(Offered { argument, name, levels: None, takes_ns: None, title: None })
    };
    let mut found: Vec<Offered> = entries.flatten().take(ENTRIES_MAX).filter_map(file).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.truncate(OFFERED_MAX);
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_of_one_folder_are_offered_by_name_as_many_as_is_stated() {
        let folder = std::env::temp_dir().join(format!("weir-offered-{}", std::process::id()));
        fs::create_dir_all(folder.join("sub.toml")).expect("a folder can be made");
        for name in ["b.toml", "a b&c.toml", ".hidden.toml", "notes.txt"] {
            fs::write(folder.join(name), "").expect("a file can be written");
        }
        symlink("/etc/hostname", folder.join("link.toml")).expect("a link can be made");
        let names = |all: &[Offered]| all.iter().map(|study| study.name.clone()).collect::<Vec<_>>();
        let all = Offered::all(Some(&folder));
        assert_eq!(names(&all[built_in().len()..]), ["a b&c.toml", "b.toml"]);
        assert_eq!(Offered::all(None), built_in());
        assert!(Offered::all(None).iter().any(|study| study.name == "quick" && study.argument == "quick"));
        let odd = Offered::named(Some(&folder), b"a b&c.toml").expect("it is offered");
        assert_eq!(odd.argument, folder.join("a b&c.toml").as_os_str());
        let results = odd.results_folder().into_string().expect("plain text");
        assert!(results.starts_with("a-b-c-20"), "{results}");
        for name in ["", "b", "../b.toml", "link.toml", "sub.toml", ".hidden.toml", "/etc/hostname"] {
            assert_eq!(Offered::named(Some(&folder), name.as_bytes()), None, "{name}");
        }
        for number in 0..OFFERED_MAX {
            fs::write(folder.join(format!("n{number}.toml")), "").expect("a file can be written");
        }
        assert_eq!(Offered::all(Some(&folder)).len(), built_in().len() + OFFERED_MAX);
        fs::remove_dir_all(&folder).expect("it can be removed");
        assert_eq!(Offered::all(Some(&folder)), built_in(), "a folder that is gone offers nothing");
    }

    #[test]
    fn a_built_in_study_is_offered_with_each_of_its_plans_and_what_they_take() {
        let of_tps: Vec<&Offered> = built_in().iter().filter(|study| study.argument == "tps").collect();
        let names: Vec<&str> = of_tps.iter().map(|study| study.name.as_str()).collect();
        assert_eq!(names, ["tps", "tps/quick", "tps/standard", "tps/full"]);
        assert!(of_tps.iter().all(|study| study.takes_ns.is_some_and(|ns| ns > 0)), "{of_tps:?}");
        let quick = Offered::named(None, b"tps/quick").expect("it is offered");
        assert_eq!((quick.levels.as_deref(), quick.shown().as_str()), (Some("quick"), "tps --levels quick"));
        let results = quick.results_folder().into_string().expect("plain text");
        assert!(results.starts_with("tps-quick-20"), "{results}");
        for name in ["tps/huge", "tps/", "tps/quick/", "quick/full", "tps/--help"] {
            assert_eq!(Offered::named(None, name.as_bytes()), None, "{name}");
            assert!(Offered::names_plan(name.as_bytes()), "{name}");
        }
        for name in ["tps", "../outside.toml", "/etc/passwd", "none/quick"] {
            assert!(!Offered::names_plan(name.as_bytes()), "{name}");
        }
    }
}
