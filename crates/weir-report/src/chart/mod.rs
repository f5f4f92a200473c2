//! Charts as inline SVG, drawn by hand so that they follow the page: colours are CSS classes (light, dark and
//! print come from one style sheet), text is real text, nothing needs an id, and every mark has a tooltip.
//!
//! Colours never carry meaning alone: each arm has a marker shape too, and every chart has its table beside it.

mod bars;
mod canvas;
mod curves;
mod forest;
mod panels;
mod plane;
mod scale;
mod timeline;

pub(crate) use bars::{Figure, bars, cells_left_out};
pub(crate) use canvas::{ARM_STYLES, swatch};
pub(crate) use curves::curves;
pub(crate) use forest::forest;
pub(crate) use panels::{Panel, PanelAxis, PanelLine, panels};
pub(crate) use plane::{PlaneAxes, PlaneFamily, PlanePoint, plane};
pub(crate) use timeline::timeline;

/// Most rows of a forest or bar chart; the tables have more.
pub(crate) const ROWS_MAX: usize = 60;
/// Most trials on the timeline.
pub(crate) const TRIALS_MAX: usize = 2000;
