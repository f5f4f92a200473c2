//! The message about a session that left work to do.

use std::path::Path;

use weir_report::{Language, localized};

use super::{Ended, NEAR_WAIT_MAX, Outcome};
use crate::outline;

impl Outcome {
    /// The cause of the interruption, the progress and how to resume; `None` if nothing is left that could run.
    pub fn resume_hint(&self, folder: &Path, language: Language) -> Option<String> {
        let cause = match self.ended {
            Ended::TimeCap if self.progress.is_finished() => {
                let cap = outline::shown_ns(self.result.spec.time_cap_ns, language);
                localized!(
                    language,
                    "all blocks ran within the time cap of {cap}",
                    "시간 상한({cap}) 안에 모든 블록을 실행함",
                    "在时间上限（{cap}）内运行了全部区组"
                )
            }
            Ended::TimeCap => {
                let cap = outline::shown_ns(self.result.spec.time_cap_ns, language);
                localized!(
                    language,
                    "cut by the time cap of {cap}",
                    "시간 상한({cap})에 걸려 중단됨",
                    "到达时间上限（{cap}）而中断"
                )
            }
            Ended::StayedFar => {
                let seconds = NEAR_WAIT_MAX.as_secs();
                localized!(
                    language,
                    "the machine's near state did not come back in {seconds} s",
                    "{seconds}초를 기다려도 머신이 코어 간 지연이 짧은 상태(near)로 돌아오지 않음",
                    "等待 {seconds} 秒，机器仍未回到核间延迟较短的状态（near）",
                )
            }
            Ended::Interrupted => language.choose(["interrupted", "중단됨", "已中断"]).to_owned(),
            Ended::Complete | Ended::ArmsMissing => return None,
        };
        let done = weir_report::finding(&self.progress.finding(None), language);
        let folder = folder.display();
        Some(localized!(
            language,
            "{cause}: {done}; go on with: weir study --resume {folder}",
            "{cause}: {done}. 계속하려면: weir study --resume {folder}",
            "{cause}：{done}；继续请运行：weir study --resume {folder}",
        ))
    }
}
