use super::*;
use crate::tests::numbers;

#[test]
fn sums_are_near_those_of_64_bits_whatever_is_left_over() {
    for len in (0..100).chain([1000, 1023, 4096]) {
        let (a, b) = (numbers(len, 1), numbers(len, 2));
        let plain = |term: &dyn Fn(usize) -> f64| (0..len).map(term).sum::<f64>() as f32;
        let f = f64::from;
        let wanted = [
            plain(&|at| f(a[at])),
            plain(&|at| f(a[at]) * f(b[at])),
            plain(&|at| (f(a[at]) - 0.25) * (f(a[at]) - 0.25)),
        ];
        let found = [sum(&a), dot(&a, &b), squares_from(&a, 0.25)];
        for (found, wanted) in found.into_iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-4, "{len}: {found} for {wanted}");
        }
        let most = a.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(largest(&a), most);
    }
}

#[test]
fn nan_is_the_largest_wherever_it_is() {
    for len in [1, 31, 32, 33, 80] {
        for at in 0..len {
            let mut values = numbers(len, 3);
            values[at] = f32::NAN;
            assert!(largest(&values).is_nan(), "{at} of {len}");
        }
    }
}

#[test]
fn columns_are_added_up_in_parts_of_a_fixed_size() {
    for (rows, columns) in [(0, 3), (1, 1), (7, 33), (1000, 5)] {
        let values = numbers(rows * columns, 9);
        let sums = column_sums(&values, columns);
        for (column, sum) in sums.iter().enumerate() {
            let exact: f64 = (0..rows)
                .map(|row| f64::from(values[row * columns + column]))
                .sum();
            assert!((f64::from(*sum) - exact).abs() < 1e-4);
        }
    }
    assert!(column_sums(&[], 0).is_empty());
}

#[test]
fn sums_along_an_axis_are_plain_loops() {
    for sizes in [
        [1, 100_000, 1],
        [3, 5, 7],
        [4, 0, 2],
        [700, 33, 1],
        [2, 300, 64],
    ] {
        let [outer, len, inner] = sizes;
        let values = numbers(outer * len * inner, 5);
        let found = axis_sums(&values, sizes);
        assert_eq!(found.len(), outer * inner);
        for (at, found) in found.iter().enumerate() {
            let (row, column) = (at / inner, at % inner);
            let of = |step: usize| f64::from(values[(row * len + step) * inner + column]);
            let plain: f64 = (0..len).map(of).sum();
            assert!(
                (f64::from(*found) - plain).abs() < 1e-3,
                "{sizes:?} at {at}"
            );
        }
    }
}
