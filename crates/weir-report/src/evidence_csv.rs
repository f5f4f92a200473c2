//! Every reading of every slice of evidence, one line each.

use std::fmt::Write;

use weir_record::trial::TrialRecord;

use crate::csv::field;

const HEADER: &str =
    "cell,block,attempt,arm,slice,rung,length_ns,messages,server_cpu_ns,errors,source,key,value\n";

pub(crate) fn lines(trials: &[TrialRecord]) -> String {
    let mut text = HEADER.to_owned();
    for trial in trials {
        for (number, evidence) in trial.evidence.iter().enumerate() {
            let slice = &evidence.slice;
            let of_slice = format!(
                "{},{},{},{},{number},{},{},{},{},{}",
                field(&trial.cell_id),
                trial.block,
                trial.attempt,
                field(&trial.arm),
                evidence.rung.key(),
                slice.length_ns,
                slice.messages,
                slice.server_cpu_ns,
                slice.errors
            );
            for reading in &evidence.readings {
                // Writing into a String cannot fail.
                let _ = writeln!(
                    text,
                    "{of_slice},{},{},{}",
                    field(&reading.source),
                    field(&reading.key),
                    reading.value
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use weir_record::{
        observation::Rung,
        trial::{EvidenceSlice, Reading},
    };

    use super::*;

    #[test]
    fn a_reading_is_a_line_with_as_many_fields_as_the_header() {
        let reading =
            Reading { source: "thread a, b".to_owned(), key: "cpu-ns".to_owned(), value: 12_000_000.0 };
        let evidence =
            EvidenceSlice { rung: Rung::Programs, readings: vec![reading; 2], ..EvidenceSlice::default() };
        let trial = TrialRecord {
            cell_id: "c100".to_owned(),
            arm: "uring".to_owned(),
            evidence: vec![EvidenceSlice::default(), evidence],
            ..TrialRecord::default()
        };
        let text = lines(&[TrialRecord::default(), trial]);
        let found: Vec<&str> = text.lines().collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[1], "c100,0,0,uring,1,programs,0,0,0,0,\"thread a, b\",cpu-ns,12000000");
        assert_eq!(found[0].split(',').count(), found[1].split(',').count() - 1, "one field has a comma");
    }
}
