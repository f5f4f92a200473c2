//! A check of a change by the steps of the GitHub action in `packaging`: on a small repository, with programs that
//! stand in for the host's.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::{
    check_steps::{Expressions, Job, Variables, packaging, read, run_action, variables},
    harness::{Said, WEIR, executable, folder, shown},
};

/// How a change is built, and its cost.
pub(super) const BUILD: &str = "sh make.sh";

/// Whether the program exists; without it, the test prints that it is skipped.
pub(super) fn is_here(program: &str) -> bool {
    let is_here = Command::new(program).arg("--version").output().is_ok();
    if !is_here {
        println!("skipped: {program} is not installed");
    }
    is_here
}

pub(super) fn git(repository: &Path, words: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"];
    let output = Command::new("git")
        .args(identity)
        .args(words)
        .current_dir(repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("git starts");
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it prints UTF-8").trim().to_owned()
}

/// A commit in which building makes a program that counts to a number.
fn commit_counting(repository: &Path, turns: u32) {
    let program = format!("i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done");
    fs::write(repository.join("counts.sh"), format!("#!/bin/sh\n{program}\n"))
        .expect("a file can be written");
    fs::write(repository.join("make.sh"), "cp counts.sh counts\nchmod +x counts\n").expect("likewise");
    commit(repository);
}

fn commit(repository: &Path) {
    git(repository, &["add", "--all"]);
    git(repository, &["commit", "--quiet", "--allow-empty", "--message", "a change"]);
}

/// A repository whose branch `main` counts to 20,000. Its other branches change it.
pub(super) fn repository(folder: &Path) -> PathBuf {
    let repository = folder.join("repository");
    fs::create_dir(&repository).expect("a folder can be made");
    git(&repository, &["init", "--quiet"]);
    fs::write(repository.join(".gitignore"), "/counts\n/.weir-check\n").expect("a file can be written");
    commit_counting(&repository, 20_000);
    for (branch, change) in
        [("unchanged", "README"), ("costlier", "counts.sh"), ("unbuilt", "make.sh"), ("failing", "counts.sh")]
    {
        git(&repository, &["switch", "--quiet", "--create", branch, "main"]);
        match branch {
            "costlier" => commit_counting(&repository, 80_000),
            "unbuilt" => {
                fs::write(repository.join(change), "echo '\u{1b}[31m```no rule to make it' >&2\nexit 3\n")
                    .expect("a file can be written")
            }
            "failing" => {
                fs::write(repository.join(change), "#!/bin/sh\necho 'the change fails' >&2\nexit 5\n")
                    .expect("a file can be written")
            }
            _ => fs::write(repository.join(change), "words\n").expect("a file can be written"),
        }
        commit(&repository);
    }
    repository
}

/// A program that notes how it was called, one call a line, and answers as the host's `gh` does.
fn host(programs: &Path) {
    let note = format!("printf '%s\\n' \"$*\" >>{}", shown(&programs.join("calls")));
    let answer = format!("case $* in *--paginate*) cat {} ;; esac", shown(&programs.join("earlier")));
    executable(&programs.join("gh"), &format!("#!/bin/sh\n{note}\n{answer}\n"));
    fs::write(programs.join("earlier"), "").expect("a file can be written");
}

/// The environment of the action in a run for a pull request.
fn expressions(folder: &Path, inputs: &[(&str, &str)]) -> Expressions {
    let declared = read("github/action.yml");
    let declared = declared["inputs"].as_object().expect("it has inputs").iter();
    let given: BTreeMap<&str, &str> = inputs.iter().copied().collect();
    let value = |name: &str, input: &Value| {
        let default = input["default"].as_str().unwrap_or_default();
        given.get(name).map_or_else(|| default.replace("${{ github.token }}", "secret"), ToString::to_string)
    };
    let mut table: Variables =
        declared.map(|(name, input)| (format!("inputs.{name}"), value(name, input))).collect();
    for (expression, value) in [
        ("runner.temp", shown(folder)),
        ("github.server_url", "https://example.org"),
        ("github.repository", "some/thing"),
        ("github.action_repository", "some/weir"),
        ("github.run_id", "99"),
        ("github.event.pull_request.base.sha", given.get("target").copied().unwrap_or_default()),
        ("github.event.pull_request.number", given.get("number").copied().unwrap_or_default()),
        ("github.event_name == 'pull_request' && inputs.head == '' && 'yes' || 'no'", "no"),
        ("!cancelled()", "true"),
        ("!cancelled() && inputs.comment == 'yes'", "true"),
    ] {
        table.insert(expression.to_owned(), value.to_owned());
    }
    Expressions(table)
}

fn job(folder: &Path, repository: &Path) -> Job {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).expect("a folder can be made");
    host(&programs);
    let (files, summary, outputs) = (packaging("github"), folder.join("summary.md"), folder.join("outputs"));
    let given = [
        ("GITHUB_ACTION_PATH", shown(&files)),
        ("GITHUB_STEP_SUMMARY", shown(&summary)),
        ("GITHUB_OUTPUT", shown(&outputs)),
        ("GITHUB_REPOSITORY", "some/thing"),
    ];
    Job { repository: repository.to_owned(), variables: variables(given), programs }
}

