//! The errors of the selected trial.

use super::{Section, dash, head};
use crate::report::evaluation::{Selected, most_confused};
use crate::report::model::Report;
use crate::report::numbers::short_number;
use crate::report::separation::{summary, thresholds};
use runner_core::record::evaluation::{
    ClassSeparation, Confusion, Continued, EpochPicture, Evaluated, LabelCounts, Mistake,
    Residuals, Sample,
};

/// Maximum number of confused pairs of classes or tokens in a table.
const MAX_PAIRS: usize = 10;

/// Maximum number of classes in a table.
const MAX_CLASSES: usize = 30;

/// Confusion matrix, mistakes and residuals of the highest ranked trial.
pub fn evaluation(report: &Report) -> Vec<Section> {
    let Some(of) = &report.evaluation else {
        return Vec::new();
    };
    let sections = match &of.evaluation.found {
        Evaluated::Classification {
            confusion: found,
            mistakes: worst,
            separations,
            ..
        } => {
            let [probabilities, thresholds] = separated(of, separations, "class");
            vec![
                confusion(of, found, "items"),
                classes(of, found, "items"),
                probabilities,
                thresholds,
                mistakes(of, worst),
            ]
        }
        Evaluated::Segmentation {
            confusion: found,
            samples: shown,
            ..
        } => vec![
            samples(
                of,
                shown,
                "Predicted masks",
                "item, its mask and the predicted mask",
            ),
            confusion(of, found, "pixels"),
            classes(of, found, "pixels"),
        ],
        Evaluated::Autoencoding { samples: shown, .. } => {
            vec![samples(
                of,
                shown,
                "Reconstructions",
                "item and its reconstruction",
            )]
        }
        Evaluated::Generation {
            num_items,
            pictures,
            by_epoch,
            ..
        } => vec![
            generated(of, *num_items, pictures.len()),
            generated_by_epoch(of, by_epoch),
        ],
        Evaluated::NextToken {
            confused, texts, ..
        } => {
            let rows = confused.iter().take(MAX_PAIRS);
            let rows = rows.map(|pair| {
                let token = |text: &str| format!("{text:?}");
                vec![
                    token(&pair.target),
                    token(&pair.predicted),
                    pair.count.to_string(),
                ]
            });
            let names = head(["token", "predicted as", "times"]);
            let intro = "the tokens that are most often confused";
            let confusion = table("confusion", "Confusion", of, intro, names, rows.collect());
            vec![continued(of, texts), confusion]
        }
        Evaluated::MultiLabel {
            labels,
            separations,
            ..
        } => {
            let names = head([
                "label",
                "true positives",
                "false negatives",
                "false positives",
                "true negatives",
            ]);
            let rows = labels.iter().map(counts).collect();
            let intro = "how often each label was predicted and present";
            let [probabilities, thresholds] = separated(of, separations, "label");
            vec![
                table("labels", "Labels", of, intro, names, rows),
                probabilities,
                thresholds,
            ]
        }
        Evaluated::Regression {
            targets,
            residuals: found,
            left_out,
            ..
        } => vec![residuals(of, targets, found, left_out.as_deref())],
    };
    sections.into_iter().flatten().collect()
}

/// The subject of an evaluation, as text.
fn of_run(of: &Selected) -> String {
    format!(
        "Of `{}` on {} with the weights of epoch {}",
        of.run, of.evaluation.split, of.evaluation.epoch
    )
}

fn table(
    id: &'static str,
    title: &str,
    of: &Selected,
    intro: &str,
    names: Vec<String>,
    rows: Vec<Vec<String>>,
) -> Option<Section> {
    let section = Section::new(id, title).intro(format!("{}: {intro}.", of_run(of)));
    (!rows.is_empty()).then(|| section.table(names, rows))
}

fn share(part: f64) -> String {
    format!("{} %", short_number(100.0 * part))
}

/// The runs that a confusion is summed over, as text.
fn runs_of(of: &Selected) -> String {
    match of.n {
        1 => format!("`{}`", of.run),
        num => format!("`{}`, summed over {num} runs", of.trial),
    }
}

