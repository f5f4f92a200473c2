//! A cache of studies, valid until their stores change: the list's entry of each, how each was judged where that was
//! shown, and the judged results of the studies that were requested last. Entries are read one at a time, so that many
//! readers cost no more than one.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use weir_lab::{stored::StoredRun, stored_folders};
use weir_record::{study::StudyResult, verdict::Verdict};
use weir_report::{Language, Listed, localized, plain_name};
use weir_store::{Store, StoreError, StudyBrief};

use crate::{
    counters::Counters,
    folder::{Found, Stamp},
    words,
};

/// Most judged studies that are kept; a map of sixty cells takes a few megabytes.
pub const JUDGED_MAX: usize = 8;

/// Most runs of a study that are pooled on a page, the newest.
const POOLED_MAX: usize = 20;

/// Why a store cannot be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// A later version wrote it.
    Newer { found: u32, known: u32 },
    /// It is damaged, or no store.
    Damaged,
    /// This user may not read it.
    NoAccess,
    /// Another process has locked it at the moment.
    Busy,
}

impl Problem {
    pub(crate) fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Newer { found, known, .. } => Self::Newer { found: *found, known: *known },
            StoreError::Busy { .. } => Self::Busy,
            StoreError::Unreadable { .. } | StoreError::ReadOnly { .. } => Self::NoAccess,
            _ => Self::Damaged,
        }
    }

    /// Whether the reason may be gone a moment later.
    pub(crate) fn is_passing(self) -> bool {
        self == Self::Busy
    }

    /// Why a store cannot be shown, and the way out.
    pub(crate) fn localized(self, language: Language) -> String {
        match self {
            Self::Newer { found, known } => localized!(
                language,
                "A later version of Weir wrote this store (version {found}; this program knows {known}). \
                 Open it with that version.",
                "더 새로운 버전의 Weir가 쓴 저장 파일입니다(버전 {found}, 이 프로그램은 {known}까지 지원). 해당 버전으로 여십시오.",
                "此存储文件由更新版本的 Weir 写入（版本 {found}，本程序支持到 {known}）。请用该版本打开。"
            ),
            Self::Damaged => language.choose(words::DAMAGED).to_owned(),
            Self::NoAccess => language.choose(words::NO_ACCESS).to_owned(),
            Self::Busy => language.choose(words::BUSY).to_owned(),
        }
    }
}

/// Most columns that the list gives to a text of a store, whatever the store says.
const NAME_COLUMNS_MAX: usize = 64;
const TITLE_COLUMNS_MAX: usize = 200;
const SENTENCE_COLUMNS_MAX: usize = 300;
const ARM_COLUMNS_MAX: usize = 32;
/// Most arms of a study that the list knows.
const ARMS_MAX: usize = 32;

/// The list's entry of a study: its plan, its machine and its progress. Texts are of bounded width.
#[derive(Debug)]
pub(crate) struct Card {
    /// The study's name, whole: studies of one name are runs of it.
    pub name: String,
    titles: [String; 3],
    /// When it was made; absent if the store does not say it.
    pub created_unix_s: Option<u64>,
    pub elapsed_ns: u64,
    pub blocks_stored: u32,
    pub blocks: u32,
    /// The name of the machine, or what it is where its name was not noted; empty where neither was.
    pub machine: String,
    pub kernel: String,
    pub arms: Vec<String>,
    /// Its texts in small letters, for a search.
    searched: String,
    judgement: Mutex<Option<Arc<Judgement>>>,
}

/// How the last session that ended judged a study.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Absent while the schedule is unfinished, and for a result with records of another version.
    pub conclusion: Option<Conclusion>,
    /// Whether the finished schedule was judged, by any version.
    pub is_judged: bool,
}