/// The results of a run of the action.
struct Checked {
    said: Said,
    comment: String,
    calls: String,
    report: PathBuf,
}

/// Checks a branch against `main`.
fn checked(folder: &Path, repository: &Path, branch: &str, inputs: &[(&str, &str)]) -> Checked {
    let folder = folder.join(branch);
    fs::create_dir_all(&folder).expect("a folder can be made");
    git(repository, &["switch", "--quiet", "--detach", branch]);
    let main = git(repository, &["rev-parse", "main"]);
    let usual = [
        ("commands", "{tree}/counts"),
        ("build", BUILD),
        ("fail-if", "cpu ratio > 1.5"),
        ("options", "--runs=8\n--seed=7"),
        ("weir", WEIR),
        ("target", &main),
        ("number", "17"),
    ];
    let said = run_action(
        &read("github/action.yml"),
        &job(&folder, repository),
        &expressions(&folder, &[&usual, inputs].concat()),
    );
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let comment = text("weir-weir/report/comment.md");
    assert!(!comment.is_empty() && text("summary.md").ends_with(&comment), "the page of the run shows it");
    Checked { said, comment, calls: text("programs/calls"), report: folder.join("weir-weir/report") }
}

/// The end of a step's output, for an assertion.
fn told(it: &Checked) -> String {
    format!("{:?}: {}\n{}\n{}", it.said.code, it.comment, it.said.stdout, it.said.stderr)
}

pub(super) fn begins(comment: &str) -> bool {
    comment.starts_with("<!-- weir-check weir -->\n### Weir: `") && comment.contains("` against `")
}

#[test]
fn an_unchanged_and_a_costlier_change_end_with_their_codes_and_comments() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-cost");
    let repository = repository(&folder);
    let unchanged = checked(&folder, &repository, "unchanged", &[]);
    assert_eq!(unchanged.said.code, Some(0), "{}", told(&unchanged));
    let costlier = checked(&folder, &repository, "costlier", &[]);
    assert_eq!(costlier.said.code, Some(10), "{}", told(&costlier));
    assert!(costlier.comment.contains("\ncosts more: head uses "), "{}", told(&costlier));
    assert!(costlier.comment.contains("`{tree}/counts`"), "{}", told(&costlier));
    for it in [&unchanged, &costlier] {
        assert!(begins(&it.comment), "{}", told(it));
        let link = "https://example.org/some/thing/actions/runs/99";
        assert!(it.comment.ends_with(&format!("({link})\n")), "{}", told(it));
        for name in ["1.json", "code", "build-base.log", "build-head.log"] {
            assert!(it.report.join(name).is_file(), "no {name}: {}", told(it));
        }
        assert!(!it.said.stdout.contains("secret") && !it.said.stderr.contains("secret"));
    }
    let outputs = fs::read_to_string(folder.join("costlier/outputs")).expect("the action has outputs");
    assert_eq!(outputs, format!("code=10\nreport={}\n", costlier.report.display()));
}

