//! Processes that are observed while a reader looks, as `weir observe` does it from /proc alone. Each is read on
//! request, at most once a second for all readers together, and dropped when no request has come for a while.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use weir_evidence::watch::{Plan, Step, Watch, WatchError};
use weir_record::observation::{Observation, Rung};

/// Most processes that are observed at a time; a further one replaces the one that was requested longest ago.
pub const OBSERVED_MAX: usize = 8;

/// Shortest time between two looks at a process: below it the watching would be part of what is watched.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A process without requests for this long is dropped.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// From /proc alone: programs in the kernel would slow the whole machine for a page that is left open.
const PLAN: Plan<'_> = Plan { rung: Rung::Process, groups: &[] };

/// Processes that are observed.
#[derive(Default)]
pub(crate) struct Observer {
    /// The process that was requested last is last.
    observed: Mutex<Vec<Observed>>,
}

struct Observed {
    pid: u32,
    watch: Watch,
    looked: Instant,
    asked: Instant,
    /// Absent before the second look.
    seen: Option<Observation>,
}

impl Observer {
    /// The observation of a process since the previous look; nothing yet for one that is observed from now on.
    ///
    /// # Errors
    /// When it does not exist, or may not be read.
    pub(crate) fn look(&self, pid: u32) -> Result<Option<Observation>, WatchError> {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        observed.retain(|it| it.asked.elapsed() < IDLE_MAX);
        let own = observed.iter().position(|it| it.pid == pid).map(|index| observed.remove(index));
        let now = Instant::now();
        let Some(mut own) = own else {
            let watch = Watch::begin(pid, None, PLAN)?;
            if observed.len() >= OBSERVED_MAX {
                observed.remove(0);
            }
            observed.push(Observed { pid, watch, looked: now, asked: now, seen: None });
            return Ok(None);
        };
        own.asked = now;
        if now.saturating_duration_since(own.looked) >= LOOK_EVERY {
            match own.watch.step(None) {
                // The observation until then, and the reason why there is no more.
                Step::Over(ending) => return Ok(Some(own.watch.end(ending))),
                Step::Read => (own.looked, own.seen) = (now, Some(own.watch.glimpse())),
                Step::Waited => {}
            }
        }
        let seen = own.seen.clone();
        observed.push(own);
        Ok(seen)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use weir_record::observation::Ending;

    use super::*;

    /// A process that lives until its input ends.
    fn waiting() -> Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("cat starts")
    }

    fn end(mut child: Child) {
        drop(child.stdin.take());
        child.wait().expect("it ends with its input");
    }

    /// Makes the last look seem this long ago.
    fn age(observer: &Observer, by: Duration) {
        let mut observed = observer.observed.lock().expect("nobody panics");
        for it in observed.iter_mut() {
            it.looked = it.looked.checked_sub(by).expect("the machine is up for longer");
            it.asked = it.asked.checked_sub(by).expect("the machine is up for longer");
        }
    }

    fn pids(observer: &Observer) -> Vec<u32> {
        observer.observed.lock().expect("nobody panics").iter().map(|it| it.pid).collect()
    }

    #[test]
    fn a_process_is_seen_from_the_second_look_on_until_it_ends() {
        let (observer, child) = (Observer::default(), waiting());
        let pid = child.id();
        assert_eq!(observer.look(pid).expect("it lives"), None);
        assert_eq!(observer.look(pid).expect("it lives"), None, "too soon for a look");
        let mut seen = None;
        while seen.is_none() {
            age(&observer, LOOK_EVERY);
            seen = observer.look(pid).expect("it lives");
        }
        let seen = seen.expect("it was seen");
        assert_eq!((seen.pid, seen.command.as_str(), seen.rung), (pid, "cat", Rung::Process));
        end(child);
        age(&observer, LOOK_EVERY);
        let last = observer.look(pid).expect("it was observed").expect("it was seen");
        assert_eq!(last.ending, Ending::TargetEnded);
        assert!(observer.look(pid).is_err() && pids(&observer).is_empty());
    }

    #[test]
    fn as_many_are_observed_as_is_stated_and_none_that_nobody_asks_for() {
        let observer = Observer::default();
        let children: Vec<Child> = (0..=OBSERVED_MAX).map(|_| waiting()).collect();
        for child in &children[..OBSERVED_MAX] {
            observer.look(child.id()).expect("it lives");
        }
        observer.look(children[0].id()).expect("it lives");
        observer.look(children[OBSERVED_MAX].id()).expect("it lives");
        let kept = pids(&observer);
        assert_eq!(kept.len(), OBSERVED_MAX);
        assert!(kept.contains(&children[0].id()) && !kept.contains(&children[1].id()), "{kept:?}");
        age(&observer, IDLE_MAX);
        observer.look(children[1].id()).expect("it lives");
        assert_eq!(pids(&observer), [children[1].id()]);
        children.into_iter().for_each(end);
    }
}
