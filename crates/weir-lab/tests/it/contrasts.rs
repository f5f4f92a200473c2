//! Contrasts between levels and between cells, and the study whose cells differ only in their slices.

use std::path::Path;

use weir_lab::{host_defaults::HostDefaults, study_file::parse};
use weir_record::metric::Metric;

use crate::study_file::{EXAMPLE, mistake, read};

#[test]
fn a_contrast_is_between_cells_that_differ_in_the_named_levels_alone() {
    let declared = |contrast: &str| {
        let factors = "depth = [1, 16]\nworkers = [1, 2, 4]";
        let text = EXAMPLE.replacen("depth = [1, 16]", factors, 1).replacen(
            "primary = { depth = 16 }",
            "primary = { depth = 16, workers = 1 }",
            1,
        );
        read(&format!("{text}\n[[contrast]]\n{contrast}\n"))
    };
    let spec = declared("of = { workers = [2, 4] }\nto = { workers = 1 }").expect("it is right");
    let [one] = &spec.contrasts[..] else { panic!("one arm beside the baseline: {:?}", spec.contrasts) };
    assert_eq!((one.arm.as_str(), one.baseline.as_str()), ("uring-16k", "epoll"));
    assert_eq!(one.to, ["c100-d1-m64-closed", "c100-d16-m64-closed"]);
    assert_eq!((one.of.len(), one.metric), (4, Metric::ServerCpuPerMessage));
    assert_eq!(weir_lab::validate::claims(&spec), 3, "a contrast is a claim");
    let wrong = |contrast: &str| declared(contrast).expect_err("it is a mistake");
    insta::assert_snapshot!(wrong("of = { workers = 2 }\nto = { workers = [1, 2] }"), @"a.toml:23: contrast.to: a cell is on both sides; say levels that differ");
    insta::assert_snapshot!(wrong("of = { workers = 2 }\nto = { arm = \"epoll\", workers = 1 }"), @"a.toml:23: contrast.to: the arm is named in `of`; both sides are about its ratio");
    insta::assert_snapshot!(wrong("of = { workers = 2 }\nto = {}"), @"a.toml:22: contrast.of: both sides name levels: of = { workers = 2 }, to = { workers = 1 }; or each names a cell");
    insta::assert_snapshot!(wrong("of = { workers = 8 }\nto = { workers = 1 }"), @"a.toml:22: contrast.of: no arm beside the baseline runs in cells that have these levels and all others alike");
    insta::assert_snapshot!(wrong("of = { workers = 2 }\nto = { workers = 1 }\nmetric = \"server-memory\""), @"a.toml:24: contrast.metric: server-memory is no claim that is a ratio in these cells");
    let two = "of = { cell = \"c100-d1-m64-w2-closed\" }\nto = { cell = \"c100-d16-m64-closed\" }";
    let spec = declared(&format!("{two}\nequivalence_margin = 0.02")).expect("it is right");
    let [one] = &spec.contrasts[..] else { panic!("one arm beside the baseline: {:?}", spec.contrasts) };
    assert_eq!(
        (&one.of[..], &one.to[..]),
        (&["c100-d1-m64-w2-closed".to_owned()][..], &["c100-d16-m64-closed".to_owned()][..])
    );
    assert_eq!(one.equivalence_margin, Some(0.02));
    insta::assert_snapshot!(wrong("of = { cell = \"c100-d16-m64-closed\" }\nto = { cell = \"c100-d16-m64-closed\" }"), @"a.toml:23: contrast.to: both sides are the same cell");
    insta::assert_snapshot!(wrong("of = { cell = \"c100-d16-m64-closed\" }\nto = { workers = 1 }"), @"a.toml:22: contrast.of: both sides name levels: of = { workers = 2 }, to = { workers = 1 }; or each names a cell");
    insta::assert_snapshot!(wrong(&format!("{two}\nequivalence_margin = 2")), @"a.toml:24: contrast.equivalence_margin: 2 is out of range; it must be from 0.001 to 1");
}

