//! What the laboratory found, told in the reader's language. A finding is a code with arguments, so that every language
//! has the same numbers and names; the sentence of an older record stays as it was recorded.

use weir_record::finding::{
    ArmExclusions, ExclusionKind, FailedTrial, FailureClass, FailureCount, Finding, MessageKind, OrderEffect,
    SlicePlace, Stopped, UnitKind, Witness, WitnessBearing,
};

use crate::{
    format::{self, count, percent},
    language::{Language, told},
    terms,
};

/// The finding in one language.
pub(crate) fn told_in(language: Language, finding: &Finding) -> String {
    let of = [of_responses, of_load, of_storage, of_noise, of_states, of_schedule, of_baseline, of_units];
    let further = [of_arms, of_figures, of_decision];
    let sentence = of.iter().chain(&further).find_map(|group| group(language, finding));
    sentence.unwrap_or_else(|| match finding {
        Finding::Text(text) => terms::told(text, language).unwrap_or_else(|| text.clone()),
        other => other.code().to_owned(),
    })
}

/// Whether it is an English sentence in a page that is not English.
pub(crate) fn is_foreign(language: Language, finding: &Finding) -> bool {
    matches!(finding, Finding::Text(text) if terms::told(text, language).is_none())
}

fn of_responses(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::BytesCompared { compared, expected, wrong } => {
            let (compared, expected, wrong) = (count(*compared), count(*expected), count(*wrong));
            told!(
                language,
                "{compared} of {expected} bytes compared, {wrong} responses wrong",
                "{expected}바이트 중 {compared}바이트 비교, 잘못된 응답 {wrong}건",
                "共 {expected} 字节，已比较 {compared} 字节，{wrong} 个响应有误",
            )
        }
        Finding::ResponsesChecked { bytes, bytes_expected, compared, responses, compared_share, wrong } => {
            let (bytes, expected, wrong) = (count(*bytes), count(*bytes_expected), count(*wrong));
            let (compared, responses) = (count(*compared), count(*responses));
            let share = percent(*compared_share);
            told!(
                language,
                "{bytes} of {expected} content bytes checked for framing and length; {compared} of {responses} responses \
                 compared byte for byte ({share}), {wrong} wrong",
                "본문 {expected}바이트 중 {bytes}바이트의 프레이밍과 길이 확인, 응답 {responses}건 중 {compared}건({share})을 \
                 바이트 단위로 비교, 잘못된 응답 {wrong}건",
                "共 {expected} 字节内容，已检查 {bytes} 字节的分帧与长度；{responses} 个响应中逐字节比较 {compared} \
                 个（{share}），有误 {wrong} 个",
            )
        }
        Finding::RepliesChecked { checked, inversions, unbalanced, trials } => {
            let (checked, inversions) = (count(*checked), count(*inversions));
            told!(
                language,
                "{checked} replies checked for their number and their turn, {inversions} out of turn; shares do not add \
                 up in {unbalanced} of {trials} trials",
                "응답 {checked}건의 번호와 순서 확인, 순서가 어긋난 것 {inversions}건, 주식 수가 맞지 않는 시행 {trials}회 중 \
                 {unbalanced}회",
                "已检查 {checked} 条回报的编号与次序，{inversions} 条次序有误；{trials} 次试验中有 {unbalanced} 次股数不平",
            )
        }
        Finding::Failures { count: 0, .. } => {
            language.choose(["no response failed", "실패한 응답 없음", "没有响应失败"]).to_owned()
        }
        Finding::Failures { count: failed, classes } => {
            let (failed, classes) = (count(*failed), failure_classes(language, classes));
            told!(
                language,
                "{failed} responses failed: {classes}",
                "응답 {failed}건 실패: {classes}",
                "{failed} 个响应失败：{classes}",
            )
        }
        Finding::Reports { missing: 0, trials, .. } => told!(
            language,
            "all {trials} trials gave a report",
            "시행 {trials}회 모두 결과를 냄",
            "全部 {trials} 次试验都给出了报告",
        ),
        Finding::Reports { missing, trials, first } => {
            let first = first
                .as_ref()
                .map(|first| format!("{}{}{}", first.arm, language.colon(), failed_trial(language, first)));
            let first = first.unwrap_or_default();
            told!(
                language,
                "{missing} of {trials} trials gave no report; first: {first}",
                "시행 {trials}회 중 {missing}회가 결과를 내지 못함. 첫 사례: {first}",
                "{trials} 次试验中有 {missing} 次没有给出报告；第一次：{first}",
            )
        }
        _ => return None,
    })
}

