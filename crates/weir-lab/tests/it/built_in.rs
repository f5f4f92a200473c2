//! Built-in studies are files: the plan of each on a machine with two CPUs, as `weir study NAME --dry-run` prints it.

use weir_lab::{
    builtin,
    host_defaults::{DriverFound, HostDefaults, OrderCpus},
    outline,
};

use weir_record::finding::Finding;
use weir_report::Language;

use crate::fixture::{built_in, study_on};

fn machine() -> HostDefaults {
    HostDefaults { seed: 1, server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() }
}

fn without_uring() -> HostDefaults {
    let gone = DriverFound {
        driver: "uring".to_owned(),
        available: false,
        detail: Finding::IoUringDisabled { level: 2 },
        unlock: None,
    };
    HostDefaults { tried: vec![gone], ..machine() }
}

fn published(host_defaults: HostDefaults) -> HostDefaults {
    HostDefaults { plan: Some("published".to_owned()), ..host_defaults }
}

fn told(name: &str, host_defaults: &HostDefaults) -> String {
    outline::text(&study_on(name, host_defaults), Language::English)
}

#[test]
fn each_comes_to_what_it_came_to() {
    for study in builtin::ALL {
        insta::assert_snapshot!(format!("outline-{}", study.name), told(study.name, &machine()));
    }
}

#[test]
fn a_plan_is_told_in_every_language() {
    let quick = study_on("quick", &without_uring());
    insta::assert_snapshot!("outline-quick-without-uring-ko", outline::text(&quick, Language::Korean));
    insta::assert_snapshot!("outline-quick-without-uring-zh", outline::text(&quick, Language::Chinese));
    for study in builtin::ALL {
        let told = |language| outline::text(&study_on(study.name, &machine()), language);
        let lines = Language::ALL.map(|language| told(language).lines().count());
        assert!(lines.iter().all(|count| *count == lines[0]), "{}: {lines:?}", study.name);
    }
}

#[test]
fn without_io_uring_others_stand_in_or_the_study_goes_on_without_its_arms() {
    for name in ["quick", "why", "http", "http-confounders", "survey", "gateway"] {
        insta::assert_snapshot!(format!("outline-{name}-without-uring"), told(name, &without_uring()));
    }
}

#[test]
fn the_published_plans_have_the_lengths_of_their_sources() {
    insta::assert_snapshot!("outline-survey-published", told("survey", &published(machine())));
    let cores: Vec<Vec<usize>> = (0..6).map(|core| vec![core]).collect();
    let large = HostDefaults { order_cpus: OrderCpus::of(&cores), ..published(machine()) };
    insta::assert_snapshot!("outline-gateway-published", told("gateway", &large));
    let spec = study_on("gateway", &large).spec;
    let own = spec.cells[0].orders.as_ref().expect("it is of orders").exchange_cpus.clone();
    assert_eq!((spec.server_cpus, own, spec.load_cpus), (vec![0, 1], vec![2, 3], vec![4]));
    let spec = study_on("survey", &published(machine())).spec;
    let http = spec.cells[0].http.as_ref().expect("it is HTTP");
    let lengths =
        [spec.cells[0].window_ns, http.ramp_up_ns, http.connect_timeout_ns, http.response_timeout_ns];
    assert_eq!(lengths.map(|length_ns| length_ns / 1_000_000_000), [30, 10, 5, 3]);
}

#[test]
fn a_study_with_one_plan_says_so_when_it_is_asked_for_another() {
    let quick = builtin::BuiltIn::named("quick").expect("it is built in");
    let error = quick.study(&published(machine())).expect_err("it has one plan").to_string();
    assert_eq!(error, "quick.toml:1: plan: the study has no plan \"published\"; it has one plan only");
}

