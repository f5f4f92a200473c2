//! Checks that links between the pages of the project lead to existing files and headings. Web addresses are not
//! visited.

use std::collections::{BTreeMap, BTreeSet};

use super::{Finding, tree::SourceFile};

/// Every relative link of a Markdown page names a file or folder of the tree.
pub fn check(path: &str, text: &str, paths: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in prose(text) {
        for target in targets(line) {
            let Some(resolved) = resolve(path, target) else { continue };
            if !exists(&resolved, paths) {
                findings.push(Finding::new(path, index + 1, "links", format!("`{target}` leads nowhere")));
            }
        }
    }
    findings
}

/// Every link to a place on a Markdown page names one of its headings.
pub fn check_anchors(files: &[SourceFile]) -> Vec<Finding> {
    let text_of = |file: &SourceFile| file.text.clone().unwrap_or_default();
    let markdown = || files.iter().filter(|file| file.path.ends_with(".md"));
    let pages: BTreeMap<&str, BTreeSet<String>> =
        markdown().map(|file| (file.path.as_str(), anchors(&text_of(file)))).collect();
    let mut findings = Vec::new();
    for file in markdown() {
        for (index, line) in prose(file.text.as_deref().unwrap_or_default()) {
            for target in targets(line) {
                let Some((page, anchor)) = target.split_once('#') else { continue };
                let page = if page.is_empty() { Some(file.path.clone()) } else { resolve(&file.path, page) };
                let known = page.as_ref().and_then(|page| pages.get(page.as_str()));
                if known.is_some_and(|known| !known.contains(anchor)) {
                    let message = format!("`{target}`: the page has no such heading");
                    findings.push(Finding::new(&file.path, index + 1, "links", message));
                }
            }
        }
    }
    findings
}

/// Lines with their numbers from 0, without blocks of code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// The places of a page that a link can name: its headings, as GitHub and mdBook write them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let heading = line.trim_start_matches('#');
        if heading.len() < line.len() && heading.starts_with(' ') {
            let anchor = anchor(heading.trim());
            let further = (1..).map(|number| format!("{anchor}-{number}"));
            let free = std::iter::once(anchor.clone()).chain(further).find(|name| !anchors.contains(name));
            anchors.extend(free);
        }
    }
    anchors
}

/// The name of a heading in an address: letters, digits, `-` and `_`, small, and `-` for a space. A link in it counts
/// by its text.
fn anchor(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    let kept = text.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        letter if letter.is_alphanumeric() || matches!(letter, '-' | '_') => Some(letter),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

/// The targets in the parentheses of `](…)`.
pub fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
}

/// The path of a link, from the root; `None` for web addresses and for places on the same page.
pub fn resolve(page: &str, target: &str) -> Option<String> {
    let file = target.split('#').next().unwrap_or(target);
    if file.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn exists(path: &str, paths: &[&str]) -> bool {
    let below =
        |file: &&str| file.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    paths.iter().any(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: &[&str] = &["README.md", "docs/formats/load.md"];

    #[test]
    fn a_link_to_a_missing_heading_is_found() {
        let page = "# One\n## `weir top` & [friends](x.md)\n## Twice\n## Twice\n```\n# no heading\n```\n\
                    ## 결과 읽기\n";
        let links = "[a](b.md#one) [b](b.md#weir-top--friends) [c](b.md#twice-1) [d](b.md#결과-읽기)\n# Here\n\
                     [e](#here) [f](b.md#no-heading) [g](#there) [h](lib.rs#L7) [i](https://x/#y)\n";
        let files = [SourceFile::text("b.md", page), SourceFile::text("a.md", links)];
        let found: Vec<(usize, String)> =
            check_anchors(&files).into_iter().map(|it| (it.line, it.message)).collect();
        let message = |target: &str| (3, format!("`{target}`: the page has no such heading"));
        assert_eq!(found, [message("b.md#no-heading"), message("#there")]);
    }

    #[test]
    fn a_link_to_a_missing_page_is_found() {
        let findings =
            check("README.md", "see\n[a](docs/formats/gone.md) and [b](docs/formats/load.md#x)", PATHS);
        assert_eq!(findings.len(), 1);
        assert_eq!((findings[0].line, findings[0].rule), (2, "links"));
    }

    #[test]
    fn links_are_resolved_from_the_page_they_stand_on() {
        let text =
            "[a](../../README.md) [b](load.md) [c](..) [d](https://x/y) [e](#here)\n```\n[f](gone)\n```\n";
        assert!(check("docs/formats/load.md", text, PATHS).is_empty());
        assert_eq!(check("README.md", "[a](load.md)", PATHS).len(), 1);
    }

    #[test]
    fn a_page_whose_name_only_begins_alike_does_not_count() {
        assert_eq!(check("README.md", "[a](docs/formats/lo)", PATHS).len(), 1);
    }
}
