//! Means compared with plain loops in double precision.

use crate::Arithmetic;
use proptest::prelude::*;

use super::{Parts, pool, pool_backward, suits};
use crate::geometry::Geometry;
use crate::tests::numbers;

/// The input places of each window, and what its sum is divided by.
fn windows(geometry: &Geometry, counts_padding: bool) -> Vec<(Vec<usize>, usize)> {
    let [height, width] = geometry.output();
    let mut windows = Vec::new();
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let mut places = Vec::new();
        for (i, j) in
            (0..geometry.kernel[0]).flat_map(|i| (0..geometry.kernel[1]).map(move |j| (i, j)))
        {
            let place = |axis: usize, window: usize, tap: usize| {
                let at = window * geometry.stride[axis] + tap * geometry.dilation[axis];
                let at = at.checked_sub(geometry.padding[axis].0)?;
                (at < geometry.input[axis]).then_some(at)
            };
            if let (Some(y), Some(x)) = (place(0, y, i), place(1, x, j)) {
                places.push(y * geometry.input[1] + x);
            }
        }
        let num = if counts_padding {
            geometry.taps()
        } else {
            places.len().max(1)
        };
        windows.push((places, num));
    }
    windows
}

fn assert_right(
    windows: &[(Vec<usize>, usize)],
    area_in: usize,
    x: &[f32],
    ours: &[f32],
    gradient: &[f32],
    back: &[f32],
) {
    for (plane, x) in x.chunks(area_in).enumerate() {
        let mut wanted = vec![0.0f64; area_in];
        for (at, (places, num)) in windows.iter().enumerate() {
            let mean = places.iter().map(|place| f64::from(x[*place])).sum::<f64>() / *num as f64;
            let at = plane * windows.len() + at;
            assert!(
                (mean - f64::from(ours[at])).abs() < 1e-6,
                "{mean} and {}",
                ours[at]
            );
            for place in places {
                wanted[*place] += f64::from(gradient[at]) / *num as f64;
            }
        }
        for (wanted, found) in wanted.iter().zip(&back[plane * area_in..]) {
            assert!(
                (wanted - f64::from(*found)).abs() < 2e-6,
                "{wanted} and {found}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn means_of_windows_are_plain_loops(
        input in prop::array::uniform2(1..20usize),
        kernel in prop::array::uniform2(1..5usize),
        stride in prop::array::uniform2(1..4usize),
        dilation in prop::array::uniform2(1..3usize),
        padding in prop::array::uniform4(0..3usize),
        counts_padding: bool,
        seed in 0..1000u64,
    ) {
        let [top, bottom, left, right] = padding;
        let geometry = Geometry {
            items: 2, inputs: 3, outputs: 3, groups: 3, input, kernel, stride, dilation,
            padding: [(top, bottom), (left, right)], arithmetic: Arithmetic::Fast
};
        prop_assume!(suits(&geometry));
        let x = numbers(geometry.num_inputs(), seed);
        let gradient = numbers(geometry.num_outputs(), seed + 1);
        let ours = pool(&geometry, counts_padding, &x);
        let back = pool_backward(&geometry, counts_padding, &gradient);
        assert_right(&windows(&geometry, counts_padding), geometry.area_in(), &x, &ours, &gradient, &back);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn means_of_parts_are_plain_loops(
        input in prop::array::uniform2(1..40usize),
        output in prop::array::uniform2(1..9usize),
        seed in 0..1000u64,
    ) {
        let parts = Parts { planes: 3, input, output };
        let [area_in, area] = [input, output].map(|[height, width]| height * width);
        let x = numbers(3 * area_in, seed);
        let gradient = numbers(3 * area, seed + 1);
        let [of_rows, of_columns] = [0, 1].map(|axis| parts.all(axis));
        let all = of_rows.iter().flat_map(|rows| of_columns.iter().map(move |columns| (rows.clone(), columns.clone())));
        let windows: Vec<_> = all.map(|(rows, columns)| {
            let places = rows.flat_map(|row| columns.clone().map(move |column| row * input[1] + column));
            let places: Vec<_> = places.collect();
            let num = places.len();
            (places, num)
        }).collect();
        assert_right(&windows, area_in, &x, &parts.means(&x), &gradient, &parts.backward(&gradient));
    }
}

#[test]
fn small_means_are_right() {
    let geometry = Geometry {
        items: 1,
        inputs: 1,
        outputs: 1,
        groups: 1,
        input: [2, 4],
        kernel: [2, 2],
        stride: [2, 2],
        padding: [(0, 0); 2],
        dilation: [1, 1],
        arithmetic: Arithmetic::Fast,
    };
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    assert_eq!(pool(&geometry, true, &x), [3.5, 5.5]);
    assert_eq!(
        pool_backward(&geometry, true, &[4.0, 8.0]),
        [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0]
    );
    let parts = Parts {
        planes: 1,
        input: [2, 4],
        output: [1, 1],
    };
    assert_eq!(parts.means(&x), [4.5]);
    assert_eq!(parts.backward(&[8.0]), [1.0; 8]);
}
