//! `evaluation.json`: what the best weights of a run get wrong, item by item, on the split that epochs are compared on.
//!
//! The worker writes it when everything is trained, so it is there for runs that completed. No number of a run
//! comes from it: those are in the events.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::{RunFolder, format, seal, unwritable, write_whole};

/// What the weights of `model/best.bpk` give for a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// [`crate::plan::FORMAT`].
    pub format: u32,
    /// The split.
    pub split: String,
    /// The epoch that the weights are of.
    pub epoch: usize,
    /// What is learned, and what came of it.
    #[serde(flatten)]
    pub found: Evaluated,
}

/// What came of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Evaluated {
    /// A class for each item.
    Classification {
        /// Items that have a class.
        num_items: u64,
        /// How often which class was taken for which.
        #[serde(flatten)]
        confusion: Confusion,
        /// Of the items that were taken for another class those with the largest losses, the largest first.
        mistakes: Vec<Mistake>,
    },
    /// A class for each pixel.
    Segmentation {
        /// Items.
        num_items: u64,
        /// Pixels that count.
        num_pixels: u64,
        /// How often which class was taken for which, in pixels.
        #[serde(flatten)]
        confusion: Confusion,
    },
    /// The next token at each position.
    NextToken {
        /// Items.
        num_items: u64,
        /// Tokens that count.
        num_tokens: u64,
        /// The tokens that were taken for others most often.
        confused: Vec<Confused>,
    },
    /// Any of several labels.
    MultiLabel {
        /// Items.
        num_items: u64,
        /// How often each was given and held.
        labels: Vec<LabelCounts>,
    },
    /// Numbers for each item.
    Regression {
        /// Items.
        num_items: u64,
        /// The name of each number; none where there are too many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        targets: Vec<String>,
        /// Some items, ascending: evenly by the rank of their first target, with those of the largest losses.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        points: Vec<Point>,
        /// What was predicted less what was to be, for each target in the units of the data.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        residuals: Vec<Residuals>,
        /// Why there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    },
}

/// How often which class was taken for which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confusion {
    /// The names of the classes; none where there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// A row for each true class, with a column for each predicted one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// An item that was taken for another class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mistake {
    /// Its place in the split, from 0.
    pub item: usize,
    /// Its class.
    pub target: String,
    /// What it was taken for.
    pub predicted: String,
    /// The probability that this was given, where outputs stand for probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Its loss.
    pub loss: f64,
    /// Where it stands in the data, in words.
    #[serde(rename = "where")]
    pub place: String,
    /// A small PNG as a `data:` URL, where items are pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// A token that was taken for another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confused {
    /// The token.
    pub target: String,
    /// What it was taken for.
    pub predicted: String,
    /// How often.
    pub count: u64,
}

/// How often a label was given and held.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCounts {
    /// Its name.
    pub label: String,
    /// Given, and it holds.
    pub true_positives: u64,
    /// Given, and it does not hold.
    pub false_positives: u64,
    /// Not given, and it does not hold.
    pub true_negatives: u64,
    /// Not given, and it holds.
    pub false_negatives: u64,
}

/// An item with numbers, in the units of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place in the split, from 0.
    pub item: usize,
    /// What was to be predicted.
    pub target: Vec<f64>,
    /// What was.
    pub predicted: Vec<f64>,
    /// Where it stands in the data, in words.
    #[serde(rename = "where")]
    pub place: String,
}

/// How far predictions of one target are off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Residuals {
    /// Of all items.
    pub mean: f64,
    /// The standard deviation around the mean, over one item less than there are; 0 for one item.
    pub sd: f64,
    /// The root of the mean square.
    pub rmse: f64,
    /// By their fractions from 0 to 1; 0 and 1 are of all items.
    pub quantiles: BTreeMap<String, f64>,
    /// The items that the other quantiles are of, evenly spread over the split, where they are not of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles_of: Option<u64>,
}

impl RunFolder {
    /// Writes what the best weights get wrong. The same evaluation gives the same bytes.
    pub fn write_evaluation(&self, evaluation: &Evaluation) -> io::Result<()> {
        let path = self.evaluation_json();
        let mut text = serde_json::to_string(evaluation).map_err(io::Error::other)?;
        text.push('\n');
        write_whole(&path, seal::json(text).as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Reads what the best weights get wrong; `None` where it was not written.
    pub fn read_evaluation(&self) -> io::Result<Option<Evaluation>> {
        format::read_json(&self.evaluation_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FORMAT;

    fn comes_back(found: Evaluated) -> String {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder(folder.path().to_owned());
        assert_eq!(run.read_evaluation().unwrap(), None);
        let evaluation = Evaluation {
            format: FORMAT,
            split: "valid".into(),
            epoch: 7,
            found,
        };
        run.write_evaluation(&evaluation).unwrap();
        assert_eq!(run.read_evaluation().unwrap(), Some(evaluation));
        let text = std::fs::read_to_string(run.evaluation_json()).unwrap();
        let (text, _) = text.rsplit_once(",\"seal\"").expect("it is sealed");
        format!("{text}}}").replace(&format!("\"format\":{FORMAT}"), "\"format\":F")
    }

    #[test]
    fn what_is_written_comes_back() {
        let classification = Evaluated::Classification {
            num_items: 12,
            confusion: Confusion {
                classes: vec!["a".into(), "b".into()],
                confusion: vec![vec![5, 1], vec![0, 6]],
                left_out: None,
            },
            mistakes: vec![Mistake {
                item: 3,
                target: "a".into(),
                predicted: "b".into(),
                probability: Some(0.75),
                loss: 1.5,
                place: "a/3.png".into(),
                picture: Some("data:image/png;base64,".into()),
            }],
        };
        insta::assert_snapshot!(comes_back(classification), @r#"{"format":F,"split":"valid","epoch":7,"task":"classification","num_items":12,"classes":["a","b"],"confusion":[[5,1],[0,6]],"mistakes":[{"item":3,"target":"a","predicted":"b","probability":0.75,"loss":1.5,"where":"a/3.png","picture":"data:image/png;base64,"}]}"#);
        let regression = Evaluated::Regression {
            num_items: 2,
            targets: vec!["y".into()],
            points: vec![Point {
                item: 1,
                target: vec![1.0],
                predicted: vec![1.25],
                place: "row 2 of t.csv".into(),
            }],
            residuals: vec![Residuals {
                mean: 0.25,
                ..Residuals::default()
            }],
            left_out: None,
        };
        insta::assert_snapshot!(comes_back(regression), @r#"{"format":F,"split":"valid","epoch":7,"task":"regression","num_items":2,"targets":["y"],"points":[{"item":1,"target":[1.0],"predicted":[1.25],"where":"row 2 of t.csv"}],"residuals":[{"mean":0.25,"sd":0.0,"rmse":0.0,"quantiles":{}}]}"#);
        let too_many = Evaluated::Segmentation {
            num_items: 2,
            num_pixels: 8,
            confusion: Confusion {
                left_out: Some("there are 300 classes".into()),
                ..Confusion::default()
            },
        };
        insta::assert_snapshot!(comes_back(too_many), @r#"{"format":F,"split":"valid","epoch":7,"task":"segmentation","num_items":2,"num_pixels":8,"left_out":"there are 300 classes"}"#);
    }
}
