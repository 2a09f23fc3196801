//! States and gradients compared with plain loops in double precision.

use proptest::prelude::*;

use super::{Scan, scan, scan_backward};
use crate::tests::numbers;

/// The states and the gradients of factors and updates.
fn plain(sizes: Scan, factors: &[f32], updates: &[f32], gradient: &[f32]) -> [Vec<f64>; 3] {
    let mut states = vec![0.0; sizes.num()];
    let mut of_factors = states.clone();
    let mut of_updates = states.clone();
    for item in 0..sizes.items {
        for column in 0..sizes.columns {
            let place = |step: usize| sizes.place((item, column), step);
            for step in 0..sizes.length {
                let before = step
                    .checked_sub(1)
                    .map_or(0.0, |before| states[place(before)]);
                let at = place(step);
                states[at] = f64::from(factors[at]) * before + f64::from(updates[at]);
            }
            let mut later = 0.0;
            for step in (0..sizes.length).rev() {
                let at = place(step);
                let total = f64::from(gradient[at]) + later;
                let before = step
                    .checked_sub(1)
                    .map_or(0.0, |before| states[place(before)]);
                (of_updates[at], of_factors[at]) = (total, total * before);
                later = f64::from(factors[at]) * total;
            }
        }
    }
    [states, of_factors, of_updates]
}

fn assert_near(wanted: &[f64], found: &[f32]) {
    assert_eq!(wanted.len(), found.len());
    for (wanted, found) in wanted.iter().zip(found) {
        let error = (wanted - f64::from(*found)).abs();
        assert!(error < 1e-5 * wanted.abs().max(1.0), "{wanted} and {found}");
    }
}

proptest! {
    #[test]
    fn states_and_gradients_are_those_of_loops(
        items in 0usize..4,
        length in 0usize..40,
        columns in 0usize..150,
        is_reverse: bool,
        seed: u64,
    ) {
        let sizes = Scan { items, length, columns, is_reverse };
        let [factors, updates, gradient] = [1, 2, 3].map(|at| numbers(sizes.num(), seed ^ at));
        let factors: Vec<f32> = factors.iter().map(|factor| 1.8 * factor).collect();
        let [states, of_factors, of_updates] = plain(sizes, &factors, &updates, &gradient);
        let found = scan(sizes, &factors, &updates);
        assert_near(&states, &found);
        let [by_factors, by_updates] = scan_backward(sizes, &factors, &found, &gradient);
        assert_near(&of_factors, &by_factors);
        assert_near(&of_updates, &by_updates);
    }
}

#[test]
fn nan_and_infinity_stay_in_their_column_and_go_forward_only() {
    let sizes = Scan {
        items: 2,
        length: 3,
        columns: 2,
        is_reverse: false,
    };
    let mut factors = vec![0.5; 12];
    let mut updates = vec![1.0; 12];
    // The factor of a first state has no effect.
    factors[0] = f32::INFINITY;
    updates[3] = f32::NAN;
    let states = scan(sizes, &factors, &updates);
    let are_numbers: Vec<bool> = states.iter().map(|state| state.is_finite()).collect();
    let nan = [3, 5];
    let wanted: Vec<bool> = (0..12).map(|at| !nan.contains(&at)).collect();
    assert_eq!(are_numbers, wanted);
}
