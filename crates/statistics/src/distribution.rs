//! The distributions behind tests and intervals. Wraps `statrs` and avoids its panics: arguments outside a function's
//! domain give the limit there.

use std::f64::consts::{PI, SQRT_2};

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::{erfc, erfc_inv};
use statrs::function::gamma::ln_gamma;

/// With more degrees of freedom, Student's distribution is replaced by the normal: they differ by less than 1e-6
/// relative there, and the incomplete beta function loses digits.
const AS_NORMAL: f64 = 1e7;

/// P(Z <= z) of the standard normal distribution.
pub fn normal_cdf(z: f64) -> f64 {
    0.5 * erfc(-z / SQRT_2)
}

/// The z with P(Z <= z) = `p`; infinite for 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    match p {
        p if p <= 0.0 => f64::NEG_INFINITY,
        p if p >= 1.0 => f64::INFINITY,
        p => -SQRT_2 * erfc_inv(2.0 * p),
    }
}

/// P(|T| >= |`t`|) of Student's distribution with `df` degrees of freedom, at least 1.
pub fn student_two_sided_p(t: f64, df: f64) -> f64 {
    if t.is_infinite() {
        return 0.0;
    }
    if df > AS_NORMAL {
        return (2.0 * normal_cdf(-t.abs())).min(1.0);
    }
    let student = StudentsT::new(0.0, 1.0, df);
    // The lower tail, since 1 - cdf would lose the digits of a small p.
    student.map_or(1.0, |student| (2.0 * student.cdf(-t.abs())).clamp(0.0, 1.0))
}

/// The t with P(T >= t) = `tail`, for a tail of at most 1/2; `df` is at least 1. A tail rather than a level, since
/// levels near 1 lose precision.
pub fn student_critical(tail: f64, df: f64) -> f64 {
    if tail <= 0.0 {
        return f64::INFINITY;
    }
    if df > AS_NORMAL {
        return -normal_quantile(tail);
    }
    // The inverse in `statrs` panics for small tails. The initial bracket is the next power of 2.
    let exceeds = |t: f64| 0.5 * student_two_sided_p(t, df) > tail;
    let mut high = 1.0;
    while exceeds(high) && f64::is_finite(high) {
        high *= 2.0;
    }
    let mut low = if high > 1.0 { 0.5 * high } else { 0.0 };
    // Newton's method on the logarithm of the tail, which is nearly linear; bisection if a step leaves the bracket.
    let scale = ln_gamma(0.5 * (df + 1.0)) - ln_gamma(0.5 * df) - 0.5 * (df * PI).ln();
    let mut t = low.midpoint(high);
    for _ in 0..200 {
        let p = 0.5 * student_two_sided_p(t, df);
        if p > tail {
            low = t
        } else {
            high = t
        }
        let density = (scale - 0.5 * (df + 1.0) * (t * t / df).ln_1p()).exp();
        let next = t + (p / tail).ln() * p / density;
        let next = if next > low && next < high {
            next
        } else {
            low.midpoint(high)
        };
        if (next - t).abs() <= 2.0 * f64::EPSILON * t || next <= low && next >= high {
            return next;
        }
        t = next;
    }
    t
}

/// The power of the two-sided t test at `alpha` with `df` degrees of freedom and the noncentrality `delta`: P(|T'| > t)
/// with T' = (Z + delta) / S of the noncentral t distribution, where S² is chi-squared divided by its degrees of
/// freedom. It is the mean of Φ(delta - t S) + Φ(-t S - delta) over S, by Simpson's rule within 9 standard deviations
/// of S. The error is below 1e-6 where `alpha` is at least 1e-4, and below 1e-3 otherwise.
pub fn noncentral_t_power(alpha: f64, df: f64, delta: f64) -> f64 {
    const REACH: f64 = 9.0;
    const MOST: f64 = 20_000.0;
    let t = student_critical(0.5 * alpha, df);
    let sd = (0.5 / df).sqrt();
    if !(t * t).is_finite() || !delta.is_finite() {
        return 0.0;
    }
    let (low, high) = ((1.0 - REACH * sd).max(0.0), 1.0 + REACH * sd);
    // Steps are short compared with the spread of S and with the width 1 / t of the step of Φ.
    let steps = (60.0 * (1.0 + t * sd)).min(MOST).ceil() as usize * 2;
    let step = (high - low) / steps as f64;
    let scale = 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df) + std::f64::consts::LN_2;
    let at = |place: usize| {
        let s = low + step * place as f64;
        let log = if s > 0.0 || df > 1.0 {
            scale + (df - 1.0) * s.ln() - 0.5 * df * s * s
        } else {
            scale
        };
        // The other tail is negligible if the effect is large.
        let other = -t * s - delta.abs();
        let other = if other < -9.0 { 0.0 } else { normal_cdf(other) };
        log.exp() * (normal_cdf(delta.abs() - t * s) + other)
    };
    let inner = (1..steps).map(|place| at(place) * if place % 2 == 1 { 4.0 } else { 2.0 });
    let sum = at(0) + inner.sum::<f64>() + at(steps);
    (sum * step / 3.0).clamp(0.0, 1.0)
}

