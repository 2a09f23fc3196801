//! `weights.json`: how the values of each parameter are distributed before training, in the best epoch and at the end.
//!
//! The worker writes it after training, from the saved weights, so it exists for completed runs and is the same for a
//! run that was resumed. No metric comes from it.

use std::io;

use serde::{Deserialize, Serialize};

use super::{RunFolder, format, seal, unwritable, write_whole};

/// The number of bins of a histogram.
pub const NUM_BINS: usize = 30;

/// Maximum number of parameters with histograms.
pub const MOST_PARAMETERS: usize = 200;

/// The distributions of a run's weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// [`crate::plan::FORMAT`].
    pub format: u32,
    /// What was saved: `initial`, `best`, `final`, those that there are, in this order.
    pub saved: Vec<String>,
    /// In the order of the network, at most [`MOST_PARAMETERS`].
    pub parameters: Vec<ParameterValues>,
    /// The number of further parameters.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub num_more: usize,
}

/// The values of a parameter or running statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterValues {
    /// Its path in the experiment file.
    pub name: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The ends of the histograms: the smallest and the largest finite value of all of them.
    pub range: (f64, f64),
    /// For each of [`Weights::saved`].
    pub values: Vec<Distribution>,
}

/// A distribution of finite values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with n.
    pub sd: f64,
    /// The number of values in each of [`NUM_BINS`] bins of equal width.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<u64>,
    /// The number of infinities and NaNs.
    #[serde(default, skip_serializing_if = "crate::spec::is_zero")]
    pub not_finite: u64,
}

/// The smallest and the largest finite value; `None` if there is none.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    finite.fold(None, |range, value| wider(range, Some((value, value))))
}

/// The range of what is in either of two.
pub fn wider(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    let (Some(a), Some(b)) = (one, other) else {
        return one.or(other);
    };
    Some((a.0.min(b.0), a.1.max(b.1)))
}

impl Distribution {
    /// The distribution of `values`, counted in bins over a range that contains them.
    pub fn of((low, high): (f64, f64), values: impl Iterator<Item = f64>) -> Self {
        let mut counts = vec![0; NUM_BINS];
        let (mut num, mut mean, mut squares, mut not_finite) = (0.0, 0.0, 0.0, 0);
        // Halved, so that differences of the largest numbers are finite.
        let width = 0.5 * high - 0.5 * low;
        for value in values {
            if !value.is_finite() {
                not_finite += 1;
                continue;
            }
            // Welford, 1962.
            num += 1.0;
            let before = value - mean;
            mean += before / num;
            squares += before * (value - mean);
            let share = if width > 0.0 {
                (0.5 * value - 0.5 * low) / width
            } else {
                0.5
            };
            counts[((share * NUM_BINS as f64) as usize).min(NUM_BINS - 1)] += 1;
        }
        Self {
            mean,
            sd: if num > 0.0 {
                (squares / num).sqrt()
            } else {
                0.0
            },
            counts,
            not_finite,
        }
    }
}

impl RunFolder {
    /// Writes the distributions of the weights. Equal ones give equal bytes.
    pub fn write_weights(&self, weights: &Weights) -> io::Result<()> {
        let path = self.weights_json();
        let mut text = serde_json::to_string(weights).map_err(io::Error::other)?;
        text.push('\n');
        write_whole(&path, seal::json(text).as_bytes()).map_err(|e| unwritable(&path, e))
    }

    /// Reads them; `None` if they were not written.
    pub fn read_weights(&self) -> io::Result<Option<Weights>> {
        format::read_json(&self.weights_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::FORMAT;

    fn of(saved: &[&[f64]]) -> ParameterValues {
        let all = saved.iter().map(|values| range(values.iter().copied()));
        let range = all.fold(None, wider).unwrap_or_default();
        let each = saved.iter().map(|values| values.iter().copied());
        ParameterValues {
            name: "linear.weight".into(),
            shape: vec![2, 2],
            range,
            values: each.map(|values| Distribution::of(range, values)).collect(),
        }
    }

    #[test]
    fn values_are_counted_in_bins_that_all_share() {
        let found = of(&[&[-1.0, 0.0, 0.0, 1.0], &[2.0, 1.95, f64::NAN, -1.0]]);
        assert_eq!(found.range, (-1.0, 2.0));
        let [first, last] = &found.values[..] else {
            panic!("two are saved");
        };
        // Bins of a tenth: 0 is in the eleventh, and the upper end in the last.
        let filled = |of: &Distribution| -> Vec<(usize, u64)> {
            let counts = of.counts.iter().copied().enumerate();
            counts.filter(|(_, count)| *count > 0).collect()
        };
        assert_eq!(filled(first), [(0, 1), (10, 2), (20, 1)]);
        assert_eq!(filled(last), [(0, 1), (29, 2)]);
        assert_eq!((first.mean, first.sd), (0.0, 0.5_f64.sqrt()));
        assert_eq!((first.not_finite, last.not_finite), (0, 1));
    }

    #[test]
    fn every_input_has_a_distribution() {
        let constant = of(&[&[0.5; 4]]);
        assert_eq!(constant.values[0].counts[NUM_BINS / 2], 4);
        assert_eq!(constant.values[0].sd, 0.0);
        let wide = of(&[&[f64::MAX, f64::MIN]]);
        assert_eq!(wide.values[0].counts.iter().sum::<u64>(), 2);
        for empty in [of(&[&[]]), of(&[&[f64::NAN]]), of(&[])] {
            assert_eq!(empty.range, (0.0, 0.0));
            assert!(empty.values.iter().all(|of| of.mean == 0.0));
        }
    }

    #[test]
    fn what_is_written_comes_back_sealed() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder(folder.path().to_owned());
        assert_eq!(run.read_weights().unwrap(), None);
        let weights = Weights {
            format: FORMAT,
            saved: vec!["initial".into(), "final".into()],
            parameters: vec![of(&[&[1.0, 2.0], &[1.5, 2.5]])],
            num_more: 3,
        };
        run.write_weights(&weights).unwrap();
        assert_eq!(run.read_weights().unwrap(), Some(weights));
        let text = std::fs::read_to_string(run.weights_json()).unwrap();
        std::fs::write(run.weights_json(), text.replace("1.5", "1.6")).unwrap();
        run.read_weights().unwrap_err();
    }
}
