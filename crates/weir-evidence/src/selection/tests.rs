//! Selections in a folder like /proc, independent of this machine's processes.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use weir_record::observation::FoundContainer;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER_ID: &str = "0123456789ffffff0123456789abcdef0123456789abcdef0123456789abcdef";

/// A folder like /proc that is removed with the test.
struct Proc(PathBuf);

impl Drop for Proc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Proc {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("weir-proc-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("sys")).expect("a folder can be made");
        fs::write(folder.join("uptime"), "1 1").expect("a file can be written");
        Self(folder)
    }

    fn with(self, pid: u32, name: &str, program: &str, cgroup: &str) -> Self {
        self.with_flags(pid, (name, "S", 0x40_0000), program, cgroup)
    }

    fn with_flags(
        self,
        pid: u32,
        (name, state, flags): (&str, &str, u64),
        program: &str,
        cgroup: &str,
    ) -> Self {
        let folder = self.0.join(pid.to_string());
        fs::create_dir(&folder).expect("a folder can be made");
        let stat = format!("{pid} ({name}) {state} 1 1 1 0 -1 {flags} 0");
        fs::write(folder.join("stat"), stat).expect("a file can be written");
        fs::write(folder.join("cgroup"), cgroup).expect("a file can be written");
        if !program.is_empty() {
            symlink(program, folder.join("exe")).expect("a link can be made");
        }
        self
    }

    fn find(&self, wanted: &Wanted) -> Result<Vec<u32>, SelectionError> {
        let nobody = |_: &str| Vec::new();
        find_among(wanted, &candidates(&self.0), &nobody).map(|found| found.pids)
    }
}

/// Control groups of version 2, version 1, and both.
fn machine(test: &str) -> Proc {
    let scope = format!("0::/system.slice/docker-{ID}.scope\n");
    let older =
        format!("5:memory:/docker/{OTHER_ID}\n4:cpu,cpuacct:/\n1:name=systemd:/docker/{OTHER_ID}\n0::/\n");
    Proc::new(test)
        .with(1, "systemd", "/usr/lib/systemd/systemd", "0::/init.scope\n")
        .with_flags(2, ("nginx", "S", 0x20_8040), "", "0::/\n")
        .with(10, "nginx", "/usr/sbin/nginx (deleted)", "0::/system.slice/nginx.service\n")
        .with(11, "nginx", "", "0::/system.slice/nginx.service/worker\n")
        .with(12, "server) S (", "/opt/nginx-exporter", "0::/system.slice/nginx-exporter.service\n")
        .with(20, "redis-server", "/usr/bin/redis-check-rdb", &scope)
        .with(21, "python3", "/usr/bin/python3.11", &older)
        .with(22, "a-name-that-is-", "", "3:memory:/lxc.payload.web/x\n0::/lxc.payload.web\n")
        .with_flags(23, ("nginx", "Z", 0x40_0000), "", "0::/system.slice/nginx.service\n")
}

