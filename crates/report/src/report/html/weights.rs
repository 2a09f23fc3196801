//! Plots of weights and gradients.

use super::figures::{Figure, Key};
use crate::report::model::Report;
use crate::report::numbers::short_number;
use crate::report::plot::*;
use crate::report::sections::moment;
use runner_core::record::weights::ParameterValues;

/// The norms of the gradients of each parameter over epochs.
pub fn gradients(report: &Report) -> Option<Figure> {
    let norms = report.curves.norms.as_ref()?;
    let columns: Vec<String> = norms.epochs.iter().map(usize::to_string).collect();
    let rows: Vec<String> = norms.parameters.iter().map(|of| of.name.clone()).collect();
    let cells = norms.parameters.iter().map(|of| {
        let each = of.means.iter().zip(&norms.epochs);
        let each = each.map(|(mean, epoch)| Cell {
            // A norm of 0 has no logarithm.
            value: mean.filter(|norm| *norm > 0.0).map(f64::log10),
            text: mean.map_or_else(String::new, short_number),
            title: format!(
                "{}, epoch {epoch}: {}",
                of.name,
                mean.map_or_else(|| "-".to_owned(), short_number)
            ),
        });
        each.collect()
    });
    let cells: Vec<Vec<Cell>> = cells.collect();
    let svg = heat(&Heat {
        description: &format!("gradient norms of {} parameters by epoch", rows.len()),
        x_label: "epoch",
        y_label: "parameter",
        columns: &columns,
        rows: &rows,
        cells: &cells,
        is_low_dark: false,
    });
    Some(Figure {
        is_wide: columns.len() > 12,
        ..Figure::new(
            svg,
            "The norm of the gradient of each parameter; the stronger the color, the larger it is, on a logarithmic scale.",
        )
    })
}

/// Histograms of the parameters with the most values.
pub fn histograms(report: &Report) -> Vec<Figure> {
    let Some(of) = &report.weights else {
        return Vec::new();
    };
    let saved = &of.weights.saved;
    let with_counts = of.weights.parameters.iter().filter(|of| {
        let mut values = of.values.iter();
        values.any(|values| !values.counts.is_empty())
    });
    let figures = with_counts.map(|parameter| histogram(parameter, saved));
    let mut figures: Vec<Figure> = figures.collect();
    if let Some(first) = figures.first_mut() {
        let keys = saved.iter().enumerate();
        let keys = keys.map(|(series, name)| Key {
            series,
            mark: legend_mark(series),
            name: moment(name).to_owned(),
        });
        first.legend = keys.collect();
    }
    figures
}

fn histogram(parameter: &ParameterValues, saved: &[String]) -> Figure {
    let (low, high) = parameter.range;
    let lines_of = saved.iter().zip(&parameter.values).enumerate();
    let lines_of = lines_of.map(|(series, (name, values))| {
        let num_bins = values.counts.len() as f64;
        let total = values.counts.iter().sum::<u64>().max(1) as f64;
        let points = values.counts.iter().enumerate().map(|(at, count)| {
            let share = (at as f64 + 0.5) / num_bins;
            Point {
                x: low * (1.0 - share) + high * share,
                y: *count as f64 / total,
                band: None,
            }
        });
        Line {
            series,
            name: moment(name).to_owned(),
            stroke: if series == 0 {
                Stroke::Dashed
            } else {
                Stroke::Solid
            },
            points: points.collect(),
        }
    });
    let name = &parameter.name;
    let svg = lines(&Lines {
        description: &format!("the values of {name}, in {} bins", 30),
        x_label: "value",
        y_label: "fraction of the values",
        y: Kind::Linear,
        lines: &lines_of.collect::<Vec<_>>(),
    });
    Figure::new(svg, format!("`{name}`."))
}
