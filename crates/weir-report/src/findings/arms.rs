//! Whether arms match the study's description.

use weir_record::finding::{OfArmChecks, ProgramBuild, ProgramChange, RingApart, SamePair};

use crate::{
    format::count,
    language::{Language, localized},
};

pub(super) fn of_arm_checks(language: Language, finding: OfArmChecks<'_>) -> String {
    match finding {
        OfArmChecks::SameArms { pairs, .. } if pairs.is_empty() => language
            .choose(["no two arms are the same", "서로 같은 비교 대상 없음", "没有两个相同的方案"])
            .to_owned(),
        OfArmChecks::SameArms { pairs, is_asked } => same_arms(language, pairs, *is_asked),
        OfArmChecks::RingUse { servers, apart } => ring_use(language, *servers, apart),
        OfArmChecks::Builds { programs, debug } => builds(language, *programs, debug),
        OfArmChecks::ProgramFiles { files, changed } => program_files(language, *files, changed),
    }
}

fn same_arms(language: Language, pairs: &[SamePair], is_asked: bool) -> String {
    let one = |SamePair { arm, other }: &SamePair| format!("{arm} = {other}");
    let pairs = pairs.iter().map(one).collect::<Vec<_>>().join(language.list());
    if is_asked {
        return localized!(
            language,
            "the study compares equal arms on purpose: {pairs}",
            "의도적으로 같은 대상끼리 비교하는 실험: {pairs}",
            "本实验有意比较相同的方案：{pairs}",
        );
    }
    localized!(
        language,
        "arms with the same program, arguments and options, so that nothing is compared: {pairs}; a study that means \
         this says same_arms = true",
        "프로그램, 인수, 옵션이 같아 비교할 것이 없는 대상: {pairs}. 의도한 것이라면 실험 파일에 same_arms = true를 적을 것",
        "程序、参数与选项都相同的方案，没有可比之处：{pairs}；若为有意，请在实验文件中写 same_arms = true",
    )
}

fn ring_use(language: Language, servers: u64, apart: &[RingApart]) -> String {
    if apart.is_empty() {
        return localized!(
            language,
            "of {servers} arms in their cells those on io_uring enter its ring, and no other does",
            "조건별 대상 {servers}개 중 io_uring을 쓰는 대상만 링에 진입함",
            "各条件下共 {servers} 个方案，只有使用 io_uring 的进入其环",
        );
    }
    let one = |RingApart { cell_id, arm, driver, enters }: &RingApart| {
        let enters = count(*enters);
        localized!(
            language,
            "{arm} ({cell_id}, driver {driver}): {enters} calls of io_uring_enter",
            "{arm}({cell_id}, 드라이버 {driver}): io_uring_enter 호출 {enters}회",
            "{arm}（{cell_id}，驱动 {driver}）：io_uring_enter 调用 {enters} 次",
        )
    };
    let list = apart.iter().map(one).collect::<Vec<_>>().join(language.semicolon());
    localized!(
        language,
        "of {servers} arms in their cells there are some that do not use the driver that they name: {list}",
        "조건별 대상 {servers}개 중 지정한 드라이버를 쓰지 않는 것이 있음: {list}",
        "各条件下共 {servers} 个方案，其中有的没有使用其指定的驱动：{list}",
    )
}

fn builds(language: Language, programs: u64, debug: &[ProgramBuild]) -> String {
    if debug.is_empty() {
        return localized!(
            language,
            "none of {programs} programs of Weir is built for development",
            "Weir 프로그램 {programs}개 중 개발용 빌드 없음",
            "{programs} 个 Weir 程序中没有开发构建",
        );
    }
    let one = |ProgramBuild { program, build }: &ProgramBuild| {
        localized!(language, "{program} ({build})", "{program}({build})", "{program}（{build}）")
    };
    let list = debug.iter().map(one).collect::<Vec<_>>().join(language.list());
    localized!(
        language,
        "built for development, so that the figures are those of a slow program: {list}",
        "개발용 빌드이므로 느린 프로그램의 수치임: {list}",
        "开发构建，反映的是较慢程序的数值：{list}",
    )
}

fn program_files(language: Language, files: u64, changed: &[ProgramChange]) -> String {
    if changed.is_empty() {
        return localized!(
            language,
            "{files} files of programs had one content at every start",
            "프로그램 파일 {files}개의 내용이 매번 같음",
            "{files} 个程序文件每次启动时内容相同",
        );
    }
    let one = |ProgramChange { arm, file, contents }: &ProgramChange| {
        localized!(
            language,
            "{file} of {arm} had {contents} contents",
            "{arm}의 {file}: 서로 다른 내용 {contents}가지",
            "{arm} 的 {file} 有 {contents} 种内容",
        )
    };
    let list = changed.iter().map(one).collect::<Vec<_>>().join(language.list());
    localized!(
        language,
        "a program changed while the study ran, so that rounds of one arm are of several programs: {list}",
        "실험 도중 프로그램이 바뀌어 한 대상의 라운드에 여러 프로그램이 섞임: {list}",
        "实验运行期间程序发生了变化，同一方案的轮次来自不同的程序：{list}",
    )
}
