//! The errors of the selected trial, from the `evaluation.json` of its runs.

use std::io;

use serde::{Deserialize, Serialize};

use super::model::Report;
use runner_core::record::evaluation::{Confusion, Evaluated, Evaluation, Point};
use runner_core::record::{ExperimentFolder, Index, RunFolder, RunRecord, State};
use runner_core::show::plain_io_error;

/// The errors of the highest ranked trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Selected {
    /// The trial.
    pub trial: String,
    /// Its first run with mistakes, from which single items are shown; the first run if none has any.
    pub run: String,
    /// Its runs, over which confusion matrices are summed.
    pub n: usize,
    /// The evaluation of that run, with the summed confusion matrix.
    pub evaluation: Evaluation,
}

impl Selected {
    /// Reads that of the highest ranked trial. `None` if none of its completed runs has a readable one. An evaluation
    /// that changed since its run ended is skipped, with a remark.
    pub fn read(
        report: &Report,
        index: &Index,
        folder: &ExperimentFolder,
        remarks: &mut Vec<String>,
    ) -> Option<Self> {
        let best = report.selected()?;
        let runs = index.runs.iter();
        let runs = runs.filter(|run| run.state == State::Completed && best.runs.contains(&run.id));
        let read = runs.filter_map(|run| match read_checked(&folder.run(&run.id)) {
            Ok(evaluation) => Some((run.id.clone(), evaluation?)),
            Err(e) => {
                remarks.push(format!(
                    "the evaluation of `{}` is omitted: {}",
                    run.id,
                    plain_io_error(&e)
                ));
                None
            }
        });
        Self::of(&best.id, read.collect())
    }

    fn of(trial: &str, mut evaluations: Vec<(String, Evaluation)>) -> Option<Self> {
        // A run without mistakes has none to show.
        let has_mistakes = |(_, evaluation): &(String, Evaluation)| matches!(&evaluation.found, Evaluated::Classification { mistakes, .. } if !mistakes.is_empty());
        let first = evaluations.iter().position(has_mistakes).unwrap_or(0);
        if first > 0 {
            evaluations.swap(0, first);
        }
        let mut evaluations = evaluations.into_iter();
        let (run, mut evaluation) = evaluations.next()?;
        let mut n = 1;
        if let Some(sum) = confusion_of(&mut evaluation.found) {
            for (_, mut other) in evaluations {
                let added = confusion_of(&mut other.found).map(|more| add(sum, more));
                n += usize::from(added == Some(true));
            }
        }
        keep_embedded(&mut evaluation.found);
        Some(Self {
            trial: trial.to_owned(),
            run,
            n,
            evaluation,
        })
    }
}

/// The evaluation of a run, if it has one, as recorded.
pub(super) fn read_checked(folder: &RunFolder) -> io::Result<Option<Evaluation>> {
    folder.check_file(&RunRecord::read(folder)?, "evaluation.json")?;
    folder.read_evaluation()
}

/// The confusion matrix, if any; one that is not square is ignored.
fn confusion_of(found: &mut Evaluated) -> Option<&mut Confusion> {
    let (Evaluated::Classification { confusion, .. } | Evaluated::Segmentation { confusion, .. }) =
        found
    else {
        return None;
    };
    let num = confusion.classes.len();
    let rows = &confusion.confusion;
    if num == 0 || rows.len() != num || rows.iter().any(|row| row.len() != num) {
        confusion.confusion.clear();
        return None;
    }
    Some(confusion)
}

fn add(sum: &mut Confusion, more: &Confusion) -> bool {
    if sum.classes != more.classes {
        return false;
    }
    let cells = sum.confusion.iter_mut().flatten();
    for (cell, more) in cells.zip(more.confusion.iter().flatten()) {
        *cell = cell.saturating_add(*more);
    }
    true
}