#[test]
fn a_contrast_may_be_between_cells_at_one_share() {
    let cells = "\n[[cell]]\ndepth = [1, 16]\nshare = 0.5\n";
    let declared = |contrast: &str| read(&format!("{EXAMPLE}{cells}\n[[contrast]]\n{contrast}\n"));
    let levels = "of = { depth = 16 }\nto = { depth = 1 }\n";
    let spec = declared(&format!("{levels}share = 0.5")).expect("it is right");
    let [one] = &spec.contrasts[..] else { panic!("one arm beside the baseline: {:?}", spec.contrasts) };
    assert_eq!(one.of, ["c100-d16-m64-open50pct"]);
    assert_eq!(one.to, ["c100-d1-m64-open50pct"]);
    let closed = declared(levels).expect("it is right").contrasts;
    assert_eq!(closed[0].of, ["c100-d16-m64-closed"], "those at a rate are meant by their share alone");
    let wrong = |contrast: &str| declared(contrast).expect_err("it is a mistake").to_string();
    let of_no_cell = wrong(&format!("{levels}share = 0.4"));
    assert!(of_no_cell.contains("contrast.of: no arm beside the baseline runs in cells"), "{of_no_cell}");
    let two = "of = { cell = \"c100-d16-m64-closed\" }\nto = { cell = \"c100-d1-m64-closed\" }";
    let twice = wrong(&format!("{two}\nshare = 0.5"));
    assert!(twice.contains("contrast.share: a cell's identifier has its load; give either"), "{twice}");
}

#[test]
fn cells_of_a_congestion_control_that_is_not_here_are_named_with_it() {
    let text = include_str!("../../../../docs/studies/slice-length.toml");
    let on = |available: &[&str]| {
        let congestion_controls = available.iter().map(ToString::to_string).collect();
        let host_defaults = HostDefaults { congestion_controls, ..HostDefaults::default() };
        parse(Path::new("a.toml"), text, &host_defaults)
    };
    let spec = on(&["reno", "cubic", "bbr"]).expect("it is right").spec;
    assert_eq!((spec.contrasts.len(), spec.missing_cells.len()), (24, 0));
    let [of, to] = [&spec.contrasts[3].of, &spec.contrasts[3].to].map(|cells| cells.join(" "));
    assert_eq!((of.as_str(), to.as_str()), ("c10-d1-m64-bbr-closed-s20ms", "c10-d1-m64-bbr-closed-s500ms"));
    let without = on(&["reno", "cubic"]).expect("it is right").spec;
    assert_eq!((without.contrasts.len(), without.missing_cells.len()), (12, 20));
    assert!(
        without.missing_cells.iter().all(|cell| cell.id.contains("-bbr-")),
        "{:?}",
        without.missing_cells
    );
    assert!(without.cells.iter().all(|cell| cell.congestion_control != "bbr"));
    let primary = text.replacen("role = \"primary\"", "role = \"primary\"\ncongestion_control = \"bbr\"", 1);
    let host_defaults =
        HostDefaults { congestion_controls: vec!["cubic".to_owned()], ..HostDefaults::default() };
    let refused = parse(Path::new("a.toml"), &primary, &host_defaults).expect_err("nothing would be decided");
    assert!(refused.to_string().contains("asks for bbr, and this machine has cubic"), "{refused}");
    insta::assert_snapshot!(mistake("depth = [1, 16]", "depth = [1, 16]\ncongestion_control = [\"b b r\"]"), @r#"a.toml:10: congestion_control: "b b r" is no name of a congestion control, such as "cubic" or "bbr""#);
    let command = "\n[[cell]]\ncongestion_control = \"cubic\"\n\n[[arm]]\nname = \"own\"\ncommand = [\"./own\", \"{port}\"]\n";
    let refused = read(&format!("{EXAMPLE}{command}")).expect_err("it has no place for it").to_string();
    assert!(refused.contains("cannot be told its congestion control"), "{refused}");
}
