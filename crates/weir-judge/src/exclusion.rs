//! Reasons to keep a trial out of the comparison that the trial itself shows. Decided before anything is compared, by
//! limits that do not know which arm ran: all fixed but that for other processes, which follows the trials before it.
//! A whole trial may be excluded for noise ([`of_report`]), an arm of a round never ([`of_slices`]). Machine states
//! need the whole study: `gate`.

use weir_record::{
    failure::FailureCounts,
    finding::{ExclusionKind, FailedTrial, FailureClass, FailureCount},
    http::RequestOutcome,
    load::LoadReport,
    machine::{FOREIGN_CPUS_MAX, NetworkCounters, NoiseWindow, STEAL_SHARE_MAX},
    orders::OrdersLoadReport,
    protocol::{Proof, ProtocolRow},
    trial::{Exclusion, TrialRecord},
};

/// Most of the machine's CPU time that other processes may use all the time and still count as background. What is
/// always there takes as much from every arm, a twentieth of a CPU at this limit; a machine that does more beside is
/// not quiet, and its numbers would describe the company rather than the arms.
pub const BACKGROUND_SHARE_MAX: f64 = 0.05;

/// How far a trial may lie above a background before it is a burst, as a share of it; [`FOREIGN_CPUS_MAX`] at least.
/// The busier the company, the more it varies.
const BACKGROUND_SPREAD: f64 = 0.25;

/// Trials it takes to tell a background from a burst.
const BACKGROUND_TRIALS_MIN: usize = 8;

/// Largest relative difference between the two sides of Little's law that the edges of the window do not explain.
pub const LITTLES_LAW_ERROR_MAX: f64 = 0.05;

/// What speaks against a whole trial that gave a report, of messages of a protocol: noise, and what speaks against
/// slices. `foreign_cpus_max` comes from [`foreign_cpus_max`].
pub fn of_report(
    load: &LoadReport,
    protocol: &ProtocolRow,
    network: &NetworkCounters,
    foreign_cpus_max: f64,
) -> Vec<Exclusion> {
    let mut exclusions = Vec::new();
    if let Some(observed) = &load.observed {
        if observed.noise.steal_share > STEAL_SHARE_MAX {
            exclusions.push(Exclusion::Steal);
        }
        if observed.noise.foreign_cpus > foreign_cpus_max {
            exclusions.push(Exclusion::ForeignCpu);
        }
    }
    exclusions.extend(of_slices(load, protocol, network));
    exclusions
}

/// What speaks against the slices of an arm that gave a report, of messages of a protocol. Noise does not: it met all
/// arms of the round within tens of milliseconds.
///
/// A listener that lost connections made some wait for the SYN timer, perhaps longer than the window: they are counted
/// in flight and never come back in it. Little's law then says nothing about the generator, and is not asked.
pub fn of_slices(load: &LoadReport, protocol: &ProtocolRow, network: &NetworkCounters) -> Vec<Exclusion> {
    let mut exclusions = Vec::new();
    let engine = load.observed.as_ref().and_then(|observed| observed.engine.as_ref());
    if engine.is_some_and(|engine| engine.completion_overflows > 0) {
        exclusions.push(Exclusion::CompletionOverflow);
    }
    let count = load.failures.errors();
    if count > 0 {
        exclusions.push(Exclusion::Errors { count });
    }
    if network.listen_overflows == 0 && breaks_littles_law(load, protocol) {
        exclusions.push(Exclusion::LittlesLaw);
    }
    exclusions.extend(unproven(load, protocol));
    exclusions
}

