use super::*;

/// Which of some positions are kept.
fn kept(seed: u64, probability: f64, num: usize) -> Vec<bool> {
    let y = Dropout::new(seed, probability).forward(&vec![1.0; num]);
    y.iter().map(|y| *y != 0.0).collect()
}

/// How far a number of events is from what is expected, in standard deviations.
fn deviations(found: usize, num: usize, probability: f64) -> f64 {
    let num = num as f64;
    (found as f64 - num * probability) / (num * probability * (1.0 - probability)).sqrt()
}

#[test]
fn kept_numbers_are_scaled_and_the_others_are_zero() {
    let x: Vec<f32> = (0..10_000).map(|at| at as f32 - 5_000.0).collect();
    let dropout = Dropout::new(3, 0.2);
    let y = dropout.forward(&x);
    for (x, y) in x.iter().zip(&y) {
        assert!(*y == 0.0 || *y == x * 1.25, "{x} {y}");
    }
    let mut in_place = x;
    dropout.apply(&mut in_place);
    assert_eq!(in_place, y);
    assert_eq!(Dropout::new(3, 0.0).forward(&y), y);
    let special = Dropout::new(3, 0.5).forward(&[f32::NAN; 64]);
    assert!(special.iter().all(|y| y.is_nan()));
}

#[test]
fn as_many_are_dropped_as_the_probability_says() {
    let num = 1 << 20;
    for probability in [0.01, 0.1, 0.5, 0.9] {
        for seed in 0..8 {
            let dropped = kept(seed, probability, num)
                .iter()
                .filter(|kept| !**kept)
                .count();
            let off = deviations(dropped, num, probability);
            assert!(off.abs() < 4.5, "{probability} {seed}: {off}");
        }
    }
}

/// Pairs at all small distances, between pieces, and of adjacent seeds are dropped together as often as independent
/// ones.
#[test]
fn positions_and_seeds_are_independent() {
    let num = PIECE * 64;
    let of: Vec<Vec<bool>> = (0..6).map(|seed| kept(seed, 0.5, num)).collect();
    let equal = |a: &[bool], b: &[bool]| {
        let pairs = a.iter().zip(b);
        let num = a.len().min(b.len());
        deviations(pairs.filter(|(a, b)| a == b).count(), num, 0.5)
    };
    for distance in (1..64).chain([PIECE, 2 * PIECE, 32 * PIECE]) {
        for kept in &of {
            let off = equal(kept, &kept[distance..]);
            assert!(off.abs() < 5.0, "{distance}: {off}");
        }
    }
    for a in 0..of.len() {
        for b in 0..a {
            assert!(equal(&of[a], &of[b]).abs() < 5.0, "{a} {b}");
        }
    }
    for high in [1u64 << 24, 1 << 32, 1 << 40] {
        assert!(equal(&of[1], &kept(1 + high, 0.5, num)).abs() < 5.0);
    }
    // Each pattern of 8 neighbors is equally frequent: chi-squared with 255 degrees of freedom.
    for kept in &of {
        let mut counts = [0usize; 256];
        for eight in kept.chunks_exact(8) {
            counts[eight
                .iter()
                .fold(0, |byte, kept| 2 * byte + usize::from(*kept))] += 1;
        }
        let expected = (num / 8) as f64 / 256.0;
        let chi: f64 = counts
            .iter()
            .map(|count| (*count as f64 - expected).powi(2) / expected)
            .sum();
        assert!((150.0..380.0).contains(&chi), "{chi}");
    }
}