#[test]
fn a_change_that_does_not_build_or_fails_ends_with_its_code_and_the_comment_names_it() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-broken");
    let repository = repository(&folder);
    let unbuilt = checked(&folder, &repository, "unbuilt", &[]);
    assert_eq!(unbuilt.said.code, Some(13), "{}", told(&unbuilt));
    let why = "not comparable: the change does not build; the end of its log:\n\n```text\n'''no rule to make it\n```\n";
    assert!(begins(&unbuilt.comment) && unbuilt.comment.contains(why), "{}", told(&unbuilt));
    let failing = checked(&folder, &repository, "failing", &[("fail-if", "")]);
    assert_eq!(failing.said.code, Some(12), "{}", told(&failing));
    for words in ["not comparable: ", "exit status 5", "the change fails"] {
        assert!(failing.comment.contains(words), "no {words}: {}", told(&failing));
    }
    // Compared with a broken commit, the other way round, there is no baseline.
    let unbuilt = git(&repository, &["rev-parse", "unbuilt"]);
    let based = checked(&folder, &repository, "unchanged", &[("base", &unbuilt)]);
    assert_eq!(based.said.code, Some(14), "{}", told(&based));
    assert!(based.comment.contains("the baseline does not build"), "{}", told(&based));
    let based = checked(&folder, &repository, "unchanged", &[("base", "nowhere")]);
    assert_eq!(based.said.code, Some(14), "{}", told(&based));
    assert!(based.comment.contains("there is no commit 'nowhere'"), "{}", told(&based));
}

#[test]
fn a_wrong_option_is_in_the_comment_and_the_gravest_code_of_several_commands_counts() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-several");
    let repository = repository(&folder);
    let wrong = checked(&folder, &repository, "unchanged", &[("options", "--no-such-option")]);
    assert_eq!(wrong.said.code, Some(2), "{}", told(&wrong));
    assert!(wrong.comment.contains("weir ended with code 2") && wrong.comment.contains("--no-such-option"));
    let commands = "{tree}/counts\n\n{tree}/none\n";
    let two = checked(&folder, &repository, "unchanged", &[("commands", commands), ("options", "--runs=6")]);
    assert_eq!(two.said.code, Some(14), "{}", told(&two));
    assert!(two.report.join("1.json").is_file() && two.report.join("2.json").is_file(), "{}", told(&two));
    assert!(two.comment.contains("`{tree}/none`\n\nnot comparable: "), "{}", told(&two));
}

#[test]
fn servers_are_started_from_both_trees_and_get_the_same_load() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-servers");
    let repository = repository(&folder);
    let weir = folder.join("weir");
    executable(&weir, "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
    let inputs = [
        ("commands", ""),
        ("serve", "{tree}/server --port {port}"),
        ("load", "ab -n 1000 http://127.0.0.1:{port}/"),
        ("weir", shown(&weir)),
    ];
    let it = checked(&folder, &repository, "unchanged", &inputs);
    assert_eq!(it.said.code, Some(0), "{}", told(&it));
    let words = "<--runs=8><--seed=7><--inconclusive-passes><--serve><base/server --port {port}>\
                 <--serve><head/server --port {port}><--load><ab -n 1000 http://127.0.0.1:{port}/>";
    assert!(it.said.stderr.contains(words), "{}", told(&it));
    // What is stored is of the change, and not of what the host has checked out.
    let commit = format!("<--commit><{}>", git(&repository, &["rev-parse", "unchanged"]));
    assert!(it.said.stderr.contains(&commit), "{}", told(&it));
    let own = [&inputs[..], &[("options", "--commit=v2")]].concat();
    let it = checked(&folder, &repository, "unchanged", &own);
    assert!(it.said.stderr.contains("<--commit=v2>") && !it.said.stderr.contains(&commit), "{}", told(&it));
}