/// What the answers say against the trial: that there are none, or that they were not shown to be right.
fn unproven(load: &LoadReport, protocol: &ProtocolRow) -> Option<Exclusion> {
    if load.messages == 0 {
        let reason = format!("no {} was completed in the window", protocol.completed);
        return Some(match protocol.proof {
            Proof::Accounts => Exclusion::JobFailed { reason },
            _ => Exclusion::LoadFailed { reason },
        });
    }
    let expected = bytes_expected(load);
    let done = match protocol.proof {
        // Its bytes are checked in separate runs: comparing them would be part of what is measured.
        Proof::Accounts => return None,
        Proof::Replies => return load.orders.as_ref().and_then(wrong_replies),
        Proof::Responses => "had their framing and length checked",
        Proof::Bytes => "were compared",
    };
    if let Some(reason) = unproven_of_mix(load) {
        return Some(Exclusion::LoadFailed { reason });
    }
    let reason = format!("{} of {expected} bytes {done}", load.bytes_verified);
    (load.bytes_verified != expected).then_some(Exclusion::LoadFailed { reason })
}

/// Content bytes that right answers have. In a mix they are counted by request, each with its own length. Where the
/// length of a request's contents may differ, they have as many as they have, and no fewer than the others.
pub(crate) fn bytes_expected(load: &LoadReport) -> u64 {
    if !is_mix(load) {
        return load.messages * u64::from(load.message_bytes);
    }
    let Some(counted) = counted_by_request(load) else { return load.bytes_verified };
    let bytes = |(own, right): &(&RequestOutcome, u64)| Some(own.content_bytes?.saturating_mul(*right));
    let known = counted.iter().filter_map(bytes).fold(0, u64::saturating_add);
    match counted.iter().all(|it| it.1 == 0 || bytes(it).is_some()) {
        true => known,
        false => known.max(load.bytes_verified),
    }
}

/// Requests of a mix with their right responses in the window. `None` where an earlier version did not count them, and
/// where there were failures: a response that was right before more came behind it is counted here, and not there.
fn counted_by_request(load: &LoadReport) -> Option<Vec<(&RequestOutcome, u64)>> {
    let requests = &load.http.as_ref().filter(|_| load.failures.errors() == 0)?.requests;
    requests.iter().map(|own| Some((own, own.right_in_window?))).collect()
}

/// What speaks against the contents of a mix: responses that no request has, and contents none of which was compared
/// although they are right only if they are as the first.
fn unproven_of_mix(load: &LoadReport) -> Option<String> {
    let counted = counted_by_request(load).filter(|_| is_mix(load))?;
    let all = counted.iter().fold(0_u64, |sum, (_, right)| sum.saturating_add(*right));
    if all != load.messages {
        return Some(format!("{all} of {} responses were counted by their request", load.messages));
    }
    let (own, right) =
        counted.into_iter().find(|(own, right)| *right > 0 && own.compared_in_window == Some(0))?;
    Some(format!(
        "none of {right} contents of {:?} was compared, because they are too long to be kept; give the request \
         expect_hash or expect_content = \"any\"",
        own.name
    ))
}

/// Whether requests of a mix were asked for.
pub(crate) fn is_mix(load: &LoadReport) -> bool {
    load.http.as_ref().is_some_and(|http| !http.requests.is_empty())
}

/// What replies to orders say against the trial: each was checked by the generator, and its bytes are not echoed ones.
fn wrong_replies(orders: &OrdersLoadReport) -> Option<Exclusion> {
    let reason = if orders.inversions > 0 {
        format!("{} replies came in another order than their orders", orders.inversions)
    } else if !orders.shares.is_conserved() {
        "shares entered are not those executed, cancelled and live".to_owned()
    } else {
        return None;
    };
    Some(Exclusion::LoadFailed { reason })
}

/// The most CPU other processes may use in a trial, from what they used in the trials before it. `cpus` are online.
///
/// What a machine always does beside meets every arm alike and is part of it; what spoils a comparison is a burst
/// that one trial has and another has not. So the limit lies above the background: the lower quartile of the trials
/// so far, which bursts in fewer than three quarters of them cannot raise. Before there are enough, nothing is
/// background. Whether the background makes verdicts wrong is not assumed: the baseline against itself meets it too.
pub fn foreign_cpus_max<'a>(noise: impl Iterator<Item = &'a NoiseWindow>, cpus: u32) -> f64 {
    let mut used: Vec<f64> = noise.map(|window| window.foreign_cpus).collect();
    if used.len() < BACKGROUND_TRIALS_MIN {
        return FOREIGN_CPUS_MAX;
    }
    used.sort_unstable_by(f64::total_cmp);
    let background = used[used.len() / 4].min(BACKGROUND_SHARE_MAX * f64::from(cpus.max(1)));
    background + FOREIGN_CPUS_MAX.max(BACKGROUND_SPREAD * background)
}

