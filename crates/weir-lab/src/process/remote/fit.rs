//! Whether an answer of an agent fits its question: as many servers as were asked for, where they were asked for, and
//! numbers that a machine can have. The laboratory counts on these afterwards. Pure.

use std::net::{IpAddr, SocketAddr};

use weir_record::machine::NetworkCounters;

use super::RoundStarted;
use crate::process::hosted::{RoundAnswer, RoundCommand, Serving, SliceSeen, Started, Stopped, Waited};

/// Largest count, and longest time in nanoseconds (104 days): readers of JSON keep larger numbers inexactly, and sums
/// of a few such numbers fit.
const NUMBER_MAX: u64 = 1 << 53;

/// Where servers of a study may listen.
pub(super) struct Reach<'a> {
    /// Where those listen that the study starts.
    pub(super) address: IpAddr,
    /// Addresses at which this machine would be loaded instead of the other host.
    pub(super) own: &'a OwnAddresses,
}

/// Addresses that do not lead from this machine to another one.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnAddresses {
    /// Those of its interfaces.
    pub(super) interfaces: Vec<IpAddr>,
    /// Whether the other side has the same network namespace: the same addresses lead to the same servers then.
    pub(super) is_shared: bool,
}

impl OwnAddresses {
    /// Whether a connection to this address stays on this machine, while the servers are on another.
    pub(super) fn lead_back(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let is_own = address.is_loopback() || address.is_unspecified() || self.interfaces.contains(&address);
        is_own && !self.is_shared
    }
}

/// Checks the servers of a round.
///
/// # Errors
/// If they are not those that were asked for.
pub(super) fn of_round(serving: &Serving, reach: &Reach<'_>, started: &RoundStarted) -> Result<(), String> {
    let asked = serving.arms.len();
    let (servers, programs) = (started.servers.arms.len(), started.programs.len());
    if servers != asked || programs != asked {
        return Err(format!(
            "it was asked for {asked} servers, and answered for {servers} and for files of {programs}"
        ));
    }
    for (arm, server) in serving.arms.iter().zip(&started.servers.arms) {
        let Ok(Started { address, .. }) = server else { continue };
        let parsed: Option<SocketAddr> = address.parse().ok().filter(|it: &SocketAddr| it.port() > 0);
        let is_right = parsed.is_some_and(|it| match arm.running() {
            Some(_) => !reach.own.lead_back(it.ip()),
            None => it.ip() == reach.address,
        });
        if !is_right {
            let name = &arm.name;
            return Err(format!("it reports arm {name} at {address:?}, which is not where it was to listen"));
        }
    }
    Ok(())
}

/// Checks the answer to a command on the servers of a round with this many arms.
///
/// # Errors
/// If it is the answer to another command, or of other servers.
pub(super) fn of_step(command: &RoundCommand, answer: &RoundAnswer, arms: usize) -> Result<(), String> {
    match (command, answer) {
        (
            RoundCommand::Rest { .. }
            | RoundCommand::BeginTimed
            | RoundCommand::BeginSlice { .. }
            | RoundCommand::EndTimed { .. },
            RoundAnswer::Done,
        )
        | (RoundCommand::HasEnded { .. }, RoundAnswer::HasEnded(_)) => Ok(()),
        (RoundCommand::Enter { .. }, RoundAnswer::Entered(Waited { cpu_ns, length_ns, .. })) => {
            possible(&[*cpu_ns, *length_ns])
        }
        (RoundCommand::EndSlice { .. }, RoundAnswer::SliceEnded(seen)) => {
            let SliceSeen { server_cpu_ns, softirq_cpu_ns, segments_sent, .. } = **seen;
            possible(&[server_cpu_ns, softirq_cpu_ns, segments_sent])
        }
        (RoundCommand::Totals, RoundAnswer::Totals(observed)) => of_all(observed.len(), arms),
        (RoundCommand::Stop, RoundAnswer::Stopped(Stopped { arms: stopped, network })) => {
            let NetworkCounters { listen_overflows, listen_drops, tcp_retransmits, syn_retransmits, link } =
                *network;
            possible(&[listen_overflows, listen_drops, tcp_retransmits, syn_retransmits])?;
            possible(&[link.packets, link.drops])?;
            of_all(stopped.len(), arms)
        }
        _ => Err("it answered another command".to_owned()),
    }
}

