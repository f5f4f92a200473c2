//! `--interval` of `weir observe`, checked.

use std::time::Duration;

use anyhow::Result;
use weir_record::observation::INTERVALS_MAX;
use weir_report::localized;

use super::LENGTH;
use crate::{args::Observe, engine, exit::UsageError, language};

/// Below this the reading would be a part of the measurement.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The length of an interval, if the user asked for intervals. A record has room for the whole observation. The
/// observation of a command has no known end, and room is made meanwhile.
pub(super) fn asked(arguments: &Observe, length: Option<Duration>) -> Result<Option<Duration>> {
    let Some(text) = &arguments.interval else { return Ok(None) };
    let interval = engine::time("--interval", text)?;
    let language = language::of_command_line();
    if interval < INTERVAL_MIN {
        let text = language.choose([
            "--interval: write 100ms or more",
            "--interval: 100ms 이상을 쓰십시오",
            "--interval：请写 100ms 或更长",
        ]);
        return Err(UsageError(text.into()).into());
    }
    let length = length.or(arguments.command.is_empty().then_some(LENGTH));
    let count = length.map_or(0, |length| length.as_nanos().div_ceil(interval.as_nanos()));
    if count <= INTERVALS_MAX as u128 {
        return Ok(Some(interval));
    }
    let least_ms = length.unwrap_or_default().as_millis().div_ceil(INTERVALS_MAX as u128);
    let text = localized!(
        language,
        "--interval: that makes {count} intervals, and a record has at most {INTERVALS_MAX}; write {least_ms}ms or more, \
         or a shorter --duration",
        "--interval: 시간 구간이 {count}개가 됩니다. 기록에는 최대 {INTERVALS_MAX}개까지 저장할 수 있습니다. {least_ms}ms 이상을 쓰거나 --duration을 \
        줄이십시오",
        "--interval：这样会有 {count} 个时间段，而记录最多保存 {INTERVALS_MAX} 个；请写 {least_ms}ms 或更长，或缩短 --duration",
    );
    Err(UsageError(text).into())
}