/// Relative difference between messages in flight as counted and as throughput times service time.
pub(crate) fn littles_law_error(load: &LoadReport) -> Option<f64> {
    let counted = load.littles_law.in_flight_mean;
    let expected = load.littles_law.throughput_times_latency;
    let larger = counted.max(expected);
    (larger > 0.0).then(|| (counted - expected).abs() / larger)
}

/// How much more a job says to have in flight, by its operations a second and their mean latency, than it was given. It
/// may be less: between two operations a thread also does other things.
pub(crate) fn surplus_in_flight(load: &LoadReport) -> Option<f64> {
    let given = load.littles_law.in_flight_mean;
    (given > 0.0).then(|| (load.littles_law.throughput_times_latency / given - 1.0).max(0.0))
}

/// Whether the two sides differ by more than they may. Messages that were in flight when the window opened count
/// whole on one side and in part on the other; that explains as much as a mean service time is of the window.
fn breaks_littles_law(load: &LoadReport, protocol: &ProtocolRow) -> bool {
    if protocol.proof == Proof::Accounts {
        return surplus_in_flight(load).is_some_and(|surplus| surplus > LITTLES_LAW_ERROR_MAX);
    }
    let edges = if load.window_ns > 0 { load.service.ns_mean / load.window_ns as f64 } else { 0.0 };
    littles_law_error(load).is_some_and(|error| error > LITTLES_LAW_ERROR_MAX + edges)
}

/// What a failed trial knows of the cause: what was said, the classes of failures, and what the kernel lost.
pub(crate) fn failed_trial(trial: &TrialRecord) -> FailedTrial {
    let said = trial.exclusions.iter().find_map(|exclusion| match exclusion {
        Exclusion::ServerFailed { reason }
        | Exclusion::LoadFailed { reason }
        | Exclusion::JobFailed { reason }
        | Exclusion::NeighbourFailed { reason }
        | Exclusion::HostLost { reason } => Some(reason.clone()),
        _ => None,
    });
    let own = trial.exclusions.iter().find(|exclusion| !is_noise(exclusion));
    FailedTrial {
        arm: trial.arm.clone(),
        reason: own.map(ExclusionKind::from),
        said,
        classes: trial.load.iter().flat_map(|load| failure_classes(&load.failures)).collect(),
        listen_overflows: trial.network.listen_overflows,
        syn_retransmits: trial.network.syn_retransmits,
    }
}

/// The classes of failures that there were.
pub(crate) fn failure_classes(failures: &FailureCounts) -> Vec<FailureCount> {
    let classes = [
        (FailureClass::Refused, failures.refused),
        (FailureClass::Reset, failures.reset),
        (FailureClass::ConnectTimeout, failures.connect_timeout),
        (FailureClass::ResponseTimeout, failures.response_timeout),
        (FailureClass::CutShort, failures.short),
        (FailureClass::WrongBytes, failures.wrong_bytes),
        (FailureClass::WrongStatus, failures.wrong_status),
        (FailureClass::Malformed, failures.malformed),
        (FailureClass::LocalLimit, failures.local_limit),
        (FailureClass::Unexplained, failures.unexplained),
    ];
    let count = |(class, count)| FailureCount { class, count };
    classes.into_iter().filter(|(_, count)| *count > 0).map(count).collect()
}

/// Whether the exclusion says something about the machine's noise and nothing about the arm.
pub fn is_noise(exclusion: &Exclusion) -> bool {
    matches!(exclusion, Exclusion::Steal | Exclusion::ForeignCpu | Exclusion::StateChanged)
}

