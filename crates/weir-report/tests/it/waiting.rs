//! CPU with waiting included: told where it says something, and not where it repeats server CPU.

use weir_record::{metric::Metric, study::StudyResult};
use weir_report::{Language, html, markdown, terminal};

use crate::fixture;

/// The quick study with a further comparison, whose ratio is so many times that of server CPU.
fn study(factor: f64) -> StudyResult {
    let mut result = fixture::quick();
    let primary = result.primary.expect("it has one");
    let mut with_waiting = result.comparisons[primary].clone();
    // Notes would name the metric as well.
    (with_waiting.notes, with_waiting.by_state) = (Vec::new(), Vec::new());
    (with_waiting.reasons, with_waiting.pairs_excluded) = (Vec::new(), Vec::new());
    with_waiting.metric = Metric::ServerCpuWithWaiting;
    with_waiting.ratio = with_waiting.ratio.map(|ratio| factor * ratio);
    result.comparisons.push(with_waiting);
    result
}

#[test]
fn a_plot_that_would_repeat_server_cpu_is_a_sentence() {
    let name = "Server CPU per message, waiting included";
    for (factor, is_drawn) in [(1.0, false), (1.3, true)] {
        let result = study(factor);
        let page = html(&result, Language::English);
        assert_eq!(page.contains("id=\"comparison-server-cpu-with-waiting\""), is_drawn, "{factor}");
        let text = format!("{name}: in every comparison within");
        assert_eq!(page.contains(&text), !is_drawn, "{factor}");
        assert_eq!(markdown(&result, Language::English).contains(&text), !is_drawn, "{factor}");
        let row = terminal(&result, Language::English, 120, false).contains("CPU with waiting");
        assert_eq!(row, is_drawn, "{factor}");
    }
}
