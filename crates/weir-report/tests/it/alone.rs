//! Charts as images that stand alone.

use weir_report::{ChartPage, Language, Theme, chart_page_in, chart_svg};

use crate::{fixture, overview};

#[test]
fn each_chart_is_an_image_with_its_study_date_and_machine() {
    let mut result = overview::mapped();
    result.created_unix_s = Some(1_795_936_205);
    result.fingerprint.host = "lab-7".to_owned();
    let mut drawn = 0;
    for page in ChartPage::ALL {
        for language in Language::ALL {
            let Some(image) = chart_svg(&result, page, language, Some(Theme::Light)) else { continue };
            drawn += 1;
            assert!(
                image.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 "),
                "{image}"
            );
            let own =
                [page.title(language), "2026-11-29 07:10 UTC", "lab-7", &result.fingerprint.kernel_release];
            for text in own.into_iter().chain([result.spec.name.as_str()]) {
                assert!(image.contains(text), "{}: no {text} in {image}", page.path());
            }
            for element in ["svg", "text", "style", "title", "rect"] {
                let (start, end) = (format!("<{element}"), format!("</{element}>"));
                let tags: Vec<&str> =
                    image.split(&start).skip(1).filter_map(|rest| rest.split('>').next()).collect();
                let closed = tags.iter().filter(|tag| tag.ends_with('/')).count();
                assert_eq!(tags.len(), image.matches(&end).count() + closed, "{element} in {image}");
            }
            assert!(!image.contains("<div") && !image.contains("NaN"), "{image}");
        }
    }
    assert!(drawn >= 3 * 3, "{drawn}");
}

#[test]
fn an_image_and_a_page_have_the_colours_that_were_asked_for() {
    let result = overview::mapped();
    let page = ChartPage::Connections;
    let image = |theme| chart_svg(&result, page, Language::English, theme).expect("there is a map");
    let framed = |theme| chart_page_in(&result, page, (Language::English, theme), "/study/a");
    assert!(
        image(None).contains("prefers-color-scheme:dark")
            && framed(None).contains("prefers-color-scheme:dark")
    );
    for theme in [Theme::Light, Theme::Dark] {
        for text in [image(Some(theme)), framed(Some(theme))] {
            assert!(!text.contains("prefers-color-scheme"), "{text}");
        }
    }
    assert_ne!(image(Some(Theme::Light)), image(Some(Theme::Dark)));
}

#[test]
fn no_name_leaves_its_place_in_an_image_and_nothing_to_draw_is_no_image() {
    let mut hostile = overview::mapped();
    let names = fixture::hostile_names();
    (hostile.spec.name, hostile.fingerprint.host) = (names.spec.name.clone(), names.spec.name.clone());
    hostile.fingerprint.cpu_model = "w".repeat(9_000);
    let image = chart_svg(&hostile, ChartPage::Connections, Language::English, None).expect("there is a map");
    assert!(!image.contains("<script") && image.contains('…'), "{image}");
    assert!(!image.contains(&"w".repeat(100)), "a long text is cut");
    for page in ChartPage::ALL {
        assert_eq!(chart_svg(&fixture::quick(), page, Language::English, None), None, "{}", page.path());
    }
}
