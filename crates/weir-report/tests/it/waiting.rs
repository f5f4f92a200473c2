//! CPU including waiting: mentioned where it is informative, and not where it repeats server CPU.

use weir_record::{effect::Effect, metric::Metric, study::StudyResult};
use weir_report::{Language, html, markdown, terminal};

use crate::fixture;

/// The quick study with a further comparison, whose ratio is this many times the ratio of server CPU.
fn study(factor: f64) -> StudyResult {
    let mut result = fixture::quick();
    let primary = result.primary().expect("it has one");
    let with_waiting = Effect {
        metric: Metric::ServerCpuWithWaiting,
        estimate: primary.estimate.map(|ratio| factor * ratio),
        // Notes would name the metric too.
        notes: Vec::new(),
        reasons: Vec::new(),
        excluded: Vec::new(),
        ..primary.clone()
    };
    fixture::compare(&mut result, with_waiting);
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
