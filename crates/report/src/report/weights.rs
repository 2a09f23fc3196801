//! How the weights of a run of the highest ranked trial are distributed, from its `weights.json`.

use std::io;

use serde::{Deserialize, Serialize};

use super::model::Report;
use runner_core::record::weights::{NUM_BINS, Weights};
use runner_core::record::{ExperimentFolder, Index, RunRecord, State};
use runner_core::show::plain_io_error;

/// Parameters with histograms: those with the most values.
pub const MAX_HISTOGRAMS: usize = 6;

/// The weights of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelectedWeights {
    /// The run: the one whose errors are shown, or the first completed one of the highest ranked trial.
    pub run: String,
    /// Their distributions; only the parameters with the most values have counts.
    pub weights: Weights,
}

impl SelectedWeights {
    /// Reads them. `None` if there are none. A file that changed since its run ended is skipped, with a remark.
    pub fn read(
        report: &Report,
        index: &Index,
        folder: &ExperimentFolder,
        remarks: &mut Vec<String>,
    ) -> Option<Self> {
        let best = report.selected()?;
        let shown = report.evaluation.as_ref().map(|of| of.run.as_str());
        let mut runs = index.runs.iter();
        let run = runs.find(|run| {
            let is_own = run.state == State::Completed && best.runs.contains(&run.id);
            is_own && shown.is_none_or(|shown| shown == run.id)
        })?;
        let read = || -> io::Result<Option<Weights>> {
            let folder = folder.run(&run.id);
            folder.check_file(&RunRecord::read(&folder)?, "weights.json")?;
            folder.read_weights()
        };
        match read() {
            Ok(weights) => Some(Self::of(run.id.clone(), weights?)),
            Err(e) => {
                remarks.push(format!(
                    "the distributions of the weights of `{}` are omitted: {}",
                    run.id,
                    plain_io_error(&e)
                ));
                None
            }
        }
    }

    /// A record may come from anyone: what does not belong together is left out.
    fn of(run: String, mut weights: Weights) -> Self {
        let num = weights.saved.len();
        weights.parameters.retain(|of| of.values.len() == num);
        let size = |shape: &[usize]| shape.iter().fold(1_usize, |a, b| a.saturating_mul(*b));
        let mut order: Vec<usize> = (0..weights.parameters.len()).collect();
        // Stable: of equally large ones the first.
        order.sort_by_key(|at| std::cmp::Reverse(size(&weights.parameters[*at].shape)));
        for at in order.into_iter().skip(MAX_HISTOGRAMS) {
            for values in &mut weights.parameters[at].values {
                values.counts.clear();
            }
        }
        let all = weights.parameters.iter_mut();
        for values in all.flat_map(|of| &mut of.values) {
            if values.counts.len() != NUM_BINS {
                values.counts.clear();
            }
        }
        Self { run, weights }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::record::weights::{Distribution, ParameterValues};

    #[test]
    fn only_the_largest_parameters_keep_their_histograms() {
        let parameter = |size: usize, num_bins: usize| ParameterValues {
            name: format!("p{size}"),
            shape: vec![size],
            range: (0.0, 1.0),
            values: vec![Distribution {
                counts: vec![1; num_bins],
                ..Distribution::default()
            }],
        };
        let mut parameters: Vec<_> = (1..=9).map(|size| parameter(size, NUM_BINS)).collect();
        parameters.push(parameter(100, 3));
        let mut torn = parameter(50, NUM_BINS);
        torn.values.clear();
        parameters.push(torn);
        let found = SelectedWeights::of(
            "r".into(),
            Weights {
                format: 3,
                saved: vec!["final".into()],
                parameters,
                num_more: 0,
            },
        );
        let kept = found.weights.parameters.iter();
        let kept = kept.filter(|of| !of.values[0].counts.is_empty());
        let kept: Vec<&str> = kept.map(|of| of.name.as_str()).collect();
        assert_eq!(kept, ["p5", "p6", "p7", "p8", "p9"]);
        assert_eq!(found.weights.parameters.len(), 10);
    }
}