fn of_load(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::LittlesLaw { kind, error, over, trials, error_max } => {
            let (kind, error, limit) = (plural(language, *kind), percent(*error), percent(*error_max));
            told!(
                language,
                "{kind} in flight as counted and as throughput times latency differ by {error} in the median trial; \
                 {over} of {trials} trials over {limit} (and what the window's edges explain) and excluded",
                "직접 센 동시 {kind} 수와 ‘처리량 × 지연시간’의 차이는 시행 중앙값 {error}. 시행 {trials}회 중 {over}회가 \
                 {limit}(와 측정 구간 경계로 설명되는 몫)를 넘어 제외됨",
                "在途{kind}数的计数值与“吞吐量 × 延迟”之差，中位数为 {error}；{trials} 次试验中有 {over} 次超过 \
                 {limit}（以及窗口边缘所能解释的部分），已剔除",
            )
        }
        Finding::GeneratorLimit { bound, trials } => told!(
            language,
            "the generator was the limit in {bound} of {trials} closed-loop trials",
            "폐쇄형 부하 시행 {trials}회 중 {bound}회에서 부하 생성기가 한계였음",
            "{trials} 次闭环试验中有 {bound} 次受限于负载生成器",
        ),
        Finding::NoOpenLoop => {
            language.choose(["no open-loop cell", "개방형 부하 조건 없음", "没有开环条件"]).to_owned()
        }
        Finding::RateKept { missed, starts } => {
            let (missed, starts) = (count(*missed), count(*starts));
            told!(
                language,
                "{missed} of {starts} intended starts were missed in open loop",
                "개방형 부하에서 예정된 전송 {starts}건 중 {missed}건을 놓침",
                "开环中 {starts} 次预定发送错过了 {missed} 次",
            )
        }
        Finding::CompletionOverflows { count } => told!(
            language,
            "{count} completion queue overflows",
            "완료 큐 넘침 {count}회",
            "完成队列溢出 {count} 次",
        ),
        Finding::WarmUp { trials: 0, .. } => language
            .choose([
                "slices are primed; no whole trial needed a warm-up",
                "슬라이스는 매번 예열하므로 준비 구간이 필요한 시행 없음",
                "各时间片都已预热，没有需要预热期的完整试验",
            ])
            .to_owned(),
        Finding::WarmUp { steady, trials } => told!(
            language,
            "steady before the window in {steady} of {trials} trials; the others ran to the cap",
            "시행 {trials}회 중 {steady}회가 측정 전 안정 상태에 도달. 나머지는 준비 시간 상한까지 실행",
            "{trials} 次试验中有 {steady} 次在测量前已达稳态；其余运行到预热上限",
        ),
        Finding::ChainWhole { whole, trials } => told!(
            language,
            "without questions about numbers, the gateway received exactly twice what the exchange received in {whole} of \
             {trials} trials",
            "번호 조회를 빼면 시행 {trials}회 중 {whole}회에서 게이트웨이 수신이 거래소 수신의 정확히 두 배",
            "不计编号查询，{trials} 次试验中有 {whole} 次网关接收量恰为交易所的两倍",
        ),
        Finding::WakesRecovered { recovered, pushed } => {
            let (recovered, pushed) = (count(*recovered), count(*pushed));
            told!(
                language,
                "{recovered} of {pushed} messages handed over lay until the once-a-second look",
                "넘긴 메시지 {pushed}건 중 {recovered}건이 1초 주기 점검 때까지 방치됨",
                "交出的 {pushed} 条消息中有 {recovered} 条滞留到每秒一次的检查",
            )
        }
        _ => return None,
    })
}

