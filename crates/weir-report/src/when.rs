//! The time of a run, and its rank among earlier runs of its study on the same kind of machine.

use weir_record::{
    calendar::utc,
    effect::EffectScale,
    metric::Metric,
    run_pool::{AmongRuns, Period, PooledFigure},
};

use crate::{
    display, format,
    language::{Language, localized},
    metrics,
    view::View,
};

/// `2026-11-29 07:10`, in UTC, of seconds since 1970.
pub(crate) fn minute(unix_s: u64) -> String {
    let [year, month, day, hour, minute, _] = utc(unix_s);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// Most columns of a host's name.
const HOST_COLUMNS_MAX: usize = 64;

/// When the study was made, or began where that was not noted: `2026-11-29 07:10 UTC`.
pub(crate) fn made(view: &View<'_>) -> Option<String> {
    Some(format!("{} UTC", minute(made_unix_s(view)?)))
}

/// The same for programs that read a page: `2026-11-29T07:10:05Z`.
pub(crate) fn made_for_programs(view: &View<'_>) -> Option<String> {
    let [year, month, day, hour, minute, second] = utc(made_unix_s(view)?);
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

fn made_unix_s(view: &View<'_>) -> Option<u64> {
    view.result.created_unix_s.or_else(|| Some(view.result.period?.began_unix_s))
}

/// The name of the machine; absent where it was not noted.
pub(crate) fn host(view: &View<'_>) -> Option<String> {
    let host = &view.result.fingerprint.host;
    (!host.is_empty()).then(|| display::plain_name(host, HOST_COLUMNS_MAX))
}

/// When the study was made, and on which machine; absent if neither was noted.
pub(crate) fn made_where(view: &View<'_>) -> Option<String> {
    let host =
        host(view).map(|host| localized!(view.language, "host {host}", "호스트 {host}", "主机 {host}"));
    let parts: Vec<String> = made(view).into_iter().chain(host).collect();
    (!parts.is_empty()).then(|| parts.join(view.language.list()))
}

/// `2026-11-29 07:10 to 07:12 UTC`. The second day is named if it differs.
pub(crate) fn range(language: Language, began_unix_s: u64, ended_unix_s: u64) -> String {
    let (began, ended) = (minute(began_unix_s), minute(ended_unix_s));
    let (day, _) = began.split_once(' ').unwrap_or_default();
    let ended = ended.strip_prefix(&format!("{day} ")).unwrap_or(&ended);
    localized!(
        language,
        "{began} to {ended} UTC",
        "{began}부터 {ended}까지(UTC)",
        "{began} 至 {ended}（UTC）"
    )
}

/// `0.975 – 0.990`; one figure if both ends look alike, and a dash if there is none.
pub(crate) fn between(
    view: &View<'_>,
    metric: Metric,
    scale: EffectScale,
    range: Option<(f64, f64)>,
) -> String {
    let Some((low, high)) = range else { return format::ABSENT.to_owned() };
    let [low, high] = [low, high].map(|it| metrics::answered(view, metric, scale, it));
    if low == high { low } else { format!("{low} – {high}") }
}

/// The minutes that a run describes.
pub(crate) fn describes(view: &View<'_>) -> Option<String> {
    let Period { began_unix_s, ended_unix_s, sessions } = view.result.period?;
    let range = range(view.language, began_unix_s, ended_unix_s);
    Some(match sessions {
        1 => localized!(
            view.language,
            "It describes {range} on this machine.",
            "이 결과는 {range} 이 머신의 상태를 나타냅니다.",
            "结果描述的是本机在 {range}期间的情况。",
        ),
        _ => localized!(
            view.language,
            "It describes {range} on this machine, in {sessions} sessions.",
            "이 결과는 {range} 이 머신의 상태를 나타냅니다(세션 {sessions}개).",
            "结果描述的是本机在 {range}期间的情况，分 {sessions} 个会话。",
        ),
    })
}

/// The rank of the primary comparison among earlier runs.
pub(crate) fn among(view: &View<'_>) -> Option<String> {
    let AmongRuns { arm, baseline, metric, scale, figure, earlier, .. } = view.result.among_runs.as_ref()?;
    let shown = |range| between(view, *metric, *scale, range);
    let (this, compared) = (shown(Some((*figure, *figure))), format!("{arm} / {baseline}"));
    let PooledFigure { runs, range, next_figure, .. } = earlier;
    let range = shown(*range);
    if next_figure.is_none() {
        return Some(localized!(
            view.language,
            "{compared}, this run: {this}; earlier runs on this machine ({runs}): {range}.",
            "{compared}, 이번 실행: {this}. 이 머신의 이전 실행({runs}회): {range}.",
            "{compared}，本次运行：{this}；本机以往运行（{runs} 次）：{range}。",
        ));
    }
    let next = shown(*next_figure);
    let place = match view.result.among_runs.as_ref().and_then(AmongRuns::is_outside) {
        Some(true) => view.language.choose([
            " It lies outside: something is not as it was.",
            " 이 범위를 벗어났습니다. 이전과 달라진 것이 있습니다.",
            "本次超出该范围：有条件与以往不同。",
        ]),
        _ => "",
    };
    Some(localized!(
        view.language,
        "{compared}, this run: {this}; earlier runs on this machine ({runs}): {range}, predicted range for the next run: \
         {next}.{place}",
        "{compared}, 이번 실행: {this}. 이 머신의 이전 실행({runs}회): {range}, 다음 실행의 예측 범위: {next}.{place}",
        "{compared}，本次运行：{this}；本机以往运行（{runs} 次）：{range}，下一次运行的预测范围：{next}。{place}",
    ))
}

/// Both sentences, as far as they are known.
pub(crate) fn sentences(view: &View<'_>) -> Vec<String> {
    describes(view).into_iter().chain(among(view)).collect()
}