fn confusion(of: &Selected, found: &Confusion, what: &str) -> Option<Section> {
    let runs = runs_of(of);
    let section = Section::new("confusion", "Confusion");
    if let Some(reason) = &found.left_out {
        return Some(section.note(format!("Not available: {reason}.")));
    }
    if found.confusion.is_empty() {
        return None;
    }
    let split = &of.evaluation.split;
    let section = section.intro(format!(
        "Of {runs}, on {split}, with the weights of the best epoch."
    ));
    let pairs = most_confused(found);
    let rows = pairs.iter().take(MAX_PAIRS).map(|pair| {
        vec![
            pair.class.to_owned(),
            pair.taken_for.to_owned(),
            pair.count.to_string(),
            share(pair.count as f64 / pair.of as f64),
        ]
    });
    Some(if pairs.is_empty() {
        section.note("No class is predicted as another.")
    } else {
        section.table(
            head(["class", "predicted as", what, "of the class"]),
            rows.collect(),
        )
    })
}

/// How well each class is recognized; the least well first, if there are many.
fn classes(of: &Selected, found: &Confusion, what: &str) -> Option<Section> {
    let mut scored: Vec<(&String, ClassScores)> = found
        .classes
        .iter()
        .zip(ClassScores::of(&found.confusion))
        .collect();
    let intro = if scored.len() > MAX_CLASSES {
        scored.sort_by(|(_, a), (_, b)| a.f1.unwrap_or(0.0).total_cmp(&b.f1.unwrap_or(0.0)));
        scored.truncate(MAX_CLASSES);
        "the classes that are recognized least well"
    } else {
        "how well each class is recognized"
    };
    let number = |value: Option<f64>| value.map_or_else(dash, short_number);
    let rows = scored.into_iter().map(|(class, scores)| {
        vec![
            class.clone(),
            scores.num.to_string(),
            number(scores.precision),
            number(scores.recall),
            number(scores.f1),
            number(scores.iou),
        ]
    });
    let names = head(["class", what, "precision", "recall", "F1", "IoU"]);
    let rows: Vec<Vec<String>> = rows.collect();
    let section = Section::new("classes", "Classes").intro(format!(
        "Of {}, on {}, with the weights of the best epoch: {intro}.",
        runs_of(of),
        of.evaluation.split
    ));
    (!rows.is_empty()).then(|| section.table(names, rows))
}

/// The scores of a class against all others; none where their divisor is 0.
struct ClassScores {
    num: u64,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
    iou: Option<f64>,
}

impl ClassScores {
    /// Those of each class of a confusion, whose rows are true classes. Counts may come from anyone.
    fn of(confusion: &[Vec<u64>]) -> Vec<Self> {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.fold(0, u64::saturating_add);
        let of = |at: usize| {
            let row = &confusion[at];
            let num = sum(&mut row.iter().copied());
            let found = sum(&mut confusion.iter().filter_map(|row| row.get(at).copied()));
            let hits = row.get(at).copied().unwrap_or(0) as f64;
            let (of_class, of_found) = (num as f64, found as f64);
            let share = |whole: f64, part: f64| (whole > 0.0).then(|| part / whole);
            Self {
                num,
                precision: share(of_found, hits),
                recall: share(of_class, hits),
                f1: share(of_class + of_found, 2.0 * hits),
                iou: share(of_class + of_found - hits, hits),
            }
        };
        (0..confusion.len()).map(of).collect()
    }
}

/// Items whose pictures are shown in a page.
fn samples(of: &Selected, shown: &[Sample], title: &str, what: &str) -> Option<Section> {
    let row = |sample: &Sample| vec![sample.place.clone(), short_number(sample.loss)];
    let intro = format!(
        "{what}, of some items that are spread evenly over the split, and of those with the largest losses"
    );
    let rows = shown.iter().map(row).collect();
    table("samples", title, of, &intro, head(["item", "loss"]), rows)
}

/// Items that are made from noise; none if there are no pictures of them.
fn generated(of: &Selected, num_items: u64, num_shown: usize) -> Option<Section> {
    let intro = "items that the network makes from the noise of the first items of the split";
    let names = head(["generated items", "shown"]);
    let rows = vec![vec![num_items.to_string(), num_shown.to_string()]];
    table("samples", "Generated items", of, intro, names, rows).filter(|_| num_shown > 0)
}

/// The same after some epochs.
fn generated_by_epoch(of: &Selected, drawn: &[EpochPicture]) -> Option<Section> {
    let intro = "the first items that the network generates after some epochs, always from the same noise; `samples/` in the run's folder has the picture of each epoch";
    let rows = drawn.iter().map(|drawn| vec![drawn.epoch.to_string()]);
    let title = "Generated items by epoch";
    table(
        "samples_by_epoch",
        title,
        of,
        intro,
        head(["epoch"]),
        rows.collect(),
    )
    .filter(|_| !drawn.is_empty())
}