#[cfg(test)]
mod tests {
    use weir_record::{
        engine::EngineStats, http::HttpLoadReport, load::LittlesLaw, machine::NoiseWindow, protocol::row,
        window::ObservedWindow,
    };

    use super::*;

    fn clean() -> LoadReport {
        let mut load =
            LoadReport { messages: 100, message_bytes: 64, bytes_verified: 6_400, ..LoadReport::default() };
        load.littles_law.in_flight_mean = 100.0;
        load.littles_law.throughput_times_latency = 98.0;
        let noise = NoiseWindow { window_ns: 1_000_000_000, ..NoiseWindow::default() };
        load.observed = Some(ObservedWindow {
            noise: NoiseWindow { steal_share: 0.01, foreign_cpus: 0.02, ..noise },
            engine: Some(EngineStats::default()),
            ..ObservedWindow::default()
        });
        load
    }

    fn with(change: impl FnOnce(&mut LoadReport)) -> Vec<Exclusion> {
        of("echo", change)
    }

    fn of(protocol: &str, change: impl FnOnce(&mut LoadReport)) -> Vec<Exclusion> {
        let mut load = clean();
        change(&mut load);
        of_report(&load, row(protocol), &NetworkCounters::default(), FOREIGN_CPUS_MAX)
    }

    #[test]
    fn contents_of_a_mix_have_the_lengths_that_they_have() {
        let asking = |requests: usize| {
            of("http", |load| {
                (load.message_bytes, load.bytes_verified) = (0, 777);
                let requests = vec![RequestOutcome::default(); requests];
                load.http = Some(HttpLoadReport { requests, ..HttpLoadReport::default() });
            })
        };
        assert_eq!(asking(2), []);
        let reason = "777 of 0 bytes had their framing and length checked".to_owned();
        assert_eq!(asking(0), [Exclusion::LoadFailed { reason }]);
    }

    #[test]
    fn contents_of_a_mix_are_proven_by_request() {
        // 60 of 100 bytes and compared, 40 of any length.
        let page = RequestOutcome {
            name: "page".to_owned(),
            right_in_window: Some(60),
            compared_in_window: Some(60),
            content_bytes: Some(100),
            ..RequestOutcome::default()
        };
        let search =
            RequestOutcome { right_in_window: Some(40), content_bytes: None, ..RequestOutcome::default() };
        let of_two = |page: RequestOutcome, search: RequestOutcome, bytes: u64| {
            let found = of("http", |load| {
                (load.message_bytes, load.bytes_verified) = (0, bytes);
                let requests = vec![page, search];
                load.http = Some(HttpLoadReport { requests, ..HttpLoadReport::default() });
            });
            found.into_iter().map(|it| match it {
                Exclusion::LoadFailed { reason } => reason,
                other => panic!("{other:?}"),
            })
        };
        let reasons = |page: &RequestOutcome, search: &RequestOutcome, bytes: u64| {
            of_two(page.clone(), search.clone(), bytes).collect::<Vec<_>>()
        };
        assert_eq!(reasons(&page, &search, 6_777), Vec::<String>::new());
        assert_eq!(
            reasons(&page, &search, 5_900),
            ["5900 of 6000 bytes had their framing and length checked"],
            "fewer than the pages alone have"
        );
        let fixed = RequestOutcome { content_bytes: Some(10), ..search.clone() };
        assert_eq!(reasons(&page, &fixed, 6_400), Vec::<String>::new());
        assert_eq!(
            reasons(&page, &fixed, 6_401),
            ["6401 of 6400 bytes had their framing and length checked"]
        );
        let fewer = RequestOutcome { right_in_window: Some(39), ..search.clone() };
        assert_eq!(reasons(&page, &fewer, 6_777), ["99 of 100 responses were counted by their request"]);
        let unseen = RequestOutcome { compared_in_window: Some(0), ..page.clone() };
        let [reason] = &reasons(&unseen, &search, 6_777)[..] else { panic!("one reason") };
        assert!(reason.starts_with("none of 60 contents of \"page\" was compared"), "{reason}");
        assert!(reason.contains("expect_hash"), "{reason}");
        let unused = RequestOutcome { right_in_window: Some(0), ..search };
        let all = RequestOutcome { right_in_window: Some(100), compared_in_window: Some(100), ..page };
        assert_eq!(reasons(&all, &unused, 10_000), Vec::<String>::new(), "what never came has no length");
    }

