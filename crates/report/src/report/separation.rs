//! How probabilities separate classes, as tables and plots: for reports, and for the page of `runner evaluate`.

use super::numbers::short_number;
use super::plot::*;
use runner_core::record::evaluation::ClassSeparation;
use runner_core::table::Columns;
use runner_statistics::{STEPS, Separation, Threshold};

/// Maximum number of lines in a plot: as many as there are colors.
const MAX_LINES: usize = 8;

/// A row for each class or label: its items, areas, calibration, and its threshold with the largest F1.
pub fn summary(all: &[ClassSeparation], class: &str) -> Columns {
    let head = [
        class,
        "items",
        "others",
        "auroc",
        "auc_pr",
        "calibration error",
        "largest F1",
        "at threshold",
    ];
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short_number);
    let row = |separation: &ClassSeparation| {
        let of = &separation.of;
        let best = of.best_f1();
        vec![
            separation.class.clone(),
            of.positives.to_string(),
            of.negatives.to_string(),
            number(of.auroc),
            number(of.auc_pr),
            number(of.calibration_error()),
            number(best.map(|best| of.scores(&best)[2])),
            number(best.map(|best| best.at)),
        ]
    };
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
    }
}

/// The result of deciding by each of some thresholds.
pub fn thresholds(of: &Separation) -> Columns {
    let head = [
        "threshold",
        "true positives",
        "false positives",
        "false negatives",
        "precision",
        "recall",
        "F1",
        "false positive rate",
    ];
    let best = of.best_f1();
    let mut all: Vec<(Threshold, bool)> = STEPS.map(|step| (of.at(step), false)).to_vec();
    all.extend(best.map(|best| (best, true)));
    all.sort_by(|(a, _), (b, _)| a.at.total_cmp(&b.at));
    let row = |(threshold, is_best): &(Threshold, bool)| {
        let [precision, recall, f1] = of.scores(threshold);
        let mark = if *is_best { " (largest F1)" } else { "" };
        vec![
            format!("{}{mark}", short_number(threshold.at)),
            threshold.true_positives.to_string(),
            threshold.false_positives.to_string(),
            of.positives
                .saturating_sub(threshold.true_positives)
                .to_string(),
            short_number(precision),
            short_number(recall),
            short_number(f1),
            short_number(threshold.false_positives as f64 / of.negatives.max(1) as f64),
        ]
    };
    Columns {
        head: head.map(str::to_owned).to_vec(),
        rows: all.iter().map(row).collect(),
    }
}

/// A plot with its caption.
pub struct Drawn {
    /// The drawing.
    pub svg: String,
    /// Its caption.
    pub caption: &'static str,
}

/// The ROC curve, the precision-recall curve and the reliability diagram, and the names of their lines.
pub fn plots(all: &[ClassSeparation]) -> (Vec<Drawn>, Vec<String>) {
    let shown = least_separated(all);
    let names: Vec<String> = shown.iter().map(|one| one.class.clone()).collect();
    let of = |points: &dyn Fn(&Separation) -> Vec<(f64, f64)>, reference: Option<&str>| {
        let diagonal = reference.map(|name| {
            line(
                MAX_LINES - 1,
                name,
                Stroke::Dotted,
                &[(0.0, 0.0), (1.0, 1.0)],
            )
        });
        let each = shown.iter().enumerate();
        let each =
            each.map(|(series, one)| line(series, &one.class, Stroke::Solid, &points(&one.of)));
        diagonal.into_iter().chain(each).collect::<Vec<Line>>()
    };
    let draw = |labels: [&str; 3], lines_of: Vec<Line>, caption| Drawn {
        svg: lines(&Lines {
            description: labels[0],
            x_label: labels[1],
            y_label: labels[2],
            y: Kind::Linear,
            lines: &lines_of,
        }),
        caption,
    };
    let mut drawn = vec![
        draw(
            [
                "receiver operating characteristic",
                "false positive rate",
                "recall",
            ],
            of(&roc, Some("chance")),
            "ROC: recall by the fraction of other items that are accepted too, over all thresholds; chance is dotted.",
        ),
        draw(
            ["precision by recall", "recall", "precision"],
            of(&precision_recall, None),
            "Precision by recall, over all thresholds.",
        ),
    ];
    if shown.iter().all(|one| !one.of.bins.is_empty()) {
        drawn.push(draw(
            ["calibration", "predicted probability", "fraction"],
            of(&reliability, Some("calibrated")),
            "Calibration: the fraction of items that have the class by their predicted probability, in ten bins; calibrated probabilities are on the dotted line.",
        ));
    }
    (drawn, names)
}

/// The classes with the smallest areas, in their own order.
fn least_separated(all: &[ClassSeparation]) -> Vec<&ClassSeparation> {
    let area = |at: &usize| all[*at].of.auroc.unwrap_or(f64::INFINITY);
    let mut places: Vec<usize> = (0..all.len())
        .filter(|at| all[*at].of.positives > 0 && all[*at].of.negatives > 0)
        .collect();
    places.sort_by(|a, b| area(a).total_cmp(&area(b)));
    places.truncate(MAX_LINES);
    places.sort_unstable();
    places.into_iter().map(|at| &all[at]).collect()
}

fn line(series: usize, name: &str, stroke: Stroke, points: &[(f64, f64)]) -> Line {
    let points = points.iter().map(|(x, y)| Point {
        x: *x,
        y: *y,
        band: None,
    });
    Line {
        series,
        name: name.to_owned(),
        stroke,
        points: points.collect(),
    }
}

fn roc(of: &Separation) -> Vec<(f64, f64)> {
    let (positives, negatives) = (of.positives as f64, of.negatives as f64);
    let points = of.thresholds.iter().map(|threshold| {
        (
            threshold.false_positives as f64 / negatives,
            threshold.true_positives as f64 / positives,
        )
    });
    std::iter::once((0.0, 0.0)).chain(points).collect()
}

fn precision_recall(of: &Separation) -> Vec<(f64, f64)> {
    let points = of.thresholds.iter().map(|threshold| {
        let [precision, recall, _] = of.scores(threshold);
        (recall, precision)
    });
    points.collect()
}

fn reliability(of: &Separation) -> Vec<(f64, f64)> {
    let bins = of.bins.iter().filter(|bin| bin.num > 0);
    bins.map(|bin| (bin.mean, bin.positives as f64 / bin.num as f64))
        .collect()
}