#[test]
fn a_check_that_is_set_up_wrongly_says_so_in_its_comment() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-wrong");
    let repository = repository(&folder);
    for (input, why) in [
        (("commands", "\n"), "there is nothing to compare; set CHECK_COMMANDS or CHECK_SERVE"),
        (("inconclusive", "maybe"), "CHECK_INCONCLUSIVE is pass or fail"),
    ] {
        let it = checked(&folder, &repository, "unchanged", &[input]);
        assert_eq!(it.said.code, Some(2), "{}", told(&it));
        assert!(it.said.stderr.contains(why), "{}", told(&it));
        assert!(begins(&it.comment), "{}", told(&it));
        assert!(it.comment.contains(&format!("the check is set up wrongly: {why}\n")), "{}", told(&it));
        assert!(it.calls.contains("POST"), "the comment is written: {}", it.calls);
    }
}

#[test]
fn a_comment_has_as_many_answers_as_a_host_takes_and_the_report_has_all() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-long");
    let repository = repository(&folder);
    let weir = folder.join("weir");
    let finds = "while [ $# -gt 0 ]; do if [ \"$1\" = --export-markdown ]; then file=$2; fi; shift; done";
    let writes = "if [ -n \"$file\" ]; then head -c 20000 /dev/zero | tr '\\0' x >\"$file\"; fi";
    executable(&weir, &format!("#!/bin/sh\n{finds}\n{writes}\n"));
    let long = format!("{{tree}}/a {}\n", "é".repeat(2_000));
    let commands = format!("{long}{{tree}}/b\n{{tree}}/c\n{{tree}}/d\n");
    let inputs = [("commands", &commands[..]), ("weir", shown(&weir))];
    let it = checked(&folder, &repository, "unchanged", &inputs);
    assert_eq!(it.said.code, Some(0), "{}", it.said.stderr);
    assert!(it.comment.len() < 51_000, "{} bytes", it.comment.len());
    assert!(it.comment.contains("`{tree}/b`\n\nxxx") && !it.comment.contains("{tree}/c"));
    assert!(it.comment.contains("é...`\n\nxxx"), "a long command is cut between two characters");
    assert!(it.comment.contains("Answers that are too long for a comment: 2."));
    assert!(it.comment.ends_with("/actions/runs/99)\n"), "the end is there all the same");
    assert!(it.report.join("4.md").is_file());
}

#[test]
fn the_comment_of_an_earlier_run_is_changed_and_one_that_is_not_there_is_written() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-comment");
    let repository = repository(&folder);
    let first = checked(&folder, &repository, "unbuilt", &[]);
    let calls: Vec<&str> = first.calls.lines().collect();
    let body = format!("-F body=@{}", first.report.join("comment.md").display());
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls[0].starts_with("api --paginate repos/some/thing/issues/17/comments"), "{calls:?}");
    assert!(calls[0].contains("startswith(\"<!-- weir-check weir -->\")"), "{calls:?}");
    assert_eq!(calls[1], format!("api --silent --method POST repos/some/thing/issues/17/comments {body}"));

    let programs = folder.join("unbuilt/programs");
    let place = folder.join("unbuilt");
    let job = job(&place, &repository);
    fs::write(programs.join("earlier"), "41\n42\n").expect("a file can be written");
    fs::remove_file(programs.join("calls")).expect("it is there");
    let work = place.join("weir-weir");
    let given =
        variables([("CHECK_WORK", shown(&work)), ("CHECK_PULL_REQUEST", "17"), ("GH_TOKEN", "secret")]);
    let comment = "\"$GITHUB_ACTION_PATH/comment\"";
    assert_eq!(job.run(comment, &given).code, Some(0));
    let calls = fs::read_to_string(programs.join("calls")).expect("it was called");
    let changed = format!("api --silent --method PATCH repos/some/thing/issues/comments/41 {body}");
    assert_eq!(calls.lines().last(), Some(&changed[..]));

    // A read-only token fails nothing; without a pull request no host is asked.
    executable(&programs.join("gh"), "#!/bin/sh\nexit 1\n");
    let said = job.run(comment, &given);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.stdout.contains("::warning") && said.stdout.contains("pull-requests: write"),
        "{}",
        said.stdout
    );
    let said = job.run(comment, &variables([("CHECK_WORK", shown(&work))]));
    assert!(said.code == Some(0) && said.stdout.contains("no pull request"), "{}", said.stdout);
}

