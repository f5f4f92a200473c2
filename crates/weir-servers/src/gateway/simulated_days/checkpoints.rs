//! Checkpoints at random places of a day's journals: a recovery that continues from them is the same as one that reads
//! everything, and the gateway of the next phase starts from one of them.

use std::{collections::BTreeSet, fs, path::Path};

use weir_trading::AccountId;

use super::{Day, GatewayConfig, PLANTED, Random, WORKERS};
use crate::{
    gateway::{
        checkpoints::{begin, checkpoint_of_start},
        recovery::{Moment, checkpoint::Collected},
        server::{account_named, orders_config},
        worker::Symbols,
    },
    journal::{Checkpoint, CheckpointFile, inspect_all, workers_in},
    orders::{Obstacle, is_answer, stream_index, write_checkpoint},
};

/// Writes the next checkpoint, with the configuration of a phase. False: the state cannot be in one.
fn write(config: &GatewayConfig, until_ns: u64) -> Result<bool, String> {
    let symbols = Symbols { venues: config.symbols.iter().copied().collect(), other: config.default_venue };
    let names = |name: &str| -> Option<AccountId> { account_named(config, name) };
    let shape = (WORKERS, config.accounts.len());
    let collected = || Collected::new(begin(shape, config, &symbols, &names, Moment::OPEN));
    match write_checkpoint(&orders_config(config), collected, until_ns) {
        Ok(_) => Ok(true),
        Err(Obstacle::State(_)) => Ok(false),
        Err(error) => Err(format!("no checkpoint: {error}")),
    }
}

fn take(folder: &Path) -> Result<Option<Checkpoint>, String> {
    let found = Checkpoint::read(folder, CheckpointFile::Latest).map_err(|error| error.to_string())?;
    // There may be none.
    let _ = fs::remove_file(CheckpointFile::Latest.path(folder));
    Ok(found)
}

/// Compares a state that was continued from checkpoints, with the configuration of the phase before and with this one,
/// and the one from the beginning. Leaves a checkpoint for the start. Returns whether one was continued.
fn exercise(
    (before, now): (&GatewayConfig, &GatewayConfig),
    folder: &Path,
    random: &mut Random,
) -> Result<bool, String> {
    let workers = workers_in(folder).map_err(|error| error.to_string())?;
    let mut times = Vec::new();
    let all = inspect_all(folder, &workers, is_answer, &mut |record, _| {
        times.push(record.t_ns);
        Ok(())
    });
    all.map_err(|error| error.to_string())?;
    take(folder)?;
    if times.is_empty() || !write(now, u64::MAX)? {
        return Ok(false);
    }
    let whole = take(folder)?;
    let mut cuts = [(); 3].map(|()| times[random.below(times.len() as u64) as usize]);
    cuts.sort_unstable();
    for (place, until_ns) in cuts.into_iter().enumerate() {
        let config = if place == 0 { before } else { now };
        if !write(config, until_ns)? {
            return Ok(false);
        }
    }
    let part = Checkpoint::read(folder, CheckpointFile::Latest).map_err(|error| error.to_string())?;
    write(now, u64::MAX)?;
    let continued = take(folder)?;
    if continued != whole {
        let (whole, continued) = (whole.unwrap_or_default(), continued.unwrap_or_default());
        let at = whole.state.iter().zip(&continued.state).position(|(one, other)| one != other);
        return Err(format!(
            "a recovery from a checkpoint at one of {cuts:?} differs from a whole one: {} and {} bytes, first at \
             {at:?}; {:?}, {:?}",
            whole.state.len(),
            continued.state.len(),
            whole.anchors,
            continued.anchors
        ));
    }
    let Some(part) = part else { return Ok(false) };
    part.write(folder, CheckpointFile::Latest).map_err(|error| error.to_string())?;
    match checkpoint_of_start(folder) {
        Ok(Some(found)) if found == part => Ok(true),
        other => Err(format!("no start begins at a checkpoint that one has written: {other:?}")),
    }
}

impl Day {
    /// Exercises them before a start. The other choices of the day do not depend on these.
    pub(super) fn exercise_checkpoints(&mut self, config: &GatewayConfig) -> Result<(), String> {
        let before = self.config_before.replace(config.clone());
        let Some(before) = before.filter(|_| PLANTED.get().is_none()) else { return Ok(()) };
        let folder = self.folder.join("gateway");
        // Replays read with and without indexes.
        if self.seed.is_multiple_of(2) {
            stream_index::write_missing(&folder, &mut BTreeSet::new());
        }
        let mut random = Random(self.seed.wrapping_mul(31).wrapping_add(self.phase));
        let is_continued = exercise((&before, config), &folder, &mut random)?;
        self.happened.checkpoints += u64::from(is_continued);
        Ok(())
    }
}
