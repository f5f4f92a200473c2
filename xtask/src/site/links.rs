//! What a built page links to and loads.

/// The values of `href` and `src` in a page, without what they name inside another page.
pub fn targets(page: &str) -> Vec<&str> {
    let attributes = ["href=\"", "src=\""];
    let of =
        |attribute: &'static str| page.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
    attributes.into_iter().flat_map(of).collect()
}

/// Addresses that a page loads from elsewhere: scripts, styles, images and frames.
pub fn external_loads(page: &str) -> Vec<&str> {
    let is_external = |target: &&str| {
        target.starts_with("http:") || target.starts_with("https:") || target.starts_with("//")
    };
    let of_src = page.split("src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let of_links = page.split("<link").skip(1).filter_map(|rest| rest.split('>').next());
    let of_links =
        of_links.filter_map(|tag| tag.split_once("href=\"").and_then(|(_, rest)| rest.split('"').next()));
    of_src.chain(of_links).filter(is_external).collect()
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
            <a href="https://example.org">see</a><img src="a.png"><link href="b.css">"#;
        assert_eq!(external_loads(page), ["//cdn/x.js", "https://fonts.example/a.css"]);
        assert_eq!(targets(page).len(), 5);
    }
}
