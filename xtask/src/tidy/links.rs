//! Checks that links between the pages of the project lead to existing files. Web addresses are not visited.

use super::Finding;

/// Every relative link of a Markdown page names a file or folder of the tree.
pub fn check(path: &str, text: &str, paths: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(line) {
            let Some(resolved) = resolve(path, target) else { continue };
            if !exists(&resolved, paths) {
                findings.push(Finding::new(path, index + 1, "links", format!("`{target}` leads nowhere")));
            }
        }
    }
    findings
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
