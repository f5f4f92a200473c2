//! Every run of commands that were compared, one line each.

use std::fmt::Write;

use weir_record::commands::{CommandComparison, CommandReport, CommandRun, RunEnding};

use crate::csv::field;

const HEADER: &str = "comparison,phase,pair,place,command,repeat,started_ns,end,wall_ns,user_ns,system_ns,\
                      memory_bytes_max,faults_minor,faults_major,switches_voluntary,switches_involuntary,read_bytes,\
                      written_bytes,instructions,stdout_bytes,stdout_hash,stderr_bytes,stderr_hash,children_left,\
                      memory_bytes_below,work,errors,counted_ns,idle_ns,idle_cpu_ns\n";

/// The table; the header alone where nothing ran.
pub fn lines(report: &CommandReport) -> String {
    let mut text = HEADER.to_owned();
    for (number, comparison) in report.comparisons.iter().enumerate() {
        for run in &comparison.runs {
            line(&mut text, number, comparison, run);
        }
    }
    text
}

fn line(text: &mut String, number: usize, comparison: &CommandComparison, run: &CommandRun) {
    let optional = |figure: Option<u64>| figure.map(|it| it.to_string()).unwrap_or_default();
    let name = comparison.commands.get(run.command as usize).map_or("", |it| it.name.as_str());
    let (cost, phase) = (&run.cost, weir_record::stable_name(&run.phase));
    let CommandRun { pair, place, repeat, started_ns, stdout, stderr, children_left, .. } = run;
    // Writing into a String cannot fail.
    let _ = writeln!(
        text,
        "{number},{phase},{pair},{place},{},{repeat},{started_ns},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},\
         {children_left},{},{},{},{},{},{}",
        field(name),
        end(run.end),
        cost.wall_ns,
        cost.user_ns,
        cost.system_ns,
        optional(cost.memory_bytes_max),
        cost.faults_minor,
        cost.faults_major,
        cost.switches_voluntary,
        cost.switches_involuntary,
        optional(cost.read_bytes),
        optional(cost.written_bytes),
        optional(cost.instructions),
        stdout.bytes,
        stdout.content,
        stderr.bytes,
        stderr.content,
        optional(cost.memory_bytes_below),
        optional(cost.work),
        optional(run.load.map(|load| load.errors)),
        optional(run.load.map(|load| load.counted_ns)),
        optional(run.load.map(|load| load.idle_ns)),
        optional(run.load.map(|load| load.idle_cpu_ns)),
    );
}

/// How a run ended, in one word.
fn end(end: RunEnding) -> String {
    match end {
        RunEnding::Exited(status) => format!("exit-{status}"),
        RunEnding::Killed(signal) => format!("signal-{signal}"),
        RunEnding::OutOfMemory => "out-of-memory".to_owned(),
        RunEnding::Overran => "overran".to_owned(),
        RunEnding::NoCount => "no-count".to_owned(),
    }
}
