//! Norms of the gradients of single parameters over epochs, of the highest ranked trial.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use runner_core::event::Epoch;

/// What the metrics of single parameters begin with.
const PREFIX: &str = "train/gradient_norm/";

/// Maximum number of parameters.
const MAX_PARAMETERS: usize = 40;

/// Maximum number of epochs.
const MAX_EPOCHS: usize = 30;

/// Norms of gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Norms {
    /// The trial.
    pub trial: String,
    /// Its runs.
    pub n: usize,
    /// Some epochs, evenly spread, including the first and the last.
    pub epochs: Vec<usize>,
    /// In the order of the network.
    pub parameters: Vec<ParameterNorms>,
    /// The number of further parameters.
    pub num_more: usize,
}

/// Norms of the gradients of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParameterNorms {
    /// Its path in the experiment file.
    pub name: String,
    /// The mean over runs of the epochs' means; none without a finite value.
    pub means: Vec<Option<f64>>,
}

impl Norms {
    /// Those of the runs of a trial; `None` if they were not recorded. `order` has the parameters in the order of the
    /// network.
    pub fn of(trial: &str, runs: &[&[Epoch]], order: &[String]) -> Option<Self> {
        let all = || runs.iter().copied().flatten();
        let names = all().flat_map(|epoch| epoch.metrics.keys());
        let names: BTreeSet<&str> = names.filter_map(|name| name.strip_prefix(PREFIX)).collect();
        let last = all().map(|epoch| epoch.epoch).max()?;
        if names.is_empty() {
            return None;
        }
        let mut names: Vec<&str> = names.into_iter().collect();
        let place = |name: &str| order.iter().position(|other| other == name);
        names.sort_by_key(|name| place(name).unwrap_or(order.len()));
        let num_more = names.len().saturating_sub(MAX_PARAMETERS);
        names.truncate(MAX_PARAMETERS);
        let epochs: Vec<usize> = if last <= MAX_EPOCHS {
            (1..=last).collect()
        } else {
            (0..MAX_EPOCHS)
                .map(|at| 1 + at * (last - 1) / (MAX_EPOCHS - 1))
                .collect()
        };
        let mean = |name: &str, epoch: usize| {
            let key = format!("{PREFIX}{name}");
            let of_epoch = all().filter(|of| of.epoch == epoch);
            let norms = of_epoch.filter_map(|of| of.metrics.get(&key).copied());
            let norms: Vec<f64> = norms.filter(|norm| norm.is_finite()).collect();
            let mean = norms.iter().map(|norm| norm / norms.len() as f64).sum();
            (!norms.is_empty()).then_some(mean)
        };
        let parameters = names.into_iter().map(|name| ParameterNorms {
            name: name.to_owned(),
            means: epochs.iter().map(|epoch| mean(name, *epoch)).collect(),
        });
        Some(Self {
            trial: trial.to_owned(),
            n: runs.len(),
            parameters: parameters.collect(),
            epochs,
            num_more,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn run(epochs: &[&[(&str, f64)]]) -> Vec<Epoch> {
        let epochs = epochs.iter().enumerate().map(|(at, norms)| Epoch {
            epoch: at + 1,
            step: at,
            metrics: norms
                .iter()
                .map(|(name, norm)| (format!("train/{name}"), *norm))
                .collect::<BTreeMap<_, _>>(),
            train_secs: 0.0,
            valid_secs: 0.0,
            memory_bytes: 0,
            pool: None,
        });
        epochs.collect()
    }

    #[test]
    fn norms_are_means_over_runs_in_the_order_of_the_network() {
        let (a, b) = ("gradient_norm/a.weight", "gradient_norm/b.weight");
        let first = run(&[
            &[(a, 1.0), (b, 2.0)],
            &[(a, f64::NAN), ("gradient_norm", 9.0)],
        ]);
        let second = run(&[&[(a, 3.0)]]);
        let order = ["b.weight", "a.weight"].map(str::to_owned);
        let found = Norms::of("t", &[&first, &second], &order).unwrap();
        assert_eq!((found.epochs, found.n), (vec![1, 2], 2));
        let shown: Vec<_> = found
            .parameters
            .iter()
            .map(|of| (of.name.as_str(), of.means.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("b.weight", vec![Some(2.0), None]),
                ("a.weight", vec![Some(2.0), None])
            ]
        );
        assert_eq!(Norms::of("t", &[&run(&[&[("loss", 1.0)]])], &order), None);
        assert_eq!(Norms::of("t", &[], &order), None);
    }

    #[test]
    fn many_epochs_are_thinned() {
        let a: &[(&str, f64)] = &[("gradient_norm/a.weight", 1.0)];
        let long = run(&vec![a; 1000]);
        let found = Norms::of("t", &[&long], &[]).unwrap();
        assert_eq!(found.epochs.len(), MAX_EPOCHS);
        assert_eq!((found.epochs[0], found.epochs[MAX_EPOCHS - 1]), (1, 1000));
    }
}
