//! Whether the page's text is readable, and whether its marks can be seen: each colour on its background, in each
//! scheme and on paper.

use std::collections::BTreeMap;

use super::STYLE;

/// Least contrast of text that is not large (WCAG 2.2, 1.4.3).
const CONTRAST_MIN: f64 = 4.5;

/// Least contrast of marks, lines and outlines that carry meaning (WCAG 2.2, 1.4.11).
const GRAPHICS_CONTRAST_MIN: f64 = 3.0;

/// Arms before their colours repeat.
const ARM_STYLES: usize = 8;

/// Share of the tone in the strongest cell of a map.
const TONE_SHARE_MAX: f64 = 0.6;

type Scheme = BTreeMap<&'static str, &'static str>;

type Color = [f64; 3];

/// The style's colours: light, dark, and printed by a reader who prefers dark.
fn schemes() -> [(&'static str, Scheme); 3] {
    let blocks = STYLE.split(":root{").skip(1).map(|rest| rest.split('}').next().unwrap_or_default());
    let blocks: Vec<&'static str> = blocks.collect();
    let [light, dark, print] = blocks[..] else { panic!("{} blocks of colours", blocks.len()) };
    let of = |blocks: &[&'static str]| -> Scheme {
        let rules = blocks.iter().flat_map(|block| block.split(';'));
        rules.filter_map(|rule| rule.trim().strip_prefix("--")?.split_once(':')).collect()
    };
    [("light", of(&[light])), ("dark", of(&[light, dark])), ("print", of(&[light, dark, print]))]
}

/// Red, green and blue, each from 0 to 1.
fn color(scheme: &Scheme, name: &str) -> Color {
    let value = scheme.get(name).unwrap_or_else(|| panic!("there is no --{name}"));
    if let Some(other) = value.strip_prefix("var(--").and_then(|rest| rest.strip_suffix(')')) {
        return color(scheme, other);
    }
    let digits = value.strip_prefix('#').unwrap_or_else(|| panic!("--{name} is {value}"));
    let digits: String = match digits.len() {
        3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
        _ => digits.to_owned(),
    };
    let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
    [0, 2, 4].map(|at| f64::from(part(at)) / 255.0)
}

fn luminance(color: Color) -> f64 {
    let linear = |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    let [red, green, blue] = color.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

fn contrast(one: Color, other: Color) -> f64 {
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// Texts and their backgrounds, with the contrast of the two.
fn pairs(scheme: &Scheme) -> Vec<(String, &'static str, f64)> {
    let own = ["ink", "soft", "good", "bad", "even", "doubt"].map(str::to_owned);
    let of_arms = (0..ARM_STYLES).map(|arm| format!("arm{arm}-text"));
    let texts: Vec<String> = own.into_iter().chain(of_arms).collect();
    let on = |text: &String, behind: &'static str| {
        (text.clone(), behind, contrast(color(scheme, text), color(scheme, behind)))
    };
    let mut pairs: Vec<_> = ["paper", "sheet"]
        .into_iter()
        .flat_map(|behind| texts.iter().map(move |text| (text, behind)))
        .map(|(text, behind)| on(text, behind))
        .collect();
    pairs.extend(texts[..2].iter().map(|text| on(text, "grid")));
    for tone in ["good", "bad"] {
        let (full, sheet) = (color(scheme, tone), color(scheme, "sheet"));
        let part = |at: usize| TONE_SHARE_MAX * full[at] + (1.0 - TONE_SHARE_MAX) * sheet[at];
        pairs.push(("on-tone".to_owned(), tone, contrast(color(scheme, "on-tone"), [0, 1, 2].map(part))));
    }
    pairs
}

#[test]
fn every_colour_of_text_can_be_told_from_what_is_behind_it() {
    for (name, scheme) in &schemes() {
        let faint: Vec<_> = pairs(scheme).into_iter().filter(|(_, _, found)| *found < CONTRAST_MIN).collect();
        assert!(faint.is_empty(), "{name}: {faint:?}");
    }
}

/// Colours of marks, lines and outlines, each on both backgrounds.
fn graphics(scheme: &Scheme) -> Vec<(String, &'static str, f64)> {
    // Outlines of focus, of verdicts and of small charts; the arms' marks.
    let own = ["ink", "soft", "even", "good", "bad", "doubt"].map(str::to_owned);
    let names: Vec<String> = own.into_iter().chain((0..ARM_STYLES).map(|arm| format!("arm{arm}"))).collect();
    let on = |behind: &'static str| {
        names
            .iter()
            .map(move |name| (name.clone(), behind, contrast(color(scheme, name), color(scheme, behind))))
    };
    ["paper", "sheet"].into_iter().flat_map(on).collect()
}

#[test]
fn every_mark_that_means_something_can_be_seen_on_its_background() {
    for (name, scheme) in &schemes() {
        let all = graphics(scheme);
        assert_eq!(all.len(), 2 * (6 + ARM_STYLES));
        let faint: Vec<_> = all.into_iter().filter(|(_, _, found)| *found < GRAPHICS_CONTRAST_MIN).collect();
        assert!(faint.is_empty(), "{name}: {faint:?}");
    }
}

#[test]
fn text_in_the_colour_of_an_arm_or_on_a_tone_has_the_shade_that_can_be_read() {
    let of_arm = |arm: usize| format!(".a{arm}{{--c:var(--arm{arm});--c-text:var(--arm{arm}-text)}}");
    let of_tone = |tone: &str| format!(".map td.{tone}{{--tone:var(--{tone});color:var(--on-tone)}}");
    let rules = (0..ARM_STYLES).map(of_arm).chain(["good", "bad"].map(of_tone));
    for rule in rules.chain(["svg .arm{fill:var(--c-text);".to_owned()]) {
        assert!(STYLE.contains(&rule), "no {rule}");
    }
}
