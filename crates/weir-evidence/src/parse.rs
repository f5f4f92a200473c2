//! The formats of /proc and /sys as pure functions. Text that does not fit gives `None` or less, never a panic.

use weir_record::machine::LinkCounters;
use weir_sys::process_stat::ProcessStat;

/// Larger numbers are not CPUs on any Linux (`NR_CPUS` ends at 8192); keeps a broken list from filling memory.
const CPU_NUMBERS_MAX: usize = 8192;

/// The needed fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatLine {
    /// Parent process.
    pub(crate) parent: u32,
    /// System time of all threads, in clock ticks.
    pub(crate) system_ticks: u64,
    /// User and system time of children that were reaped, in clock ticks.
    pub(crate) children_ticks: u64,
    /// The system time part of it.
    pub(crate) children_system_ticks: u64,
    /// Start, in clock ticks since boot; distinguishes a process from a later one with the same number.
    pub(crate) started_ticks: u64,
}

/// `/proc/PID/stat`.
pub(crate) fn stat_line(text: &str) -> Option<StatLine> {
    let stat = ProcessStat::parse(text)?;
    let children_system_ticks = stat.number(17)?;
    Some(StatLine {
        parent: stat.parent()?,
        system_ticks: stat.number(15)?,
        children_ticks: stat.number(16)?.saturating_add(children_system_ticks),
        children_system_ticks,
        started_ticks: stat.number(22)?,
    })
}

/// `schedstat` of a thread: nanoseconds on a CPU, and nanoseconds runnable but waiting for one.
pub(crate) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The value of `key` in text made of `key: value` lines (`/proc/PID/status`, `meminfo`, `cpuinfo`).
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.trim())
    })
}

/// The effective capabilities in `/proc/PID/status`, one bit each; 0 if they are missing.
pub(crate) fn capabilities(status: &str) -> u64 {
    field(status, "CapEff").and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0)
}

/// A field that starts with a number (`RssAnon:  116 kB`).
pub(crate) fn number_field(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.split_ascii_whitespace().next()?.parse().ok()
}

/// A list of CPUs in the kernel's form (`0-3,8,10-11`), ascending and without repeats; invalid parts are skipped.
pub(crate) fn cpu_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) else {
            continue;
        };
        if last < CPU_NUMBERS_MAX && cpus.len() <= CPU_NUMBERS_MAX {
            cpus.extend(first..=last);
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// One counter of `/proc/net/netstat` or `/proc/net/snmp`: a line of names and a line of values, both under `group`.
pub(crate) fn network_counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| {
        let (prefix, rest) = line.split_once(':')?;
        (prefix == group).then_some(rest)
    });
    let position = lines.next()?.split_ascii_whitespace().position(|found| found == name)?;
    lines.next()?.split_ascii_whitespace().nth(position)?.parse().ok()
}

/// Packets of an interface in `/proc/net/dev`, received and sent: all of them, and those that were dropped or found a
/// full ring.
pub(crate) fn interface_counters(text: &str, interface: &str) -> Option<LinkCounters> {
    let line = text.lines().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        (name.trim() == interface).then_some(rest)
    })?;
    let columns: Vec<u64> = line.split_ascii_whitespace().map_while(|column| column.parse().ok()).collect();
    // Eight columns each: bytes, packets, errors, drops, full rings and three more.
    let sum = |places: &[usize]| -> Option<u64> {
        places.iter().try_fold(0_u64, |sum, place| Some(sum.saturating_add(*columns.get(*place)?)))
    };
    Some(LinkCounters { packets: sum(&[1, 9])?, drops: sum(&[3, 4, 11, 12])? })
}

