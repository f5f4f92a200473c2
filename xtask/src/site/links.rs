//! What a built page links to and loads.

/// The values of `href` and `src` in the tags of a page. Blocks of code show tags too: there `<` is an entity.
pub fn targets(page: &str) -> Vec<&str> {
    tags(page).flat_map(|tag| ["href", "src"].into_iter().filter_map(|name| attribute(tag, name))).collect()
}

/// Addresses that a page loads from elsewhere: scripts, styles, images and frames.
pub fn external_loads(page: &str) -> Vec<&str> {
    let is_external = |target: &&str| {
        target.starts_with("http:") || target.starts_with("https:") || target.starts_with("//")
    };
    let loaded = |tag| {
        let linked = if tag_name(tag) == "link" { attribute(tag, "href") } else { None };
        linked.or_else(|| attribute(tag, "src"))
    };
    tags(page).filter_map(loaded).filter(is_external).collect()
}

/// What is between `<` and `>`.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).filter_map(|rest| rest.split('>').next())
}

fn tag_name(tag: &str) -> &str {
    tag.split_whitespace().next().unwrap_or_default()
}

/// The value of an attribute of a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

/// The file that a link of a page leads to, from the root of the site; `None` for other sites and the same page.
pub fn resolved(page: &str, target: &str) -> Option<String> {
    let file = target.split(['#', '?']).next().unwrap_or(target);
    if file.is_empty() || file.contains(':') || file.starts_with("//") {
        return None;
    }
    let mut parts: Vec<&str> = if file.starts_with('/') { Vec::new() } else { page.split('/').collect() };
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
    // A folder is its index; the base of mdBook's error page is the root.
    if file.ends_with('/') {
        parts.push("index.html");
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_from_their_page() {
        let of = |target| resolved("docs/guide/top.html", target);
        assert_eq!(of("../study-file.html#keys").as_deref(), Some("docs/study-file.html"));
        assert_eq!(of("observe.html").as_deref(), Some("docs/guide/observe.html"));
        assert_eq!(of("/index.html").as_deref(), Some("index.html"));
        assert_eq!(of("/").as_deref(), Some("index.html"));
        assert_eq!(of("../formats/").as_deref(), Some("docs/formats/index.html"));
        assert_eq!(
            ["#here", "https://example.org/a", "mailto:a@b", "//other/x"].map(of),
            [None, None, None, None]
        );
    }

    #[test]
    fn what_is_loaded_from_elsewhere_is_named_and_what_is_linked_is_not() {
        let page = r#"<link rel="stylesheet" href="https://fonts.example/a.css"><script src="//cdn/x.js"></script>
            <a href="https://example.org">see</a><img src="a.png"><link href="b.css">
            <code>&lt;iframe src="https://shown.example/"&gt;</code>"#;
        assert_eq!(external_loads(page), ["https://fonts.example/a.css", "//cdn/x.js"]);
        assert_eq!(targets(page).len(), 5);
    }
}
