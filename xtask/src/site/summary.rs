//! The table of contents: every page of the tree that a reader may want, below the heading that it belongs to.

use super::Page;

/// Pages of the root, in this order; the first one is the start of the site.
const ROOT: [&str; 1] = ["README.md"];
/// The page that leads to all others.
const GUIDES: &str = "docs/guide/README.md";
/// Pages about studies and their results.
const STUDIES: [&str; 4] =
    ["docs/study-file.md", "docs/coverage.md", "docs/coverage-commands.md", "docs/sources.md"];
/// Pages for people who change Weir.
const PROJECT: [&str; 8] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "docs/compatibility.md",
    "docs/style.md",
    "crates/weir-engine/README.md",
    "crates/weir-engine-adapters/README.md",
    "peers/README.md",
];

/// The translations, by the ending of their files.
const LANGUAGES: [(&str, &str); 2] = [("한국어", ".ko.md"), ("简体中文", ".zh.md")];

/// Where the results are, if there are any.
pub const GALLERY: &str = "gallery/README.md";

/// `SUMMARY.md` of mdBook. A page that no heading names is listed at the end, so that none is lost.
pub fn of(pages: &[Page]) -> String {
    let mut left: Vec<&Page> = pages.iter().collect();
    let start = named(&mut left, &ROOT);
    let guides = named(&mut left, &[GUIDES]);
    let gallery = named(&mut left, &[GALLERY]);
    let studies = named(&mut left, &STUDIES);
    let project = named(&mut left, &PROJECT);
    let formats = named(&mut left, &["docs/formats/README.md"]);
    let languages = LANGUAGES.map(|(name, ending)| (name, take(&mut left, |it| it.ends_with(ending))));
    let further_guides = take(&mut left, |it| it.starts_with("docs/guide/"));
    let further_formats = take(&mut left, |it| it.starts_with("docs/formats/"));

    let mut out = "# Summary\n".to_owned();
    start.iter().for_each(|page| out.push_str(&format!("\n[{}]({})\n", page.title, page.path)));
    part(&mut out, "Guides", &guides, &further_guides);
    part(&mut out, "Results", &gallery, &[]);
    part(&mut out, "Studies", &studies, &[]);
    part(&mut out, "Formats", &formats, &further_formats);
    part(&mut out, "The project", &project, &left);
    for (name, of_language) in &languages {
        part(&mut out, name, of_language, &[]);
    }
    out
}

/// Takes the pages with a wanted path out of those that are left.
fn take<'p>(left: &mut Vec<&'p Page>, is_wanted: impl Fn(&str) -> bool) -> Vec<&'p Page> {
    let (taken, rest) = std::mem::take(left).into_iter().partition(|page| is_wanted(&page.path));
    *left = rest;
    taken
}

/// Takes these pages, in this order.
fn named<'p>(left: &mut Vec<&'p Page>, paths: &[&str]) -> Vec<&'p Page> {
    paths.iter().flat_map(|path| take(left, |it| it == *path)).collect()
}

/// A heading with its pages, and further ones below the last of them.
fn part(out: &mut String, title: &str, pages: &[&Page], below: &[&Page]) {
    if pages.is_empty() && below.is_empty() {
        return;
    }
    out.push_str(&format!("\n# {title}\n\n"));
    pages.iter().for_each(|page| out.push_str(&format!("- [{}]({})\n", page.title, page.path)));
    let indent = if pages.is_empty() { "" } else { "  " };
    below.iter().for_each(|page| out.push_str(&format!("{indent}- [{}]({})\n", page.title, page.path)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, title: &str) -> Page {
        Page { path: path.to_owned(), title: title.to_owned() }
    }

    #[test]
    fn every_page_is_listed_once_below_its_heading() {
        let pages = [
            page("README.md", "Weir"),
            page("README.ko.md", "Weir"),
            page("docs/guide/README.md", "Guides"),
            page("docs/guide/top.md", "weir top"),
            page("docs/formats/README.md", "Formats"),
            page("docs/formats/journal.md", "Journal"),
            page("docs/new.md", "New"),
            page("ARCHITECTURE.md", "Architecture"),
        ];
        let text = of(&pages);
        for page in &pages {
            assert_eq!(text.matches(&format!("]({})", page.path)).count(), 1, "{}: {text}", page.path);
        }
        assert!(text.starts_with(
            "# Summary\n\n[Weir](README.md)\n\n# Guides\n\n- [Guides](docs/guide/README.md)\n  - [weir top]"
        ));
        assert!(text.contains("- [Architecture](ARCHITECTURE.md)\n  - [New](docs/new.md)\n"), "{text}");
        assert!(text.ends_with("# 한국어\n\n- [Weir](README.ko.md)\n"), "{text}");
    }
}
