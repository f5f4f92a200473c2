//! Contrasts between levels and between cells, as a study file declares them.

use weir_record::metric::Metric;

use crate::study_file::{EXAMPLE, read};

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