/// The verdict on a study with a finished schedule, by the last session that ended.
#[derive(Debug)]
pub(crate) struct Conclusion {
    /// By language: the word of the verdict, and the sentence.
    localized: [(&'static str, String); 3],
    /// The class of the verdict's colour.
    pub class: &'static str,
    pub verdict: Verdict,
    /// The primary comparison; absent if it has no figure.
    pub listed: Option<Listed>,
}

fn place(language: Language) -> usize {
    Language::ALL.iter().position(|own| *own == language).unwrap_or_default()
}

impl Card {
    fn of(brief: StudyBrief) -> Self {
        let StudyBrief { spec, fingerprint, created_unix_s, elapsed_ns, blocks } = brief;
        let planned = |cell: &String| spec.cells.iter().any(|own| own.id == *cell);
        let stored: u32 = blocks.iter().filter(|(cell, _)| planned(cell)).map(|(_, count)| count).sum();
        let titles =
            Language::ALL.map(|language| plain_name(localized(&spec.title, language), TITLE_COLUMNS_MAX));
        let machine = match (fingerprint.host.as_str(), fingerprint.cpu_model.as_str()) {
            ("", "") => String::new(),
            ("", model) => format!("{model}, {} CPU", fingerprint.cpus_online),
            (host, _) => host.to_owned(),
        };
        let machine = plain_name(&machine, NAME_COLUMNS_MAX);
        let kernel = match fingerprint.kernel_release.as_str() {
            "" => String::new(),
            release => plain_name(&format!("Linux {release}"), NAME_COLUMNS_MAX),
        };
        let arms = spec.arms.iter().take(ARMS_MAX).map(|arm| plain_name(&arm.name, ARM_COLUMNS_MAX));
        let arms: Vec<String> = arms.collect();
        let made = created_unix_s.map(weir_report::minute).unwrap_or_default();
        let own = [plain_name(&spec.name, NAME_COLUMNS_MAX), made, machine.clone(), kernel.clone()];
        let searched: Vec<&str> = own.iter().chain(&titles).chain(&arms).map(String::as_str).collect();
        Self {
            searched: searched.join("\n").to_lowercase(),
            titles,
            created_unix_s,
            elapsed_ns,
            blocks_stored: stored,
            blocks: spec.cells.iter().map(|cell| cell.blocks).sum(),
            machine,
            kernel,
            arms,
            judgement: Mutex::default(),
            name: spec.name,
        }
    }

    /// The study's name in the list.
    pub(crate) fn shown_name(&self) -> String {
        plain_name(&self.name, NAME_COLUMNS_MAX)
    }

    /// The question of the study.
    pub(crate) fn title(&self, language: Language) -> &str {
        &self.titles[place(language)]
    }

    /// Whether one of its texts contains this, which is in small letters.
    pub(crate) fn has_text(&self, part: &str) -> bool {
        self.searched.contains(part)
    }
}

impl Conclusion {
    fn of(result: &StudyResult) -> Self {
        let localized = Language::ALL.map(|language| {
            let sentence = weir_report::sentence(result, language);
            (weir_report::verdict(result, language).0, plain_name(&sentence, SENTENCE_COLUMNS_MAX))
        });
        Self {
            localized,
            class: weir_report::verdict(result, Language::English).1,
            verdict: weir_report::shown_verdict(result),
            listed: weir_report::listed(result),
        }
    }

    /// The word of the verdict and the sentence.
    pub(crate) fn localized(&self, language: Language) -> (&'static str, &str) {
        let (word, sentence) = &self.localized[place(language)];
        (*word, sentence)
    }

    /// Whether the word of the verdict contains this in any language; it is in small letters.
    pub(crate) fn has_text(&self, part: &str) -> bool {
        self.localized.iter().any(|(word, _)| word.to_lowercase().contains(part))
    }
}

/// The list's knowledge of a study.
pub(crate) type Row = Result<Card, Problem>;

/// A judged study as it was at a moment.
struct Judged {
    name: OsString,
    stamp: Stamp,
    run: Arc<StoredRun>,
}

/// The studies that were read.
#[derive(Default)]
pub(crate) struct StudyCache {
    rows: Mutex<HashMap<OsString, (Stamp, Arc<Row>)>>,
    /// The study that was requested last is last.
    judged: Mutex<Vec<Judged>>,
}

impl StudyCache {
    /// The facts about the studies of `shown`. Drops studies that are neither there nor in `listed`.
    pub(crate) fn rows(&self, listed: &[Found], shown: &[&Found], counters: &Counters) -> Vec<Arc<Row>> {
        let names: HashSet<&OsString> =
            listed.iter().chain(shown.iter().copied()).map(|found| &found.name).collect();
        held(&self.rows).retain(|name, _| names.contains(name));
        shown.iter().map(|found| self.row(found, counters)).collect()
    }

    /// The facts about one study.
    pub(crate) fn row(&self, found: &Found, counters: &Counters) -> Arc<Row> {
        let mut rows = held(&self.rows);
        if let Some((_, row)) = rows.get(&found.name).filter(|(stamp, _)| *stamp == found.stamp) {
            return Arc::clone(row);
        }
        counters.stores_read();
        let row = Arc::new(card(found).map_err(|error| Problem::of(&error)));
        if !matches!(*row, Err(problem) if problem.is_passing()) {
            rows.insert(found.name.clone(), (found.stamp, Arc::clone(&row)));
        }
        row
    }

    /// How a study was judged by the last session that ended. A result takes much longer to read than a plan, so this
    /// is read only where it is shown or asked for.
    pub(crate) fn judgement(&self, found: &Found, card: &Card) -> Arc<Judgement> {
        let mut known = held(&card.judgement);
        if let Some(judgement) = &*known {
            return Arc::clone(judgement);
        }
        // A store that cannot be read at the moment is asked again.
        let Ok(judgement) = judgement(found, card) else { return Arc::default() };
        let judgement = Arc::new(judgement);
        *known = Some(Arc::clone(&judgement));
        judgement
    }

    /// The study as it is judged now.
    pub(crate) fn judged(&self, found: &Found, counters: &Counters) -> Result<Arc<StoredRun>, Problem> {
        let mut judged = held(&self.judged);
        let is_it = |it: &Judged| it.name == found.name && it.stamp == found.stamp;
        let run = match judged.iter().position(is_it) {
            Some(index) => judged.remove(index).run,
            None => {
                counters.stores_read();
                let mut run = StoredRun::read(&found.path).map_err(|error| Problem::of(&error))?;
                stored_folders::set_among(&mut run, &found.path);
                Arc::new(run)
            }
        };
        judged.retain(|it| it.name != found.name);
        if judged.len() >= JUDGED_MAX {
            judged.remove(0);
        }
        let entry = Judged { name: found.name.clone(), stamp: found.stamp, run: Arc::clone(&run) };
        judged.push(entry);
        Ok(run)
    }
}

impl StudyCache {
    /// Finished runs of a study among these, the first of them, each with its name in the folder.
    pub(crate) fn runs(
        &self,
        listed: &[&Found],
        study: &str,
        counters: &Counters,
    ) -> Vec<(PathBuf, StoredRun)> {
        let is_run = |found: &&Found| {
            let row = self.row(found, counters);
            let is_judged = |card: &Card| self.judgement(found, card).is_judged;
            matches!(&*row, Ok(card) if card.name == study && !found.is_running && is_judged(card))
        };
        let run = |found: &Found| {
            counters.stores_read();
            Some((PathBuf::from(&found.name), stored_folders::finished(&found.path)?))
        };
        listed.iter().copied().filter(is_run).filter_map(run).take(POOLED_MAX).collect()
    }
}

/// An interrupted reader left nothing half done: entries are whole or absent.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn card(found: &Found) -> Result<Card, StoreError> {
    Store::open_read_only(&found.path)?.brief().map(Card::of)
}

fn judgement(found: &Found, card: &Card) -> Result<Judgement, StoreError> {
    let store = Store::open_read_only(&found.path)?;
    // An unreadable result is none: the report judges the trials again.
    let brief = match store.result_brief() {
        Err(error) if Problem::of(&error).is_passing() => return Err(error),
        brief => brief.ok().flatten(),
    };
    let is_judged = brief.is_some_and(|result| result.complete || card.blocks_stored >= card.blocks);
    // A result of another version is judged again where the study is shown: for a list of many, that takes too long.
    let result = if is_judged { store.result().ok().flatten() } else { None };
    Ok(Judgement { conclusion: result.as_ref().map(Conclusion::of), is_judged })
}
