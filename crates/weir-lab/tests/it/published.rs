//! Published runs, figures and tables in study files.

use weir_record::metric::Metric;

use crate::study_file::with;

#[test]
fn what_arms_add_and_runs_that_were_published_name_arms_cells_and_metrics() {
    let wrong = |text: &str| with(text).expect_err("it is a mistake");
    let asked = "[[added_cost]]\nof = { arm = \"uring-16k\" }\nreference = \"uring-16k\"\n\
                 metrics = [\"server-cpu-per-message\"]\nat_most = 0.5\nby = \"depth\"\n";
    let found = with(asked).expect("it is right").added_costs;
    let groups: Vec<(&str, usize)> = found.iter().map(|it| (it.group.as_str(), it.cells.len())).collect();
    assert_eq!(groups, [("d1", 1), ("d16", 2)], "at an offered rate too");
    let many = |count: usize| asked.replace("by = \"depth\"\n", "").repeat(count);
    assert_eq!(with(&many(16)).expect("as many as may be").added_costs.len(), 16);
    let run = "[[published_run]]\nname = \"s1\"\nsource = \"x\"\nabout = \"y\"\n\
               of = { arm = \"epoll\", depth = 1 }\nfigures = { throughput = 69_000 }\n";
    let found = with(run).expect("it is right").published_runs;
    assert_eq!(
        (found[0].cells.as_slice(), found[0].arm.as_str()),
        (["c100-d1-m64-closed".to_owned()].as_slice(), "epoll")
    );
    assert_eq!(found[0].figures, [(Metric::Throughput, 69_000.0)]);
    assert_eq!(with(&run.repeat(32)).expect("as many as may be").published_runs.len(), 32);
    let said = [
        wrong(&many(17)),
        wrong(&asked.replace("arm = \"uring-16k\"", "arm = \"epoll\"")),
        wrong(&asked.replace("reference = \"uring-16k\"", "reference = \"uring\"")),
        wrong(&asked.replace("0.5", "1.5")),
        wrong(&asked.replace("\"depth\"", "\"depht\"")),
        wrong(&asked.replace("server-cpu", "sever-cpu")),
        wrong(&run.repeat(33)),
        wrong(&run.replace("\"epoll\"", "[\"epoll\", \"uring-16k\"]")),
        wrong(&run.replace("throughput", "thruput")),
        wrong(&run.replace("69_000", "-1")),
    ];
    insta::assert_snapshot!("mistakes-added-cost-and-runs", said.join("\n"));
}

#[test]
fn a_published_table_has_a_known_name_its_rows_and_a_figure_for_each_arm() {
    let table = "[[published_table]]\ntable = \"connections\"\nsource = \"x\"\narms = [\"epoll\", \"uring-16k\"]\n\
                 rows = { 1000 = [3, 4], 2 = [1.5, 2] }\nexplanation = \"w\"\n";
    let found = with(table).expect("it is right").published_tables;
    let rows: Vec<(&str, &[f64])> =
        found[0].rows.iter().map(|row| (row.key.as_str(), row.figures.as_slice())).collect();
    assert_eq!(rows, [("2", &[1.5, 2.0][..]), ("1000", &[3.0, 4.0])], "levels rise");
    let aggregate = table
        .replace("\"connections\"", "\"aggregate\"\ncell = \"c100-d1-m64-closed\"")
        .replace("1000 =", "p99 =")
        .replace("2 =", "samples =");
    assert_eq!(with(&aggregate.repeat(16)).expect("as many as may be").published_tables.len(), 16);
    let many: String = (100..133).map(|level| format!("{level} = [1, 2], ")).collect();
    let said = [
        &aggregate.repeat(17),
        &table.repeat(2),
        &table.replace("\"connections\"", "\"conections\""),
        &table.replace("uring-16k", "uring"),
        &table.replace("1000 =", "many ="),
        &aggregate.replace("p99", "p98"),
        &table.replace("[3, 4]", "[3]"),
        &table.replace("[3, 4]", "[3, -4]"),
        &table.replace("1000 = [3, 4], ", &many),
        &aggregate.replace("cell = \"c100-d1-m64-closed\"\n", ""),
        &table.replace("source", "cell = \"c100-d1-m64-closed\"\nsource"),
        &table.replace("explanation", "explanatoin"),
    ]
    .map(|text| with(text).expect_err("it is a mistake"));
    insta::assert_snapshot!("mistakes-published-tables", said.join("\n"));
}

#[test]
fn a_published_table_of_calls_has_their_names_and_one_of_a_sentence_has_no_rows() {
    let rows = "rows = { epoll_wait = [89.43, 0], fcntl = [0.35, 58.56] }\n";
    let table = format!(
        "[[published_table]]\ntable = \"system-call-shares\"\nsource = \"x\"\n\
         arms = [\"epoll\", \"uring-16k\"]\n{rows}explanation = \"w\"\n"
    );
    let found = with(&table).expect("it is right").published_tables;
    assert_eq!(found[0].figure("fcntl", "uring-16k"), Some(58.56));
    let wrong = with(&table.replace("fcntl", "FCNTL")).expect_err("no call is called so");
    assert!(wrong.contains("system calls, as strace names them"), "{wrong}");
    let sentence = table.replace("system-call-shares", "system-call-overhead");
    let wrong = with(&sentence).expect_err("it has rows");
    assert!(wrong.contains("published_table.rows: of this table there are no figures"), "{wrong}");
    let found = with(&sentence.replace(rows, "")).expect("it is right").published_tables;
    assert!(found[0].rows.is_empty());
}
