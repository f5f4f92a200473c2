//! A check of a change by the GitLab job in `packaging`, with programs that stand in for the host's.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{
    check_steps::{Job, Variables, packaging, read, variables},
    harness::{Said, WEIR, executable, folder, shown},
    pull_request::{BUILD, begins, git, is_here, repository},
};

/// Stand-ins for the host's programs: `curl` reads files for addresses, notes its arguments, and answers as GitLab
/// does.
fn host(programs: &Path) {
    let folder = shown(programs);
    let text = format!(
        r#"#!/bin/sh
printf '%s\n' "$*" >>{folder}/calls
output= method=
while [ $# -gt 1 ]; do
    case $1 in
    --config) cat >>{folder}/configured ;;
    --output) output=$2 ;;
    esac
    shift
done
case $1 in
/*) cp "$1" "$output" ;;
*/user) echo '{{"id": 5}}' ;;
*page=*) cat {folder}/earlier ;;
esac
"#
    );
    executable(&programs.join("curl"), &text);
    fs::write(programs.join("earlier"), "[]").expect("a file can be written");
}

/// An archive with the files that the job reads.
fn archive(folder: &Path) -> String {
    let (file, from) = (folder.join("weir.tar.gz"), packaging(""));
    let inside = ["--transform", "s,^,weir-0-linux/,", "-C", shown(&from), "check", "gitlab"];
    let packed = Command::new("tar").args(["-czf", shown(&file)]).args(inside).status().expect("tar starts");
    assert!(packed.success());
    shown(&file).to_owned()
}

fn sum(file: &str) -> String {
    let output = Command::new("sha256sum").arg(file).output().expect("sha256sum starts");
    String::from_utf8(output.stdout).expect("it prints UTF-8").split(' ').next().expect("a sum").to_owned()
}

/// Runs the lines of the job, which ends at the first failure.
fn run(job: &Job, own: Variables) -> Said {
    let all = read("gitlab/weir-compare.yml");
    let template = &all[".weir-compare"];
    let mut given = Variables::new();
    for (name, value) in template["variables"].as_object().expect("it has variables") {
        let mut value = value.as_str().expect("a text").to_owned();
        for (variable, known) in &job.variables {
            value = value.replace(&format!("${variable}"), known);
        }
        given.insert(name.clone(), value);
    }
    given.extend(own);
    let lines = |key: &str| template[key].as_array().expect("it has lines").clone();
    let all = [lines("before_script"), lines("script")].concat();
    let text: Vec<&str> = all.iter().map(|line| line.as_str().expect("a line")).collect();
    job.run(&text.join("\n"), &given)
}