    #[test]
    fn connections_that_wait_for_the_syn_timer_are_no_breach_of_littles_law() {
        let mut load = clean();
        load.littles_law.in_flight_mean = 300.0;
        let found = |lost: u64| {
            let network = NetworkCounters { listen_overflows: lost, ..NetworkCounters::default() };
            of_report(&load, row("echo"), &network, FOREIGN_CPUS_MAX)
        };
        assert_eq!(found(0), [Exclusion::LittlesLaw]);
        assert_eq!(found(1), []);
    }

    #[test]
    fn a_failed_trial_says_what_it_knows_of_the_cause() {
        let mut load = clean();
        load.failures = FailureCounts { reset: 2, connect_timeout: 40, ..FailureCounts::default() };
        let network =
            NetworkCounters { listen_overflows: 7, syn_retransmits: 41, ..NetworkCounters::default() };
        let trial = TrialRecord {
            exclusions: vec![Exclusion::LoadFailed { reason: "exited with status 1: no luck".to_owned() }],
            load: Some(load),
            network,
            ..TrialRecord::default()
        };
        let found = failed_trial(&trial);
        assert_eq!(found.said.as_deref(), Some("exited with status 1: no luck"));
        assert_eq!(found.reason, Some(ExclusionKind::LoadFailed));
        let count = |class, count| FailureCount { class, count };
        let classes = [count(FailureClass::Reset, 2), count(FailureClass::ConnectTimeout, 40)];
        assert_eq!(found.classes, classes);
        assert_eq!((found.listen_overflows, found.syn_retransmits), (7, 41));
        assert_eq!(failed_trial(&TrialRecord::default()), FailedTrial::default());
    }

    #[test]
    fn a_trial_at_every_limit_is_clean() {
        assert_eq!(with(|_| ()), []);
    }

    #[test]
    fn each_limit_has_its_exclusion() {
        fn observed(load: &mut LoadReport) -> &mut ObservedWindow {
            load.observed.as_mut().expect("it is observed")
        }
        assert_eq!(with(|load| observed(load).noise.steal_share = 0.011), [Exclusion::Steal]);
        assert_eq!(with(|load| observed(load).noise.foreign_cpus += 0.001), [Exclusion::ForeignCpu]);
        let overflow = EngineStats { completion_overflows: 1, ..EngineStats::default() };
        assert_eq!(with(|load| observed(load).engine = Some(overflow)), [Exclusion::CompletionOverflow]);
        let failures = FailureCounts { reset: 2, cut_off_at_end: 9, ..FailureCounts::default() };
        assert_eq!(with(|load| load.failures = failures), [Exclusion::Errors { count: 2 }]);
        assert_eq!(with(|load| load.littles_law.in_flight_mean = 104.0), [Exclusion::LittlesLaw]);
    }

    #[test]
    fn noise_excludes_a_whole_trial_and_no_slices() {
        let mut load = clean();
        let observed = load.observed.as_mut().expect("it is observed");
        (observed.noise.steal_share, observed.noise.foreign_cpus) = (0.5, 1.0);
        let network = NetworkCounters::default();
        let whole = of_report(&load, row("echo"), &network, FOREIGN_CPUS_MAX);
        assert_eq!(whole, [Exclusion::Steal, Exclusion::ForeignCpu]);
        assert!(whole.iter().all(is_noise));
        assert_eq!(of_slices(&load, row("echo"), &network), []);
        load.failures.reset = 2;
        let broken = of_slices(&load, row("echo"), &network);
        assert_eq!(broken, [Exclusion::Errors { count: 2 }], "what is the arm's own counts");
    }

