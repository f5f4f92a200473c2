//! Names of validity checks.

use weir_record::check::CheckName;

use crate::words::Word;

/// The assertion of a validity check; an unknown check, from another version, only has its name.
pub(crate) fn check(name: &CheckName) -> Result<Word, &str> {
    Ok(match name {
        CheckName::BytesVerified => Word::CheckBytes,
        CheckName::ResponsesChecked => Word::CheckResponses,
        CheckName::OperationsCounted => Word::CheckCounted,
        CheckName::NotAsked => Word::CheckNotAsked,
        CheckName::Repeatable => Word::CheckRepeatable,
        CheckName::RepliesChecked => Word::CheckReplies,
        CheckName::ChainWhole => Word::CheckChain,
        CheckName::WakesRecovered => Word::CheckRecovered,
        CheckName::FailuresClassified => Word::CheckFailures,
        CheckName::LittlesLaw => Word::CheckLittle,
        CheckName::GeneratorHeadroom => Word::CheckHeadroom,
        CheckName::Processes => Word::CheckProcesses,
        CheckName::RateKept => Word::CheckRate,
        CheckName::CompletionOverflow => Word::CheckOverflow,
        CheckName::MachineStates => Word::CheckStates,
        CheckName::ProgramsComplete => Word::CheckPrograms,
        CheckName::CallsAgree => Word::CheckCalls,
        CheckName::CallsCover => Word::CheckCover,
        CheckName::PlantedLeads => Word::CheckPlanted,
        CheckName::SliceOrder => Word::CheckSliceOrder,
        CheckName::Segments => Word::CheckSegments,
        CheckName::LinkLosses => Word::CheckLink,
        CheckName::SliceLength => Word::CheckSliceLength,
        CheckName::Warm => Word::CheckWarm,
        CheckName::RoundComponents => Word::CheckComponents,
        CheckName::ExclusionsBalanced => Word::CheckExclusions,
        CheckName::Steal => Word::CheckSteal,
        CheckName::ForeignCpu => Word::CheckForeign,
        CheckName::SteadyMachine => Word::CheckDrift,
        CheckName::SteadyWarmUp => Word::CheckWarmUp,
        CheckName::Interleaving => Word::CheckInterleaving,
        CheckName::Schedule => Word::CheckSchedule,
        CheckName::BaselineAgainstItself => Word::CheckItself,
        CheckName::DistinctArms => Word::CheckDistinct,
        CheckName::RingUse => Word::CheckRing,
        CheckName::ReleaseBuild => Word::CheckBuild,
        CheckName::ProgramsUnchanged => Word::CheckFiles,
        CheckName::Other(name) => return Err(name),
    })
}
