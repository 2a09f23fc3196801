//! Plots: pure functions from numbers to inline SVG. They know nothing about runs and trials.
//!
//! A drawing contains no colors or fonts: its elements have classes, and the page's style defines their look in light,
//! dark and print (`html/style.css`). Series also differ in marks and dashes. A `title` is the tooltip of an element,
//! without a script. Equal input gives equal bytes, and no input panics: non-finite values are omitted, and texts are
//! escaped and truncated.

mod bars;
mod contour;
mod forest;
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
mod triangles;

pub use bars::{Bar, Bars, bars};
pub use contour::{Contour, Known, contour};
pub use forest::{Apart, Forest, forest};
pub use heat::{Cell, Heat, heat};
pub use levels::{Level, Levels, levels};
pub use lines::{Line, Lines, Point, Stroke, lines};
pub use parallel::{Coordinate, Parallel, SHADES, Trace, parallel};
pub use scale::{Kind, Scale, apt, is_log_apt};
pub use scatter::{Dot, Reference, Scatter, scatter};
pub use strip::{is_beyond_strip, strip, strip_scale};
pub use svg::{cut, escape, legend_mark};