fn nothing(error: SelectionError) -> Vec<String> {
    match error {
        SelectionError::Nothing { near, .. } => near,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_name_is_that_of_the_process_or_of_its_program_and_means_all_that_have_it() {
    let proc = machine("name");
    let find = |name: &str| proc.find(&Wanted::Name(name.to_owned()));
    assert_eq!(find("nginx"), Ok(vec![10, 11]), "no kernel thread and none that has ended");
    assert_eq!(find("redis-check-rdb"), Ok(vec![20]));
    assert_eq!(find("redis-server"), Ok(vec![20]));
    assert_eq!(find("a-name-that-is-"), Ok(vec![22]), "what `ps -o comm` shows");
    assert!(find("a-name-that-is-too-long").is_err(), "nothing says that it is this one");
    assert_eq!(find("server) S ("), Ok(vec![12]));
    assert_eq!(nothing(find("ngin").expect_err("exact names alone")), ["nginx"]);
    assert_eq!(nothing(find("redis-servre").expect_err("none")), ["redis-server"]);
    assert_eq!(nothing(find("서버").expect_err("none")), [""; 0]);
}

#[test]
fn of_a_long_name_the_kernel_keeps_the_begin_and_the_command_line_has_the_rest() {
    let with = |proc: Proc, pid: u32, words: &str| {
        let proc = proc.with(pid, "a-name-that-is-", "/usr/bin/python3", "0::/\n");
        fs::write(proc.0.join(pid.to_string()).join("cmdline"), words).expect("a file can be written");
        proc
    };
    let proc = with(Proc::new("long"), 30, "/opt/a-name-that-is-too-long\0--port\x008080\0");
    let proc = with(proc, 31, "/opt/a-name-that-is-another-one\0");
    let proc = with(proc, 32, "python3\0./a-name-that-is-too-long\0");
    let proc = with(proc, 33, "sh\0-c\0a-name-that-is-too-long\0");
    let proc = proc.with(34, "a-name-that-is-", "/opt/a-name-that-is-another-one", "0::/\n");
    let find = |name: &str| proc.find(&Wanted::Name(name.to_owned()));
    assert_eq!(find("a-name-that-is-too-long"), Ok(vec![30, 32]), "of a script it is the second word");
    assert_eq!(find("a-name-that-is-another-one"), Ok(vec![31, 34]), "by its program too");
    assert_eq!(find("a-name-that-is-"), Ok(vec![30, 31, 32, 33, 34]), "what `ps -o comm` shows");
    assert!(find("a-name-that-is-too").is_err(), "a part of a name is none");
}

#[test]
fn an_empty_name_means_nothing_though_programs_may_not_be_read() {
    let proc = machine("empty");
    let empty = String::new;
    for wanted in
        [Wanted::Name(empty()), Wanted::Unit(empty()), Wanted::Container(empty()), Wanted::Cgroup(empty())]
    {
        assert_eq!(proc.find(&wanted), Err(SelectionError::Empty), "{wanted:?}");
    }
    assert_eq!(proc.find(&Wanted::Pids(Vec::new())), Err(SelectionError::Empty));
}

#[test]
fn a_control_group_has_those_below_it_in_either_version() {
    let proc = machine("cgroup");
    let find = |path: &str| proc.find(&Wanted::Cgroup(path.to_owned()));
    assert_eq!(find("/system.slice/nginx.service"), Ok(vec![10, 11]));
    assert_eq!(find("/system.slice/nginx.service/"), Ok(vec![10, 11]));
    assert_eq!(find("/system.slice"), Ok(vec![10, 11, 12, 20]));
    assert_eq!(find("/sys/fs/cgroup/system.slice/nginx.service"), Ok(vec![10, 11]));
    assert_eq!(find(&format!("/docker/{OTHER_ID}")), Ok(vec![21]));
    assert_eq!(find(&format!("memory:/docker/{OTHER_ID}")), Ok(vec![21]));
    assert_eq!(find(&format!("/sys/fs/cgroup/memory/docker/{OTHER_ID}")), Ok(vec![21]));
    assert_eq!(find(&format!("/sys/fs/cgroup/systemd/docker/{OTHER_ID}")), Ok(vec![21]));
    assert_eq!(find("cpu:/"), Ok(vec![21]));
    assert_eq!(find("0::/system.slice/nginx.service"), Ok(vec![10, 11]));
    assert_eq!(find("/"), Ok(vec![1, 10, 11, 12, 20, 21, 22]));
    assert_eq!(find("system.slice"), Err(SelectionError::NoCgroupPath));
    let near = nothing(find("/system.slice/nginx.servic").expect_err("a part of a name is none"));
    assert_eq!(near[0], "/system.slice/nginx.service", "{near:?}");
    assert!(find("cpu:/docker").is_err(), "it is in the other hierarchy");
}

#[test]
fn a_unit_is_found_by_its_name_with_or_without_its_kind() {
    let proc = machine("unit");
    let find = |name: &str| proc.find(&Wanted::Unit(name.to_owned()));
    assert_eq!(find("nginx"), Ok(vec![10, 11]));
    assert_eq!(find("nginx.service"), Ok(vec![10, 11]));
    assert_eq!(find("system.slice"), Ok(vec![10, 11, 12, 20]));
    let near = nothing(find("ngnix").expect_err("there is none"));
    assert!(near.contains(&"nginx.service".to_owned()), "{near:?}");
}

#[test]
fn a_container_is_found_by_the_begin_of_its_identifier_or_its_name_in_a_path() {
    let proc = machine("container");
    let find = |name: &str| proc.find(&Wanted::Container(name.to_owned()));
    assert_eq!(find(ID), Ok(vec![20]));
    assert_eq!(find(&ID[..12]), Ok(vec![20]));
    assert_eq!(find("web"), Ok(vec![22]));
    let both = vec!["0123456789ab".to_owned(), "0123456789ff".to_owned()];
    assert_eq!(find("0123456789"), Err(SelectionError::Several(both)));
    assert_eq!(nothing(find("0123456789ac").expect_err("none")), ["0123456789ab", "0123456789ff"]);
}

#[test]
fn a_container_by_another_name_is_asked_for_and_its_process_stands_in_where_it_has_no_group() {
    let (proc, other) = (machine("asked"), "f".repeat(64));
    let all = candidates(&proc.0);
    let find = |answer: Answer| {
        let ask = |name: &str| {
            assert_eq!(name, "shop");
            vec![
                Asked { program: "docker", answer: Answer::NotInstalled },
                Asked { program: "podman", answer: answer.clone() },
            ]
        };
        find_among(&Wanted::Container("shop".to_owned()), &all, &ask)
    };
    let known = |identifier: &str, first| Answer::Known { identifier: identifier.to_owned(), first };
    let found = find(known(ID, Some(20))).expect("it runs");
    assert_eq!((found.pids, found.rule), (vec![20], Some(Rule::Container(ID.to_owned()))));
    assert_eq!(found.found.and_then(|found| found.container), Some(FoundContainer::Podman));
    let without_group = find(known(&other, Some(12))).expect("it runs");
    assert_eq!((without_group.pids, without_group.rule), (vec![12], None), "nobody joins a number");
    assert_eq!(nothing(find(known(&other, None)).expect_err("it has stopped")), [""; 0]);
    match find(Answer::Refused("no such object".to_owned())) {
        Err(SelectionError::Nothing { asked, .. }) => assert_eq!(asked.len(), 2),
        other => panic!("{other:?}"),
    }
}

#[test]
fn numbers_are_taken_once_and_one_alone_needs_no_words() {
    let found = Selection::find(&Wanted::Pids(vec![9, 4, 9])).expect("they are looked for later");
    assert_eq!((found.pids, found.rule), (vec![4, 9], None));
    assert_eq!(found.found.expect("there are several").text, "4,9");
    assert_eq!(Selection::find(&Wanted::Pids(vec![7, 7])), Ok(Selection::pid(7)));
}

#[test]
fn lines_of_any_kind_do_no_harm() {
    let proc = Proc::new("odd").with(5, "x", "", "\n:\n::\n0\n7:a\n3:b:c:d\n0::/ok").with(6, "y", "", "");
    fs::create_dir(proc.0.join("7")).expect("a folder can be made");
    assert_eq!(proc.find(&Wanted::Cgroup("/ok".to_owned())), Ok(vec![5]));
    for text in ["", ":", ":/", "0:/", "a:b", "1:2:3:/x"] {
        let _ = proc.find(&Wanted::Cgroup(text.to_owned()));
    }
}
