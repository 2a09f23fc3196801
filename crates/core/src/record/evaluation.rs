//! `evaluation.json`: the errors of a run's best weights, item by item, on the split that epochs are compared on.
//!
//! The worker writes it after training, so it exists for completed runs. No metric comes from it: those are in the
//! events.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::{RunFolder, format, seal, unwritable, write_whole};
use runner_statistics::Separation;

/// The results of the weights in `model/best.bpk` on a split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// [`crate::plan::FORMAT`].
    pub format: u32,
    /// The split.
    pub split: String,
    /// The epoch of the weights.
    pub epoch: usize,
    /// Metrics of the best prediction that is the same for every item of the split, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constant: BTreeMap<String, f64>,
    /// The task and its results.
    #[serde(flatten)]
    pub found: Evaluated,
}

/// The results of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Evaluated {
    /// One class per item.
    Classification {
        /// Items with a class.
        num_items: u64,
        /// The confusion matrix.
        #[serde(flatten)]
        confusion: Confusion,
        /// The misclassified items with the largest losses, the largest first.
        mistakes: Vec<Mistake>,
        /// How the probability of a class separates its items from others: of two classes the second, of more each;
        /// none if there are too many, or outputs are not probabilities.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        separations: Vec<ClassSeparation>,
    },
    /// One class per pixel.
    Segmentation {
        /// Items.
        num_items: u64,
        /// Pixels that are not ignored.
        num_pixels: u64,
        /// The confusion matrix, in pixels.
        #[serde(flatten)]
        confusion: Confusion,
        /// Some items with their masks.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        samples: Vec<Sample>,
    },
    /// The next token at each position.
    NextToken {
        /// Items.
        num_items: u64,
        /// Tokens that are not ignored.
        num_tokens: u64,
        /// The tokens that were confused most often.
        #[serde(default)]
        confused: Vec<Confused>,
        /// Some texts with their continuation by the network.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        texts: Vec<Continued>,
    },
    /// Items that are reconstructed.
    Autoencoding {
        /// Items.
        num_items: u64,
        /// Some items with their reconstructions.
        samples: Vec<Sample>,
    },
    /// Items that are generated from noise.
    Generation {
        /// Items of the split, and as many generated ones.
        num_items: u64,
        /// The first generated items.
        pictures: Vec<String>,
        /// The class that each of them is generated for, in a conditional pair with classes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        classes: Vec<String>,
        /// The first generated items after some epochs, in one picture each.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_epoch: Vec<EpochPicture>,
    },
    /// Several labels.
    MultiLabel {
        /// Items.
        num_items: u64,
        /// How often each label was predicted and present.
        labels: Vec<LabelCounts>,
        /// How the probability of each label separates items with it from others; none if there are too many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        separations: Vec<ClassSeparation>,
    },
    /// Numbers per item.
    Regression {
        /// Items.
        num_items: u64,
        /// The name of each number; none if there are too many.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        targets: Vec<String>,
        /// Some items, ascending: evenly by the rank of their first target, including those with the largest losses.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        points: Vec<Point>,
        /// Predicted minus target, for each target in the units of the data.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        residuals: Vec<Residuals>,
        /// Why there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_out: Option<String>,
    },
}

/// A confusion matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Confusion {
    /// The names of the classes; none if there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// One row per true class, with one column per predicted class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<u64>>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// A misclassified item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mistake {
    /// Its position in the split, from 0.
    pub item: usize,
    /// Its class.
    pub target: String,
    /// The predicted class.
    pub predicted: String,
    /// The probability of the predicted class, if outputs are probabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Its loss.
    pub loss: f64,
    /// Its place in the data, as text.
    #[serde(rename = "where")]
    pub place: String,
    /// A small PNG as a `data:` URL, if items are images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<String>,
}

/// An item as pictures: small PNGs as `data:` URLs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Its position in the split, from 0.
    pub item: usize,
    /// Its loss.
    pub loss: f64,
    /// Its place in the data, as text.
    #[serde(rename = "where")]
    pub place: String,
    /// The item, if it is an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// Its mask, if that is predicted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The predicted mask, or the reconstructed item.
    pub predicted: String,
}

/// The beginning of an item of a text, how it continues there, and how the network continues it, always with the most
/// probable token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Continued {
    /// The position of the item in the split, from 0.
    pub item: usize,
    /// The beginning.
    pub prompt: String,
    /// How it continues.
    pub target: String,
    /// How the network continues it, by as many tokens.
    pub predicted: String,
}

/// A token that was confused with another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confused {
    /// The token.
    pub target: String,
    /// The predicted token.
    pub predicted: String,
    /// How often.
    pub count: u64,
}

