//! Orphans of a foreign server whose supervisor was killed. This process asked the kernel to adopt them, and ends them
//! here. Only for use when no child is still needed, except for one that is kept.

use std::{fs, process, sync::OnceLock};

use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid},
};
use weir_sys::process_stat::{self, ProcessStat};

/// Most rounds of killing. Each ends all children; this process adopts their children and ends them in the next round.
const ROUNDS_MAX: u32 = 1_000;

/// Children that this process had before it asked for orphans: a shell that was replaced by it may have left some.
static EARLIER: OnceLock<Vec<Pid>> = OnceLock::new();

/// Asks the kernel to give orphans below this process to it. Otherwise the system's first process adopts them.
pub(crate) fn adopt() -> Result<(), Errno> {
    EARLIER.get_or_init(children);
    set_child_subreaper(Some(getpid()))
}

/// Ends all children since [`adopt`]. Call it only when other code waits for none of them, as between two trials.
pub(crate) fn end() {
    end_but(None);
}

/// As [`end`], except for one kept child, which other code reaps.
pub(crate) fn end_but(kept: Option<u32>) {
    let kept = kept.and_then(|kept| Pid::from_raw(kept.cast_signed()));
    // None of them is reaped here, so that their numbers stay theirs.
    let earlier = EARLIER.get().map(Vec::as_slice).unwrap_or_default();
    for _ in 0..ROUNDS_MAX {
        let is_ours = |child: &Pid| Some(*child) != kept && !earlier.contains(child);
        let others: Vec<Pid> = children().into_iter().filter(is_ours).collect();
        if others.is_empty() {
            return;
        }
        for child in others {
            // Fails only for a child that has ended, or is no longer ours.
            let _ = kill_process(child, Signal::KILL);
            let _ = waitpid(Some(child), WaitOptions::empty());
        }
    }
}

fn children() -> Vec<Pid> {
    let own = process::id();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let child = |entry: fs::DirEntry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let stat = process_stat::read(pid.as_raw_nonzero().get().unsigned_abs())?;
        (ProcessStat::parse(&stat)?.parent() == Some(own)).then_some(pid)
    };
    processes.flatten().filter_map(child).collect()
}