#[test]
fn every_run_of_the_document_has_its_counterpart_on_every_driver() {
    let spec = study_on("gateway", &published(machine())).spec;
    let names: Vec<&str> = spec.published_runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["s1", "s2", "s3", "s3-modulo", "tps-1w", "tps-2w", "deep-1w", "deep-2w"]);
    for run in &spec.published_runs {
        assert_eq!(run.cells.len(), 4, "{}: one for each driver", run.name);
        for id in &run.cells {
            let cell = spec.cells.iter().find(|cell| cell.id == *id).expect("the cell is there");
            assert!(cell.has_arm(&run.arm) && cell.workers == 2, "{} in {id}", run.name);
        }
    }
    let on_select = spec.cells.iter().filter(|cell| cell.id.contains("select"));
    assert!(on_select.into_iter().all(|cell| !cell.has_arm("msgring")));
}

#[test]
fn what_handing_over_costs_is_asked_for_each_driver_under_every_load_in_which_it_happens() {
    let spec = study_on("gateway", &machine()).spec;
    let asked: Vec<(&str, usize, Option<f64>)> =
        spec.added_costs.iter().map(|it| (it.group.as_str(), it.cells.len(), it.share_max)).collect();
    assert_eq!(
        asked,
        [("uring", 3, Some(0.5)), ("epoll", 3, Some(0.5)), ("uring", 1, None), ("epoll", 1, None)]
    );
    assert_eq!(spec.added_costs[0].cells, ["closed-uring-w2", "paced-uring-w2", "flood-uring-w2"]);
    let without = study_on("gateway", &without_uring()).spec;
    let groups: Vec<String> = without.added_costs.into_iter().map(|it| it.group).collect();
    assert_eq!(groups, ["epoll", "epoll"]);
}

#[test]
fn the_tables_of_the_documents_stand_beside_the_studies_that_repeat_them() {
    let names = |study: &str| -> Vec<&str> {
        built_in(study).published_tables.iter().map(|it| it.table.key()).collect()
    };
    let own = [
        "overall",
        "connections",
        "threads",
        "best",
        "success",
        "cores",
        "efficiency",
        "per-core",
        "system-calls",
        "system-call-shares",
        "system-call-overhead",
    ];
    assert_eq!(names("tps"), own);
    assert_eq!((names("http"), names("survey")), (vec!["aggregate"; 2], vec!["aggregate"; 2]));
    let tables = built_in("tps").published_tables;
    let [threads, cores] = [2, 5].map(|place| &tables[place].rows);
    assert_eq!(threads, cores, "which is what is wrong with the latter");
    let ratio = tables[0].ratio("all", "uring", "epoll").expect("both are there");
    assert!((ratio - 1.333_67).abs() < 1e-4, "{ratio}");
    let rows: Vec<usize> = built_in("survey").published_tables.iter().map(|it| it.rows.len()).collect();
    assert_eq!(rows, [11, 10], "the second has no peak");
}

#[test]
fn titles_and_claims_are_told_in_three_languages_and_claims_stand_beside_arms_of_their_cell() {
    let mut causes = 0;
    for study in builtin::ALL {
        let spec = built_in(study.name);
        assert!(spec.title.ko.is_some() && spec.title.zh.is_some(), "{}", study.name);
        for claim in &spec.published {
            let cell = spec.cells.iter().find(|cell| cell.id == claim.cell_id).expect("it is planned");
            let of_causes = claim.causes.iter().flat_map(|cause| [&cause.arm, &cause.baseline]);
            for name in of_causes.chain([&claim.arm, &claim.baseline]) {
                assert!(cell.has_arm(name), "{}: {name} in {}", claim.id, cell.id);
            }
            for text in [&claim.source, &claim.claim, &claim.explanation] {
                let translations = [text.ko.as_deref(), text.zh.as_deref()];
                assert!(translations.iter().flatten().all(|own| *own != text.en), "{}: {text:?}", claim.id);
                assert!(translations.iter().all(Option::is_some), "{}: {text:?}", claim.id);
            }
            causes += claim.causes.len();
        }
        for text in spec.published_tables.iter().flat_map(|it| [&it.source, &it.explanation]) {
            let translations = [text.ko.as_deref(), text.zh.as_deref()];
            assert!(translations.iter().all(|own| own.is_some_and(|own| own != text.en)), "{text:?}");
        }
    }
    assert!(causes >= 8, "{causes}");
}
