use proptest::prelude::*;

use super::*;
use crate::tests::numbers;

proptest! {
    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn products_and_gradients_are_plain_loops(
        batch in 0usize..4, rows in 0usize..70, terms in 0usize..20, columns in 0usize..20,
        is_portable: bool, seed: u64,
    ) {
        let arithmetic = if is_portable { Arithmetic::Portable } else { Arithmetic::Fast };
        let sizes = Matmul { batch, rows, terms, columns, arithmetic };
        let seed = seed % 1000;
        let a = numbers(batch * rows * terms, seed);
        let b = numbers(batch * terms * columns, seed + 1);
        let g = numbers(batch * rows * columns, seed + 2);
        let mut plain = [vec![0.0; g.len()], vec![0.0; a.len()], vec![0.0; b.len()]];
        for at in 0..batch * rows * terms * columns {
            let (column, at) = (at % columns, at / columns);
            let (term, at) = (at % terms, at / terms);
            let (row, item) = (at % rows, at / rows);
            let of_a = (item * rows + row) * terms + term;
            let of_b = (item * terms + term) * columns + column;
            let of_g = (item * rows + row) * columns + column;
            plain[0][of_g] += a[of_a] * b[of_b];
            plain[1][of_a] += g[of_g] * b[of_b];
            plain[2][of_b] += a[of_a] * g[of_g];
        }
        let found = [sizes.forward(&a, &b), sizes.backward_left(&g, &b), sizes.backward_right(&a, &g)];
        for (found, plain) in found.iter().zip(&plain) {
            prop_assert_eq!(found.len(), plain.len());
            for (found, plain) in found.iter().zip(plain) {
                prop_assert!((found - plain).abs() < 1e-4, "{} for {}", found, plain);
            }
        }
    }
}