fn of_storage(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::OperationsCounted { operations, error, error_max } => {
            let (operations, error, limit) = (count(*operations), percent(*error), percent(*error_max));
            told!(
                language,
                "{operations} operations by the kernel's account of the bytes; the tools' own rates differ from it by \
                 {error} in the median trial, at most {limit} are allowed",
                "커널이 집계한 바이트 기준 I/O {operations}회. 도구가 보고한 속도와의 차이는 시행 중앙값 {error}(허용 {limit})",
                "按内核的字节统计共 {operations} 次 I/O；与工具自报速率之差，中位数为 {error}，至多允许 {limit}",
            )
        }
        Finding::InFlightAsGiven { surplus, over, trials, surplus_max } => {
            let (surplus, limit) = (percent(*surplus), percent(*surplus_max));
            told!(
                language,
                "operations a second times mean latency exceed the operations in flight by {surplus} in the median \
                 trial; {over} of {trials} trials over {limit} and excluded",
                "‘초당 I/O × 평균 지연시간’이 동시 I/O 수를 넘는 정도는 시행 중앙값 {surplus}. 시행 {trials}회 중 {over}회가 \
                 {limit}를 넘어 제외됨",
                "“每秒 I/O × 平均延迟”超出在途 I/O 数，中位数为 {surplus}；{trials} 次试验中有 {over} 次超过 {limit}，已剔除",
            )
        }
        Finding::RequestsTaken { taken, most } => {
            let (taken, most) = (count(*taken), count(*most));
            told!(
                language,
                "{taken} of {most} requests of the machine are taken",
                "머신 전체 요청 {most}개 중 {taken}개 사용 중",
                "整机 {most} 个请求中已占用 {taken} 个",
            )
        }
        Finding::Repeatable { same, repeats, simulated } => {
            let (same, repeats, simulated) = (count(*same), count(*repeats), count(*simulated));
            told!(
                language,
                "{simulated} trials are computed and depend on the seed alone; {same} of {repeats} that were computed \
                 twice came out the same bit for bit",
                "시행 {simulated}건은 시드에만 따라 계산한 것이며, 두 번 계산한 {repeats}건 가운데 {same}건이 비트까지 같음",
                "{simulated} 次试验由计算得出，只取决于种子；计算两遍的 {repeats} 次中有 {same} 次逐位相同",
            )
        }
        Finding::NotAsked => language
            .choose([
                "headroom of the generator, the offered rate and a steady warm-up: a storage job is its own load and \
                 waits for its own operations, after a ramp of fixed length",
                "부하 생성기의 여유, 목표 부하율, 안정된 준비 구간. 스토리지 작업은 그 자체가 부하이고 자신의 I/O를 기다리며, 준비 \
                 시간은 정해져 있음",
                "负载生成器的余量、设定的负载速率与稳态预热：存储任务自身就是负载，等待自己的 I/O，预热时长固定",
            ])
            .to_owned(),
        _ => return None,
    })
}

fn of_noise(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::Steal { share, unit: UnitKind::Round, .. } => {
            let share = percent(*share);
            told!(
                language,
                "{share} of CPU time stolen by the hypervisor (median); arms that take turns meet it alike, so nothing \
                 was excluded",
                "하이퍼바이저 스틸은 CPU 시간의 {share}(중앙값). 번갈아 실행되는 대상들이 똑같이 겪으므로 제외한 것은 없음",
                "虚拟机监控程序的 steal 占 CPU 时间 {share}（中位数）；各方案轮流运行，所受影响相同，因此没有剔除",
            )
        }
        Finding::Steal { share, over, trials, share_max, .. } => {
            let (share, limit) = (percent(*share), percent(*share_max));
            told!(
                language,
                "{share} of CPU time stolen by the hypervisor in the median trial; {over} of {trials} trials over {limit} \
                 and excluded",
                "하이퍼바이저 스틸은 시행 중앙값 {share}. 시행 {trials}회 중 {over}회가 {limit}를 넘어 제외됨",
                "虚拟机监控程序的 steal，中位数为 {share}；{trials} 次试验中有 {over} 次超过 {limit}，已剔除",
            )
        }
        Finding::ForeignCpu { cpus, unit: UnitKind::Round, .. } => {
            let cpus = format!("{cpus:.3}");
            told!(
                language,
                "other processes used {cpus} of a CPU (median); arms that take turns meet them alike, so nothing was set \
                 aside",
                "다른 프로세스가 쓴 CPU는 {cpus}개(중앙값). 번갈아 실행되는 대상들이 똑같이 겪으므로 제외한 것은 없음",
                "其他进程占用 {cpus} 个 CPU（中位数）；各方案轮流运行，所受影响相同，因此没有剔除",
            )
        }
        Finding::ForeignCpu { cpus, over, trials, .. } => {
            let cpus = format!("{cpus:.3}");
            told!(
                language,
                "other processes used {cpus} of a CPU in the median trial; {over} of {trials} trials had more beside them \
                 than always runs on this machine and were excluded",
                "다른 프로세스가 쓴 CPU는 시행 중앙값 {cpus}개. 시행 {trials}회 중 {over}회가 이 머신의 평상시보다 많아 제외됨",
                "其他进程占用的 CPU，中位数为 {cpus} 个；{trials} 次试验中有 {over} 次高于本机常态，已剔除",
            )
        }
        Finding::ExclusionsByArm { arms, p_value } => {
            let of = |arm: &ArmExclusions| match language {
                Language::English => format!("{} {} of {}", arm.arm, arm.excluded, arm.trials),
                Language::Korean => format!("{} {}회 중 {}회", arm.arm, arm.trials, arm.excluded),
                Language::Chinese => format!("{} {} 次中 {} 次", arm.arm, arm.trials, arm.excluded),
            };
            let arms = arms.iter().map(of).collect::<Vec<_>>().join(language.list());
            told!(
                language,
                "trials excluded for noise, attempts included: {arms} (p = {p_value:.3} that the arms differ by chance)",
                "노이즈로 제외된 시행(재시도 포함): {arms}. 우연히 이만큼 차이 날 확률 p = {p_value:.3}",
                "因噪声剔除的试验（含重试）：{arms}；差异出于偶然的概率 p = {p_value:.3}",
            )
        }
        Finding::SliceOrder { effects, change_max } => {
            let effects: Vec<String> = effects.iter().map(|effect| order_effect(language, effect)).collect();
            let (effects, limit) = (effects.join(language.list()), format!("{:.2} %", 100.0 * change_max));
            told!(
                language,
                "change of the baseline's own CPU per message: {effects}; at most {limit} is allowed where it is more \
                 than noise",
                "기준 자신의 메시지당 CPU 변화: {effects}. 노이즈보다 클 때 허용되는 변화는 {limit}까지",
                "基线自身每条消息 CPU 的变化：{effects}；超出噪声时至多允许 {limit}",
            )
        }
        _ => return None,
    })
}

