//! The plot of differences from the baseline.

use super::figures::Figure;
use crate::report::model::Report;
use crate::report::numbers::interval;
use crate::report::plot::{Apart, Forest, forest};
use crate::report::verdict;
use runner_core::table::shortened;

/// With more rows than this, the table is used instead.
const MOST: usize = 30;

/// Longer names are cut.
const LONGEST: usize = 28;

/// Each trial's difference from the baseline with its interval.
pub fn differences(report: &Report) -> Option<Figure> {
    let judged = report.trials.iter().filter_map(|trial| {
        let found = trial.verdict.as_ref()?;
        let compared = found.comparison?;
        let between = compared.interval;
        Some(Apart {
            name: trial.id.clone(),
            difference: compared.mean_difference,
            interval: between.map(|between| (between.low, between.high)),
            text: verdict::code(found),
            title: format!(
                "{}: {}{}, {}",
                trial.id,
                verdict::difference(found),
                between.map_or(String::new(), |b| format!(
                    ", 95 % interval {}",
                    interval(&b)
                )),
                verdict::in_words(found)
            ),
        })
    });
    let mut rows: Vec<Apart> = judged.take(MOST).collect();
    // Without any interval, it would only repeat the ranks.
    if rows.len() < 2 || rows.iter().all(|row| row.interval.is_none()) {
        return None;
    }
    let names = rows.iter().map(|row| row.name.clone()).collect();
    let (names, keys) = shortened(names, LONGEST);
    for (row, name) in rows.iter_mut().zip(names) {
        row.name = name;
    }
    let keys = keys.map_or(String::new(), |keys| {
        format!(" Trials are named by {keys}.")
    });
    let baseline = report.baseline.as_ref()?;
    let plot = Forest {
        description: &format!(
            "differences in {} from {}",
            report.objective, baseline.trial
        ),
        label: &format!("difference in {}", report.objective),
        within: report.smallest_difference,
        rows: &rows,
    };
    let cut = if plot.is_cut() {
        "; an arrow leads to what is beyond the plot"
    } else {
        ""
    };
    let within = report.smallest_difference.map_or(String::new(), |within| {
        format!(" Differences within the band, up to {within} in either direction, are too small to matter.")
    });
    Some(Figure::new(
        forest(&plot),
        format!(
            "Differences from `{}` with their own 95 % intervals, which are not corrected for their number{cut}.{within}{keys}",
            baseline.trial
        ),
    ))
}