    #[test]
    fn a_background_raises_the_limit_and_bursts_do_not() {
        let max_of = |cpus: u32, used: &[f64]| {
            let windows: Vec<NoiseWindow> = used
                .iter()
                .map(|&foreign_cpus| NoiseWindow { foreign_cpus, ..NoiseWindow::default() })
                .collect();
            foreign_cpus_max(windows.iter(), cpus)
        };
        let max = |used: &[f64]| max_of(2, used);
        assert_eq!(max(&[]), FOREIGN_CPUS_MAX);
        assert_eq!(max(&[0.02; 7]), FOREIGN_CPUS_MAX, "too few to know");
        assert_eq!(max(&[0.02; 8]), 0.04);
        assert_eq!(max(&[0.0, 0.01, 0.01, 0.5, 0.5, 0.5, 0.5, 0.5]), 0.03, "bursts");
        assert_eq!(max(&[0.4; 20]), 0.125, "a busy machine is not quiet");
        assert_eq!(max_of(64, &[0.4; 20]), 0.5, "the same company is little on a large machine");
        assert_eq!(max_of(0, &[0.4; 20]), 0.07, "a machine of an unknown size counts as one CPU");
    }

    #[test]
    fn a_job_cannot_have_more_in_flight_than_it_was_given() {
        let storage = |throughput_times_latency: f64, messages: u64| {
            of("storage", |load| {
                (load.messages, load.bytes_verified) = (messages, 0);
                load.littles_law = LittlesLaw { in_flight_mean: 32.0, throughput_times_latency };
            })
        };
        assert_eq!(storage(33.5, 9), []);
        assert_eq!(storage(20.0, 9), [], "it does other things between two operations");
        assert_eq!(storage(34.0, 9), [Exclusion::LittlesLaw], "its clock is wrong");
        assert!(matches!(storage(32.0, 0).as_slice(), [Exclusion::JobFailed { .. }]));
    }

    #[test]
    fn orders_answer_for_their_sequence_and_their_shares_instead_of_bytes() {
        use weir_record::orders::ShareBalance;
        let orders =
            |own: OrdersLoadReport| of("orders", |load| (load.bytes_verified, load.orders) = (0, Some(own)));
        assert_eq!(orders(OrdersLoadReport::default()), []);
        let inverted = orders(OrdersLoadReport { inversions: 2, ..OrdersLoadReport::default() });
        assert!(
            matches!(inverted.as_slice(), [Exclusion::LoadFailed { reason }] if reason.starts_with("2 replies"))
        );
        let shares = ShareBalance { entered: 100, live: 99, ..ShareBalance::default() };
        let lost = orders(OrdersLoadReport { shares, ..OrdersLoadReport::default() });
        assert!(
            matches!(lost.as_slice(), [Exclusion::LoadFailed { reason }] if reason.starts_with("shares"))
        );
    }

    #[test]
    fn the_edges_of_the_window_are_no_breach_of_littles_law() {
        let slow = |in_flight_mean: f64| {
            with(|load| {
                (load.window_ns, load.service.ns_mean) = (1_000_000_000, 100_000_000.0);
                load.littles_law.in_flight_mean = in_flight_mean;
            })
        };
        assert_eq!(slow(114.0), []);
        assert_eq!(slow(116.0), [Exclusion::LittlesLaw]);
    }

    #[test]
    fn bytes_that_were_not_compared_and_empty_windows_are_failures() {
        let reason = |exclusions: Vec<Exclusion>| match exclusions.as_slice() {
            [Exclusion::LoadFailed { reason }] => reason.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(reason(with(|load| load.bytes_verified = 6_336)), "6336 of 6400 bytes were compared");
        let empty = with(|load| (load.messages, load.bytes_verified) = (0, 0));
        assert_eq!(reason(empty), "no message was completed in the window");
        let http = |bytes_verified: u64, messages: u64| {
            reason(of("http", |load| {
                (load.bytes_verified, load.messages) = (bytes_verified, messages);
            }))
        };
        assert_eq!(http(0, 0), "no response was completed in the window");
        assert_eq!(http(63, 1), "63 of 64 bytes had their framing and length checked");
    }
}