fn of_all(found: usize, asked: usize) -> Result<(), String> {
    if found == asked {
        Ok(())
    } else {
        Err(format!("it answered for {found} servers, and {asked} were there"))
    }
}

fn possible(numbers: &[u64]) -> Result<(), String> {
    match numbers.iter().find(|number| **number > NUMBER_MAX) {
        Some(number) => Err(format!("it measured {number}, which no machine can have")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use weir_judge::sample;
    use weir_record::{
        spec::{RunningServer, Subject},
        window::ObservedWindow,
    };

    use super::{
        super::codec::{self, Answer, Answered},
        *,
    };
    use crate::{
        launch::TrialFailure,
        process::hosted::{ArmStopped, ServersStarted},
    };

    /// A round of three servers, two of them of the baseline.
    fn serving() -> Serving {
        let study = sample::study(&["epoll", "uring"], 6, 1);
        let arms = [0, 1, 0].map(|place: usize| study.arms[place].clone()).to_vec();
        Serving {
            cell: study.cells[0].clone(),
            arms,
            server_cpus: Vec::new(),
            load_cpus: Vec::new(),
            neighbours: Vec::new(),
            seed: 1,
            number: 1,
            has_evidence: false,
        }
    }

    fn own() -> OwnAddresses {
        OwnAddresses { interfaces: vec![IpAddr::from([10, 9, 0, 1])], is_shared: false }
    }

    fn started(addresses: &[&str], programs: usize) -> RoundStarted {
        let server = |address: &&str| Ok(Started { address: (*address).to_owned(), is_process: true });
        let arms = addresses.iter().map(server).collect();
        let servers = ServersStarted { arms, may_trace: false };
        RoundStarted { servers, programs: vec![BTreeMap::new(); programs] }
    }

    fn fits(serving: &Serving, started: &RoundStarted, own: &OwnAddresses) -> Result<(), String> {
        of_round(serving, &Reach { address: IpAddr::from([10, 9, 0, 2]), own }, started)
    }

    #[test]
    fn a_round_has_the_servers_that_were_asked_for_where_they_were() {
        let here = "10.9.0.2:7007";
        assert_eq!(fits(&serving(), &started(&[here; 3], 3), &own()), Ok(()));
        let reason = |addresses: &[&str], programs| {
            fits(&serving(), &started(addresses, programs), &own()).expect_err("it is wrong")
        };
        assert!(reason(&[here; 4], 3).contains("asked for 3 servers, and answered for 4"));
        assert!(reason(&[here; 3], 2).contains("files of 2") && reason(&[], 0).contains("answered for 0"));
        for wrong in ["127.0.0.1:7007", "10.9.0.2:0", "10.9.0.2", "--help", "", "/run/a.sock"] {
            let reason = reason(&[here, wrong, here], 3);
            assert!(reason.contains("arm uring at") && reason.contains("not where"), "{wrong}: {reason}");
        }
        let mut failed = started(&[here; 3], 3);
        failed.servers.arms[1] = Err(TrialFailure::Server { reason: "port in use".to_owned() });
        assert_eq!(fits(&serving(), &failed, &own()), Ok(()));
    }

    #[test]
    fn a_server_that_ran_before_is_nowhere_that_leads_back() {
        let mut serving = serving();
        let address = "localhost:80".to_owned();
        serving.arms[1].subject = Subject::Running(RunningServer { address, ..RunningServer::default() });
        let at = |address: &str, own: &OwnAddresses| {
            fits(&serving, &started(&["10.9.0.2:1", address, "10.9.0.2:1"], 3), own).is_ok()
        };
        assert!(at("192.0.2.7:80", &own()), "an address of that host on another network");
        for back in
            ["127.0.0.1:80", "127.3.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "0.0.0.0:80", "10.9.0.1:80"]
        {
            assert!(!at(back, &own()), "{back}");
            assert!(at(back, &OwnAddresses { is_shared: true, ..own() }), "{back}");
        }
    }

    #[test]
    fn an_answer_is_to_its_command_and_possible() {
        let of = |command: &RoundCommand, answer: &RoundAnswer| of_step(command, answer, 3);
        let entered = |cpu_ns| RoundAnswer::Entered(Waited { cpu_ns, ..Waited::default() });
        let enter = RoundCommand::Enter { arm: 0 };
        assert_eq!(of(&enter, &entered(7)), Ok(()));
        assert!(of(&enter, &entered(u64::MAX)).is_err_and(|reason| reason.contains("no machine")));
        assert!(of(&enter, &RoundAnswer::Done).is_err_and(|reason| reason.contains("another command")));
        let totals = |arms: usize| RoundAnswer::Totals(vec![ObservedWindow::default(); arms]);
        assert_eq!(of(&RoundCommand::Totals, &totals(3)), Ok(()));
        assert!(of(&RoundCommand::Totals, &totals(2)).is_err_and(|reason| reason.contains("answered for 2")));
        let stopped = |arms: usize| {
            RoundAnswer::Stopped(Stopped { arms: vec![ArmStopped::default(); arms], ..Stopped::default() })
        };
        assert_eq!(of(&RoundCommand::Stop, &stopped(3)), Ok(()));
        assert!(of(&RoundCommand::Stop, &stopped(4)).is_err());
    }

    fn answers() -> impl Strategy<Value = Answer> {
        let address = prop_oneof![Just("10.9.0.2:7007".to_owned()), ".{0,20}"];
        let server =
            (address, any::<bool>()).prop_map(|(address, is_process)| Started { address, is_process });
        let servers =
            (proptest::collection::vec(server, 0..6), 0_usize..6).prop_map(|(servers, programs)| {
                let servers = ServersStarted { arms: servers.into_iter().map(Ok).collect(), may_trace: true };
                Answer::Round(Box::new(RoundStarted { servers, programs: vec![BTreeMap::new(); programs] }))
            });
        let step = prop_oneof![
            (0_usize..6).prop_map(|arms| RoundAnswer::Totals(vec![ObservedWindow::default(); arms])),
            (0_usize..6, any::<u64>()).prop_map(|(arms, tcp_retransmits)| {
                let network = NetworkCounters { tcp_retransmits, ..NetworkCounters::default() };
                RoundAnswer::Stopped(Stopped { arms: vec![ArmStopped::default(); arms], network })
            }),
            (any::<u64>(), any::<u64>()).prop_map(|(server_cpu_ns, segments_sent)| {
                let seen = SliceSeen { server_cpu_ns, segments_sent, ..SliceSeen::default() };
                RoundAnswer::SliceEnded(Box::new(seen))
            }),
            Just(RoundAnswer::Done),
        ];
        prop_oneof![servers, step.prop_map(Answer::Step)]
    }

    proptest! {
        #[test]
        fn whatever_an_agent_says_is_counted_on_only_when_it_fits(
            answer in answers(),
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut bytes = codec::line(&Answered { number: 1, answer: Ok(answer) }).expect("it is short");
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let line = String::from_utf8_lossy(&bytes);
            let serving = serving();
            match codec::answered(line.trim_end()).map(|answered| answered.answer) {
                Ok(Ok(Answer::Round(started))) if fits(&serving, &started, &own()).is_ok() => {
                    prop_assert_eq!((started.servers.arms.len(), started.programs.len()), (3, 3));
                    for server in started.servers.arms.iter().flatten() {
                        prop_assert!(server.address.starts_with("10.9.0.2:"), "{}", server.address);
                    }
                }
                Ok(Ok(Answer::Step(answer))) => {
                    let commands = [RoundCommand::Totals, RoundCommand::Stop, RoundCommand::EndSlice { arm: 0 }];
                    for command in commands.iter().filter(|command| of_step(command, &answer, 3).is_ok()) {
                        match (command, &answer) {
                            (RoundCommand::Totals, RoundAnswer::Totals(all)) => prop_assert_eq!(all.len(), 3),
                            (RoundCommand::Stop, RoundAnswer::Stopped(all)) => {
                                prop_assert_eq!(all.arms.len(), 3);
                            }
                            (RoundCommand::EndSlice { .. }, RoundAnswer::SliceEnded(seen)) => {
                                let sum = seen.server_cpu_ns.checked_add(seen.softirq_cpu_ns);
                                prop_assert!(sum.is_some());
                            }
                            other => return Err(TestCaseError::fail(format!("{other:?}"))),
                        }
                    }
                }
                _ => {}
            }
        }
    }
}
