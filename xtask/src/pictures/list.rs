//! Which pictures there are, and what each of them shows.

/// A picture of a page.
pub struct Picture {
    /// Its name in `docs/images`, without its ending.
    pub name: &'static str,
    pub source: Source,
    pub subject: Subject,
    pub language: &'static str,
    /// Width of the window, and the greatest height of the picture.
    pub size_px: (u32, u32),
    /// Colour scheme: `light` or `dark`.
    pub scheme: &'static str,
}

/// The page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The report of the first run whose folder begins with the name of this study.
    Report(&'static str),
    /// Two runs of this study side by side in the dashboard.
    Compared(&'static str),
    /// The dashboard's list.
    List,
    /// The dashboard's page of running servers.
    Servers,
    /// The dashboard's page of the study that runs.
    Running,
}

/// The part of the page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// From its beginning on.
    Top,
    /// The first element that a selector finds.
    Part(&'static str),
}

impl Picture {
    pub fn file(&self) -> String {
        format!("{}.webp", self.name)
    }
}

impl Source {
    /// What is true on the page when it has something to show; `None` for pages that are complete at once.
    pub fn is_ready(self) -> Option<&'static str> {
        match self {
            Self::Report(_) | Self::Compared(_) | Self::List => None,
            Self::Servers => Some(
                "[...document.querySelectorAll('#servers tbody tr')].filter(row => \
                 row.querySelector('.spark path')?.getAttribute('d').length > 120).length >= 3",
            ),
            Self::Running => Some(
                "document.querySelector('#live .card') !== null && (progress => progress.value >= 0.15 * \
                 progress.max)(document.querySelector('#live progress'))",
            ),
        }
    }
}

const fn report(name: &'static str, study: &'static str, subject: Subject) -> Picture {
    Picture {
        name,
        source: Source::Report(study),
        subject,
        language: "en",
        size_px: (1280, 900),
        scheme: "light",
    }
}

const fn page(name: &'static str, source: Source, scheme: &'static str) -> Picture {
    Picture { name, source, subject: Subject::Top, language: "en", size_px: (1280, 900), scheme }
}

/// All of them. The study that runs is the last one, so that it is in no other picture.
pub const PICTURES: [Picture; 10] = [
    report("quick", "quick", Subject::Top),
    Picture { language: "ko", size_px: (768, 900), ..report("quick-ko", "quick", Subject::Top) },
    Picture {
        language: "zh",
        size_px: (768, 900),
        scheme: "dark",
        ..report("quick-zh", "quick", Subject::Top)
    },
    Picture { size_px: (390, 844), scheme: "dark", ..report("quick-phone", "quick", Subject::Top) },
    report("map", "tps", Subject::Part("#map")),
    report("gateway", "gateway", Subject::Top),
    page("list", Source::List, "light"),
    page("compare", Source::Compared("quick"), "dark"),
    page("servers", Source::Servers, "light"),
    page("running", Source::Running, "dark"),
];

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;
    use crate::{
        pictures::BYTES_MAX,
        tidy::{links, tree},
    };

    #[test]
    fn the_folder_has_the_pictures_of_the_list_small_ones_and_a_document_shows_each() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let files = tree::read(root).expect("the tree can be read");
        let listed: BTreeSet<String> =
            PICTURES.iter().map(|picture| format!("docs/images/{}", picture.file())).collect();
        let kept = files.iter().map(|file| file.path.clone()).filter(|path| path.starts_with("docs/images/"));
        assert_eq!(kept.collect::<BTreeSet<String>>(), listed, "cargo xtask pictures makes them");
        let mut shown = BTreeSet::new();
        for page in files.iter().filter(|file| file.path.ends_with(".md")) {
            let lines = page.text.as_deref().unwrap_or_default().lines();
            let linked = lines.flat_map(links::targets);
            shown.extend(linked.filter_map(|target| links::resolve(&page.path, target)));
        }
        for path in &listed {
            assert!(shown.contains(path), "{path}: no document shows it");
            let bytes = fs::metadata(root.join(path)).expect("it is there").len();
            assert!(bytes <= BYTES_MAX, "{path}: {bytes} bytes");
        }
    }
}