fn order_effect(language: Language, effect: &OrderEffect) -> String {
    let signed = |share: f64| format!("{:+.2}", 100.0 * share);
    let (change, low, high) = (signed(effect.change), signed(effect.interval.0), signed(effect.interval.1));
    let cell = &effect.cell_id;
    match &effect.place {
        SlicePlace::GoingFirst => told!(
            language,
            "{change} % [{low}, {high}] going first ({cell})",
            "먼저 실행될 때 {change} % [{low}, {high}]({cell})",
            "先运行时 {change} % [{low}, {high}]（{cell}）",
        ),
        SlicePlace::Following { arm } => told!(
            language,
            "{change} % [{low}, {high}] following {arm} ({cell})",
            "{arm} 다음에 실행될 때 {change} % [{low}, {high}]({cell})",
            "紧接 {arm} 之后 {change} % [{low}, {high}]（{cell}）",
        ),
    }
}

fn of_states(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::NoTrial => {
            language.choose(["no trial was run", "실행된 시행 없음", "没有运行任何试验"]).to_owned()
        }
        Finding::NoCrossCore => language
            .choose([
                "no cross-core readings: the two sides do not have a CPU each",
                "코어 간 측정값 없음: 양쪽에 CPU를 하나씩 줄 수 없음",
                "没有跨核读数：双方无法各占一个 CPU",
            ])
            .to_owned(),
        Finding::OneState { ns, trials } => {
            let ns = format::nanos(*ns);
            told!(
                language,
                "one state, {ns} between the cores, in all {trials} trials",
                "상태 1개, 코어 간 {ns}, 시행 {trials}회 모두",
                "单一状态，跨核 {ns}，全部 {trials} 次试验",
            )
        }
        Finding::TwoStates { near_ns, far_ns, near, far, changed } => {
            let (near_ns, far_ns) = (format::nanos(*near_ns), format::nanos(*far_ns));
            told!(
                language,
                "two states, {near_ns} and {far_ns} between the cores: {near} trials in the near one, {far} in the far \
                 one, {changed} changed on the way",
                "상태 2개, 코어 간 {near_ns}와 {far_ns}: 가까운 상태(near) {near}회, 먼 상태(far) {far}회, 도중에 바뀜 {changed}회",
                "两种状态，跨核 {near_ns} 与 {far_ns}：近状态（near）{near} 次试验，远状态（far）{far} 次，中途变化 {changed} 次",
            )
        }
        Finding::Oversubscribed { threads, cpus } => told!(
            language,
            "oversubscribed: {threads} threads share {cpus} CPUs, so that the figures are those of the scheduler as well",
            "CPU보다 스레드가 많음: 스레드 {threads}개가 CPU {cpus}개를 나눠 쓰므로 스케줄러의 영향도 포함된 수치",
            "线程多于 CPU：{threads} 个线程共用 {cpus} 个 CPU，数字也包含调度器的影响",
        ),
        Finding::FarState => language
            .choose([
                "compared in the machine's far state, which most clean trials of this cell met",
                "이 조건의 정상 시행 대부분이 거친 먼 상태(far)에서 비교함",
                "在远状态（far）下比较，该条件的多数有效试验处于此状态",
            ])
            .to_owned(),
        _ => return None,
    })
}

