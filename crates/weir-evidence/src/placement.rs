//! Chooses the CPUs of a server and its load generator. It pins nothing.

use weir_record::machine::Fingerprint;

/// The available CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// CPUs this process may run on.
    pub allowed: Vec<usize>,
    /// Groups of CPUs that share a physical core; a CPU in no group is a separate core.
    pub siblings: Vec<Vec<usize>>,
}

/// Resources that server and generator share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Nothing: they are on different physical cores.
    Nothing,
    /// One physical core: each slows the other's pipeline down.
    Core,
    /// One CPU: they take turns, and throughput says little.
    Cpu,
}

/// The choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// CPUs of the server; all on one physical core.
    pub server: Vec<usize>,
    /// CPUs of the load generator; all on another physical core if there is one.
    pub load: Vec<usize>,
    /// CPUs of observers: a third core if there is one, otherwise the generator's.
    pub watch: Vec<usize>,
    /// What the two sides share.
    pub sharing: Sharing,
}

impl From<&Fingerprint> for Topology {
    fn from(fingerprint: &Fingerprint) -> Self {
        Self { allowed: fingerprint.cpus_allowed.clone(), siblings: fingerprint.cpu_siblings.clone() }
    }
}

/// The allowed CPUs by physical core, in order of each core's first CPU.
pub fn cores(topology: &Topology) -> Vec<Vec<usize>> {
    let mut left = topology.allowed.clone();
    left.sort_unstable();
    left.dedup();
    let mut cores = Vec::new();
    while let Some(&first) = left.first() {
        let group = topology.siblings.iter().find(|group| group.contains(&first));
        let together = |cpu: usize| cpu == first || group.is_some_and(|group| group.contains(&cpu));
        let (core, rest) = left.into_iter().partition(|&cpu| together(cpu));
        cores.push(core);
        left = rest;
    }
    cores
}

/// Server on the first physical core, generator on the next; threads of one core stay on one side. With a single core
/// each side gets one of its threads, with a single CPU both get that. `None` without any CPU.
pub fn place(topology: &Topology) -> Option<Placement> {
    let cores = cores(topology);
    let (server, load, sharing) = match &cores[..] {
        [] => return None,
        [core] => match &core[..] {
            [cpu] => (vec![*cpu], vec![*cpu], Sharing::Cpu),
            [first, rest @ ..] => (vec![*first], rest.to_vec(), Sharing::Core),
            [] => return None,
        },
        [first, second, ..] => (first.clone(), second.clone(), Sharing::Nothing),
    };
    let watch = cores.get(2).unwrap_or(&load).clone();
    Some(Placement { server, load, watch, sharing })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(allowed: impl IntoIterator<Item = usize>, siblings: Vec<Vec<usize>>) -> Topology {
        Topology { allowed: allowed.into_iter().collect(), siblings }
    }

    fn check(topology: &Topology, server: &[usize], load: &[usize], watch: &[usize], sharing: Sharing) {
        let placement = place(topology).expect("at least one CPU");
        assert_eq!(
            placement,
            Placement { server: server.to_vec(), load: load.to_vec(), watch: watch.to_vec(), sharing }
        );
    }

    #[test]
    fn one_cpu_is_shared() {
        check(&topology([0], vec![vec![0]]), &[0], &[0], &[0], Sharing::Cpu);
        check(&topology([5], vec![]), &[5], &[5], &[5], Sharing::Cpu);
    }

    #[test]
    fn two_cores_are_one_for_each_side() {
        check(&topology([0, 1], vec![vec![0], vec![1]]), &[0], &[1], &[1], Sharing::Nothing);
        check(&topology([1, 0, 1], vec![]), &[0], &[1], &[1], Sharing::Nothing);
    }

    #[test]
    fn two_threads_of_one_core_are_split_and_said_to_share_it() {
        check(&topology([0, 1], vec![vec![0, 1]]), &[0], &[1], &[1], Sharing::Core);
        check(&topology(0..4, vec![vec![0, 1, 2, 3]]), &[0], &[1, 2, 3], &[1, 2, 3], Sharing::Core);
    }

    #[test]
    fn four_cores_leave_one_for_watching() {
        check(&topology(0..4, (0..4).map(|cpu| vec![cpu]).collect()), &[0], &[1], &[2], Sharing::Nothing);
    }

    #[test]
    fn sixteen_cpus_with_smt_keep_pairs_on_one_side() {
        let far_pairs = (0..8).map(|cpu| vec![cpu, cpu + 8]).collect();
        check(&topology(0..16, far_pairs), &[0, 8], &[1, 9], &[2, 10], Sharing::Nothing);
        let near_pairs = (0..8).map(|core| vec![2 * core, 2 * core + 1]).collect();
        check(&topology(0..16, near_pairs), &[0, 1], &[2, 3], &[4, 5], Sharing::Nothing);
    }

    #[test]
    fn two_hundred_cpus_are_no_different() {
        let pairs: Vec<Vec<usize>> = (0..100).map(|cpu| vec![cpu, cpu + 100]).collect();
        let all = topology(0..200, pairs);
        assert_eq!(cores(&all).len(), 100);
        check(&all, &[0, 100], &[1, 101], &[2, 102], Sharing::Nothing);
    }

    #[test]
    fn a_restricted_set_uses_only_its_own_cpus() {
        let pairs: Vec<Vec<usize>> = (0..8).map(|cpu| vec![cpu, cpu + 8]).collect();
        check(&topology([3, 11, 5], pairs.clone()), &[3, 11], &[5], &[5], Sharing::Nothing);
        check(&topology([3, 11], pairs.clone()), &[3], &[11], &[11], Sharing::Core);
        check(&topology([11, 12, 14], pairs), &[11], &[12], &[14], Sharing::Nothing);
    }

    #[test]
    fn no_cpu_is_no_placement() {
        assert_eq!(place(&Topology::default()), None);
    }
}
