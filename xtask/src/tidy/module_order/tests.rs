//! What the order of modules allows, and what it forbids.

use super::*;

/// The messages about `text`, with empty files for the other modules.
fn messages(path: &str, text: &str) -> Vec<String> {
    messages_with(&[(path, text)])
}

fn messages_with(texts: &[(&str, &str)]) -> Vec<String> {
    let order: &[&str] = &["low", "middle", "high"];
    let mut files: Vec<SourceFile> =
        texts.iter().map(|(path, text)| SourceFile::text(&format!("crates/x/src/{path}"), text)).collect();
    let others = ["low", "middle", "high"].map(|name| format!("crates/x/src/{name}.rs"));
    files.extend(others.iter().map(|path| SourceFile::text(path, "")));
    check_crate(&files, "x", order).into_iter().map(|found| found.message).collect()
}

const WRONG: [&str; 1] = ["`low` does not stand behind `high` and must not use it"];

#[test]
fn a_module_that_uses_a_later_one_is_found() {
    assert_eq!(messages("low.rs", "use crate::high::Thing;\n"), WRONG);
    assert_eq!(messages("low/part.rs", "fn f() { crate::high::g() }\n"), WRONG);
    let several = "use crate::{\n    low::{self, high},\n    high::{A, B},\n};\n";
    assert_eq!(messages("low.rs", several), WRONG);
}

#[test]
fn earlier_modules_tests_comments_and_macros_of_the_crate_are_no_breach() {
    let fine = "//! crate::high\nuse crate::{low, middle::X};\nfn f() { \"crate::high\"; $crate::high::g() }\n\
                #[cfg(test)]\nmod tests { use crate::high; }\n";
    assert_eq!(messages("middle.rs", fine), Vec::<String>::new());
}

#[test]
fn a_file_that_is_declared_for_tests_alone_is_no_breach_and_needs_no_place() {
    let later = "use crate::high::Thing;\n";
    let declared = "#[cfg(all(test, loom))]\nmod model;\n#[cfg(test)] mod tests;\n";
    for tests in ["low/tests.rs", "low/tests/mod.rs", "low/tests/part/deep.rs", "low/model.rs"] {
        let files = [("low/mod.rs", declared), (tests, later)];
        assert_eq!(messages_with(&files), Vec::<String>::new(), "{tests}");
    }
    assert_eq!(messages_with(&[("low/mod.rs", "mod tests;\n"), ("low/tests.rs", later)]), WRONG);
    let other = [("low/mod.rs", "#[cfg(test)] mod tests { mod part; }\n"), ("low/part.rs", later)];
    assert_eq!(messages_with(&other), WRONG, "the declaration is of another module");
    let of_root = [("lib.rs", "#[cfg(test)]\nmod fuzz;\n"), ("fuzz.rs", later)];
    assert_eq!(messages_with(&of_root), Vec::<String>::new());
}

#[test]
fn a_name_that_the_root_re_exports_is_its_modules() {
    let roots = [
        "pub use high::Thing;\n",
        "pub(crate) use self::high::part::{Other, inner::Thing};\n",
        "pub use high::{\n    Real as Thing,\n    Other,\n};\n",
    ];
    for root in roots {
        let used = |text| messages_with(&[("lib.rs", root), ("low.rs", text)]);
        assert_eq!(used("use crate::Thing;\n"), WRONG, "{root}");
        assert_eq!(used("use crate::{Thing::A, middle};\n"), [WRONG[0], WRONG_MIDDLE], "{root}");
        assert_eq!(used("use crate::Unknown;\n"), Vec::<String>::new(), "{root}");
    }
    let for_tests = [("lib.rs", "#[cfg(test)]\nuse high::Thing;\n"), ("low.rs", "use crate::Thing;\n")];
    assert_eq!(messages_with(&for_tests), Vec::<String>::new());
}

const WRONG_MIDDLE: &str = "`low` does not stand behind `middle` and must not use it";

#[test]
fn super_counts_where_it_leads_to_the_root() {
    for (path, text) in [
        ("low.rs", "use super::high::Thing;\n"),
        ("low/mod.rs", "use super::{high::Thing, low};\n"),
        ("low/part.rs", "fn f() { super::super::high::g() }\n"),
    ] {
        assert_eq!(messages(path, text), WRONG, "{path}");
    }
    for (path, text) in [
        ("low/part.rs", "use super::high::Thing;\n"),
        ("low.rs", "mod inner { use super::high::Thing; }\n"),
        ("low/part/deep.rs", "use super::super::high::Thing;\n"),
    ] {
        assert_eq!(messages(path, text), Vec::<String>::new(), "{path}: it is the folder's own");
    }
}

#[test]
fn a_crate_without_an_order_is_found() {
    let manifest = |name: &str| SourceFile::text(&format!("crates/{name}/Cargo.toml"), "");
    let found = check_stated(&[manifest("weir-new"), SourceFile::text("peers/x/Cargo.toml", "")]);
    assert!(found.len() == 1 && found[0].message.contains("`weir-new` have no order"), "{found:?}");
    assert!(check_stated(&[manifest(ORDERS[0].0)]).is_empty());
}

#[test]
fn a_module_without_a_place_and_a_place_without_a_module_are_found() {
    assert_eq!(messages("other.rs", "").len(), 1);
    let files = [SourceFile::text("crates/x/src/low.rs", "")];
    let found = check_crate(&files, "x", &["low", "gone"]);
    assert!(found.len() == 1 && found[0].message.contains("`gone` of x is gone"), "{found:?}");
    let rest = [
        SourceFile::text("crates/x/src/leaf.rs", ""),
        SourceFile::text("crates/x/src/low.rs", "use crate::leaf;"),
    ];
    let found = check_crate(&rest, "x", &["low", "*"]);
    assert!(found.len() == 1 && found[0].message.contains("`low` does not stand behind `leaf`"), "{found:?}");
    let beside = [
        SourceFile::text("crates/x/src/leaf.rs", "use crate::{leaf::Own, low};"),
        SourceFile::text("crates/x/src/twig.rs", "use crate::leaf;"),
        SourceFile::text("crates/x/src/low.rs", ""),
    ];
    let found = check_crate(&beside, "x", &["low", "*"]);
    assert!(
        found.len() == 1 && found[0].message.contains("`twig` does not stand behind `leaf`"),
        "{found:?}"
    );
    assert_eq!(module_path("lib.rs"), Some(Vec::new()));
    assert_eq!(module_path("html/style.css"), None);
}
