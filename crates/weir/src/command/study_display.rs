//! Progress of a running study.

use std::{io::IsTerminal, time::Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weir_judge::{rungs::Kept, running::RunningEstimate};
use weir_lab::{outline, run::Event};
use weir_report::{Language, localized};

use crate::output;

/// Parts of a terminal's bar.
const BAR: &str = "{elapsed_precise} [{bar:16}] {pos}/{len}{prefix}  {wide_msg}";

/// Progress on standard error: a bar on a terminal, a line for each block elsewhere, and one for each tenth of the
/// study. It draws only when something happens, never during a measured window.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    /// The result so far; with it the bar shows this, and no longer the running trial.
    estimate: Option<String>,
    /// Tenths of the study that were reported.
    tenths: u32,
    quiet: bool,
    language: Language,
    began: Instant,
}

impl Display {
    pub(super) fn new(quiet: bool, language: Language) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template(BAR);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, estimate: None, tenths: 0, quiet, language, began: Instant::now() }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None if !self.quiet => {
                let seconds = self.began.elapsed().as_secs();
                let time = localized!(self.language, "{seconds:>5} s", "{seconds:>5}초", "{seconds:>5} 秒");
                output::tell(&format!("{time}  {text}"));
            }
            None => {}
        }
    }

    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::Started { blocks_done, blocks, left_ns } => {
                self.tenths = tenths(*blocks_done, *blocks);
                if let Some(bar) = &self.bar {
                    bar.set_length((*blocks).into());
                    bar.set_position((*blocks_done).into());
                    bar.set_prefix(left(*left_ns, self.language));
                }
                self.line(&started((*blocks_done, *blocks), *left_ns, self.language));
            }
            Event::TrialStarted { cell_id, arm, .. } => {
                if let Some(bar) = self.bar.as_ref().filter(|_| self.estimate.is_none()) {
                    bar.set_message(format!("{cell_id}: {arm}"));
                }
            }
            Event::SoFar { estimate } => {
                let text = estimated(estimate, self.language);
                if let Some(bar) = &self.bar {
                    bar.set_message(text.clone());
                }
                self.estimate = Some(text);
            }
            Event::TrialFinished { .. } => {}
            Event::BlockStored { cell_id, block, attempt, blocks_done, blocks, left_ns } => {
                if let Some(bar) = &self.bar {
                    bar.set_position((*blocks_done).into());
                    bar.set_prefix(left(*left_ns, self.language));
                } else {
                    let which = (cell_id.as_str(), *block, *attempt);
                    self.line(&stored(which, (*blocks_done, *blocks), self.language));
                    self.tenth(tenths(*blocks_done, *blocks), *left_ns);
                }
            }
            Event::RateFixed { cell_id, rate_per_second } => self.line(&localized!(
                self.language,
                "{cell_id}: the rate is {rate_per_second:.0} a second",
                "{cell_id}: 요청률 초당 {rate_per_second:.0}건",
                "{cell_id}：请求速率为每秒 {rate_per_second:.0} 次",
            )),
            Event::Descended { from, to, least_kept: Kept { arm, kept, of, .. } } => self.line(&localized!(
                self.language,
                "{arm} kept the rate of {from} in {kept} of {of} slices; {to} decides",
                "{from}: {arm}이(가) 슬라이스 {of}개 중 {kept}개에서 요청률에 도달함. {to} 조건으로 판정함",
                "{from}：{arm} 在 {of} 个时间片中有 {kept} 个达到请求速率；改由 {to} 判定",
            )),
            Event::LeftOut { cell_id, reason } => self.line(&localized!(
                self.language,
                "{cell_id} is left out: no arm runs there: {reason}",
                "{cell_id} 제외: 이 조건에서 실행되는 대상이 없음: {reason}",
                "已排除 {cell_id}：此条件下没有方案能运行：{reason}",
            )),
            Event::WaitingForNear { blocks } => self.line(&localized!(
                self.language,
                "{blocks} blocks wait for the machine's near state",
                "블록 {blocks}개가 머신이 코어 간 지연이 짧은 상태(near)로 돌아오기를 기다림",
                "{blocks} 个区组在等待机器回到核间延迟较短的状态（near）",
            )),
            Event::ArmMissing { arm } => {
                let (name, reason) = (&arm.name, weir_report::finding(&arm.reason, self.language));
                self.line(&localized!(
                    self.language,
                    "arm {name} is missing: {reason}",
                    "실행할 수 없는 대상 {name}: {reason}",
                    "方案 {name} 无法运行：{reason}",
                ));
            }
        }
    }

    /// Without a bar: the progress of the study, each time a further tenth is done.
    fn tenth(&mut self, tenths: u32, left_ns: u64) {
        if tenths <= self.tenths {
            return;
        }
        self.tenths = tenths;
        let left = left(left_ns, self.language);
        let estimate = match &self.estimate {
            None => String::new(),
            Some(text) => localized!(self.language, "; {text}", ". {text}", "；{text}"),
        };
        self.line(&localized!(
            self.language,
            "{tenths}0 % of the blocks are done{left}{estimate}",
            "블록의 {tenths}0 % 완료{left}{estimate}",
            "已完成 {tenths}0 % 的区组{left}{estimate}",
        ));
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn started((blocks_done, blocks): (u32, u32), left_ns: u64, language: Language) -> String {
    let left = left(left_ns, language);
    localized!(
        language,
        "{blocks_done} of {blocks} blocks are done{left}",
        "블록 {blocks}개 중 {blocks_done}개 완료{left}",
        "{blocks} 个区组中已完成 {blocks_done} 个{left}",
    )
}

fn stored(
    (cell_id, block, attempt): (&str, u32, u32),
    (blocks_done, blocks): (u32, u32),
    language: Language,
) -> String {
    let number = attempt + 1;
    let again = match attempt {
        0 => String::new(),
        _ => localized!(language, ", attempt {number}", ", {number}번째 시도", "，第 {number} 次尝试"),
    };
    localized!(
        language,
        "{blocks_done}/{blocks} blocks: {cell_id} block {block}{again}",
        "블록 {blocks_done}/{blocks}: {cell_id} {block}번 블록{again}",
        "区组 {blocks_done}/{blocks}：{cell_id} 第 {block} 号区组{again}",
    )
}

/// After the number of finished blocks.
fn left(left_ns: u64, language: Language) -> String {
    if left_ns == 0 {
        return String::new();
    }
    let length = outline::shown_ns(left_ns, language);
    localized!(language, ", about {length} left", ", 약 {length} 남음", "，约剩 {length}")
}

fn tenths(blocks_done: u32, blocks: u32) -> u32 {
    u32::try_from(10 * u64::from(blocks_done) / u64::from(blocks.max(1))).unwrap_or(10)
}

/// `uring/epoll 0.81 [0.79, 0.83] near provisional`.
fn estimated(estimate: &RunningEstimate, language: Language) -> String {
    let RunningEstimate { arm, baseline, ratio, interval: (low, high), is_far, .. } = estimate;
    let state = match is_far {
        None => "",
        Some(true) => language.choose([" far", " 코어 간 지연 긺(far)", " 核间延迟长（far）"]),
        Some(false) => language.choose([" near", " 코어 간 지연 짧음(near)", " 核间延迟短（near）"]),
    };
    localized!(
        language,
        "{arm}/{baseline} {ratio:.2} [{low:.2}, {high:.2}]{state} provisional",
        "{arm}/{baseline} {ratio:.2} [{low:.2}, {high:.2}]{state} 잠정",
        "{arm}/{baseline} {ratio:.2} [{low:.2}, {high:.2}]{state} 暂定",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    #[test]
    fn lines_are_told_in_every_language() {
        let texts = Language::ALL.map(|language| {
            [started((3, 12), 80 * SECOND_NS, language), stored(("c100", 4, 1), (5, 12), language)]
        });
        let expected = [
            ["3 of 12 blocks are done, about 80 s left", "5/12 blocks: c100 block 4, attempt 2"],
            ["블록 12개 중 3개 완료, 약 80초 남음", "블록 5/12: c100 4번 블록, 2번째 시도"],
            ["12 个区组中已完成 3 个，约剩 80 秒", "区组 5/12：c100 第 4 号区组，第 2 次尝试"],
        ];
        assert_eq!(texts, expected);
        let estimate = RunningEstimate {
            arm: "uring".to_owned(),
            baseline: "epoll".to_owned(),
            ratio: 0.81,
            interval: (0.79, 0.83),
            units: 12,
            is_far: Some(false),
        };
        let texts = Language::ALL.map(|language| estimated(&estimate, language));
        let expected = [
            "uring/epoll 0.81 [0.79, 0.83] near provisional",
            "uring/epoll 0.81 [0.79, 0.83] 코어 간 지연 짧음(near) 잠정",
            "uring/epoll 0.81 [0.79, 0.83] 核间延迟短（near） 暂定",
        ];
        assert_eq!(texts, expected);
        assert_eq!([left(0, Language::English), left(0, Language::Chinese)], ["", ""]);
    }
}
