use super::*;
use crate::tests::numbers;

/// Sums in the order that portable products promise.
fn plain(
    [m, n, k]: [usize; 3],
    to: &mut [f32],
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    rhs: Matrix,
) {
    for j in 0..n {
        for i in 0..m {
            let place = &mut to[i + j * pitch];
            if !adds {
                *place = 0.0;
            }
            let terms: Vec<f32> = (0..k)
                .map(|k| {
                    let (a, b) = (i * lhs.row + k * lhs.column, k * rhs.row + j * rhs.column);
                    lhs.values[a] * rhs.values[b]
                })
                .collect();
            for (at, block) in terms.chunks(256).enumerate() {
                let sum = block.iter().fold(0.0, |sum, term| sum + term);
                let is_first = at == 0 && !adds;
                *place = if is_first { sum } else { *place + sum };
            }
        }
    }
}

#[test]
fn portable_products_are_sums_in_a_stated_order() {
    let sizes = [
        0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 65, 255, 256, 257, 600,
    ];
    let mut seed = 1;
    for m in sizes {
        for n in [1, 3, 4, 8, 9, 17, 33, 70] {
            for k in [0, 1, 5, 64, 256, 257, 700] {
                if m * n * k > 300_000 {
                    continue;
                }
                seed += 1;
                let (a, b) = (numbers(m * k + 8, seed), numbers(n * k + 8, seed + 7));
                let turned = seed % 4;
                let lhs = Matrix {
                    values: &a,
                    row: if turned % 2 == 0 { 1 } else { k },
                    column: if turned % 2 == 0 { m } else { 1 },
                };
                let rhs = Matrix {
                    values: &b,
                    row: if turned < 2 { 1 } else { n },
                    column: if turned < 2 { k } else { 1 },
                };
                let adds = seed % 3 == 0;
                let pitch = m + 3;
                let mut found = numbers(pitch * n, seed + 9);
                let mut expected = found.clone();
                // SAFETY: the result has a pitch of more than its rows.
                unsafe {
                    product(
                        Arithmetic::Portable,
                        [m, n, k],
                        found.as_mut_ptr(),
                        pitch,
                        adds,
                        lhs,
                        rhs,
                    );
                }
                plain([m, n, k], &mut expected, pitch, adds, lhs, rhs);
                let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert!(
                    bits(&found) == bits(&expected),
                    "{m} {n} {k} {turned} {adds}"
                );
            }
        }
    }
}
