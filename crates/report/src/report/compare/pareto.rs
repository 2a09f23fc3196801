//! The Pareto front of two metrics.

use serde::{Deserialize, Serialize};

use super::{list, nearest_first, sample};
use crate::report::model::Trial;
use crate::report::sample::{COSTS, Sample, direction};
use runner_core::diagnostic::Wrong;
use runner_statistics::{Direction, pareto_front};

/// The trials that no other trial beats in both of two metrics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Front {
    /// The two metrics.
    pub values: [String; 2],
    /// The trials by name with their means, the best in the first metric first.
    pub trials: Vec<(String, [f64; 2])>,
    /// The number of trials with both metrics.
    pub num_compared: usize,
}

/// Finds them among the trials with both metrics.
pub fn front(ranked: &[&Trial], measured: &[String], a: &str, b: &str) -> Result<Front, Wrong> {
    if a == b {
        return Err(Wrong::new(
            format!("both numbers are `{a}`"),
            "a trade-off needs two different metrics",
        ));
    }
    let directions = [a, b].map(direction);
    let [Some(first), Some(second)] = directions else {
        let wrong = if directions[0].is_none() { a } else { b };
        return Err(unknown(wrong, measured));
    };
    let mut points = Vec::new();
    let mut names = Vec::new();
    for trial in ranked {
        if let (Some(x), Some(y)) = (number(trial, a), number(trial, b)) {
            points.push([x, y]);
            names.push(trial.id.clone());
        }
    }
    if points.is_empty() {
        let wrong = if ranked.iter().any(|trial| number(trial, a).is_some()) {
            b
        } else {
            a
        };
        return Err(unknown(wrong, measured));
    }
    let on_front = pareto_front(&points, &[first, second])
        .map_err(|refusal| Wrong::new(format!("there is no Pareto front: {refusal}"), ""))?;
    let mut trials: Vec<(String, [f64; 2])> = on_front
        .into_iter()
        .map(|at| (names[at].clone(), points[at]))
        .collect();
    trials.sort_by(|(_, x), (_, y)| match first {
        Direction::HigherIsBetter => y[0].total_cmp(&x[0]),
        Direction::LowerIsBetter => x[0].total_cmp(&y[0]),
    });
    Ok(Front {
        values: [a.to_owned(), b.to_owned()],
        trials,
        num_compared: points.len(),
    })
}

fn unknown(name: &str, measured: &[String]) -> Wrong {
    let mut known = measured.to_vec();
    known.extend(COSTS.map(str::to_owned));
    known.sort();
    known.dedup();
    let what = format!("trade-offs can use {}", list(&known));
    let help = nearest_first(name, &known, what);
    Wrong::new(format!("no trial has `{name}`"), help)
}

fn number(trial: &Trial, name: &str) -> Option<f64> {
    match name {
        "epoch_secs" => trial.epoch_secs,
        "wall_secs" => trial.wall_secs,
        "memory_bytes" => trial.memory.map(|memory| memory.measured.bytes() as f64),
        _ => sample(trial, name).map(Sample::mean),
    }
}
