//! Plots: plain functions from numbers to inline SVG. They know nothing of runs and trials.
//!
//! A drawing holds no colour and no font: its elements have classes, and the page's style says what they look like in
//! light, dark and print (`html/style.css`). Series are told apart by marks and dashes too. What a `title` holds is shown when the
//! pointer rests on an element, without a script. Equal input gives equal bytes, and no input panics: what is not
//! finite is left out, and texts are escaped and cut.

mod bars;
mod frame;
mod heat;
mod levels;
mod lines;
mod parallel;
mod scale;
mod scatter;
mod strip;
mod svg;
#[cfg(test)]
mod tests;

pub use bars::{Bar, Bars, bars};
pub use heat::{Cell, Heat, heat};
pub use levels::{Level, Levels, levels};
pub use lines::{Line, Lines, Point, Stroke, lines};
pub use parallel::{Coordinate, Parallel, SHADES, Trace, parallel};
pub use scale::{Scale, is_log_apt};
pub use scatter::{Dot, Reference, Scatter, scatter};
pub use strip::{is_beyond_strip, strip, strip_scale};
pub use svg::{cut, escape, legend_mark};
