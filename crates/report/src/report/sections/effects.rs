//! The effects of the axes on the objective.

use super::Section;
use crate::report::model::{AxisEffect, Report};
use crate::report::numbers::{interval, percent, short_number};
use crate::report::varied::varied_briefly;
use runner_core::table::Columns;
use runner_statistics::{Balance, IntervalMethod, LevelEffect};

/// The effect of each axis over all other settings.
pub fn effects(report: &Report) -> Vec<Section> {
    let effects = report.effects.iter();
    let mut sections: Vec<Section> = effects.map(|effect| of_axis(report, effect)).collect();
    if report.is_measured_differently(&report.objective) {
        return sections;
    }
    // An axis without a table still has a plot: its values are the trials of the ranked table, or all different.
    let is_shown = |key: &String| report.effects.iter().any(|effect| effect.key == *key);
    let others = report.axes.iter().filter(|key| !is_shown(key));
    let has_values = report.trials.iter().any(|trial| trial.n > 0);
    for key in others.filter(|_| has_values) {
        sections.push(about(key));
    }
    sections
}

fn about(key: &str) -> Section {
    Section {
        axis: Some(key.to_owned()),
        ..Section::new("effect", format!("Effect of `{key}`"))
    }
}

fn of_axis(report: &Report, effect: &AxisEffect) -> Section {
    let table = effect_columns(effect, &report.objective);
    about(&effect.key)
        .columns(table)
        .note(with_spread(report, effect_note(effect)))
}

/// One row per value of an axis.
pub fn effect_columns(effect: &AxisEffect, value: &str) -> Columns {
    let rows = effect.marginal.levels.iter().map(|level| {
        vec![
            level.level.clone(),
            level.num_rows.to_string(),
            level.n.to_string(),
            short_number(level.mean),
            level.interval.as_ref().map_or("-".into(), interval),
        ]
    });
    let units = if is_over_splits(effect) {
        "pairs"
    } else {
        "seeds"
    };
    let head = [effect.key.as_str(), "runs", units, value, "95 % interval"];
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// A note on what the spread is over.
fn with_spread(report: &Report, note: String) -> String {
    match varied_briefly(report) {
        Some(varied) => format!("{note} {varied}"),
        None => note,
    }
}

/// Whether its means are of pairs of a seed and a split.
fn is_over_splits(effect: &AxisEffect) -> bool {
    let is_corrected = |level: &LevelEffect| {
        let interval = level.interval.as_ref();
        interval.is_some_and(|interval| interval.method == IntervalMethod::CorrectedT)
    };
    effect.marginal.levels.iter().any(is_corrected)
}

/// How to read the rows.
pub fn effect_note(effect: &AxisEffect) -> String {
    let note = if is_over_splits(effect) {
        "The mean over all other settings for each pair of a seed and a split, and Student's interval, corrected for what splits and seeds share."
    } else {
        "The mean over all other settings for each seed, and Student's interval over the seeds."
    };
    match effect.marginal.balance {
        Balance::Balanced => note.into(),
        Balance::Unbalanced { missing, repeated } => format!(
            "{note} Not every value was combined with the same others ({missing} combinations are missing, {repeated} occur more than once), so a difference may come from the others."
        ),
    }
}

/// How much each axis matters, the most important first.
pub fn importance(report: &Report) -> Option<Section> {
    let found = important(report);
    if found.len() < 2 {
        return None;
    }
    let share = |share: f64| percent(rounded(share));
    let rows = found.iter().map(|axis| {
        let between = axis.between;
        vec![
            axis.key.to_owned(),
            share(axis.share),
            between.map_or("-".into(), |(low, high)| {
                format!("{} to {}", share(low), share(high))
            }),
        ]
    });
    let rows = rows.collect();
    let section = Section::new("importance", "Importance of the axes");
    let Some(forest) = &report.importance else {
        let head = ["axis", "share", "95 % interval"].map(str::to_owned);
        let rest = if report.axes.len() > found.len() {
            "to other axes and to interactions"
        } else {
            "to interactions of axes"
        };
        let note = format!(
            "The fraction of the variance between settings that each axis explains by itself, within each seed (Hutter, Hoos and Leyton-Brown, 2014), with Student's interval over the seeds; the rest is due {rest}. It applies to the values that were tried."
        );
        return Some(
            section
                .table(head.to_vec(), rows)
                .note(with_spread(report, note)),
        );
    };
    let head = ["axis", "share", "95 % of trees"].map(str::to_owned);
    Some(section.table(head.to_vec(), rows).note(format!(
        "The fraction of the variance between {} trials that each axis explains, by itself or together with others: how much worse a regression tree predicts trials that it has not seen if their values of the axis are exchanged (Breiman, 2001), and the range of 95 % of the trees. Together, trees predict {} of the variance of such trials; the rest is noise, or too fine for them.",
        forest.n,
        share(forest.explained)
    )))
}

/// How much an axis matters.
pub struct Important<'a> {
    /// The axis.
    pub key: &'a str,
    /// The share of the variance.
    pub share: f64,
    /// Its interval, or the range over trees.
    pub between: Option<(f64, f64)>,
}

/// The axes with their importance, the most important first.
pub fn important(report: &Report) -> Vec<Important<'_>> {
    let mut found: Vec<Important> = match &report.importance {
        Some(forest) => {
            let axes = report.axes.iter().zip(&forest.axes);
            axes.map(|(key, axis)| Important {
                key,
                share: axis.share,
                between: Some((axis.low, axis.high)),
            })
            .collect()
        }
        None => {
            let effects = report.effects.iter();
            let known = effects.filter_map(|effect| Some((&effect.key, effect.importance?)));
            known
                .map(|(key, of)| Important {
                    key,
                    share: of.share,
                    between: of.interval.map(|interval| (interval.low, interval.high)),
                })
                .collect()
        }
    };
    found.sort_by(|a, b| b.share.total_cmp(&a.share));
    found
}

/// A share in tenths of a percent.
fn rounded(share: f64) -> f64 {
    (1e3 * share).round() / 1e3
}

/// The axes together. In text this is the ranked table, so this section only has plots.
pub fn together(report: &Report) -> Option<Section> {
    let has_values = report.trials.iter().filter(|trial| trial.n > 0).count() > 1;
    let is_ranked = report.selected().is_some();
    (report.axes.len() > 1 && has_values && is_ranked)
        .then(|| Section::new("together", "All axes together"))
}
