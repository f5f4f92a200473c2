//! A ratio in words: `2.1 % less`, and its interval: `1.2 to 3.0 % less`, `1.2 % less to 2.8 % more`.

use crate::{
    format::{self, percent},
    language::{Language, localized},
};

/// From this ratio on the factor is shown in addition to the percentage: "240 % more" is hard to picture.
const FACTOR_MIN: f64 = 2.0;

/// Whether the digits of an amount show no difference.
pub(crate) fn rounds_to_none(ratio: f64) -> bool {
    bare(ratio) == percent(0.0)
}

/// The distance of a ratio from one, with the direction.
pub(crate) fn amount(language: Language, ratio: f64) -> String {
    if rounds_to_none(ratio) {
        let texts = match ratio < 1.0 {
            true => ["under 0.1 % less", "0.1 % 미만 적게", "少不到 0.1 %"],
            false => ["under 0.1 % more", "0.1 % 미만 더", "多不到 0.1 %"],
        };
        return language.choose(texts).to_owned();
    }
    let amount = bare(ratio);
    if ratio < 1.0 {
        return localized!(language, "{amount} less", "{amount} 적게", "少 {amount}");
    }
    let factor = format::ratio_in_prose(ratio, None).0;
    match ratio < FACTOR_MIN {
        true => localized!(language, "{amount} more", "{amount} 더", "多 {amount}"),
        false => localized!(
            language,
            "{amount} more ({factor}×)",
            "{amount} 더({factor}배)",
            "多 {amount}（{factor} 倍）"
        ),
    }
}

/// The interval in words.
pub(crate) fn range(language: Language, (low, high): (f64, f64)) -> String {
    if low < 1.0 && high >= 1.0 && (rounds_to_none(low) || rounds_to_none(high)) {
        return from_none(language, (low, high));
    }
    // The smaller change first, whatever its direction.
    let (least, most) = if high < 1.0 { (high, low) } else { (low, high) };
    let (from, to) = (bare(least), bare(most));
    let from = from.trim_end_matches(" %");
    match (low < 1.0, high < 1.0) {
        (true, true) => {
            localized!(language, "{from} to {to} less", "{from} ~ {to} 적음", "少 {from} 至 {to}")
        }
        (false, false) => {
            localized!(language, "{from} to {to} more", "{from} ~ {to} 많음", "多 {from} 至 {to}")
        }
        _ => localized!(
            language,
            "{from} % less to {to} more",
            "{from} % 적음 ~ {to} 많음",
            "从少 {from} % 到多 {to}"
        ),
    }
}

/// An interval around one, of which an end shows no difference.
fn from_none(language: Language, (low, high): (f64, f64)) -> String {
    if rounds_to_none(low) && rounds_to_none(high) {
        let texts = ["under 0.1 % in both directions", "양쪽 모두 0.1 % 미만", "上下均不到 0.1 %"];
        return language.choose(texts).to_owned();
    }
    let to = bare(if rounds_to_none(low) { high } else { low });
    match rounds_to_none(low) {
        true => localized!(language, "0 to {to} more", "0 ~ {to} 많음", "多 0 至 {to}"),
        false => localized!(language, "0 to {to} less", "0 ~ {to} 적음", "少 0 至 {to}"),
    }
}

/// The amount without its direction.
fn bare(ratio: f64) -> String {
    percent((ratio - 1.0).abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_share_more_or_less_and_has_its_factor_from_twice_on() {
        let english = |ratio| amount(Language::English, ratio);
        assert_eq!(english(0.979), "2.1 % less");
        assert_eq!(english(1.152), "15.2 % more");
        assert_eq!(english(2.5), "150 % more (2.50×)");
        assert_eq!(
            [amount(Language::Korean, 0.979), amount(Language::Chinese, 1.1)],
            ["2.1 % 적게", "多 10 %"]
        );
    }

    #[test]
    fn what_rounds_to_zero_has_no_zero_with_a_direction() {
        assert_eq!(
            Language::ALL.map(|it| amount(it, 0.999_6)),
            ["under 0.1 % less", "0.1 % 미만 적게", "少不到 0.1 %"]
        );
        assert_eq!(
            Language::ALL.map(|it| amount(it, 1.000_4)),
            ["under 0.1 % more", "0.1 % 미만 더", "多不到 0.1 %"]
        );
        assert_eq!(amount(Language::English, 0.999), "0.1 % less");
        let english = |low, high| range(Language::English, (low, high));
        assert_eq!(english(0.999_7, 1.003), "0 to 0.3 % more");
        assert_eq!(english(0.997, 1.000_2), "0 to 0.3 % less");
        assert_eq!(english(0.999_7, 1.000_2), "under 0.1 % in both directions");
        assert_eq!(range(Language::Korean, (0.999_7, 1.003)), "0 ~ 0.3 % 많음");
        assert_eq!(range(Language::Chinese, (0.997, 1.000_2)), "少 0 至 0.3 %");
    }

    #[test]
    fn an_interval_names_both_directions_where_it_has_both() {
        let english = |low, high| range(Language::English, (low, high));
        assert_eq!(english(0.970, 0.988), "1.2 to 3 % less");
        assert_eq!(english(1.012, 1.03), "1.2 to 3 % more");
        assert_eq!(english(0.988, 1.028), "1.2 % less to 2.8 % more");
        assert_eq!(english(1.8, 2.4), "80 to 140 % more");
        assert_eq!(range(Language::Chinese, (0.97, 0.988)), "少 1.2 至 3 %");
        assert_eq!(range(Language::Korean, (0.97, 0.988)), "1.2 ~ 3 % 적음");
        assert_eq!(range(Language::Korean, (1.012, 1.03)), "1.2 ~ 3 % 많음");
        // A range must not read as "at most".
        assert_eq!(range(Language::Chinese, (0.919, 1.052)), "从少 8.1 % 到多 5.2 %");
    }
}
