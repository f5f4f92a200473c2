//! Threads in the format of `pidstat -w -t` (sysstat): a header about the machine, then a reading for every window,
//! with a row for each process and one for each of its threads.
//!
//! Rates are over the window, which ended at the time at the start of the row. As in pidstat, the row of a process
//! has the switches of its first thread, not the sum. A line that begins with `#` names the trial.

use std::fmt::Write;

use weir_record::{
    machine::Fingerprint,
    observation::ThreadFigures,
    threads::{ProcessThreads, ThreadWindow},
    trial::TrialRecord,
};

pub(crate) fn lines(machine: &Fingerprint, trials: &[TrialRecord]) -> String {
    let windows: Vec<(&TrialRecord, &ThreadWindow)> =
        trials.iter().filter_map(|trial| Some((trial, window(trial)?))).collect();
    let date = windows.first().and_then(|(_, window)| window.ended_local.split_once(' '));
    let mut text = format!(
        "Linux {} ({}) \t{} \t_{}_\t({} CPU)\n",
        machine.kernel_release,
        machine.host,
        date.map_or("", |(date, _)| date),
        machine.architecture,
        machine.cpus_online
    );
    for (trial, window) in windows {
        // Writing into a String cannot fail.
        let _ = writeln!(
            text,
            "\n# {} {}, block {}: {} messages in {:.2} s",
            trial.cell_id,
            trial.arm,
            trial.block,
            trial.load.as_ref().map_or(0, |load| load.messages),
            window.length_ns as f64 / 1e9
        );
        reading(&mut text, window);
    }
    text
}

fn window(trial: &TrialRecord) -> Option<&ThreadWindow> {
    trial.load.as_ref()?.observed.as_ref()?.thread_window.as_ref()
}

fn reading(text: &mut String, window: &ThreadWindow) {
    let time = window.ended_local.split_once(' ').map_or("", |(_, time)| time);
    let _ = writeln!(text, "{time:<11}   UID      TGID       TID   cswch/s nvcswch/s  Command");
    let length_s = (window.length_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    for process in &window.processes {
        let Some(first) = process.threads.first() else { continue };
        let tgid = (process.pid.to_string(), "-".to_owned());
        row(text, time, (process, tgid), first, (length_s, ""));
        for thread in &process.threads {
            let tid = ("-".to_owned(), thread.tid.to_string());
            row(text, time, (process, tid), thread, (length_s, "|__"));
        }
    }
}

fn row(
    text: &mut String,
    time: &str,
    (process, (tgid, tid)): (&ProcessThreads, (String, String)),
    thread: &ThreadFigures,
    (length_s, stem): (f64, &str),
) {
    let _ = writeln!(
        text,
        "{time:<11} {:>5} {tgid:>9} {tid:>9} {:>9.2} {:>9.2}  {stem}{}",
        process.uid,
        thread.context_switches_voluntary as f64 / length_s,
        thread.context_switches_involuntary as f64 / length_s,
        thread.name
    );
}

#[cfg(test)]
mod tests {
    use weir_record::{load::LoadReport, window::ObservedWindow};

    use super::*;

    /// A row as in the manual page of pidstat: `-t` adds TGID and TID, of which one is `-`, and marks threads with
    /// `|__`; `-w` adds cswch/s and nvcswch/s; a time comes first, as one word in 24-hour form.
    #[derive(Debug, PartialEq)]
    struct Row<'a> {
        time: &'a str,
        uid: u32,
        tgid: Option<u32>,
        tid: Option<u32>,
        rates: (f64, f64),
        command: &'a str,
    }

    fn parsed(line: &str) -> Option<Row<'_>> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [time, uid, tgid, tid, voluntary, involuntary, command] = fields[..] else { return None };
        let number = |text: &str| text.parse().ok();
        Some(Row {
            time,
            uid: number(uid)?,
            tgid: number(tgid),
            tid: number(tid),
            rates: (voluntary.parse().ok()?, involuntary.parse().ok()?),
            command,
        })
    }

    fn thread(tid: u32, name: &str, voluntary: u64, involuntary: u64) -> ThreadFigures {
        ThreadFigures {
            pid: 34_197,
            tid,
            name: name.to_owned(),
            context_switches_voluntary: voluntary,
            context_switches_involuntary: involuntary,
            ..ThreadFigures::default()
        }
    }

    fn printed() -> String {
        let gateway = ProcessThreads {
            pid: 34_197,
            uid: 1000,
            threads: vec![thread(34_197, "fep_gateway", 0, 1), thread(34_202, "worker", 86_670, 16)],
            ..ProcessThreads::default()
        };
        let window = ThreadWindow {
            ended_local: "2026-02-09 13:09:25".to_owned(),
            length_ns: 2_000_000_000,
            processes: vec![gateway, ProcessThreads::default()],
        };
        let observed = ObservedWindow { thread_window: Some(window), ..ObservedWindow::default() };
        let load = LoadReport { observed: Some(observed), messages: 43_000, ..LoadReport::default() };
        let trial = TrialRecord {
            cell_id: "closed-epoll-w1".to_owned(),
            arm: "owner".to_owned(),
            block: 3,
            load: Some(load),
            ..TrialRecord::default()
        };
        let machine = Fingerprint {
            kernel_release: "6.18.7".to_owned(),
            host: "fedora".to_owned(),
            architecture: "x86_64".to_owned(),
            cpus_online: 16,
            ..Fingerprint::default()
        };
        lines(&machine, &[TrialRecord::default(), trial])
    }

    #[test]
    fn rows_are_in_the_columns_of_pidstat_and_are_read_back() {
        let text = printed();
        let columns =
            ["   UID", "      TGID", "       TID", "   cswch/s", " nvcswch/s", "  Command"].concat();
        assert!(text.contains(&format!("\n13:09:25   {columns}\n")), "{text}");
        assert!(text.contains("\n# closed-epoll-w1 owner, block 3: 43000 messages in 2.00 s\n"), "{text}");
        let rows: Vec<Row<'_>> =
            text.lines().filter(|line| !line.starts_with('#')).filter_map(parsed).collect();
        let row = |tgid, tid, rates, command| Row { time: "13:09:25", uid: 1000, tgid, tid, rates, command };
        let expected = [
            row(Some(34_197), None, (0.0, 0.5), "fep_gateway"),
            row(None, Some(34_197), (0.0, 0.5), "|__fep_gateway"),
            row(None, Some(34_202), (43_335.0, 8.0), "|__worker"),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_header_names_kernel_host_date_architecture_and_cpus() {
        let text = printed();
        let header: Vec<&str> = text.lines().next().unwrap_or_default().split('\t').map(str::trim).collect();
        assert_eq!(header, ["Linux 6.18.7 (fedora)", "2026-02-09", "_x86_64_", "(16 CPU)"]);
        assert_eq!(lines(&Fingerprint::default(), &[]).lines().count(), 1, "no trial has threads");
    }
}
