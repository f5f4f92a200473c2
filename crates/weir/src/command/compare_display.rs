//! Progress of a running comparison: a bar on a terminal, a line now and then elsewhere.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use weir_compare::session::Event;
use weir_record::commands::{PairPlan, PlanReason};
use weir_report::{Language, commands::finding, localized};

use crate::output;

/// Parts of a terminal's bar.
const BAR: &str = "{elapsed_precise} [{bar:16}] {pos}/{len}  {wide_msg}";

/// Without a terminal, a line at this interval says that it goes on.
const LINE_EVERY: Duration = Duration::from_secs(20);

/// Progress on standard error. It draws between runs, never in one.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    told: Instant,
    language: Language,
}

impl Display {
    pub(super) fn new(language: Language) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let style = ProgressStyle::with_template(BAR);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar, told: Instant::now(), language }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => output::tell(text),
        }
    }

    pub(super) fn show(&mut self, event: &Event) {
        match event {
            Event::Planned { plan, expected_ns } => {
                if let Some(bar) = &self.bar {
                    bar.set_length(plan.pairs.into());
                    bar.set_position(0);
                }
                self.line(&planned(plan, *expected_ns, self.language));
            }
            Event::Pair { done, pairs, estimate } => {
                let so_far = estimate.map(|(ratio, (low, high))| {
                    localized!(
                        self.language,
                        "so far {ratio:.3} [{low:.3}, {high:.3}], which decides nothing",
                        "지금까지 {ratio:.3} [{low:.3}, {high:.3}](판정 아님)",
                        "目前为 {ratio:.3} [{low:.3}, {high:.3}]，不作判定",
                    )
                });
                if let Some(bar) = &self.bar {
                    bar.set_position((*done).into());
                    bar.set_message(so_far.unwrap_or_default());
                } else if self.told.elapsed() >= LINE_EVERY {
                    self.told = Instant::now();
                    output::tell(&localized!(
                        self.language,
                        "{done} of {pairs} pairs",
                        "{pairs}쌍 중 {done}쌍",
                        "{pairs} 对中的 {done} 对",
                    ));
                }
            }
            Event::OutputDiffers(found) => {
                let found = finding(found, self.language);
                self.line(&localized!(
                    self.language,
                    "{found}. The runs go on without a verdict; Ctrl-C ends them",
                    "{found}. 실행은 계속하지만 판정하지 않습니다. 끝내려면 Ctrl-C를 누르십시오",
                    "{found}。继续运行，但不作判定；按 Ctrl-C 结束",
                ));
            }
            Event::Calls => {
                if let Some(bar) = &self.bar {
                    let texts = ["counting system calls", "시스템 콜을 세는 중", "正在统计系统调用"];
                    bar.set_message(self.language.choose(texts));
                }
            }
        }
    }

    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The number of pairs, and what set it.
fn planned(plan: &PairPlan, expected_ns: u64, language: Language) -> String {
    let (pairs, length) = (plan.pairs, language.duration(expected_ns));
    let why = match plan.reason {
        PlanReason::Asked => ["as asked", "지정한 횟수", "按指定的次数"],
        PlanReason::Detectable => {
            ["enough to find 1 %", "1 % 차이를 찾기에 충분한 횟수", "足以检出 1 % 的差异"]
        }
        PlanReason::Budget => ["what --budget allows", "--budget 안에서 가능한 횟수", "在 --budget 之内"],
        PlanReason::Fewest => ["the fewest that decide", "판정에 필요한 최소 횟수", "判定所需的最少次数"],
        PlanReason::Most => ["the most there may be", "허용되는 최대 횟수", "允许的最多次数"],
    };
    let why = language.choose(why);
    localized!(
        language,
        "{pairs} pairs, {why}: about {length}",
        "{pairs}쌍({why}): 약 {length}",
        "{pairs} 对（{why}）：约 {length}"
    )
}
