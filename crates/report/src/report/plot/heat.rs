//! Values in two directions as shades: heat maps and confusion matrices.

use super::scale::range;
use super::svg::{Anchor, CHAR, Svg};

/// Maximum number of cells with a number in them.
const MOST_NUMBERED: usize = 15;
/// Maximum length of a name.
const MOST: usize = 14;
/// Maximum length of the name of a row, if there is room.
const MOST_OF_ROW: usize = 30;
/// Height of a row if there are many.
const LOW_ROW: f64 = 15.0;

/// A heat map.
pub struct Heat<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis.
    pub y_label: &'a str,
    /// The names of the columns.
    pub columns: &'a [String],
    /// The names of the rows.
    pub rows: &'a [String],
    /// The cells, row by row.
    pub cells: &'a [Vec<Cell>],
    /// Whether low values are dark.
    pub is_low_dark: bool,
}

/// A cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The value that determines the shade; none for an empty cell.
    pub value: Option<f64>,
    /// The text of the cell, if there is room.
    pub text: String,
    /// The tooltip.
    pub title: String,
}

/// Draws a heat map.
pub fn heat(plot: &Heat) -> String {
    let (num_columns, num_rows) = (plot.columns.len().max(1), plot.rows.len().max(1));
    let most_of_row = match num_columns {
        0..=MOST_NUMBERED if num_rows != num_columns => MOST_OF_ROW,
        _ => MOST,
    };
    let lengths = plot.rows.iter().map(|name| name.chars().count());
    let longest = lengths.max().unwrap_or(0).min(most_of_row);
    let left = 12.0 + CHAR * longest.max(2) as f64;
    let width = ((460.0 - left) / num_columns as f64).clamp(3.0, 90.0);
    let height = match num_rows {
        0..=8 => 34.0_f64,
        9..=MOST_NUMBERED => 26.0,
        num if num == num_columns => width,
        _ => LOW_ROW,
    };
    let room = (width / CHAR) as usize;
    // Names that do not fit are omitted; tooltips still show them.
    let every = if num_columns > MOST_NUMBERED {
        num_columns.div_ceil(12)
    } else {
        1
    };
    let row_every = if height < LOW_ROW { every } else { 1 };
    let (top, right) = (24.0, left + width * num_columns as f64);
    let bottom = top + height * num_rows as f64;
    let mut svg = Svg::new(
        "heat",
        right.max(300.0) + 6.0,
        bottom + 40.0,
        plot.description,
    );
    svg.text("label", (2.0, 13.0), Anchor::Start, plot.y_label, 60);
    let values = plot.cells.iter().flatten().filter_map(|cell| cell.value);
    let (low, high) = range(values).unwrap_or((0.0, 1.0));
    let span = 0.5 * high - 0.5 * low;
    let shade = |value: f64| {
        let share = if span > 0.0 {
            ((0.5 * value - 0.5 * low) / span).clamp(0.0, 1.0)
        } else {
            0.5
        };
        if plot.is_low_dark { 1.0 - share } else { share }
    };
    for (row, name) in plot.rows.iter().enumerate() {
        let y = top + height * row as f64;
        if row % row_every == 0 {
            let at = (left - 5.0, y + 0.5 * height + 4.0);
            svg.text("tick", at, Anchor::End, name, most_of_row);
        }
        let cells = plot.cells.get(row).map_or(&[][..], Vec::as_slice);
        for (column, cell) in cells.iter().take(num_columns).enumerate() {
            let at = (left + width * column as f64, y);
            let size = (width - 1.0, height - 1.0);
            let Some(value) = cell.value.filter(|value| value.is_finite()) else {
                svg.rect("hole", at, size, 1.0, &cell.title);
                continue;
            };
            let shade = shade(value);
            svg.rect("cell", at, size, 0.04 + 0.88 * shade, &cell.title);
            if num_columns <= MOST_NUMBERED && height >= LOW_ROW {
                let class = if shade > 0.5 { "value on" } else { "value" };
                let middle = (at.0 + 0.5 * width, y + 0.5 * height + 4.0);
                svg.text(class, middle, Anchor::Middle, &cell.text, room.max(3));
            }
        }
    }
    for (column, name) in plot.columns.iter().enumerate() {
        if column % every == 0 {
            let at = (left + width * (column as f64 + 0.5), bottom + 15.0);
            svg.text("tick", at, Anchor::Middle, name, (room * every).max(2));
        }
    }
    let below = (0.5 * (left + right), bottom + 32.0);
    svg.text("label", below, Anchor::Middle, plot.x_label, 60);
    svg.finish()
}
