//! What a predicted update is made of: factors of the differences between consecutive snapshots.
//!
//! Every predictor is a sum of such differences, so that a number that did not change is predicted not to change, to the
//! bit, and that the factors can be computed without tensors.

use super::dmd;
use runner_core::spec::hybrid::{HybridSpec, Predictor};

/// Whether a predictor needs the inner products of the differences between consecutive snapshots.
pub fn needs_products(spec: &HybridSpec) -> bool {
    matches!(spec.predictor, Predictor::Dmd | Predictor::Rssm)
}

/// The sum of the predicted updates number `from` to `to` of a prediction, counted from 0: a factor for each difference
/// between consecutive snapshots, the oldest one first. None for a prediction that changes nothing. `products` are the
/// inner products of each two differences, and `imagined` the predicted updates, if the predictor needs them.
pub fn factors(
    spec: &HybridSpec,
    (products, imagined): (&[f64], &[Vec<f64>]),
    from: usize,
    to: usize,
) -> Option<Vec<f64>> {
    match spec.predictor {
        Predictor::Hold => None,
        Predictor::Momentum => {
            let decay = spec.decay.unwrap_or(1.0);
            let powers = (from..to).map(|at| decay.powi(at as i32 + 1));
            Some(vec![powers.sum()])
        }
        Predictor::Linear => {
            let num = (to - from) as f64;
            let slope = slope(spec.snapshots).into_iter();
            Some(slope.map(|factor| num * factor).collect())
        }
        Predictor::Dmd => {
            let rank = spec.rank.unwrap_or(1);
            Some(dmd::factors(products, rank, from, to))
        }
        Predictor::Rssm => imagined[from..to]
            .iter()
            .cloned()
            .reduce(|mut sum, update| {
                sum.iter_mut()
                    .zip(update)
                    .for_each(|(sum, factor)| *sum += factor);
                sum
            }),
    }
}

/// The slope of the line through `num` values at equal distances, by least squares, as factors of their differences.
fn slope(num: usize) -> Vec<f64> {
    let middle = (num as f64 - 1.0) / 2.0;
    let times = (0..num).map(|at| at as f64 - middle);
    let squares: f64 = times.clone().map(|time| time * time).sum();
    let weights: Vec<f64> = times.map(|time| time / squares).collect();
    // The value at a time is the first one plus the differences up to it.
    (1..num).map(|from| weights[from..].iter().sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn the_slope_of_a_line_is_that_of_the_line() {
        for num in 2..9 {
            let line: f64 = slope(num).iter().sum();
            assert!((line - 1.0).abs() < 1e-12, "{num}: {line}");
        }
        // 1, 3, 2 has the slope (2 - 1) / 2.
        let [first, second] = slope(3).try_into().unwrap();
        assert!((first * 2.0 - second - 0.5_f64).abs() < 1e-12);
    }
}