/// Maximum number of classes or labels with a [`ClassSeparation`].
pub const MOST_SEPARATED: usize = 16;

/// How the probability of a class, or label, separates its items from others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassSeparation {
    /// Its name.
    pub class: String,
    /// By thresholds.
    #[serde(flatten)]
    pub of: Separation,
}

/// How often a label was predicted and present.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCounts {
    /// Its name.
    pub label: String,
    /// Predicted and present.
    pub true_positives: u64,
    /// Predicted but absent.
    pub false_positives: u64,
    /// Not predicted and absent.
    pub true_negatives: u64,
    /// Not predicted but present.
    pub false_negatives: u64,
}

/// An item with numbers, in the units of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its position in the split, from 0.
    pub item: usize,
    /// The target.
    pub target: Vec<f64>,
    /// What was.
    pub predicted: Vec<f64>,
    /// Its place in the data, as text.
    #[serde(rename = "where")]
    pub place: String,
}

/// Generated items after an epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochPicture {
    /// The epoch, from 1.
    pub epoch: usize,
    /// A PNG as a `data:` URL.
    pub picture: String,
}

/// The errors of the predictions of one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Residuals {
    /// Over all items.
    pub mean: f64,
    /// The standard deviation, with n - 1; 0 for one item.
    pub sd: f64,
    /// Root mean square.
    pub rmse: f64,
    /// By fraction from 0 to 1; 0 and 1 are over all items.
    pub quantiles: BTreeMap<String, f64>,
    /// The number of items behind the other quantiles, spread evenly over the split, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantiles_of: Option<u64>,
}

impl RunFolder {
    /// Writes the evaluation. Equal evaluations give equal bytes.
    pub fn write_evaluation(&self, evaluation: &Evaluation) -> io::Result<()> {
        let path = self.evaluation_json();
        let mut text = serde_json::to_string(evaluation).map_err(io::Error::other)?;
        text.push('\n');
        write_whole(&path, seal::json(text).as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Reads the evaluation; `None` if it was not written.
    pub fn read_evaluation(&self) -> io::Result<Option<Evaluation>> {
        format::read_json(&self.evaluation_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FORMAT;
    use runner_statistics::{Bin, Threshold};

    fn comes_back(found: Evaluated) -> String {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder(folder.path().to_owned());
        assert_eq!(run.read_evaluation().unwrap(), None);
        let evaluation = Evaluation {
            format: FORMAT,
            split: "valid".into(),
            epoch: 7,
            constant: BTreeMap::new(),
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
            separations: vec![ClassSeparation {
                class: "b".into(),
                of: Separation {
                    positives: 6,
                    negatives: 6,
                    auroc: Some(0.75),
                    auc_pr: None,
                    thresholds: vec![Threshold {
                        at: 0.5,
                        true_positives: 6,
                        false_positives: 1,
                    }],
                    bins: vec![Bin {
                        num: 12,
                        positives: 6,
                        mean: 0.5,
                    }],
                },
            }],
        };
        insta::assert_snapshot!(comes_back(classification), @r#"{"format":F,"split":"valid","epoch":7,"task":"classification","num_items":12,"classes":["a","b"],"confusion":[[5,1],[0,6]],"mistakes":[{"item":3,"target":"a","predicted":"b","probability":0.75,"loss":1.5,"where":"a/3.png","picture":"data:image/png;base64,"}],"separations":[{"class":"b","positives":6,"negatives":6,"auroc":0.75,"thresholds":[{"at":0.5,"true_positives":6,"false_positives":1}],"bins":[{"num":12,"positives":6,"mean":0.5}]}]}"#);
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
            samples: vec![Sample {
                item: 1,
                loss: 0.5,
                place: "b.png".into(),
                input: None,
                target: Some("data:t".into()),
                predicted: "data:p".into(),
            }],
        };
        insta::assert_snapshot!(comes_back(too_many), @r#"{"format":F,"split":"valid","epoch":7,"task":"segmentation","num_items":2,"num_pixels":8,"left_out":"there are 300 classes","samples":[{"item":1,"loss":0.5,"where":"b.png","target":"data:t","predicted":"data:p"}]}"#);
        let texts = Evaluated::NextToken {
            num_items: 2,
            num_tokens: 8,
            confused: vec![],
            texts: vec![Continued {
                item: 0,
                prompt: "a".into(),
                target: "b".into(),
                predicted: "c".into(),
            }],
        };
        insta::assert_snapshot!(comes_back(texts), @r#"{"format":F,"split":"valid","epoch":7,"task":"next_token","num_items":2,"num_tokens":8,"confused":[],"texts":[{"item":0,"prompt":"a","target":"b","predicted":"c"}]}"#);
    }
}
