//! What the rungs of evidence are called.

use weir_record::observation::Rung;

use crate::language::Language;

/// With its number.
pub(crate) fn name(rung: Rung, language: Language) -> &'static str {
    match rung {
        Rung::Engine => language.choose(["L0 (engine counters)", "L0 (엔진 카운터)", "L0（引擎计数器）"]),
        Rung::Process => language.choose(["L1 (/proc)", "L1 (/proc)", "L1（/proc）"]),
        Rung::Programs => language.choose(["L2 (kernel programs)", "L2 (커널 프로그램)", "L2（内核程序）"]),
        Rung::Strace => language.choose(["L3 (strace)", "L3 (strace)", "L3（strace）"]),
    }
}
