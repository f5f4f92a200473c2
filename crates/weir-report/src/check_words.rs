//! What validity checks are called: a line for each.

use crate::words::Word;

/// Name of the check that names those a study does without; it has no outcome.
pub(crate) const NOT_ASKED: &str = "not-asked";

/// What a validity check asserts, for the checks that are known by name.
pub(crate) fn check(name: &str) -> Option<Word> {
    match name {
        "bytes-verified" => Some(Word::CheckBytes),
        "responses-checked" => Some(Word::CheckResponses),
        "operations-counted" => Some(Word::CheckCounted),
        NOT_ASKED => Some(Word::CheckNotAsked),
        "repeatable" => Some(Word::CheckRepeatable),
        "replies-checked" => Some(Word::CheckReplies),
        "chain-whole" => Some(Word::CheckChain),
        "wakes-recovered" => Some(Word::CheckRecovered),
        "failures-classified" => Some(Word::CheckFailures),
        "littles-law" => Some(Word::CheckLittle),
        "generator-headroom" => Some(Word::CheckHeadroom),
        "processes" => Some(Word::CheckProcesses),
        "rate-kept" => Some(Word::CheckRate),
        "completion-overflow" => Some(Word::CheckOverflow),
        "machine-states" => Some(Word::CheckStates),
        "programs-complete" => Some(Word::CheckPrograms),
        "calls-agree" => Some(Word::CheckCalls),
        "calls-cover" => Some(Word::CheckCover),
        "planted-leads" => Some(Word::CheckPlanted),
        "slice-order" => Some(Word::CheckSliceOrder),
        "segments" => Some(Word::CheckSegments),
        "slice-length" => Some(Word::CheckSliceLength),
        "warm" => Some(Word::CheckWarm),
        "round-components" => Some(Word::CheckComponents),
        "exclusions-balanced" => Some(Word::CheckExclusions),
        "steal" => Some(Word::CheckSteal),
        "foreign-cpu" => Some(Word::CheckForeign),
        "steady-machine" => Some(Word::CheckDrift),
        "steady-warm-up" => Some(Word::CheckWarmUp),
        "interleaving" => Some(Word::CheckInterleaving),
        "schedule" => Some(Word::CheckSchedule),
        "baseline-against-itself" => Some(Word::CheckItself),
        _ => None,
    }
}
