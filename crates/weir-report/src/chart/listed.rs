//! The primary comparison of a study as one row of a forest plot, for lists of studies. All rows have one logarithmic
//! axis, so that studies can be compared with one another.

use maud::Markup;
use weir_record::figure::Figure;

use super::canvas::Canvas;
use crate::{display::plain_name, format, view::View};

const WIDTH: f64 = 128.0;
const HEIGHT: f64 = 18.0;
/// Room for half a mark on both sides.
const MARGIN: f64 = 6.0;

/// Largest factor on the axis, in both directions. The row is cut there, and the number beside it has the ends.
const FACTOR_MAX: f64 = 4.0;

/// Most columns of an arm's name.
const ARM_COLUMNS_MAX: usize = 32;

/// The primary comparison of a study in few words.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The arm and its baseline: `uring / epoll`.
    pub compared: String,
    /// The ratio.
    pub ratio: f64,
    /// The ratio with its interval: `0.800 [0.796, 0.805]`.
    pub figure: String,
    /// The same as a row of a forest plot.
    pub plot: Markup,
}

/// The primary comparison; `None` if there is no figure.
pub(crate) fn listed(view: &View<'_>) -> Option<Listed> {
    let primary = view.primary()?;
    let ratio = view.ratio(primary).filter(|it| it.value.is_finite())?;
    let [arm, baseline] = [&primary.arm, &primary.baseline].map(|name| plain_name(name, ARM_COLUMNS_MAX));
    Some(Listed {
        compared: format!("{arm} / {baseline}"),
        ratio: ratio.value,
        figure: format::ratio_and_interval(Some(ratio.value), ratio.interval),
        plot: drawn(ratio),
    })
}

fn drawn(ratio: Figure) -> Markup {
    let y = HEIGHT / 2.0;
    let mut canvas = Canvas::new(WIDTH);
    canvas.set_height(HEIGHT);
    canvas.line("one", [across(1.0), 0.0, across(1.0), HEIGHT]);
    if let Some((low, high)) = ratio.interval {
        canvas.line("tone interval", [across(low), y, across(high), y]);
    }
    canvas.marker("tone diamond", 1, (across(ratio.value), y), 9.0, "");
    canvas.finish()
}

/// The horizontal position of a ratio. One that is not positive has none, and is left out.
fn across(ratio: f64) -> f64 {
    let share = 0.5 + 0.5 * ratio.ln() / FACTOR_MAX.ln();
    MARGIN + share.clamp(0.0, 1.0) * (WIDTH - 2.0 * MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_its_middle_at_no_difference_and_stays_within_its_width_whatever_the_ratio() {
        assert_eq!(across(1.0), WIDTH / 2.0);
        assert_eq!([across(0.0), across(1e-300)], [MARGIN, MARGIN]);
        assert_eq!([across(f64::INFINITY), across(1e300)], [WIDTH - MARGIN, WIDTH - MARGIN]);
        assert!(across(0.5) < across(0.8) && across(f64::NAN).is_nan() && across(-1.0).is_nan());
        let cut = drawn(Figure { value: 9.0, interval: Some((f64::NAN, f64::INFINITY)) }).into_string();
        assert!(cut.starts_with("<svg viewBox=\"0 0 128 18\" width=\"128\" height=\"18\">"), "{cut}");
        assert!(!cut.contains("NaN") && !cut.contains("inf"), "{cut}");
    }
}