/// Removes pictures that are not in the record itself.
fn keep_embedded(found: &mut Evaluated) {
    match found {
        Evaluated::Classification { mistakes, .. } => {
            for mistake in mistakes {
                mistake.picture = mistake.picture.take().filter(|url| is_embedded(url));
            }
        }
        Evaluated::Segmentation { samples, .. } | Evaluated::Autoencoding { samples, .. } => {
            samples.retain(|sample| is_embedded(&sample.predicted));
            for sample in samples {
                sample.input = sample.input.take().filter(|url| is_embedded(url));
                sample.target = sample.target.take().filter(|url| is_embedded(url));
            }
        }
        Evaluated::Generation {
            pictures,
            classes,
            by_epoch,
            ..
        } => {
            let num = pictures.len();
            pictures.retain(|url| is_embedded(url));
            if pictures.len() != num {
                classes.clear();
            }
            by_epoch.retain(|drawn| is_embedded(&drawn.picture));
        }
        _ => {}
    }
}

/// Whether an image is contained in its address: a report loads nothing from elsewhere.
fn is_embedded(url: &str) -> bool {
    let data = url.strip_prefix("data:image/png;base64,");
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    data.is_some_and(|data| data.chars().all(is_base64))
}

/// A class that is predicted as another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Confused<'a> {
    /// The class.
    pub class: &'a str,
    /// The predicted class.
    pub taken_for: &'a str,
    /// How often.
    pub count: u64,
    /// Total number of items of the class.
    pub of: u64,
}

/// The most frequent confusions of classes, in order.
pub fn most_confused(confusion: &Confusion) -> Vec<Confused<'_>> {
    let mut pairs = Vec::new();
    for (at, row) in confusion.confusion.iter().enumerate() {
        let of = row
            .iter()
            .fold(0, |sum: u64, cell| sum.saturating_add(*cell));
        let others = row.iter().enumerate();
        let others = others.filter(|(to, count)| *to != at && **count > 0);
        pairs.extend(others.map(|(to, count)| Confused {
            class: &confusion.classes[at],
            taken_for: &confusion.classes[to],
            count: *count,
            of,
        }));
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.count));
    pairs
}

/// One target of an item with its prediction.
pub fn pair(point: &Point, target: usize) -> Option<(f64, f64)> {
    Some((*point.target.get(target)?, *point.predicted.get(target)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluation(text: &str) -> (String, Evaluation) {
        let head =
            r#"{"format":1,"split":"valid","epoch":7,"task":"classification","num_items":12,"#;
        let evaluation = serde_json::from_str(&format!("{head}{text}}}"));
        ("run".into(), evaluation.unwrap())
    }

    #[test]
    fn confusion_is_summed_and_mistakes_are_of_the_first_run() {
        let first = r#""classes":["a","b"],"confusion":[[5,1],[0,6]],
            "mistakes":[{"item":17,"target":"a","predicted":"b","probability":0.99,"loss":4.6,"where":"row 18","picture":"http://elsewhere/x.png"}]"#;
        let second = r#""classes":["a","b"],"confusion":[[4,2],[4,3]],"mistakes":[]"#;
        let odd = r#""classes":["a","c"],"confusion":[[4,2],[3,3]],"mistakes":[]"#;
        let torn = r#""classes":["a","b"],"confusion":[[4,2],[3]],"mistakes":[]"#;
        let all = [first, second, odd, torn].map(evaluation).to_vec();
        let selected = Selected::of("t", all).unwrap();
        assert_eq!((selected.n, selected.evaluation.epoch), (2, 7));
        let Evaluated::Classification {
            confusion,
            mistakes,
            ..
        } = selected.evaluation.found
        else {
            panic!("it is a classification");
        };
        assert_eq!(confusion.confusion, [[9, 3], [4, 9]]);
        assert_eq!(
            mistakes[0].picture, None,
            "nothing is opened from elsewhere"
        );
        let pairs = most_confused(&confusion);
        let pairs: Vec<_> = pairs
            .iter()
            .map(|p| (p.class, p.taken_for, p.count, p.of))
            .collect();
        assert_eq!(pairs, [("b", "a", 4, 13), ("a", "b", 3, 12)]);
    }

    #[test]
    fn what_is_no_square_is_no_confusion() {
        assert_eq!(Selected::of("t", vec![]), None);
        let torn = r#""classes":["a","b"],"confusion":[[5,1],[0]],"mistakes":[]"#;
        let selected = Selected::of("t", vec![evaluation(torn)]).unwrap();
        let Evaluated::Classification { confusion, .. } = selected.evaluation.found else {
            panic!("it is a classification");
        };
        assert!(confusion.confusion.is_empty());
    }
}
