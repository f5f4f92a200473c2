//! Removes and counts the parts of a study file that concern arms left out by a command line.

use toml::{Table, Value};

use super::choices::cut_levels;

/// Lists of tables that name arms, with what they are in English, Korean and Chinese.
const LISTS: [(&str, [&str; 3]); 8] = [
    ("published", ["published figures", "발표 수치", "公布的数值"]),
    ("published_run", ["published runs", "발표된 실행", "公布的运行"]),
    ("published_table", ["published tables", "발표 표", "公布的表格"]),
    ("comparison", ["comparisons", "비교", "比较"]),
    ("goal", ["goals", "목표", "目标"]),
    ("added_cost", ["added costs", "추가 비용", "附加开销"]),
    ("cause", ["causes", "원인", "原因"]),
    ("contrast", ["contrasts", "대비", "对比"]),
];
const CELLS: [&str; 3] = ["cells", "조건", "条件"];
const THRESHOLDS: [&str; 3] = ["thresholds", "임계값", "阈值"];

/// The parts that were left out, and the number of each.
pub(super) type LeftOut = Vec<([&'static str; 3], usize)>;

/// The remaining arms of a study.
pub(super) struct Kept {
    /// Their names; the first is the baseline.
    pub(super) names: Vec<String>,
    /// The commands of the command line among them: they run in every cell.
    pub(super) further: Vec<String>,
    /// Names of the arms that were removed.
    pub(super) gone: Vec<String>,
}

impl Kept {
    /// Removes everything that needs a removed arm.
    pub(super) fn cut(&self, study: &mut Table) -> LeftOut {
        let mut left_out = LeftOut::new();
        for (key, texts) in LISTS {
            let count = cut(study, key, |table| self.stands(key, table));
            left_out.push((texts, count));
        }
        left_out.push((CELLS, cut(study, "cell", |cell| self.has_arms(cell))));
        left_out.push((THRESHOLDS, self.cut_thresholds(study)));
        let _ = cut(study, "arm", |arm| {
            // The arm that it is a build of was removed.
            if arm.get("baseline").is_some_and(|baseline| !self.is_there(baseline)) {
                arm.remove("baseline");
                arm.remove("placebo");
            }
            true
        });
        left_out.retain(|(_, count)| *count > 0);
        left_out
    }

    fn is_there(&self, name: &Value) -> bool {
        name.as_str().is_some_and(|name| self.names.iter().any(|own| own == name))
    }

    fn is_first(&self, name: Option<&Value>) -> bool {
        name.and_then(Value::as_str).zip(self.names.first()).is_some_and(|(name, first)| name == first)
    }

    /// Removes missing arms from a table, and returns whether the table still has a meaning.
    fn stands(&self, key: &str, table: &mut Table) -> bool {
        let names: Vec<Value> = self.names.iter().cloned().map(Value::String).collect();
        if let Some(Value::Array(causes)) = table.get_mut("causes") {
            // Anything that is no pair stays; the parser of the study reports the error.
            let is_left = |pair: &Value, key: &str| pair.get(key).is_none_or(|name| self.is_there(name));
            causes.retain(|pair| ["arm", "baseline"].iter().all(|key| is_left(pair, key)));
        }
        let mut side = |key: &str, names: &[Value]| {
            table.get_mut(key).and_then(Value::as_table_mut).is_none_or(|it| cut_levels(it, "arm", names))
        };
        // A cost beyond the baseline has no meaning for the baseline itself.
        let is_beyond = ["added_cost", "cause", "contrast"].contains(&key);
        let sides = side("of", if is_beyond { names.get(1..).unwrap_or_default() } else { &names })
            && side("to", &names);
        let is_named = |name: &str| table.get(name).is_none_or(|arm| self.is_there(arm));
        let alone = !["reference", "without"].iter().any(|name| self.is_first(table.get(*name)));
        let columns =
            |arms: &Value| arms.as_array().is_none_or(|arms| arms.iter().all(|it| self.is_there(it)));
        sides
            && alone
            && ["arm", "baseline", "reference", "without"].into_iter().all(is_named)
            && table.get("arms").is_none_or(columns)
            && cut_levels(table, "best_of", &names)
            && !(key == "comparison" && self.is_with_itself(table))
    }

    /// Whether the table compares the baseline with itself.
    fn is_with_itself(&self, table: &mut Table) -> bool {
        if ["to", "best_of"].iter().any(|other| table.contains_key(*other)) {
            return false;
        }
        let Some(of) = table.get_mut("of").and_then(Value::as_table_mut) else { return false };
        let others: Vec<Value> = self.names.iter().skip(1).cloned().map(Value::String).collect();
        !cut_levels(of, "arm", &others)
    }

    /// Removes missing arms from a cell that names arms. A cell without a comparison is removed, except the primary
    /// one, which then has all arms.
    fn has_arms(&self, cell: &mut Table) -> bool {
        let Some(Value::Array(arms)) = cell.get_mut("arms") else { return true };
        arms.retain(|arm| self.is_there(arm));
        self.add_further(arms);
        if arms.len() > 1 && arms.iter().any(|arm| self.is_first(Some(arm))) {
            return true;
        }
        cell.remove("arms");
        cell.get("role").and_then(Value::as_str) == Some("primary")
    }

    /// If no arm was removed: adds further arms to cells that name their arms, too.
    pub(super) fn add_to_cells(&self, study: &mut Table) {
        let cells = study.get_mut("cell").and_then(Value::as_array_mut).into_iter().flatten();
        for cell in cells {
            if let Some(arms) = cell.get_mut("arms").and_then(Value::as_array_mut) {
                self.add_further(arms);
            }
        }
    }

    fn add_further(&self, arms: &mut Vec<Value>) {
        for name in self.further.iter().cloned().map(Value::String) {
            if !arms.contains(&name) {
                arms.push(name);
            }
        }
    }

    /// Removes thresholds that begin with a removed arm.
    fn cut_thresholds(&self, study: &mut Table) -> usize {
        let is_left = |line: &Value| {
            let first = line.as_str().and_then(|line| line.split_whitespace().next());
            first.is_none_or(|first| self.gone.iter().all(|gone| gone != first))
        };
        match study.get_mut("fail_if") {
            Some(Value::Array(lines)) => {
                let all = lines.len();
                lines.retain(is_left);
                all - lines.len()
            }
            Some(line) if !is_left(line) => {
                study.remove("fail_if");
                1
            }
            _ => 0,
        }
    }
}

/// Keeps the entries of a list of tables that still have a meaning, and returns the number of removed ones.
fn cut(study: &mut Table, key: &str, mut stands: impl FnMut(&mut Table) -> bool) -> usize {
    let Some(Value::Array(tables)) = study.get_mut(key) else { return 0 };
    let all = tables.len();
    tables.retain_mut(|table| table.as_table_mut().is_none_or(&mut stands));
    all - tables.len()
}
