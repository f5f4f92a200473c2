//! Choices of a command line for built-in studies, and the spellings that study files accept.

use std::path::Path;

use weir_lab::{
    builtin,
    host_defaults::HostDefaults,
    study_file::{Choices, chosen, parse},
};
use weir_record::spec::{CellRole, LoadMode, StudySpec, Subject};

use super::study_file::read;

/// A server started by a command.
fn own(name: &str) -> (String, Vec<String>) {
    let words = ["./server", "--port", "{port}", "{content}", "{workers}"];
    (name.to_owned(), words.map(str::to_owned).to_vec())
}

/// Replaces all arms of a study by two servers.
fn only_own(text: &str, bare: &[&str]) -> StudySpec {
    let mut arms: Vec<_> = bare.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
    arms.extend([own("old"), own("new")]);
    let choices = Choices { arms, only_arms: true, ..Choices::default() };
    let text = chosen(text, &choices).unwrap_or_else(|error| panic!("{error}"));
    let defaults = HostDefaults { server_cpus: vec![0], load_cpus: vec![1], ..HostDefaults::default() };
    parse(Path::new("a.toml"), &text, &defaults).unwrap_or_else(|error| panic!("{error}: {text}")).spec
}

#[test]
fn every_study_of_servers_takes_arms_in_the_place_of_all_its_own() {
    let is_of_servers = |text: &str| !text.contains("\"storage\"") && !text.contains("\"orders\"");
    let studies = builtin::ALL.into_iter().filter(|study| is_of_servers(study.text));
    let mut names = Vec::new();
    for study in studies {
        let spec = only_own(study.text, &[]);
        assert_eq!(spec.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>(), ["old", "new"]);
        assert!(spec.cells.iter().any(|cell| cell.role == CellRole::Primary), "{}", study.name);
        assert!(spec.cells.iter().all(|cell| cell.has_arm("old") && cell.has_arm("new")), "{}", study.name);
        names.push(study.name);
    }
    assert!(
        ["quick", "http", "peers-http", "why", "survey", "http-confounders"]
            .iter()
            .all(|it| names.contains(it))
    );
}

#[test]
fn causes_that_are_no_pairs_are_a_mistake_of_the_file_whatever_arms_run() {
    for causes in ["{ arm = \"epoll\" }", "{ baseline = \"epoll\" }", "\"epoll\"", "3", "{}", "[\"epoll\"]"] {
        let text = format!(
            "name = \"x\"\n[factors]\nconnections = [4]\n[[arm]]\nname = \"epoll\"\ndriver = \"epoll\"\n\
             [[arm]]\nname = \"poll\"\ndriver = \"poll\"\n[[published]]\nid = \"a\"\ncauses = [{causes}]\n"
        );
        let arms = vec![("epoll".to_owned(), Vec::new()), own("new")];
        let choices = Choices { arms, only_arms: true, ..Choices::default() };
        let text = chosen(&text, &choices).unwrap_or_else(|error| panic!("{causes}: {error}"));
        assert!(text.contains("causes"), "it stays, and is told: {text}");
        let error = read(&text).expect_err(causes);
        assert!(error.contains("published"), "{causes}: {error}");
    }
}

#[test]
fn what_is_about_arms_that_are_gone_is_left_out_and_counted_in_the_title() {
    let http = builtin::BuiltIn::named("http").expect("it is built in").text;
    let spec = only_own(http, &[]);
    assert!(spec.published.is_empty() && spec.published_tables.is_empty());
    assert!(spec.title.en.contains("old, new? (left out"), "{}", spec.title.en);
    assert!(spec.title.en.contains("4 published figures, 2 published tables"), "{}", spec.title.en);
    assert!(spec.title.ko.as_deref().is_some_and(|it| it.contains("발표 수치 4개")), "{:?}", spec.title.ko);
    let kept = only_own(http, &["epoll", "uring"]);
    assert_eq!((kept.published.len(), kept.published_tables.len()), (4, 2));
    assert!(!kept.title.en.contains("left out"), "{}", kept.title.en);
    let peers = builtin::BuiltIn::named("peers-http").expect("it is built in").text;
    let some = only_own(peers, &["weir-epoll", "go"]);
    assert!(!some.comparisons.is_empty(), "of epoll and go there is still one");
    assert!(some.title.en.contains("4 comparisons"), "{}", some.title.en);
    let confounders = builtin::BuiltIn::named("http-confounders").expect("it is built in").text;
    let spec = only_own(confounders, &["epoll", "epoll-log-lines"]);
    assert!(spec.cells.iter().all(|cell| cell.has_arm("epoll")), "the baseline is everywhere");
    let beside = Choices { arms: vec![own("own")], ..Choices::default() };
    let text = chosen(confounders, &beside).expect("they fit");
    let spec = read(&text).expect("it is right");
    assert!(spec.cells.iter().all(|cell| cell.has_arm("own") && cell.has_arm("epoll")));
    assert_eq!(spec.published.len(), read(confounders).expect("it is right").published.len());
}

#[test]
fn io_uring_goes_by_both_names_and_sizes_and_rates_have_suffixes() {
    let text = "name = \"x\"\n[[cell]]\nrole = \"primary\"\nmessage_bytes = \"4k\"\n\
                [[cell]]\nmessage_bytes = \"4k\"\nrate = [\"10k\", 500]\n\
                [[arm]]\nname = \"a\"\ndriver = \"epoll\"\n\
                [[arm]]\nname = \"b\"\ndriver = \"io_uring\"\noptions = { buffer-bytes = \"16k\" }\n";
    let spec = read(text).expect("it is right");
    let Subject::Weir { driver, options, .. } = &spec.arms[1].subject else { panic!("it is Weir's own") };
    assert_eq!((driver.as_str(), options["buffer-bytes"].as_str()), ("uring", "16384"));
    assert!(spec.cells.iter().all(|cell| cell.message_bytes == 4096));
    let rates = spec.cells.iter().filter_map(|cell| match cell.load {
        LoadMode::Open { rate_per_second, .. } => Some(rate_per_second),
        _ => None,
    });
    assert_eq!(rates.collect::<Vec<f64>>(), [10_000.0, 500.0]);
    let instead = "[without.io_uring]\nwindow = \"2s\"\n";
    assert_eq!(read(&format!("{text}{instead}")).map(|spec| spec.arms.len()), Ok(2));
    let storage = "name = \"x\"\nprotocol = \"storage\"\n[[cell]]\nrole = \"primary\"\nblock_bytes = \"4k\"\n\
                   [[arm]]\nname = \"a\"\nengine = \"libaio\"\n[[arm]]\nname = \"b\"\nengine = \"uring\"\n";
    let spec = read(storage).expect("it is right");
    assert_eq!(spec.arms[1].subject.storage_engine().map(|engine| engine.name()), Some("io_uring"));
    let levels = vec![("message_bytes".to_owned(), vec!["64".to_owned(), "4k".to_owned()])];
    let tps = builtin::BuiltIn::named("tps").expect("it is built in").text;
    let text = chosen(tps, &Choices { levels, ..Choices::default() }).expect("they fit");
    let spec = read(&text).expect("it is right");
    assert!(spec.cells.iter().any(|cell| cell.message_bytes == 4096));
}