/// Γ(x) / Γ(x - 1/2) for x above 1/2.
pub fn gamma_ratio(x: f64) -> f64 {
    (ln_gamma(x) - ln_gamma(x - 0.5)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
    }

    #[test]
    fn quantiles_are_those_of_scipy() {
        // scipy.stats.t.ppf and norm.ppf, scipy 1.17.1.
        for (upper, df, t) in [
            (0.975, 1.0, 12.706204736174694),
            (0.9995, 1.0, 636.6192487687897),
            (0.975, 2.0, 4.302652729749462),
            (0.9995, 2.0, 31.599054576445365),
            (0.975, 4.0, 2.7764451051977934),
            (0.975, 9.0, 2.262157162798205),
            (0.9995, 9.0, 4.780912585931217),
            (0.975, 17.776, 2.102821310380221),
            (0.975, 100.0, 1.9839715185235518),
            (0.9995, 1000.0, 3.300282648423944),
            (0.975, 10000.0, 1.960201239890626),
        ] {
            close(student_critical(1.0 - upper, df), t);
            close(0.5 * student_two_sided_p(t, df), 1.0 - upper);
        }
        for (tail, df, t) in [
            (0.4, 3.0, 0.2766706623326898),
            (1e-12, 1.0, 318309886183.7907),
            (1e-12, 3.0, 10331.108244292487),
            (1e-30, 30.0, 49.888195533043856),
            (1e-6, 1e5, 4.753704716391288),
            (1e-30, 1e5, 11.4678210211617),
        ] {
            close(student_critical(tail, df), t);
        }
        close(normal_quantile(0.975), 1.959963984540054);
        close(normal_cdf(-3.0), 1.349898031630095e-3);
        // The two distributions agree where one replaces the other.
        let (below, above) = (
            student_critical(0.025, 0.99e7),
            student_critical(0.025, 1.01e7),
        );
        assert!((below - above).abs() < 1e-6);
    }

    #[test]
    fn powers_are_those_of_scipy() {
        // scipy.stats.nct.sf(t, df, delta) + nct.cdf(-t, df, delta), scipy 1.17.1.
        for (df, alpha, delta, power) in [
            (1.0, 0.05, 5.0, 0.3051601027351557),
            (1.0, 0.05, 30.0, 0.9814160376125579),
            (2.0, 0.05, 2.0, 0.2183070748467825),
            (2.0, 0.05, 5.0, 0.7191805363914981),
            (2.0, 0.005, 10.0, 0.3957471493985829),
            (2.0, 0.005, 30.0, 0.9888214950077879),
            (4.0, 0.05, 2.0, 0.335965103911167),
            (4.0, 0.0005, 10.0, 0.5575110966873019),
            (9.0, 0.005, 5.0, 0.8576045610487438),
            (9.0, 0.0005, 5.0, 0.4711815982067248),
            (18.0, 0.05, 3.0, 0.809706936962577),
            (100.0, 0.05, 2.5, 0.6970653903965444),
            (1000.0, 0.01, 3.0, 0.6624627481869174),
        ] {
            let found = noncentral_t_power(alpha, df, delta);
            assert!(
                (found - power).abs() < 1e-6,
                "{df} {alpha} {delta}: {found}"
            );
        }
    }

    #[test]
    fn limits_are_no_panics() {
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(student_two_sided_p(f64::INFINITY, 3.0), 0.0);
        assert_eq!(student_two_sided_p(0.0, 3.0), 1.0);
        assert_eq!(student_critical(0.0, 3.0), f64::INFINITY);
        assert!(student_critical(1e-16, 1.0) > 1e10);
        assert!(student_critical(0.5, 3.0).abs() < 1e-6);
        for alpha in [1e-300, 1e-30, 1e-9, 0.5, 0.999] {
            for df in [1.0, 5.0, 1e4, 1e9] {
                let power = noncentral_t_power(alpha, df, 3.0);
                assert!((0.0..=1.0).contains(&power), "{alpha} {df} {power}");
            }
        }
    }
}