fn of_schedule(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::Interleaving { matching, blocks, seed } => told!(
            language,
            "{matching} of {blocks} blocks ran in the random order of seed {seed}",
            "블록 {blocks}개 중 {matching}개가 시드 {seed}의 무작위 순서대로 실행됨",
            "{blocks} 个区组中有 {matching} 个按随机种子 {seed} 的顺序运行",
        ),
        Finding::Schedule { stopped: Some(Stopped::NothingToCompare { elapsed_ns }), .. } => {
            let (elapsed, done) = (language.duration(*elapsed_ns), blocks_done(language, finding));
            told!(
                language,
                "nothing is left to compare after {elapsed}: {done}",
                "{elapsed} 뒤 비교할 대상이 남지 않음: {done}",
                "{elapsed}后已没有可比较的对象：{done}",
            )
        }
        Finding::Schedule { stopped: Some(Stopped::CutShort { elapsed_ns, cap_ns }), .. } => {
            let (elapsed, cap) = (language.duration(*elapsed_ns), language.duration(*cap_ns));
            let done = blocks_done(language, finding);
            told!(
                language,
                "cut short after {elapsed}, with a time cap of {cap} for a session: {done}; weir study --resume goes on",
                "{elapsed} 뒤 중단됨(세션 시간 상한 {cap}): {done}. weir study --resume로 이어서 실행",
                "{elapsed}后中断（每次会话时间上限 {cap}）：{done}；可用 weir study --resume 继续",
            )
        }
        Finding::Schedule { .. } => blocks_done(language, finding),
        Finding::Unfinished { blocks_done, blocks } => told!(
            language,
            "no verdict from an unfinished schedule: {blocks_done} of {blocks} blocks are done",
            "일정이 끝나지 않아 판정하지 않음: 블록 {blocks}개 중 {blocks_done}개 완료",
            "计划尚未完成，不作判定：{blocks} 个区组完成了 {blocks_done} 个",
        ),
        _ => return None,
    })
}

fn blocks_done(language: Language, schedule: &Finding) -> String {
    let Finding::Schedule { blocks_done, blocks, blocks_to_repeat, has_near_state, .. } = schedule else {
        return String::new();
    };
    let done = told!(
        language,
        "{blocks_done} of {blocks} blocks are done",
        "블록 {blocks}개 중 {blocks_done}개 완료",
        "{blocks} 个区组已完成 {blocks_done} 个",
    );
    if *blocks_to_repeat == 0 {
        return done;
    }
    let state = match has_near_state {
        true => language.choose([" in the near state", "가까운 상태(near)의 ", "近状态（near）下的"]),
        false => "",
    };
    told!(
        language,
        "{done}, {blocks_to_repeat} of these without a clean pair{state} that may be run again",
        "{done}, 그중 {blocks_to_repeat}개는 {state}정상 쌍이 없어 다시 실행할 수 있음",
        "{done}，其中 {blocks_to_repeat} 个缺少{state}有效配对，可重新运行",
    )
}

fn of_baseline(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::NeverAgainstItself => language
            .choose([
                "the baseline was never paired with itself",
                "기준을 자기 자신과 짝지은 쌍이 없음",
                "基线从未与自身配对",
            ])
            .to_owned(),
        Finding::AgainstItself { units, unit, kind, ratio, interval } => {
            let ratio = format::ratio_and_interval(Some(*ratio), *interval);
            let (units, per) = (units_of(language, *units, *unit), per(language, *kind));
            told!(
                language,
                "over {units} the baseline's second run took {ratio} times the CPU per {per} of its first",
                "{units}에서 기준의 두 번째 실행은 {per}당 CPU를 첫 번째의 {ratio}배 씀",
                "在 {units}中，基线第二次运行的每{per} CPU 是第一次的 {ratio} 倍",
            )
        }
        _ => return None,
    })
}

