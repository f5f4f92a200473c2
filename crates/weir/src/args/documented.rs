//! Checks that the commands in README and documentation, and those in package files, fit the definition of the command
//! line.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory, Parser};

use super::Arguments;

/// Ways in which a block of code or a file of a package calls the program.
const CALLS: [&str; 6] = [
    "weir ",
    "$ weir ",
    "cargo run --release -- ",
    "sudo -u weir weir ",
    "ExecStart=/usr/local/bin/weir ",
    "\"$weir\" ",
];

/// What begins a line whose program is that of an image, which follows the image's name.
const IN_A_CONTAINER: &str = "docker run ";

/// What files begin with; these are no calls.
const MAGIC: [&str; 2] = ["weir storage fil", "weir journal seg"];

/// Markdown below the project's folder, apart from what other tools fetched or built.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.clone(), root.join("docs"), root.join("peers"), root.join("interop")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            } else if path.is_dir() && folder.ends_with("docs") {
                folders.push(path);
            }
        }
    }
    pages
}

/// Lines of fenced blocks, and the rest of a page.
fn divide(text: &str) -> (Vec<&str>, String) {
    let (mut code, mut prose, mut is_code) = (Vec::new(), String::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            code.push(line.trim());
        } else {
            prose.push_str(line.trim());
            prose.push(' ');
        }
    }
    (code, prose)
}

/// Every line that calls the program is one that it takes.
fn check_line(line: &str) -> Result<bool, String> {
    let in_image = || line.strip_prefix(IN_A_CONTAINER)?.split_once(" weir ").map(|(_, words)| words);
    let called = CALLS.iter().find_map(|call| line.strip_prefix(call));
    let Some(words) = called.or_else(in_image) else { return Ok(false) };
    let words = words.split(" #").next().unwrap_or_default().trim().trim_end_matches('&');
    let words = words.split(['|', '>']).next().unwrap_or_default();
    match Arguments::try_parse_from(std::iter::once("weir".to_owned()).chain(split(words))) {
        Err(error) if error.use_stderr() => Err(error.to_string()),
        _ => Ok(true),
    }
}

/// Words as a shell splits them, as far as documentation goes: what stands in quotes is one.
fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for symbol in line.chars() {
        match (quote, symbol) {
            (None, '\'' | '"') => quote = Some(symbol),
            (Some(open), _) if open == symbol => quote = None,
            (None, symbol) if symbol.is_whitespace() => words.push(String::new()),
            (_, symbol) => words.last_mut().expect("there is one").push(symbol),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// What is named in running text leaves values out: its commands and flags are there.
fn check_span(root: &Command, span: &str) -> Result<bool, String> {
    let Some(words) = span.strip_prefix("weir ") else { return Ok(false) };
    let mut command = root;
    let mut words = words.split_whitespace().peekable();
    while let Some(below) = words.peek().and_then(|word| command.find_subcommand(word)) {
        (command, _) = (below, words.next());
    }
    if command.get_name() == root.get_name() && words.peek().is_none_or(|word| *word != "help") {
        return Err("it names no command".to_owned());
    }
    // After `--` follow the arguments of another program.
    let own = words.take_while(|word| *word != "--");
    for word in own.filter(|word| word.starts_with("--")) {
        let flag = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        if !has_flag(command, flag) {
            return Err(format!("{} has no --{flag}", command.get_name()));
        }
    }
    Ok(true)
}

/// Whether the command, or one below it, has this flag.
fn has_flag(command: &Command, flag: &str) -> bool {
    let own = ["help", "version"].contains(&flag)
        || command.get_arguments().any(|argument| argument.get_long() == Some(flag));
    own || command.get_subcommands().any(|below| has_flag(below, flag))
}

#[test]
fn every_command_of_the_documentation_is_one_that_there_is() {
    let root = Arguments::command();
    let (mut lines, mut spans, mut wrong) = (0, 0, Vec::new());
    for page in pages() {
        // A line with this end continues on the next one.
        let text = fs::read_to_string(&page).expect("a page").replace("\\\n", " ");
        let (code, prose) = divide(&text);
        for line in code {
            match check_line(line) {
                Ok(is_call) => lines += usize::from(is_call),
                Err(why) => wrong.push(format!("{}: {line}: {why}", page.display())),
            }
        }
        for span in prose.split('`').skip(1).step_by(2).filter(|span| !MAGIC.contains(span)) {
            match check_span(&root, span) {
                Ok(is_call) => spans += usize::from(is_call),
                Err(why) => wrong.push(format!("{}: `{span}`: {why}", page.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 15 && spans > 50, "{lines} lines and {spans} spans were found");
}

/// The text of a file of `packaging`, with what it leaves to others in place: the instance of a unit and its flags, as
/// its own first lines have them, and a shell.
fn packaged(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name);
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let between = |before: &str, after: &str| {
        let (_, rest) = text.split_once(before)?;
        Some(rest.split_once(after)?.0.to_owned())
    };
    let flags = between("'WEIR_FLAGS=", "'").unwrap_or_default();
    let instance = between(">/etc/weir/", ".env").unwrap_or_default();
    text.replace("\"$shell\"", "bash")
        .replace("$WEIR_FLAGS", &flags)
        .replace(" %i ", &format!(" {instance} "))
}

#[test]
fn every_command_of_a_package_is_one_that_there_is() {
    for (name, calls) in
        [("Containerfile", 0), ("release", 2), ("weir@.service", 1), ("weir-dashboard.service", 2)]
    {
        let text = packaged(name);
        let lines = text.lines().map(|line| line.trim_start_matches('#').trim());
        let checked: Vec<_> = lines.map(|line| (line, check_line(line))).collect();
        let wrong: Vec<_> =
            checked.iter().filter_map(|(line, it)| Some((line, it.as_ref().err()?))).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let found = checked.iter().filter(|(_, it)| *it == Ok(true)).count();
        assert_eq!(found, calls, "{name}");
    }
    let container = packaged("Containerfile");
    let default = container.lines().find_map(|line| line.strip_prefix("CMD ")).expect("it runs something");
    let words: Vec<String> = serde_json::from_str(default).expect("a list of words");
    assert_eq!(check_line(&format!("weir {}", words.join(" "))), Ok(true));
}

#[test]
fn every_format_has_its_link_on_their_first_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats");
    let first = fs::read_to_string(folder.join("README.md")).expect("the first page");
    let pages = fs::read_dir(folder).expect("the formats");
    let names = pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let unlinked: Vec<String> = names
        .filter(|name| name.ends_with(".md") && name != "README.md" && !first.contains(&format!("({name})")))
        .collect();
    assert_eq!(unlinked, [""; 0]);
}

#[test]
fn a_flag_that_is_not_there_is_found() {
    let root = Arguments::command();
    let wrong = check_span(&root, "weir storage run --predictor");
    assert_eq!(wrong, Err("run has no --predictor".to_owned()));
    assert_eq!(check_span(&root, "weir serve --option"), Ok(true));
    assert!(check_line("weir storage run --predictor ehp").is_err());
    assert_eq!(check_line("weir top --once   # one interval"), Ok(true));
    assert_eq!(check_line("printf x | socat -"), Ok(false));
    assert_eq!(check_line("docker build -t weir ."), Ok(false));
    assert!(check_line("docker run --rm weir serve http --listne 0.0.0.0:8080").is_err());
    assert!(check_line("ExecStart=/usr/local/bin/weir dashboard /var/lib --lisen x").is_err());
}