/// Maximum number of characters of a prompt: its end is what is continued.
const MAX_PROMPT: usize = 160;

/// Texts that the network continues.
fn continued(of: &Selected, texts: &[Continued]) -> Option<Section> {
    let lines = |text: &str| text.replace('\n', "\u{21b5} ");
    let row = |text: &Continued| {
        let prompt = lines(&text.prompt);
        let num = prompt.chars().count();
        let end: String = prompt
            .chars()
            .skip(num.saturating_sub(MAX_PROMPT))
            .collect();
        let prompt = if num > MAX_PROMPT {
            format!("\u{2026}{end}")
        } else {
            end
        };
        vec![prompt, lines(&text.target), lines(&text.predicted)]
    };
    let intro = "how texts of the split go on, and how the network continues them with the most probable tokens";
    let names = head(["text", "goes on", "continued by the network"]);
    let rows = texts.iter().map(row).collect();
    table("texts", "Continued texts", of, intro, names, rows)
}

fn mistakes(of: &Selected, worst: &[Mistake]) -> Option<Section> {
    let row = |mistake: &Mistake| {
        vec![
            mistake.place.clone(),
            mistake.target.clone(),
            mistake.predicted.clone(),
            mistake.probability.map_or_else(dash, share),
            short_number(mistake.loss),
        ]
    };
    let names = head(["item", "class", "predicted", "probability", "loss"]);
    let intro = "items with the largest losses that were predicted as another class, and the probability of that class";
    table(
        "mistakes",
        "Worst mistakes",
        of,
        intro,
        names,
        worst.iter().map(row).collect(),
    )
}

/// How probabilities separate classes; for a single one also by thresholds.
fn separated(of: &Selected, found: &[ClassSeparation], class: &str) -> [Option<Section>; 2] {
    let summary = summary(found, class);
    let intro = "how the probability of each separates its items from others, and how far it is from the fraction of items that have it";
    let probabilities = table(
        "probabilities",
        "Probabilities",
        of,
        intro,
        summary.head,
        summary.rows,
    );
    let [only] = found else {
        return [probabilities, None];
    };
    let by_threshold = thresholds(&only.of);
    let intro = format!(
        "items are predicted as `{}` from a probability on",
        only.class
    );
    let by_threshold = table(
        "thresholds",
        "Thresholds",
        of,
        &intro,
        by_threshold.head,
        by_threshold.rows,
    );
    [probabilities, by_threshold]
}

fn counts(label: &LabelCounts) -> Vec<String> {
    vec![
        label.label.clone(),
        label.true_positives.to_string(),
        label.false_negatives.to_string(),
        label.false_positives.to_string(),
        label.true_negatives.to_string(),
    ]
}

fn residuals(
    of: &Selected,
    targets: &[String],
    found: &[Residuals],
    left_out: Option<&str>,
) -> Option<Section> {
    if let Some(reason) = left_out {
        let section = Section::new("residuals", "Residuals");
        return Some(section.note(format!("Not available: {reason}.")));
    }
    let rows = targets.iter().zip(found).map(|(target, found)| {
        let quantile = |name: &str| {
            found
                .quantiles
                .get(name)
                .map_or_else(dash, |q| short_number(*q))
        };
        vec![
            target.clone(),
            short_number(found.mean),
            short_number(found.sd),
            short_number(found.rmse),
            quantile("0"),
            quantile("0.5"),
            quantile("1"),
        ]
    });
    let names = head([
        "target",
        "mean",
        "sd",
        "root mean square",
        "least",
        "median",
        "most",
    ]);
    let intro = "predicted minus target, in the units of the data";
    table("residuals", "Residuals", of, intro, names, rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_scores_of_scikit_learn() {
        // precision_recall_fscore_support and jaccard_score of 3 classes, the last of which is never there or predicted.
        let confusion = [vec![5, 1, 0], vec![2, 4, 0], vec![0, 0, 0]];
        let found = ClassScores::of(&confusion);
        let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} {b}");
        close(found[0].precision, 5.0 / 7.0);
        close(found[0].recall, 5.0 / 6.0);
        close(found[0].f1, 10.0 / 13.0);
        close(found[0].iou, 0.625);
        close(found[1].precision, 0.8);
        close(found[1].iou, 4.0 / 7.0);
        assert_eq!((found[2].num, found[2].f1, found[2].iou), (0, None, None));
    }
}
