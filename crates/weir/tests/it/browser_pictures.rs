//! Charts that a reader saves as PNG in a real browser: of a report as a file, and of the dashboard. Skipped where no
//! browser is.

use serde_json::Value;
use weir_report::ChartPage;

use super::{
    browser_pages::store_map,
    devtools::Browser,
    harness::{Running, folder, shown, weir},
};

const SAVED_PICTURE: &str = include_str!("saved_picture.js");

/// Margin around a chart in px, and dots in a px.
const MARGIN_PX: u64 = 16;
const DOTS: u64 = 2;

/// Most px that the study, its date and its machine take above a chart.
const ORIGIN_PX_MAX: u64 = 120;

/// Colours of a chart with smooth edges on paper; an empty image has one.
const COLOURS_MIN: u64 = 10;

/// Presses the first button of the page in a colour scheme, and checks that an image with content was saved.
fn saved(browser: &mut Browser, scheme: &str) -> Value {
    browser.prefer(scheme);
    browser.until_holds("document.querySelector('button.png') !== null");
    let seen = browser.eval(SAVED_PICTURE);
    assert!(seen.get("failed").is_none(), "{seen}");
    assert_eq!((seen["type"].as_str(), seen["opacity"].as_u64()), (Some("image/png"), Some(255)), "{seen}");
    for part in ["above", "all"] {
        assert!(seen[part].as_u64().is_some_and(|colours| colours >= COLOURS_MIN), "{part}: {seen}");
    }
    let paper = seen["paper"].as_f64().unwrap_or(0.5);
    assert_eq!(paper > 0.5, scheme == "light", "the colours are the reader's: {seen}");
    seen
}

#[test]
fn a_chart_of_a_report_is_saved_as_the_page_shows_it_from_a_file_and_below_the_dashboards_policy() {
    let Some(mut browser) = Browser::start("pictures") else { return };
    let root = folder("browser-pictures");
    store_map(&root);
    let dashboard = Running::weir(&["dashboard", shown(&root), "--listen", "127.0.0.1:0", "--lang", "en"]);
    let line = dashboard.next_line().expect("it says where");
    let address = line.split_whitespace().next().unwrap_or_default().to_owned();
    for (language, words) in [("en", "Save as PNG: "), ("ko", "PNG로 저장: "), ("zh", "保存为 PNG: ")] {
        let pages = root.join(format!("pages-{language}"));
        let wrote = weir(&["report", shown(&root.join("map")), "--lang", language, "--out", shown(&pages)]);
        assert_eq!(wrote.code, Some(0), "{}", wrote.stderr);
        let file = format!("file://{}", shown(&pages.join("report.html")));
        for page in [file, format!("{address}study/map?lang={language}")] {
            browser.go(&page);
            for (scheme, width) in [("light", 1280), ("dark", 400)] {
                browser.resize(width);
                let seen = saved(&mut browser, scheme);
                let number = |path: &str| seen.pointer(path).and_then(Value::as_u64).unwrap_or_default();
                assert!(seen["label"].as_str().is_some_and(|label| label.starts_with(words)), "{seen}");
                assert!(seen["name"].as_str().is_some_and(|name| name.starts_with("tps-")), "{seen}");
                assert_eq!(number("/width"), DOTS * (number("/box/width") + 2 * MARGIN_PX), "{page} {seen}");
                let least = number("/box/height") + 3 * MARGIN_PX;
                let height = number("/height") / DOTS;
                assert!((least..=least + ORIGIN_PX_MAX).contains(&height), "{page} {seen}");
            }
        }
    }
}

#[test]
fn the_image_of_a_chart_is_saved_as_png_beside_its_link() {
    let Some(mut browser) = Browser::start("chart-pictures") else { return };
    let root = folder("browser-chart-pictures");
    store_map(&root);
    let dashboard = Running::weir(&["dashboard", shown(&root), "--listen", "127.0.0.1:0", "--lang", "en"]);
    let line = dashboard.next_line().expect("it says where");
    let address = line.split_whitespace().next().unwrap_or_default().to_owned();
    for scheme in ["light", "dark"] {
        browser.go(&format!("{address}charts?study=map&lang=en"));
        let image = browser.fetch("a[download$='.svg']");
        let side = |name: &str| {
            let rest = image.split(&format!(" {name}=\"")).nth(1).expect("it has its size");
            rest.split('"').next().and_then(|side| side.parse::<f64>().ok()).expect("a number")
        };
        let seen = saved(&mut browser, scheme);
        let dots = |side: f64| (DOTS as f64 * side).ceil() as u64;
        let size = [seen["width"].as_u64(), seen["height"].as_u64()];
        assert_eq!(size, [Some(dots(side("width"))), Some(dots(side("height")))], "{seen}");
        let name = format!("{}.png", ChartPage::Connections.path());
        assert_eq!(seen["name"].as_str(), Some(name.as_str()), "{seen}");
    }
}
