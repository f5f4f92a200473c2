//! Starts from the last checkpoint of the journals. While the gateway works, a separate thread writes the next ones,
//! and indexes of finished files: it reads the records that workers have written, and yields to all other threads.

use std::{
    collections::BTreeSet,
    io,
    path::Path,
    sync::{Arc, Weak},
    thread,
    time::{Duration, SystemTime},
};

use rustix::{process::setpriority_process, thread::gettid};
use weir_trading::AccountId;

use super::{
    config::GatewayConfig,
    controls::Controls,
    outstanding::OutstandingLimits,
    recovery::{
        Moment, Recovering,
        checkpoint::{Collected, OfAnyConfiguration},
    },
    server::{GatewayState, account_named, orders_config},
    worker::{Common, Symbols},
};
use crate::{
    journal::{Checkpoint, CheckpointFile},
    orders::{
        self, Event, EventKind, Obstacle, Recovery, recover_at_checkpoint, stream_index, write_checkpoint,
    },
};

/// How often the thread looks how much the journals have grown.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// A record that is not written yet is not older than this, unless a disk stalls for longer or a clock was set back. If
/// it is, the checkpoint is not used.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);

/// The journals grow by this many times the last checkpoint before the next one, and by a file: so checkpoints are a
/// small part of what is written.
const GROWTH_FACTOR: u64 = 4;

/// The lowest priority.
const NICE_MOST: i32 = 19;

/// The state before the first record.
pub(super) fn begin<'c>(
    (workers, configured): (usize, usize),
    config: &GatewayConfig,
    symbols: &'c Symbols,
    names: &'c dyn Fn(&str) -> Option<AccountId>,
    now: Moment,
) -> Recovering<'c> {
    let limits: Vec<(String, OutstandingLimits)> =
        config.venues.iter().map(|venue| (venue.name.clone(), venue.limits)).collect();
    let controls = Controls::of_file(&config.limits, &config.account_limits);
    Recovering::new(workers, &limits, symbols, names, controls, now)
        .of_accounts(configured)
        .with_numbers_that_restart(config.numbers_restart)
}

/// Recovers the state, from the last checkpoint on if there is one that fits.
///
/// # Errors
/// Those of the journals.
pub(super) fn recover<'c>(
    config: &GatewayConfig,
    common: &Common,
    begin: impl Fn() -> Recovering<'c>,
) -> io::Result<(Recovery, Recovering<'c>)> {
    let collected = || Collected::new(begin());
    let (recovery, collected, beginning) =
        recover_at_checkpoint(&orders_config(config), collected).map_err(io::Error::other)?;
    for reason in beginning.unused {
        let text =
            format!("a checkpoint of the journals is not used, so that this start takes longer: {reason}");
        common.notices.events().leave(Event::new(EventKind::CheckpointUnused, text));
    }
    Ok((recovery, collected.recovering))
}

/// The last checkpoint in a folder of journals, if a start with the configuration of that time begins there; `None` if
/// there is none. It reads the records behind the checkpoint, and changes nothing.
///
/// # Errors
/// See [`Obstacle`].
pub fn checkpoint_of_start(directory: &Path) -> Result<Option<Checkpoint>, Obstacle> {
    orders::checkpoint_of_start(directory, || OfAnyConfiguration)
}

/// Writes checkpoints as long as the gateway is there.
///
/// # Errors
/// When a thread cannot be started.
pub(super) fn keep_writing(gateway: &Arc<GatewayState>) -> io::Result<()> {
    let Some((directory, _)) = orders_config(&gateway.config).journal else { return Ok(()) };
    let (config, symbols) = (gateway.config.clone(), Arc::clone(&gateway.common.symbols));
    let (workers, here) = (gateway.common.workers, Arc::downgrade(gateway));
    let write = move || {
        // If it cannot be lowered, it stays.
        let _ = setpriority_process(Some(gettid()), NICE_MOST);
        let (mut writing, mut not_indexed) = (Writing::new(&directory), BTreeSet::new());
        while is_there(&here) {
            if writing.is_due(&directory, config.journal_segment_bytes)
                && let Err(obstacle) = writing.write(&directory, (workers, &config, &symbols))
            {
                tell(&here, &obstacle);
                if matches!(obstacle, Obstacle::State(_)) {
                    // Later records do not change that.
                    writing.failed_at = u64::MAX;
                }
            }
            // A start waits for a checkpoint, and a replay that finds no index only reads more.
            stream_index::write_missing(&directory, &mut not_indexed);
        }
    };
    thread::Builder::new().name("weir-checkpoint".into()).spawn(write).map(drop)
}

/// Waits until it is time for another look.
fn is_there(gateway: &Weak<GatewayState>) -> bool {
    thread::sleep(LOOK_EVERY);
    gateway.strong_count() > 0
}

fn tell(gateway: &Weak<GatewayState>, obstacle: &Obstacle) {
    let Some(gateway) = gateway.upgrade() else { return };
    let text =
        format!("no checkpoint of the journals was written, so that the next start takes longer: {obstacle}");
    gateway.common.notices.events().leave(Event::new(EventKind::CheckpointUnused, text));
}

/// The progress of the thread.
struct Writing {
    /// The last checkpoint without its state, and its bytes.
    last: Checkpoint,
    bytes: u64,
    /// How much the journals had grown when the last attempt failed; the largest number if none can succeed.
    failed_at: u64,
}

impl Writing {
    fn new(directory: &Path) -> Self {
        let mut writing = Self { last: Checkpoint::default(), bytes: 0, failed_at: 0 };
        writing.look_back(directory);
        writing
    }

    /// Reads the last checkpoint, if there is one.
    fn look_back(&mut self, directory: &Path) {
        let found = [CheckpointFile::Latest, CheckpointFile::Base]
            .into_iter()
            .find_map(|which| Checkpoint::read(directory, which).ok().flatten());
        let mut last = found.unwrap_or_default();
        self.bytes = std::mem::take(&mut last.state).len() as u64;
        self.last = last;
    }

    fn is_due(&self, directory: &Path, segment_bytes: u64) -> bool {
        // What cannot be listed now is listed the next time.
        let behind = self.last.bytes_behind(directory).unwrap_or(0);
        behind >= segment_bytes.max(self.bytes * GROWTH_FACTOR).saturating_add(self.failed_at)
    }

    fn write(
        &mut self,
        directory: &Path,
        (workers, config, symbols): (usize, &GatewayConfig, &Symbols),
    ) -> Result<(), Obstacle> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let until_ns = now.saturating_sub(WRITTEN_WITHIN).as_nanos() as u64;
        let names = |name: &str| account_named(config, name);
        let shape = (workers, config.accounts.len());
        let collected = || Collected::new(begin(shape, config, symbols, &names, Moment::OPEN));
        let written = write_checkpoint(&orders_config(config), collected, until_ns);
        self.failed_at = match written {
            Ok(_) => 0,
            Err(_) => self.last.bytes_behind(directory).unwrap_or(0),
        };
        if written?.is_some() {
            self.look_back(directory);
        }
        Ok(())
    }
}