fn of_units(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::NothingMeasured => {
            language.choose(["nothing was measured", "측정된 것이 없음", "没有测得任何数据"]).to_owned()
        }
        Finding::OneUnit { unit } => {
            let units = units_of(language, 1, *unit);
            told!(
                language,
                "{units} alone has no interval",
                "{units}뿐이라 구간이 없음",
                "只有 {units}，没有区间",
            )
        }
        Finding::NoPairLeft => {
            language.choose(["no pair is left", "남은 쌍이 없음", "没有剩余的配对"]).to_owned()
        }
        Finding::Excluded { reason, count } => {
            let reason = exclusion(language, *reason);
            told!(language, "{reason} ({count})", "{reason} {count}건", "{reason} {count} 例")
        }
        Finding::TooFewUnits { units, units_min } => told!(
            language,
            "{units} units are too few to decide; it takes {units_min}",
            "단위 {units}개로는 판정할 수 없음. 최소 {units_min}개 필요",
            "{units} 个单元不足以判定，至少需要 {units_min} 个",
        ),
        Finding::IncludesNone { none, .. } => told!(
            language,
            "the measured difference may be chance: the interval includes {none}",
            "측정된 차이가 우연일 수 있습니다(구간이 {none}을 포함)",
            "测得的差异可能出于偶然（区间包含 {none}）",
        ),
        Finding::NotSignificant { p_value } => {
            let p = format::probability(Some(*p_value));
            told!(
                language,
                "among several claims the test does not rule out chance (p = {p})",
                "여러 주장을 함께 검정하면 우연을 배제할 수 없습니다(p = {p})",
                "在多个结论一并检验时不能排除偶然（p = {p}）",
            )
        }
        _ => return None,
    })
}

fn of_arms(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::WrongBytes { arm, responses } => told!(
            language,
            "{arm} returned wrong bytes in {responses} responses",
            "{arm}: 응답 {responses}건의 바이트가 틀림",
            "{arm}：{responses} 个响应的字节有误",
        ),
        Finding::Unexplained { arm, failures } => told!(
            language,
            "{failures} failures of {arm} have no class",
            "{arm}: 분류되지 않은 실패 {failures}건",
            "{arm}：{failures} 个失败无法归类",
        ),
        Finding::TrialsFailed { arm, failed, trials, first } => {
            let first = failed_trial(language, first);
            told!(
                language,
                "{failed} of {trials} trials of {arm} failed, first: {first}",
                "{arm}: 시행 {trials}회 중 {failed}회 실패, 첫 사례: {first}",
                "{arm}：{trials} 次试验中有 {failed} 次失败，第一次：{first}",
            )
        }
        Finding::RateNotKept { arm, missed, trials } => told!(
            language,
            "{arm} did not keep the offered rate in {missed} of {trials} trials",
            "{arm}: 시행 {trials}회 중 {missed}회에서 목표 부하율을 지키지 못함",
            "{arm}：{trials} 次试验中有 {missed} 次未能保持设定的负载速率",
        ),
        _ => return None,
    })
}

fn of_figures(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::LagUnknown { arm, kind } => {
            let kind = plural(language, *kind);
            told!(
                language,
                "too few {kind} to know the generator's lag against {arm}",
                "{arm}: {kind} 수가 적어 부하 생성기의 전송 지연을 알 수 없음",
                "{arm}：{kind}太少，无法得知负载生成器的发送滞后",
            )
        }
        Finding::LagTooLarge { arm, share } => {
            let share = percent(*share);
            told!(
                language,
                "the generator's p99 lag against {arm} is {share} of the median response time",
                "{arm}: 부하 생성기의 p99 전송 지연이 응답시간 중앙값의 {share}임",
                "{arm}：负载生成器的 p99 发送滞后为响应时间中位数的 {share}",
            )
        }
        Finding::LowerBound { arm, per_second, kind } => {
            let rate = format!("{} {}", format::grouped(*per_second), rate(language, *kind));
            told!(
                language,
                "{arm} ≥ {rate} (generator-bound)",
                "{arm} ≥ {rate}(부하 생성기 한계)",
                "{arm} ≥ {rate}（受限于负载生成器）",
            )
        }
        Finding::AlsoSyscalls { arm, baseline, kind } => {
            let (arm, baseline) =
                (format::per_message_in_prose(*arm), format::per_message_in_prose(*baseline));
            let per = per(language, *kind);
            told!(
                language,
                "it also enters the kernel {arm} times per {per} instead of {baseline}",
                "{per}당 시스템 콜도 {baseline}회가 아니라 {arm}회입니다",
                "每{per}的系统调用也是 {arm} 次，而不是 {baseline} 次",
            )
        }
        _ => return None,
    })
}