#[test]
fn the_base_is_what_the_change_is_merged_into_and_its_parent_without_a_change() {
    if !is_here("git") {
        return;
    }
    let folder = folder("check-base");
    let repository = repository(&folder);
    let place = folder.to_path_buf();
    let job = job(&place, &repository);
    let base = |job: &Job, pairs: &[(&str, &str)]| {
        let given = variables(pairs.iter().copied());
        let said = job.run("\"$GITHUB_ACTION_PATH/../check/sources\"", &given);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let tree = job.repository.join(".weir-check/base");
        tree.exists().then(|| git(&tree, &["rev-parse", "HEAD"])).ok_or(said.stdout)
    };
    let of = |name: &str| git(&repository, &["rev-parse", name]);
    // The target has gone on since.
    git(&repository, &["switch", "--quiet", "main"]);
    commit_counting(&repository, 10_000);
    let (old, target, head) = (of("main~1"), of("main"), of("costlier"));
    assert_eq!(base(&job, &[("CHECK_HEAD", &head), ("CHECK_TARGET", &target)]), Ok(old.clone()));
    assert_eq!(base(&job, &[("CHECK_HEAD", "main")]), Ok(old.clone()));
    // The host's merge contains all of the target's commits.
    git(&repository, &["switch", "--quiet", "--detach", "main"]);
    git(&repository, &["merge", "--quiet", "--no-edit", "unchanged"]);
    assert_eq!(base(&job, &[("CHECK_MERGED", "yes"), ("CHECK_TARGET", &old)]), Ok(target.clone()));
    assert_eq!(base(&job, &[("CHECK_BASE", "costlier")]), Ok(head));
    // Names that git or a shell would misread.
    for name in ["--help", "$(touch made)", "+main", "main:main"] {
        let said = base(&job, &[("CHECK_BASE", name)]).expect_err("there is no such commit");
        assert!(said.contains(&format!("there is no commit '{name}'")), "{said}");
    }
    assert!(!repository.join("made").exists());
    // The first commit has nothing before it.
    let said = base(&job, &[("CHECK_HEAD", &old)]).expect_err("it has no parent");
    assert!(said.contains("no parent"), "{said}");

    // A checkout without history fetches what it needs.
    git(&repository, &["switch", "--quiet", "main"]);
    git(&repository, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    let shallow = place.join("shallow");
    let from = format!("file://{}", repository.display());
    git(&place, &["clone", "--quiet", "--depth=1", &from, "shallow"]);
    let job = Job { repository: shallow, ..job };
    assert_eq!(base(&job, &[]), Ok(old));
}

#[test]
fn no_step_has_a_text_of_a_change_in_a_line_that_a_shell_reads() {
    let action = read("github/action.yml");
    let steps = action["runs"]["steps"].as_array().expect("it has steps");
    let mut used = BTreeSet::new();
    for step in steps {
        let Some(line) = step["run"].as_str() else {
            assert!(step["uses"].as_str().is_some_and(|it| it.contains('@')), "{step}");
            continue;
        };
        assert!(!line.contains("${{") && step["shell"] == "bash", "{step}");
        let file = line.strip_prefix("\"$GITHUB_ACTION_PATH/").and_then(|it| it.strip_suffix('"'));
        let file = packaging("github").join(file.expect("a step is a file"));
        let mode = fs::metadata(&file).expect("it is there").permissions().mode();
        assert!(mode & 0o111 != 0, "{} cannot run", file.display());
        used.extend(inputs_in(&step.to_string()));
        // Only the step that writes the comment has the token: the change's own programs run in the others.
        assert_eq!(step["env"].get("GH_TOKEN").is_some(), line.ends_with("/comment\""), "{step}");
    }
    let declared: BTreeSet<String> =
        action["inputs"].as_object().expect("it has inputs").keys().cloned().collect();
    assert_eq!(used, declared);
}

/// `inputs.NAME` in a text.
fn inputs_in(text: &str) -> impl Iterator<Item = String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    text.split("inputs.").skip(1).map(move |rest| rest.chars().take_while(|&it| is_of_name(it)).collect())
}
