//! Mistakes on the command line: one sentence with the remedy, and the documented exit code.

use super::harness::{
    Server, descriptors_asked_for, expect_refusal, folder, shell, shown, socket_folder, weir,
};

#[test]
fn a_wrong_value_is_told_with_its_flag() {
    let serve = |words: &[&'static str]| [&["serve", "echo", "--listen", "127.0.0.1:0"], words].concat();
    let load = |words: &[&'static str]| [&["load", "echo"], words].concat();
    let cases: [(Vec<&str>, &[&str]); 25] = [
        (serve(&["--driver", "purple"]), &["--driver", "purple", "uring"]),
        (serve(&["--driver", "sim"]), &["--driver", "sim", "uring"]),
        (serve(&["--driver", "epoll", "-o", "trigger=purple"]), &["trigger=purple", "edge or level"]),
        (serve(&["--driver", "epoll", "-o", "receive=single"]), &["receive=single", "epoll", "leave it out"]),
        (serve(&["--driver", "epoll", "-o", "colour=1"]), &["colour", "buffer-bytes"]),
        (serve(&["--driver", "epoll", "-o", "colour"]), &["colour", "name=value"]),
        (serve(&["--driver", "uring", "-o", "as-on-kernel=5"]), &["as-on-kernel=5", "from 4.14 on"]),
        (serve(&["--driver", "epoll", "-o", "as-on-kernel=5.19"]), &["epoll", "after 5.11", "leave it out"]),
        (vec!["study", "polling", "--kernels", "5.19"], &["--kernels", "echo and http"]),
        (serve(&["--driver", "blocking", "--workers", "2"]), &["blocking", "1 worker"]),
        (serve(&["--pin", "4095"]), &["--pin", "4095", "use some of"]),
        (serve(&["--stats-socket", "plain"]), &["--stats-socket", "@name"]),
        (serve(&["--drain-limit=-1"]), &["--drain-limit", "-1"]),
        (vec!["serve", "echo", "--listen", "127.0.0.1:99999"], &["--listen", "HOST:PORT"]),
        (load(&["--target", "nowhere"]), &["--target", "HOST:PORT"]),
        (load(&["--connections", "0"]), &["--connections", "1 to 100000"]),
        (load(&["--rate", "0"]), &["--rate", "above 0"]),
        (load(&["--rate", "-5"]), &["--rate", "above 0"]),
        (load(&["--duration", "soon"]), &["--duration", "soon", "500ms"]),
        (load(&["--driver", "blocking"]), &["--driver blocking", "use uring"]),
        (load(&["--driver", "select", "-c", "2000"]), &["--driver select", "976", "poll"]),
        (load(&["--observe-stats", "plain"]), &["--observe-stats", "@name"]),
        (vec!["study", "nonsense"], &["nonsense", "quick"]),
        (vec!["study", "quick", "--protocol", "echo"], &["--protocol", "peers"]),
        (vec!["study", "quick", "--lang", "xx"], &["--lang", "en, ko or zh"]),
    ];
    for (words, expected) in cases {
        expect_refusal(&weir(&words), 2, expected);
    }
}

#[test]
fn what_the_parser_refuses_has_the_same_code() {
    for words in [
        &["frobnicate"][..],
        &["serve", "smtp"],
        &["serve", "echo", "--workers", "0"],
        &["serve", "echo", "--accept", "purple"],
        &["load", "echo", "--think", "1ms", "--rate", "5"],
        &["load", "echo", "--connections", "-1"],
        &["load", "echo", "--seed", "x"],
        &["load", "echo", "--max-errors", "0.5"],
        &["load", "echo", "--pin", "0,x"],
        &["serve", "echo", "--drain-limit", "soon"],
        &["study"],
        &["export", "x", "--format", "xml"],
    ] {
        let said = weir(words);
        assert_eq!(said.code, Some(2), "{words:?}");
        assert!(said.stderr.starts_with("error: "), "{}", said.stderr);
        let is_riddle = said.stderr.contains("digit found") || said.stderr.contains("unexpected argument");
        assert!(!is_riddle, "{}", said.stderr);
    }
}

#[test]
fn what_a_library_refuses_is_told_in_the_language_that_is_asked_for() {
    let cases: [(&[&str], i32, &[&str]); 12] = [
        (&["report", "no-such-run", "--lang", "ko"], 2, &["no-such-run", "실험이 들어 있는 폴더가 아닙니다"]),
        (&["report", "no-such-run", "--lang", "zh"], 2, &["no-such-run", "此文件夹中没有实验"]),
        (&["study", "tps", "--levels", "quik", "--lang", "ko"], 2, &["--levels quik", "비슷한 이름: quick"]),
        (&["study", "tps", "--levels", "quik", "--lang", "zh"], 2, &["--levels quik", "相近的名称：quick"]),
        (&["study", "tps", "--only-arms", "--lang", "zh"], 2, &["--only-arms", "没有指定方案"]),
        (
            &["study", "tps", "--dry-run", "--fail-if", "p98 > 2ms", "--lang", "ko"],
            2,
            &["--fail-if: \"p98 > 2ms\"", "알 수 없는 지표", "latency-p99"],
        ),
        (
            &["study", "tps", "--dry-run", "--fail-if", "p99", "--lang", "zh"],
            2,
            &["--fail-if：\"p99\"", "请写成 [ARM]"],
        ),
        (
            &["study", "tps", "--dry-run", "--levels", "connections=0", "--lang", "ko"],
            2,
            &["connections", "값(0)"],
        ),
        (
            &["study", "tps", "--dry-run", "--arm", "own=./server", "--lang", "zh"],
            2,
            &["{port}", "在何处监听"],
        ),
        (
            &["study", "diff", "no-such-run", "other", "--lang", "ko"],
            14,
            &["no-such-run", "비교할 기준이 없습니다"],
        ),
        (&["study", "--resume", "no-such-run", "--lang", "zh"], 2, &["no-such-run", "此文件夹中没有实验"]),
        (
            &["observe", "--pid", "536870911", "--lang", "ko"],
            2,
            &["--pid", "536870911번 프로세스가 없습니다"],
        ),
    ];
    for (words, code, expected) in cases {
        expect_refusal(&weir(words), code, expected);
    }
}

#[test]
fn a_folder_that_is_no_study_is_told_apart_from_a_failure() {
    let folder = folder("no-study");
    std::fs::write(folder.join("study.db"), "hello, this is text").expect("a file can be written");
    for words in [&["report"][..], &["export"], &["study", "--resume"]] {
        let missing = weir(&[words, &["/nonexistent/run"]].concat());
        expect_refusal(&missing, 2, &["/nonexistent/run", "weir study"]);
        let wrong = weir(&[words, &[shown(&folder)]].concat());
        expect_refusal(&wrong, 2, &["study.db", "not a study store"]);
    }
    let kept = std::fs::read_to_string(folder.join("study.db")).expect("it is still there");
    assert_eq!(kept, "hello, this is text");
}

#[test]
fn a_port_in_use_is_named() {
    let server = Server::start(&["--driver", "epoll"]);
    let said = weir(&["serve", "echo", "--driver", "epoll", "--listen", &server.address]);
    expect_refusal(&said, 1, &[&server.address, "in use", "port 0"]);
    assert_eq!(said.stderr.matches("in use").count(), 1, "{}", said.stderr);
    assert_eq!(server.terminate(), 0);
}

#[test]
fn a_statistics_name_in_use_leaves_no_server() {
    let name = format!("@weir-it-{}-taken", std::process::id());
    let server = Server::start(&["--driver", "epoll", "--stats-socket", &name]);
    let folder = socket_folder("taken");
    let path = folder.join("server.sock");
    let listen = format!("unix:{}", path.display());
    let said = weir(&["serve", "echo", "--driver", "epoll", "--listen", &listen, "--stats-socket", &name]);
    expect_refusal(&said, 1, &["--stats-socket", &name, "choose another"]);
    assert!(!path.exists());
    assert_eq!(server.terminate(), 0);
}

#[test]
fn too_few_descriptors_are_counted_and_the_command_is_given() {
    let with_limit = |limit: usize| {
        shell(&format!("ulimit -n {limit}; exec \"$WEIR\" load echo -c 100 --target 127.0.0.1:1"))
    };
    let said = with_limit(90);
    expect_refusal(&said, 13, &["100 connections", "the limit is 90", "`ulimit -n "]);
    let needed = descriptors_asked_for(&said, 100);
    // One descriptor fewer is too few, and with exactly this many only the server is missing.
    expect_refusal(&with_limit(needed - 1), 13, &[&format!("the limit is {}", needed - 1)]);
    expect_refusal(&with_limit(needed), 1, &["127.0.0.1:1", "refused"]);
}

#[test]
fn nobody_listening_and_nobody_to_observe_are_failures() {
    let quiet = ["load", "echo", "-c", "2", "--target"];
    expect_refusal(&weir(&[&quiet[..], &["127.0.0.1:1"]].concat()), 1, &["127.0.0.1:1", "refused"]);
    let server = Server::start(&["--driver", "epoll"]);
    let observe = |words: &[&str]| weir(&[&quiet[..], &[server.address.as_str()], words].concat());
    expect_refusal(&observe(&["--observe-pid", "99999999"]), 1, &["99999999"]);
    expect_refusal(&observe(&["--observe-stats", "@weir-it-nobody"]), 1, &["@weir-it-nobody"]);
}

#[test]
fn closed_and_full_outputs_end_nothing_by_a_panic() {
    let gone = shell("\"$WEIR\" doctor | true");
    assert_eq!((gone.code, gone.stderr.as_str()), (Some(0), ""));
    let gone = shell("{ \"$WEIR\" doctor --json; echo \"code $?\" >&2; } | true");
    assert_eq!(gone.stderr, "code 0\n");
    expect_refusal(&shell("exec \"$WEIR\" doctor > /dev/full"), 1, &["standard output", "No space left"]);
    let mute = shell("exec \"$WEIR\" load echo -c 1 --target 127.0.0.1:1 2> /dev/full");
    assert_eq!(mute.code, Some(1));
    let mute = shell("exec \"$WEIR\" load echo -c 1 --target 127.0.0.1:1 2>&-");
    assert_eq!(mute.code, Some(1));
}