fn of_decision(language: Language, finding: &Finding) -> Option<String> {
    Some(match finding {
        Finding::NoEqualRate => language
            .choose([
                "the generator was the limit, and no open-loop cell shows both arms at one equal rate",
                "부하 생성기가 한계였고, 두 대상을 같은 부하율로 비교한 개방형 조건이 없음",
                "瓶颈在负载生成器，且没有开环条件以相同速率比较双方",
            ])
            .to_owned(),
        Finding::IncludesBound { bound } => {
            let bound = format::bound(*bound);
            told!(
                language,
                "the interval includes the bound {bound}",
                "구간이 목표 값 {bound}을(를) 포함함",
                "区间包含目标值 {bound}",
            )
        }
        Finding::NoUnitLeft => language
            .choose([
                "too few trials are left that can be compared; the notes say why",
                "비교할 수 있는 시행이 너무 적게 남음(이유는 참고 사항에 있음)",
                "可比较的试验所剩过少（原因见说明）",
            ])
            .to_owned(),
        Finding::OtherStates => language
            .choose([
                "the two sides were met in different machine states only",
                "두 쪽이 서로 다른 머신 상태에서만 측정됨",
                "双方只在不同的机器状态下测得",
            ])
            .to_owned(),
        Finding::ArmMissing { arm } => {
            told!(language, "{arm} could not run", "{arm}을(를) 실행하지 못함", "{arm} 未能运行")
        }
        Finding::NoWitness { witness } => {
            let witness = witness_name(language, *witness);
            told!(
                language,
                "{witness}: no valid figure, so the verdict is not confirmed",
                "{witness}: 유효한 수치가 없어 판정을 확인할 수 없음",
                "{witness}：没有有效数值，判定未获证实",
            )
        }
        Finding::Witness { witness, seen, bearing } => {
            let witness = witness_name(language, *witness);
            let ratio = format::ratio_and_interval(Some(seen.ratio), Some(seen.interval));
            let units = seen.units;
            let bearing = language.choose(match bearing {
                WitnessBearing::Supports => {
                    ["which does not contradict this", "결과와 어긋나지 않음", "与此结论不矛盾"]
                }
                WitnessBearing::Uncertain => [
                    "which is too uncertain to confirm this",
                    "불확실성이 커서 결과를 확인할 수 없음",
                    "不确定性过大，不足以证实此结论",
                ],
                WitnessBearing::Contradicts => ["which contradicts this", "결과와 어긋남", "与此结论矛盾"],
            });
            told!(
                language,
                "{witness}: ratio {ratio} from {units} units, {bearing}",
                "{witness}: 비율 {ratio}(단위 {units}개), {bearing}",
                "{witness}：比值 {ratio}（{units} 个单元），{bearing}",
            )
        }
        _ => return None,
    })
}

fn witness_name(language: Language, witness: Witness) -> String {
    match witness {
        Witness::MachineCpu => language.choose(["machine CPU", "전체 머신 CPU", "整机 CPU"]).to_owned(),
        Witness::EqualRate { per_second } => {
            let rate = format::rate(per_second);
            told!(language, "at an equal rate of {rate}", "같은 부하율 {rate}에서", "在相同速率 {rate} 下")
        }
    }
}

/// Why a trial failed, as far as it knows: `server failed: exited with status 1, reset (2)`.
fn failed_trial(language: Language, failed: &FailedTrial) -> String {
    let reason = failed.reason.map(|reason| exclusion(language, reason).to_owned());
    let lost = [
        (failed.listen_overflows, ["full accept queue", "가득 찬 연결 대기열", "连接队列已满"]),
        (failed.syn_retransmits, ["SYN sent again", "SYN 재전송", "SYN 重传"]),
    ];
    let lost = lost.into_iter().filter(|(times, _)| *times > 0);
    let lost = lost.map(|(times, what)| counted(language, language.choose(what), times));
    let classes = (!failed.classes.is_empty()).then(|| failure_classes(language, &failed.classes));
    let known: Vec<String> = failed.said.clone().into_iter().chain(classes).chain(lost).collect();
    let known = (!known.is_empty()).then(|| known.join(language.list()));
    reason.into_iter().chain(known).collect::<Vec<_>>().join(language.colon())
}

fn failure_classes(language: Language, classes: &[FailureCount]) -> String {
    let one = |it: &FailureCount| counted(language, language.choose(failure_class(it.class)), it.count);
    classes.iter().map(one).collect::<Vec<_>>().join(language.list())
}

fn counted(language: Language, what: &str, times: u64) -> String {
    let times = count(times);
    told!(language, "{what} ({times})", "{what} {times}건", "{what} {times} 例")
}

