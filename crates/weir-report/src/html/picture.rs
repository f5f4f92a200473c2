//! The script that saves charts as PNG. A page without it is the same page without its buttons.

use maud::{Markup, PreEscaped, html};

use crate::{answer, language::Language, view::View};

/// Its text, for a server that has it at an address.
pub const PICTURE_SCRIPT: &str = include_str!("picture.js");

const SAVE: [&str; 3] = ["Save as PNG", "PNG로 저장", "保存为 PNG"];

const FAILED: [&str; 3] = [
    "This browser cannot draw the chart.",
    "이 브라우저에서는 차트를 그릴 수 없습니다.",
    "此浏览器无法绘制该图表。",
];

/// The script of a report, as an element: its text, so that a page is one file, or its address.
pub(super) fn of_report(view: &View<'_>, address: Option<&str>) -> Markup {
    let origin = answer::origin(view).join(" · ");
    let text = if address.is_none() { PICTURE_SCRIPT } else { "" };
    html! {
        script src=[address] data-save=(view.language.choose(SAVE)) data-failed=(view.language.choose(FAILED))
            data-study=(view.result.spec.name) data-origin=(origin) { (PreEscaped(text)) }
    }
}

/// The script of a page that links to images of charts.
pub fn picture_script(language: Language, address: &str) -> Markup {
    html! { script src=(address) data-save=(language.choose(SAVE)) data-failed=(language.choose(FAILED)) {} }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_ends_nowhere_in_a_page_but_at_its_end() {
        assert!(!PICTURE_SCRIPT.contains('<'), "a tag in it could end it");
        assert!(PICTURE_SCRIPT.lines().all(|line| line.chars().count() <= 120));
    }
}
