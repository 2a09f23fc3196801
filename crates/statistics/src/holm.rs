//! Holm's correction for many comparisons.

use super::Refusal;

/// The p-values corrected for their number by Holm's step-down method (Holm, 1979, A Simple Sequentially Rejective
/// Multiple Test Procedure), in the order of `p`. The k-th smallest of m, from k = 0, becomes the maximum of (m - j)
/// p_j over j up to k, at most 1. Rejecting results of at most alpha keeps the probability of any false claim among the
/// m at alpha or less, regardless of dependence between the tests.
///
/// Equal p-values get equal results, and a smaller one never gets a larger result. Refuses values outside 0 to 1,
/// including NaN.
pub fn holm(p: &[f64]) -> Result<Vec<f64>, Refusal> {
    if p.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return Err(Refusal::BadProbability);
    }
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest = 0.0_f64;
    for (step, at) in order.into_iter().enumerate() {
        largest = largest.max((p.len() - step) as f64 * p[at]).min(1.0);
        corrected[at] = largest;
    }
    Ok(corrected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(p: &[f64], expected: &[f64]) {
        let corrected = holm(p).unwrap();
        assert_eq!(corrected.len(), expected.len());
        for (got, wanted) in corrected.iter().zip(expected) {
            assert!((got - wanted).abs() < 1e-12, "{corrected:?}");
        }
    }

    #[test]
    fn worked_examples() {
        // The example of the article "Holm-Bonferroni method" of Wikipedia; the same of statsmodels 0.14.
        check(&[0.01, 0.04, 0.03, 0.005], &[0.03, 0.06, 0.06, 0.02]);
        // The 15 p-values of Neuhaus et al. used by Benjamini and Hochberg (1995): methods that keep the family-wise
        // error at 0.05 reject the first three. The numbers are those of statsmodels.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        check(
            &p,
            &[
                0.0015, 0.0056, 0.0247, 0.114, 0.2211, 0.278, 0.278, 0.278, 0.3213, 1.0, 1.0, 1.0,
                1.0, 1.0, 1.0,
            ],
        );
    }

    #[test]
    fn edges() {
        check(&[], &[]);
        check(&[0.3], &[0.3]);
        check(&[0.02, 0.02, 0.02], &[0.06, 0.06, 0.06]);
        check(&[0.0, 1.0], &[0.0, 1.0]);
        for p in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(holm(&[0.5, p]), Err(Refusal::BadProbability));
        }
    }
}