#[test]
fn the_job_fetches_a_release_compares_and_writes_the_note_once() {
    if !is_here("git") || !is_here("jq") {
        return;
    }
    let folder = folder("check-gitlab");
    let repository = repository(&folder);
    git(&repository, &["switch", "--quiet", "--detach", "costlier"]);
    let programs = folder.join("programs");
    fs::create_dir(&programs).expect("a folder can be made");
    host(&programs);
    let archive = archive(&folder);
    let from_host = variables([
        ("CI_PROJECT_DIR", shown(&repository)),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", &git(&repository, &["rev-parse", "main"])),
        ("CI_JOB_URL", "https://example.org/jobs/3"),
        ("CI_API_V4_URL", "https://example.org/api/v4"),
        ("CI_PROJECT_ID", "8"),
        ("CI_MERGE_REQUEST_IID", "21"),
    ]);
    let job = Job { repository: repository.clone(), variables: from_host, programs: programs.clone() };
    let own = |sum: &str| {
        variables([
            ("WEIR_ARCHIVE", &archive[..]),
            ("WEIR_ARCHIVE_SHA256", sum),
            ("WEIR_TOKEN", "secret"),
            ("CHECK_WEIR", WEIR),
            ("CHECK_BUILD", BUILD),
            ("CHECK_COMMANDS", "{tree}/counts"),
            ("CHECK_FAIL_IF", "cpu ratio > 1.5"),
            ("CHECK_OPTIONS", "--runs=8\n--seed=7"),
        ])
    };
    let said = run(&job, own(&"0".repeat(64)));
    assert_ne!(said.code, Some(0), "an archive that is another one: {}", said.stdout);
    assert!(!repository.join(".weir-release").exists());

    let said = run(&job, own(&sum(&archive)));
    assert_eq!(said.code, Some(10), "{}{}", said.stdout, said.stderr);
    let comment = repository.join(".weir-check/report/comment.md");
    let text = fs::read_to_string(&comment).expect("there is a comment");
    assert!(begins(&text) && text.contains("\ncosts more: head uses "), "{text}");
    let calls = fs::read_to_string(programs.join("calls")).expect("it was called");
    assert!(!calls.contains("secret"), "a list of processes shows words: {calls}");
    let configured = fs::read_to_string(programs.join("configured")).expect("it was configured");
    assert!(configured.lines().all(|line| line == "header = \"PRIVATE-TOKEN: secret\""), "{configured}");
    let notes = "https://example.org/api/v4/projects/8/merge_requests/21/notes";
    let last = |calls: &str| calls.lines().last().unwrap_or_default().to_owned();
    assert!(last(&calls).contains("--request POST") && last(&calls).ends_with(notes), "{calls}");
    assert!(last(&calls).contains(&format!("--data-urlencode body@{}", comment.display())), "{calls}");

    // Among notes with the same beginning, the one of the token's user.
    let note = |id: u32, user: u32, body: &str| json!({ "id": id, "author": { "id": user }, "body": body });
    let marker = "<!-- weir-check weir -->\nwords";
    let earlier: Value = json!([note(1, 5, "words"), note(2, 6, marker), note(3, 5, marker)]);
    fs::write(programs.join("earlier"), earlier.to_string()).expect("a file can be written");
    let said = job.run("\"$CHECK_FILES/gitlab/comment\"", &{
        let mut given = own("");
        given.insert("CHECK_FILES".to_owned(), shown(&repository.join(".weir-release")).to_owned());
        given
    });
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let calls = fs::read_to_string(programs.join("calls")).expect("it was called");
    assert!(
        last(&calls).contains("--request PUT") && last(&calls).ends_with(&format!("{notes}/3")),
        "{calls}"
    );
}

#[test]
fn a_release_that_is_fetched_is_held_against_its_checksum() {
    let folder = folder("check-install");
    let programs = folder.join("programs");
    fs::create_dir(&programs).expect("a folder can be made");
    host(&programs);
    let uname = Command::new("uname").arg("-m").output().expect("uname starts");
    let name = format!("weir-7.0.0-{}-linux", String::from_utf8_lossy(&uname.stdout).trim());
    let releases = folder.join("v7.0.0");
    fs::create_dir_all(releases.join(&name)).expect("a folder can be made");
    executable(&releases.join(&name).join("weir"), "#!/bin/sh\necho weir 7.0.0\n");
    let archive = releases.join(format!("{name}.tar.gz"));
    let words = ["-czf", shown(&archive), "-C", shown(&releases), &name];
    assert!(Command::new("tar").args(words).status().expect("tar starts").success());
    let line = |sum: &str| format!("{sum}  {name}.tar.gz\n");
    let given = variables([("CHECK_VERSION", "7.0.0"), ("CHECK_RELEASES", shown(&folder))]);
    let job = Job { repository: folder.to_path_buf(), variables: given, programs };
    let install = format!("'{}'", packaging("check/install").display());
    for (sums, is_right) in [
        (line(&sum(shown(&archive))), true),
        (line(&"0".repeat(64)), false),
        (line(&sum(shown(&archive))).replace(&name, "another"), false),
    ] {
        fs::write(releases.join("SHA256SUMS"), sums).expect("a file can be written");
        let said = job.run(&install, &Variables::new());
        assert_eq!(said.code == Some(0), is_right, "{}{}", said.stdout, said.stderr);
        assert_eq!(said.stdout.contains("weir 7.0.0"), is_right, "{}", said.stdout);
        assert_eq!(folder.join(".weir-check/bin/weir").exists(), is_right);
    }
}

#[test]
fn the_job_keeps_the_report_and_what_is_not_known_only_warns() {
    let all = read("gitlab/weir-compare.yml");
    let job = &all[".weir-compare"];
    assert_eq!(job["artifacts"], json!({ "when": "always", "paths": [".weir-check/report"] }));
    assert_eq!(job["allow_failure"]["exit_codes"], json!(["11"]));
    assert_eq!(job["variables"]["CHECK_INCONCLUSIVE"], "fail");
}
