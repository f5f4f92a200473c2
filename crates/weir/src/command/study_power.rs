//! The effects that a study can be expected to find, computed before it runs, from stored results.

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_judge::power::{self, Expected, Found};
use weir_lab::stored_folders;
use weir_record::{finding::RoundComponents, machine::Fingerprint, spec::StudySpec, study::StudyResult};
use weir_report::{Language, localized};
use weir_store::Store;

use super::report;
use crate::{exit::UsageError, language};

/// Most stored runs whose rounds are used.
const RUNS_MAX: usize = 10;

/// Most lines about single comparisons.
const LINES_MAX: usize = 12;

/// The effects that the schedule can be expected to find, in lines; or why they are not known.
pub(super) fn lines(
    spec: &StudySpec,
    fingerprint: &Fingerprint,
    earlier: Option<&Path>,
    language: Language,
) -> Result<Vec<String>> {
    let runs = earlier.map(|folder| runs(folder, spec, fingerprint)).transpose()?.unwrap_or_default();
    let mut expected = power::expected(spec, &runs);
    expected.retain(|it| it.found.is_some());
    if expected.is_empty() {
        return Ok(vec![unknown(earlier, language)]);
    }
    let more = expected.len().saturating_sub(LINES_MAX);
    let shown = expected.iter().take(LINES_MAX);
    let mut lines: Vec<String> = shown.filter_map(|it| line(it, language)).collect();
    if more > 0 {
        lines.push(localized!(
            language,
            "and {more} further comparisons",
            "그 밖의 비교 {more}건",
            "另有 {more} 项比较"
        ));
    }
    lines.extend(power::components(spec, &runs).iter().take(LINES_MAX).map(|it| scatter(it, language)));
    Ok(lines)
}

/// Why they are not known.
fn unknown(earlier: Option<&Path>, language: Language) -> String {
    let why = match earlier {
        None => language
            .choose([
                "--earlier DIR takes them from stored results",
                "--earlier DIR로 저장된 결과를 지정하십시오",
                "可用 --earlier DIR 指定已保存的结果",
            ])
            .to_owned(),
        Some(folder) => {
            let folder = folder.display();
            localized!(
                language,
                "{folder} has no rounds of these cells and arms on a machine like this",
                "이런 머신에서 이 조건과 대상을 측정한 라운드가 다음 위치에 없습니다: {folder}",
                "{folder} 中没有在同类机器上测量这些条件与方案的轮次",
            )
        }
    };
    localized!(
        language,
        "What this schedule can find is not known: that takes earlier rounds of its cells; {why}.",
        "이 일정으로 얼마나 작은 차이를 찾을 수 있는지 알 수 없습니다. 같은 조건을 이전에 측정한 라운드가 필요합니다. {why}.",
        "尚不知道该计划能检出多小的差异：这需要这些条件以往的轮次；{why}。",
    )
}

/// The scatter of earlier rounds, and the best use of their time.
fn scatter(found: &RoundComponents, language: Language) -> String {
    let RoundComponents { arm, permutations, rounds, permutations_best, rounds_best, .. } = found;
    let [within, between] = [found.within, found.between].map(|deviation| 100.0 * deviation);
    localized!(
        language,
        "earlier rounds of {arm} scatter by {within:.1} % within and {between:.1} % between rounds; in the time of {rounds} \
         rounds of {permutations} permutations, {rounds_best} of {permutations_best} would do best",
        "{arm}: 이전 라운드의 산포는 라운드 안 {within:.1} %, 라운드 사이 {between:.1} %. 순열 {permutations}개짜리 라운드 {rounds}회와 같은 시간이면, \
        순열 {permutations_best}개짜리 {rounds_best}회가 최적",
        "{arm}：以往各轮的离散程度为轮内 {within:.1} %、轮间 {between:.1} %；在 {rounds} 轮（每轮 {permutations} 个排列）的时间内，\
         以 {rounds_best} 轮、每轮 {permutations_best} 个排列为最佳",
    )
}

fn line(expected: &Expected, language: Language) -> Option<String> {
    let Expected { cell_id, arm, baseline, units, found } = expected;
    let Found { detectable, earlier, is_self } = (*found)?;
    let of = language.choose(match is_self {
        true => ["the first arm against itself", "기준을 자기 자신과 비교한", "基线与自身"],
        false => ["these arms", "이 대상들을 비교한", "这些方案"],
    });
    let percent = 100.0 * detectable;
    Some(localized!(
        language,
        "{cell_id}: {units} rounds or blocks of {arm} against {baseline} are expected to find {percent:.1} % in server CPU \
         four times of five, as a claim that stands alone (from {earlier} earlier ones of {of})",
        "{cell_id}: {arm} / {baseline}, 라운드나 블록 {units}회로 서버 CPU의 {percent:.1} % 차이를 80 % 확률로 찾을 수 있음(가설이 이것 하나일 때. \
        {of} 이전 {earlier}회에서 추정)",
        "{cell_id}：{arm} / {baseline}，{units} 轮（区组）有 80 % 的概率检出服务器 CPU 的 {percent:.1} % 差异（仅此一项结论时；据{of}以往 {earlier} \
        次比较推算）",
    ))
}

/// Earlier runs with a cell of the study, on a machine like this one.
fn runs(folder: &Path, spec: &StudySpec, fingerprint: &Fingerprint) -> Result<Vec<StudyResult>> {
    let is_of_use = |folder: &PathBuf| {
        // Runs that cannot be read are skipped.
        let Ok(study) = Store::open_read_only(folder).and_then(|store| store.study()) else { return false };
        let has_cell = |cell| study.spec.cells.iter().any(|own| power::is_same_cell(own, cell));
        power::is_alike(&study.fingerprint, fingerprint) && spec.cells.iter().any(has_cell)
    };
    let stores = stores(folder)?.into_iter().filter(is_of_use).take(RUNS_MAX);
    Ok(stores.filter_map(|store| Some(report::read(&store).ok()?.0)).collect())
}

/// The folder itself if it holds a study, else the folders in it that do, the newest first.
fn stores(folder: &Path) -> Result<Vec<PathBuf>> {
    stored_folders::stores(folder).map_err(|error| {
        let folder = folder.display();
        let text = localized!(
            language::of_command_line(),
            "--earlier {folder}: {error}; name a folder that `weir study` wrote, or one of such folders",
            "--earlier {folder}: {error}. `weir study`가 만든 폴더나 그런 폴더를 모아 둔 폴더를 지정하십시오",
            "--earlier {folder}：{error}；请指定 `weir study` 生成的文件夹，或存放此类文件夹的文件夹",
        );
        UsageError(text).into()
    })
}
