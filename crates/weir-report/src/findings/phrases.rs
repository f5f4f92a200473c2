//! Phrases that several findings share: units, exclusions, failures.

use weir_record::finding::{ExclusionKind, FailedTrial, FailureClass, FailureCount, MessageKind, UnitKind};

use crate::{
    format::count,
    language::{Language, localized},
};

/// Why a trial failed, as far as known: `server failed: exited with status 1, reset (2)`.
pub(super) fn failed_trial(language: Language, failed: &FailedTrial) -> String {
    let reason = failed.reason.map(|reason| exclusion(language, reason).to_owned());
    let lost = [
        (failed.listen_overflows, ["full accept queue", "연결 대기열 가득 참", "连接队列已满"]),
        (failed.syn_retransmits, ["SYN sent again", "SYN 재전송", "SYN 重传"]),
    ];
    let lost = lost.into_iter().filter(|(times, _)| *times > 0);
    let lost = lost.map(|(times, what)| counted(language, language.choose(what), times));
    let classes = (!failed.classes.is_empty()).then(|| failure_classes(language, &failed.classes));
    let known: Vec<String> = failed.said.clone().into_iter().chain(classes).chain(lost).collect();
    let known = (!known.is_empty()).then(|| known.join(language.list()));
    reason.into_iter().chain(known).collect::<Vec<_>>().join(language.colon())
}

/// Failures by class: `reset (2), cut short (1)`.
pub(crate) fn failure_classes(language: Language, classes: &[FailureCount]) -> String {
    let one = |it: &FailureCount| counted(language, language.choose(failure_class(it.class)), it.count);
    classes.iter().map(one).collect::<Vec<_>>().join(language.list())
}

fn counted(language: Language, what: &str, times: u64) -> String {
    let times = count(times);
    localized!(language, "{what} ({times})", "{what} {times}건", "{what} {times} 例")
}

fn failure_class(class: FailureClass) -> [&'static str; 3] {
    match class {
        FailureClass::Refused => ["refused", "연결 거부", "连接被拒"],
        FailureClass::Reset => ["reset", "연결 리셋", "连接被重置"],
        FailureClass::ConnectTimeout => ["connect timeout", "연결 시간 초과", "连接超时"],
        FailureClass::ResponseTimeout => ["response timeout", "응답 시간 초과", "响应超时"],
        FailureClass::CutShort => ["cut short", "응답이 잘림", "响应不完整"],
        FailureClass::WrongBytes => ["wrong bytes", "잘못된 바이트", "字节有误"],
        FailureClass::WrongStatus => ["wrong status", "다른 상태 코드", "状态码不符"],
        FailureClass::Malformed => ["malformed", "형식이 잘못된 응답", "格式错误"],
        FailureClass::LocalLimit => ["local limit", "로컬 한도", "本机限制"],
        FailureClass::Unexplained => ["unexplained", "원인 불명", "原因不明"],
    }
}

pub(super) fn exclusion(language: Language, reason: ExclusionKind) -> &'static str {
    language.choose(match reason {
        ExclusionKind::Steal => ["CPU stolen by the hypervisor", "하이퍼바이저 스틸", "虚拟机监控程序 steal"],
        ExclusionKind::ForeignCpu => {
            ["other processes busy", "다른 프로세스의 CPU 사용이 많음", "其他进程繁忙"]
        }
        ExclusionKind::StateChanged => ["state changed", "머신 상태가 바뀜", "机器状态改变"],
        ExclusionKind::Errors => ["errors", "오류", "出错"],
        ExclusionKind::LittlesLaw => ["Little's law", "리틀의 법칙에 어긋남", "违反利特尔法则"],
        ExclusionKind::ServerFailed => ["server failed", "서버 실패", "服务器失败"],
        ExclusionKind::LoadFailed => ["generator failed", "부하 생성기 실패", "负载生成器失败"],
        ExclusionKind::CompletionOverflow => ["completion queue overflow", "완료 큐 넘침", "完成队列溢出"],
        ExclusionKind::JobFailed => ["job failed", "작업 실패", "任务失败"],
        ExclusionKind::NeighbourFailed => {
            ["neighbour failed", "함께 실행한 프로세스 실패", "同时运行的进程失败"]
        }
        ExclusionKind::HostLost => ["host lost", "호스트와의 연결 끊김", "主机失联"],
        ExclusionKind::InFarState => {
            ["in the far state", "코어 간 지연이 긴 상태(far)", "核间延迟较长（far）"]
        }
        ExclusionKind::InNearState => {
            ["in the near state", "코어 간 지연이 짧은 상태(near)", "核间延迟较短（near）"]
        }
        ExclusionKind::WithoutFigure => ["without this figure", "이 수치 없음", "缺少该数值"],
    })
}

/// `12 rounds`.
pub(crate) fn units_of(language: Language, units: u64, unit: UnitKind) -> String {
    let number = count(units);
    match (unit, units) {
        (UnitKind::Round, 1) => localized!(language, "1 round", "라운드 1회", "1 轮"),
        (UnitKind::Round, _) => localized!(language, "{number} rounds", "라운드 {number}회", "{number} 轮"),
        (UnitKind::Pair, 1) => localized!(language, "1 pair of trials", "시행 1쌍", "1 对试验"),
        (UnitKind::Pair, _) => {
            localized!(language, "{number} pairs of trials", "시행 {number}쌍", "{number} 对试验")
        }
    }
}

/// The unit in the singular, as after "per".
pub(crate) fn per(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["message", "메시지", "条消息"],
        MessageKind::Request => ["request", "요청", "个请求"],
        MessageKind::Order => ["order", "주문", "笔订单"],
        MessageKind::Operation => ["I/O", "I/O", "次 I/O"],
    })
}

/// The unit in the plural.
pub(crate) fn plural(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["messages", "메시지", "消息"],
        MessageKind::Request => ["requests", "요청", "请求"],
        MessageKind::Order => ["orders", "주문", "订单"],
        MessageKind::Operation => ["operations", "I/O", "I/O"],
    })
}

/// The unit of its rate, the same in every language.
pub(crate) fn rate(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["messages/s", "메시지/초", "消息/秒"],
        MessageKind::Request => ["requests/s", "요청/초", "请求/秒"],
        MessageKind::Order => ["orders/s", "주문/초", "订单/秒"],
        MessageKind::Operation => ["IOPS", "IOPS", "IOPS"],
    })
}
