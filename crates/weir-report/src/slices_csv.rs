//! Every slice of a study whose arms took turns, one per line: the values behind the round's figures.

use std::fmt::Write;

use weir_record::trial::TrialRecord;

use crate::csv::field;

const HEADER: &str = "cell,block,attempt,round_trip_before_ns,round_trip_after_ns,arm,repeat,permutation,place,\
                      length_ns,messages,server_cpu_ns,machine_cpu_ns,generator_cpu_ns,waiting_cpu_ns,waiting_ns,errors,\
                      reopened,stopped,segments,missed_starts\n";

pub(crate) fn lines(trials: &[TrialRecord]) -> String {
    let mut text = HEADER.to_owned();
    for trial in trials {
        let round = format!(
            "{},{},{},{},{},{},{}",
            field(&trial.cell_id),
            trial.block,
            trial.attempt,
            trial.reading_before.round_trip_ns,
            trial.reading_after.round_trip_ns,
            field(&trial.arm),
            trial.repeat
        );
        for slice in &trial.slices {
            let numbers = [
                u64::from(slice.permutation),
                u64::from(slice.place),
                slice.length_ns,
                slice.messages,
                slice.server_cpu_ns,
                slice.machine_cpu_ns,
                slice.generator_cpu_ns,
                slice.waiting_cpu_ns,
                slice.waiting_ns,
                slice.errors,
                u64::from(slice.reopened),
                u64::from(slice.stopped),
                slice.segments,
                slice.missed_starts,
            ];
            text.push_str(&round);
            for number in numbers {
                // Writing into a String cannot fail.
                let _ = write!(text, ",{number}");
            }
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use weir_record::trial::SliceRecord;

    use super::*;

    #[test]
    fn a_slice_is_a_line_with_as_many_fields_as_the_header() {
        let slice =
            SliceRecord { permutation: 2, place: 1, messages: 7, reopened: 9, ..SliceRecord::default() };
        let trial = TrialRecord {
            cell_id: "c100".to_owned(),
            arm: "uring, spinning".to_owned(),
            repeat: true,
            slices: vec![slice, slice],
            ..TrialRecord::default()
        };
        let text = lines(&[TrialRecord::default(), trial]);
        let found: Vec<&str> = text.lines().collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], "c100,0,0,0,0,\"uring, spinning\",true,2,1,0,7,0,0,0,0,0,0,9,0,0,0");
        assert_eq!(found[0].split(',').count(), found[1].split(',').count() - 1, "one field has a comma");
    }
}
