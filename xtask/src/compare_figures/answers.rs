//! What a tool says of two commands, and rows of it. Pure.

use serde_json::Value;

/// Above the rows.
pub const HEAD: &str = "
| CPU | beside | planted | tool | comparisons | runs of each | ratio, middle | finds or ±, middle | says more | says less | \
                        says equal |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
";

/// What was compared.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub cpu_ms: f64,
    pub percent: f64,
    pub beside: &'static str,
}

/// Which of the two is said to cost more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    More,
    Less,
    Equal,
    Nothing,
}

/// One comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Runs of the second command.
    pub runs: u64,
    /// The second over the first.
    pub ratio: f64,
    /// The effect that this many runs find, or the error that is printed beside the ratio; as a share.
    pub resolution: f64,
    pub said: Said,
}

/// Of `weir compare`: the verdict on CPU time.
pub fn of_weir(json: &str) -> Result<Answer, String> {
    let report: Value = serde_json::from_str(json).map_err(|error| format!("the export of weir: {error}"))?;
    let comparison = &report["comparisons"][0];
    let rows = comparison["effects"].as_array().into_iter().flatten();
    let mut own = rows.filter(|row| row["question"] == "comparison" && row["metric"] == "command-cpu");
    let row = own.next().ok_or("the export of weir has no row of CPU time")?;
    let number = |name: &str| row[name].as_f64();
    Ok(Answer {
        runs: comparison["pairs_done"].as_u64().unwrap_or_default(),
        ratio: number("estimate").ok_or("the export of weir has no estimate")?,
        resolution: number("detectable").unwrap_or(f64::NAN),
        said: match row["verdict"].as_str() {
            Some("worse") => Said::More,
            Some("better") => Said::Less,
            Some("equivalent") => Said::Equal,
            _ => Said::Nothing,
        },
    })
}

/// The answer of hyperfine: the ratio of means with its error, as it prints them. It draws no conclusion; a difference
/// above the error is what a reader takes from it.
pub fn of_hyperfine(json: &str) -> Result<Answer, String> {
    let report: Value =
        serde_json::from_str(json).map_err(|error| format!("the export of hyperfine: {error}"))?;
    let figure = |place: usize, name: &str| report["results"][place][name].as_f64();
    let both = |name: &str| figure(0, name).zip(figure(1, name)).ok_or(format!("hyperfine says no {name}"));
    let ((one, other), (one_sd, other_sd)) = (both("mean")?, both("stddev")?);
    let ratio = other / one;
    let resolution = ratio * ((one_sd / one).powi(2) + (other_sd / other).powi(2)).sqrt();
    let said = match ratio - 1.0 {
        difference if difference > resolution => Said::More,
        difference if difference < -resolution => Said::Less,
        _ => Said::Nothing,
    };
    let runs = report["results"][1]["times"].as_array().map_or(0, Vec::len) as u64;
    Ok(Answer { runs, ratio, resolution, said })
}

/// A row of all comparisons of a kind; nothing where there are none.
pub fn row(row: &Row, tool: &str, answers: &[Answer]) -> String {
    if answers.is_empty() {
        return String::new();
    }
    let middle = |figure: fn(&Answer) -> f64| {
        let mut all: Vec<f64> = answers.iter().map(figure).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let says = |said: Said| answers.iter().filter(|it| it.said == said).count();
    format!(
        "| {} ms | {} | {} % | {tool} | {} | {} | {:.4} | {:.1} % | {} | {} | {} |\n",
        row.cpu_ms,
        row.beside,
        row.percent,
        answers.len(),
        middle(|it| it.runs as f64),
        middle(|it| it.ratio),
        100.0 * middle(|it| it.resolution),
        says(Said::More),
        says(Said::Less),
        says(Said::Equal),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_of_cpu_time_is_what_weir_says() {
        let row = |metric: &str, verdict: &str| {
            format!(
                r#"{{"question":"comparison","metric":"{metric}","estimate":1.03,"detectable":0.01,
                "verdict":"{verdict}"}}"#
            )
        };
        let rows = [row("command-wall", "no-claim"), row("command-cpu", "worse")].join(",");
        let json = format!(r#"{{"comparisons":[{{"pairs_done":80,"effects":[{rows}]}}]}}"#);
        let expected = Answer { runs: 80, ratio: 1.03, resolution: 0.01, said: Said::More };
        assert_eq!(of_weir(&json), Ok(expected));
        assert!(of_weir("{}").is_err() && of_weir("no").is_err());
    }

    #[test]
    fn hyperfine_says_a_difference_where_it_is_above_its_error() {
        let json = |other: f64| {
            format!(
                r#"{{"results":[{{"mean":0.05,"stddev":0.001,"times":[1,2]}},
                {{"mean":{other},"stddev":0.001,"times":[1,2,3]}}]}}"#
            )
        };
        let said = |other: f64| of_hyperfine(&json(other)).map(|it| (it.runs, it.said));
        assert_eq!(said(0.0503), Ok((3, Said::Nothing)));
        assert_eq!((said(0.06), said(0.04)), (Ok((3, Said::More)), Ok((3, Said::Less))));
    }

    #[test]
    fn a_row_has_the_middle_of_all_and_how_often_each_thing_was_said() {
        let answer = |ratio, said| Answer { runs: 40, ratio, resolution: 0.02, said };
        let answers = [answer(1.01, Said::Nothing), answer(1.05, Said::More), answer(1.03, Said::More)];
        let kind = Row { cpu_ms: 50.0, percent: 3.0, beside: "quiet" };
        assert_eq!(
            row(&kind, "weir compare", &answers),
            "| 50 ms | quiet | 3 % | weir compare | 3 | 40 | 1.0300 | 2.0 % | 2 | 0 | 0 |\n"
        );
        assert_eq!(row(&kind, "hyperfine", &[]), "");
    }
}