/// Two numbers with white space between them (`ip_local_port_range`).
pub(crate) fn two_numbers(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The word in brackets in `none [integrity] confidentiality`.
pub(crate) fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STAT: &str =
        "5235 (cat) R 5233 5233 2706 0 -1 4194304 100 0 0 0 3 4 50 6 20 0 1 0 93090 3133440 382";

    #[test]
    fn a_stat_line_is_read_after_the_last_parenthesis() {
        let expected = StatLine {
            parent: 5233,
            system_ticks: 4,
            children_ticks: 56,
            children_system_ticks: 6,
            started_ticks: 93090,
        };
        assert_eq!(stat_line(STAT), Some(expected));
        for name in ["(a) S 1 (b", ") ) )", "", "x y z", "((", "\u{fffd}\n"] {
            assert_eq!(stat_line(&STAT.replace("cat", name)), Some(expected), "{name:?}");
        }
    }

    #[test]
    fn a_stat_line_cut_before_its_start_time_is_refused() {
        let end = STAT.find("93090").expect("start time in the fixture");
        for cut in 0..end {
            assert_eq!(stat_line(&STAT[..cut]), None, "cut at {cut}");
        }
        assert_eq!(stat_line(&STAT.replace(" 5233 5233", " -1 5233")), None);
    }

    #[test]
    fn schedstat_needs_both_times() {
        assert_eq!(schedstat("852951 56282 2\n"), Some((852_951, 56_282)));
        assert_eq!(schedstat("852951"), None);
        assert_eq!(schedstat(""), None);
        assert_eq!(schedstat("-1 2 3"), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "Name:\tiou-wrk-12\nVmRSS:\t 9 kB\nRssAnon:\t     116 kB\nmodel name\t: A: B\n\nodd\n";
        assert_eq!(field(text, "Name"), Some("iou-wrk-12"));
        assert_eq!(field(text, "model name"), Some("A: B"));
        assert_eq!(number_field(text, "RssAnon"), Some(116));
        assert_eq!(number_field(text, "Rss"), None);
        assert_eq!(number_field(text, "Name"), None);
    }

    #[test]
    fn cpu_lists_are_expanded_and_nonsense_is_left_out() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(cpu_list("2,0,2"), [0, 2]);
        assert_eq!(cpu_list("5-3,x,-,,7"), [7]);
        assert_eq!(cpu_list("0-18446744073709551615"), [0_usize; 0]);
        assert_eq!(cpu_list(""), [0_usize; 0]);
    }

    #[test]
    fn network_counters_are_found_by_group_and_name() {
        let text = "Tcp: MaxConn RetransSegs OutRsts\nTcp: -1 17 3\nUdp: RetransSegs\nUdp: 4\n";
        assert_eq!(network_counter(text, "Tcp", "RetransSegs"), Some(17));
        assert_eq!(network_counter(text, "Udp", "RetransSegs"), Some(4));
        assert_eq!(network_counter(text, "Tcp", "MaxConn"), None);
        assert_eq!(network_counter(text, "Tcp", "Missing"), None);
        assert_eq!(network_counter("Tcp: RetransSegs\n", "Tcp", "RetransSegs"), None);
        assert_eq!(network_counter("Tcp: A RetransSegs\nTcp: 1\n", "Tcp", "RetransSegs"), None);
    }

    #[test]
    fn packets_of_an_interface_are_those_of_both_directions() {
        let text = "Inter-|   Receive                            |  Transmit\n face |bytes packets errs drop fifo\n\
            lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n  eth0: 9000 70 1 2 3 0 0 0 800 60 1 20 30 0 0 0\n";
        let found = interface_counters(text, "eth0");
        assert_eq!(found, Some(LinkCounters { packets: 130, drops: 55 }));
        assert_eq!(interface_counters(text, "eth"), None);
        assert_eq!(interface_counters("eth0: 1 2 3\n", "eth0"), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "[a-z0-9 ():,\\-\n\t\u{0}\u{e9}]{0,200}") {
            let _ = stat_line(&text);
            let _ = schedstat(&text);
            let _ = number_field(&text, "a");
            let _ = cpu_list(&text);
            let _ = network_counter(&text, "a", "b");
            let _ = two_numbers(&text);
            let _ = interface_counters(&text, "a");
        }

        #[test]
        fn a_stat_line_survives_any_name(name in any::<String>(), parent in any::<u32>(), ticks in 0_u64..1 << 40) {
            let text = format!(
                "1 ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 0 3 {ticks} 2 20 0 1 0 77 0\n"
            );
            let expected = StatLine {
                parent,
                system_ticks: 3,
                children_ticks: ticks + 2,
                children_system_ticks: 2,
                started_ticks: 77,
            };
            prop_assert_eq!(stat_line(&text), Some(expected));
        }

        #[test]
        fn a_written_cpu_list_reads_back(cpus in proptest::collection::btree_set(0_usize..8192, 0..50)) {
            let text = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            prop_assert_eq!(cpu_list(&text), cpus.into_iter().collect::<Vec<_>>());
        }
    }
}