fn failure_class(class: FailureClass) -> [&'static str; 3] {
    match class {
        FailureClass::Refused => ["refused", "연결 거부", "连接被拒"],
        FailureClass::Reset => ["reset", "연결 재설정", "连接被重置"],
        FailureClass::ConnectTimeout => ["connect timeout", "연결 시간 초과", "连接超时"],
        FailureClass::ResponseTimeout => ["response timeout", "응답 시간 초과", "响应超时"],
        FailureClass::CutShort => ["cut short", "응답 잘림", "响应不完整"],
        FailureClass::WrongBytes => ["wrong bytes", "잘못된 바이트", "字节有误"],
        FailureClass::WrongStatus => ["wrong status", "다른 상태 코드", "状态码不符"],
        FailureClass::Malformed => ["malformed", "형식이 잘못된 응답", "格式错误"],
        FailureClass::LocalLimit => ["local limit", "로컬 한도", "本机限制"],
        FailureClass::Unexplained => ["unexplained", "원인 불명", "原因不明"],
    }
}

fn exclusion(language: Language, reason: ExclusionKind) -> &'static str {
    language.choose(match reason {
        ExclusionKind::Steal => ["CPU stolen by the hypervisor", "하이퍼바이저 스틸", "虚拟机监控程序 steal"],
        ExclusionKind::ForeignCpu => ["other processes busy", "다른 프로세스가 바쁨", "其他进程繁忙"],
        ExclusionKind::StateChanged => ["state changed", "머신 상태가 바뀜", "机器状态改变"],
        ExclusionKind::Errors => ["errors", "오류", "出错"],
        ExclusionKind::LittlesLaw => ["Little's law", "리틀의 법칙에 어긋남", "违反利特尔法则"],
        ExclusionKind::ServerFailed => ["server failed", "서버 실패", "服务器失败"],
        ExclusionKind::LoadFailed => ["generator failed", "부하 생성기 실패", "负载生成器失败"],
        ExclusionKind::CompletionOverflow => ["completion queue overflow", "완료 큐 넘침", "完成队列溢出"],
        ExclusionKind::JobFailed => ["job failed", "작업 실패", "任务失败"],
        ExclusionKind::NeighbourFailed => ["neighbour failed", "함께 실행한 프로세스 실패", "旁侧进程失败"],
        ExclusionKind::InFarState => ["in the far state", "먼 상태(far)", "处于远状态（far）"],
        ExclusionKind::InNearState => ["in the near state", "가까운 상태(near)", "处于近状态（near）"],
        ExclusionKind::WithoutFigure => ["without this figure", "이 수치가 없음", "缺少该数值"],
    })
}

/// `12 rounds`.
pub(crate) fn units_of(language: Language, units: u64, unit: UnitKind) -> String {
    let number = count(units);
    match (unit, units) {
        (UnitKind::Round, 1) => told!(language, "1 round", "라운드 1회", "1 轮"),
        (UnitKind::Round, _) => told!(language, "{number} rounds", "라운드 {number}회", "{number} 轮"),
        (UnitKind::Pair, 1) => told!(language, "1 pair of trials", "시행 1쌍", "1 对试验"),
        (UnitKind::Pair, _) => {
            told!(language, "{number} pairs of trials", "시행 {number}쌍", "{number} 对试验")
        }
    }
}

/// One of what is counted, as it stands behind "per".
pub(crate) fn per(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["message", "메시지", "条消息"],
        MessageKind::Request => ["request", "요청", "个请求"],
        MessageKind::Order => ["order", "주문", "笔订单"],
        MessageKind::Operation => ["I/O", "I/O", "次 I/O"],
    })
}

/// Several of them.
pub(crate) fn plural(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["messages", "메시지", "消息"],
        MessageKind::Request => ["requests", "요청", "请求"],
        MessageKind::Order => ["orders", "주문", "订单"],
        MessageKind::Operation => ["operations", "I/O", "I/O"],
    })
}

/// Their rate: the same unit in every language.
pub(crate) fn rate(language: Language, kind: MessageKind) -> &'static str {
    language.choose(match kind {
        MessageKind::Message => ["messages/s", "메시지/초", "消息/秒"],
        MessageKind::Request => ["requests/s", "요청/초", "请求/秒"],
        MessageKind::Order => ["orders/s", "주문/초", "订单/秒"],
        MessageKind::Operation => ["IOPS", "IOPS", "IOPS"],
    })
}
