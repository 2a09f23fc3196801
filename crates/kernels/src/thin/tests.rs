use rayon::ThreadPoolBuilder;

use super::*;
use crate::tests::numbers;

const SIZES: [[usize; 2]; 9] = [
    [1, 1],
    [1, 40],
    [7, 3],
    [8, 16],
    [9, 17],
    [33, 70],
    [96, 1],
    [129, 2100],
    [576, 1536],
];

#[test]
fn results_are_those_of_plain_loops() {
    for ([inputs, outputs], rows) in SIZES
        .into_iter()
        .flat_map(|sizes| [1, 2, 3, 4, 5, 16].map(|rows| (sizes, rows)))
    {
        let (x, weight) = (numbers(rows * inputs, 1), numbers(inputs * outputs, 2));
        let bias = numbers(outputs, 3);
        for (is_turned, has_bias) in [(false, true), (true, true), (false, false), (true, false)] {
            let thin = Thin {
                rows,
                inputs,
                outputs,
                is_turned,
            };
            let bias = has_bias.then_some(&bias[..]);
            let found = thin.forward(&x, &weight, bias);
            for (at, found) in found.iter().enumerate() {
                let (row, output) = (at / outputs, at % outputs);
                let terms = (0..inputs).map(|input| {
                    let place = if is_turned {
                        output * inputs + input
                    } else {
                        input * outputs + output
                    };
                    f64::from(x[row * inputs + input]) * f64::from(weight[place])
                });
                let sum = terms.sum::<f64>() + bias.map_or(0.0, |bias| f64::from(bias[output]));
                let error = (f64::from(*found) - sum).abs();
                assert!(error < 1e-5, "{thin:?}: {found} for {sum}");
            }
        }
    }
}

#[test]
fn results_depend_neither_on_threads_nor_on_other_rows() {
    for [inputs, outputs] in SIZES {
        let (x, weight) = (numbers(7 * inputs, 1), numbers(inputs * outputs, 2));
        for is_turned in [false, true] {
            let of = |rows: usize, x: &[f32], threads: usize| {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build();
                let thin = Thin {
                    rows,
                    inputs,
                    outputs,
                    is_turned,
                };
                pool.unwrap().install(|| thin.forward(x, &weight, None))
            };
            let all = of(7, &x, 1);
            assert_eq!(all, of(7, &x, 3), "{inputs} {outputs} {is_turned}");
            for row in 0..7 {
                let alone = of(1, &x[row * inputs..][..inputs], 2);
                assert_eq!(alone, all[row * outputs..][..outputs]);
            }
        }
    }
}
