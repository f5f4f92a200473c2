//! Turns jobs that wait for another one by name (`wait_for`) into groups that run one after the other. Pure.
//!
//! In fio such a job delays no other job. Consecutive groups mean the same if all jobs of the previous group are
//! waited for, and all later jobs wait too; everything else is refused.
//!
//! A group in fio's report (`groupid`) starts at `stonewall` and `new_group`, but not at a job that waits by name. So
//! `group_reporting` and `exitall` need one of the two in such a job: otherwise fio would put it into a group with
//! the jobs above.

use weir_record::storage::StorageJob;

use super::validate::Field;

/// The setting.
pub(super) const FIELD: Field = Field { flag: "wait-for", key: "wait_for" };

/// Sets the groups: `waits` names the job that each job waits for. An error contains the index of its job.
pub(super) fn resolve(jobs: &mut [StorageJob], waits: &[Option<String>]) -> Result<(), (usize, String)> {
    // Start of the group, and the job it waited for.
    let (mut begin, mut awaited): (usize, Option<&str>) = (0, None);
    for place in 0..jobs.len() {
        if place == 0 || jobs[place].stonewall {
            (begin, awaited) = (place, None);
        }
        match waits.get(place).and_then(Option::as_deref) {
            None if awaited.is_none() => {}
            None => {
                let name = &jobs[place].name;
                let reason =
                    format!("job {name} would begin with the first ones; say wait_for or stonewall in it");
                return Err((place, reason));
            }
            Some(name) if awaited == Some(name) => {}
            Some(name) => {
                let before = &jobs[..place];
                if before.iter().all(|job| job.name != name) {
                    return Err((place, format!("there is no job {name} above it")));
                }
                // Jobs of an earlier group have ended.
                if jobs[begin..place].iter().all(|job| job.name != name) {
                    continue;
                }
                if let Some(other) = jobs[begin..place].iter().find(|job| job.name != name) {
                    let reason = format!(
                        "job {} runs beside {name}, and would not be waited for; use stonewall to wait for both",
                        other.name
                    );
                    return Err((place, reason));
                }
                one_group_in_fio(&jobs[place]).map_err(|reason| (place, reason))?;
                jobs[place].stonewall = true;
                (begin, awaited) = (place, Some(name));
            }
        }
    }
    Ok(())
}

/// Refuses options that would mean something else because waiting starts no group in fio.
fn one_group_in_fio(job: &StorageJob) -> Result<(), String> {
    let (key, what) = match job {
        StorageJob { new_group: true, .. } => return Ok(()),
        StorageJob { group_reporting: true, .. } => {
            ("group_reporting", "adds it to the row of the jobs above")
        }
        StorageJob { exit_all: true, .. } => ("exitall", "ends it when a job above ends"),
        _ => return Ok(()),
    };
    Err(format!(
        "with {key} fio {what}: there a job that waits by name begins no group, and here it does; say new_group or \
         stonewall in it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(asked: &[(&str, bool, Option<&str>)]) -> Result<Vec<bool>, String> {
        let job = |(name, stonewall, _): &(&str, bool, Option<&str>)| StorageJob {
            name: (*name).to_owned(),
            stonewall: *stonewall,
            ..StorageJob::default()
        };
        let mut jobs: Vec<StorageJob> = asked.iter().map(job).collect();
        let waits: Vec<Option<String>> = asked.iter().map(|(_, _, wait)| wait.map(str::to_owned)).collect();
        resolve(&mut jobs, &waits).map_err(|(place, reason)| format!("{place}: {reason}"))?;
        Ok(jobs.iter().map(|job| job.stonewall).collect())
    }

    #[test]
    fn jobs_that_wait_begin_a_group_where_that_means_the_same() {
        let chain =
            [("a", false, None), ("a", false, None), ("b", false, Some("a")), ("b", false, Some("a"))];
        assert_eq!(walls(&chain), Ok(vec![false, false, true, false]));
        let long = [("a", false, None), ("b", false, Some("a")), ("c", false, Some("b"))];
        assert_eq!(walls(&long), Ok(vec![false, true, true]));
        let ended = [("a", false, None), ("b", true, None), ("c", false, Some("a"))];
        assert_eq!(walls(&ended), Ok(vec![false, true, false]), "it has ended long since");
    }

    #[test]
    fn what_groups_cannot_say_is_refused() {
        let refused = |asked: &[(&str, bool, Option<&str>)]| walls(asked).expect_err("it is refused");
        assert!(refused(&[("a", false, Some("b")), ("b", false, None)]).contains("no job b above"));
        let beside = refused(&[("a", false, None), ("b", false, None), ("c", false, Some("a"))]);
        assert!(beside.starts_with("2: job b runs beside a"), "{beside}");
        let behind = refused(&[("a", false, None), ("b", false, Some("a")), ("c", false, None)]);
        assert!(behind.starts_with("2: job c would begin with the first"), "{behind}");
    }

    #[test]
    fn whoever_waits_is_summed_up_or_ended_with_nobody_unless_it_begins_a_group() {
        let resolved = |change: fn(&mut StorageJob)| {
            let job = |name: &str| StorageJob { name: name.to_owned(), ..StorageJob::default() };
            let mut jobs = vec![job("a"), job("b")];
            jobs.iter_mut().for_each(change);
            resolve(&mut jobs, &[None, Some("a".to_owned())]).map(|()| jobs[1].stonewall)
        };
        let row = resolved(|job| job.group_reporting = true).expect_err("fio has one row");
        assert!(row.0 == 1 && row.1.contains("with group_reporting fio adds it"), "{row:?}");
        let end = resolved(|job| job.exit_all = true).expect_err("fio ends it");
        assert!(end.0 == 1 && end.1.contains("with exitall fio ends it"), "{end:?}");
        for change in [
            |job: &mut StorageJob| (job.group_reporting, job.new_group) = (true, true),
            |job: &mut StorageJob| (job.exit_all, job.new_group) = (true, true),
        ] {
            assert_eq!(resolved(change), Ok(true));
        }
    }
}
