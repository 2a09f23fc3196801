use crate::Arithmetic;
use proptest::prelude::*;

use super::*;
use crate::tests::numbers;

/// With plain loops in 64 bits.
fn plain(sizes: &Attention, visible: Visible<'_>, [q, k, v]: [&[f64]; 3]) -> Vec<f64> {
    let Attention {
        items,
        heads,
        queries,
        keys,
        width,
        is_causal,
        ..
    } = *sizes;
    let mut output = vec![0.0; q.len()];
    let is_hidden = |item: usize, query: usize, key: usize| {
        let of_key = visible.keys.map(|all| all[item * keys + key]);
        let document = |at: usize| visible.documents.map(|all| all[item * keys + at]);
        of_key == Some(0) || document(query) != document(key)
    };
    for item in 0..items {
        for head in 0..heads {
            for query in 0..queries {
                let at = sizes.place(item, queries, query, head);
                let seen = if is_causal {
                    (query + 1).min(keys)
                } else {
                    keys
                };
                let scores: Vec<f64> = (0..seen)
                    .map(|key| {
                        let key = sizes.place(item, keys, key, head);
                        let products = (0..width).map(|d| q[at + d] * k[key + d]);
                        if is_hidden(item, query, (key / sizes.columns()) % keys) {
                            return 0.0;
                        }
                        (products.sum::<f64>() / (width as f64).sqrt()).exp()
                    })
                    .collect();
                let total: f64 = scores.iter().sum();
                let total = if total == 0.0 { 1.0 } else { total };
                for (key, score) in scores.iter().enumerate() {
                    let key = sizes.place(item, keys, key, head);
                    (0..width).for_each(|d| output[at + d] += score / total * v[key + d]);
                }
            }
        }
    }
    output
}

fn check(sizes: Attention, seed: u64) {
    // Some items have no key that is seen, and some only padding at the end.
    let labels = |num: usize, by: u64| -> Vec<u32> {
        let label = |at: u64| (at.wrapping_mul(2_654_435_761) >> 7) % 3;
        (0..num as u64)
            .map(|at| label(at / by + seed) as u32)
            .collect()
    };
    let keys = labels(sizes.items * sizes.keys, 1 + seed % 5);
    // Documents of several lengths.
    let mut number = 0;
    let documents: Vec<u32> = (labels(sizes.items * sizes.queries, 1 + seed % 3).iter())
        .map(|label| {
            number += u32::from(*label == 1);
            number
        })
        .collect();
    let is_own = sizes.queries == sizes.keys;
    let all = [
        (false, false),
        (true, false),
        (false, is_own),
        (true, is_own),
    ];
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        for (is_masked, is_parted) in all {
            let sizes = Attention {
                arithmetic,
                ..sizes
            };
            let visible = Visible {
                keys: is_masked.then_some(&keys[..]),
                documents: is_parted.then_some(&documents[..]),
            };
            check_one(sizes, visible, seed);
        }
    }
}

fn check_one(sizes: Attention, visible: Visible<'_>, seed: u64) {
    let (num_q, num_k) = (
        sizes.items * sizes.queries * sizes.columns(),
        sizes.items * sizes.keys * sizes.columns(),
    );
    let scaled = |num, seed| {
        numbers(num, seed)
            .iter()
            .map(|x| 3.0 * x)
            .collect::<Vec<f32>>()
    };
    let [q, k, v] = [
        scaled(num_q, seed),
        scaled(num_k, seed + 1),
        scaled(num_k, seed + 2),
    ];
    let upstream = numbers(num_q, seed + 3);
    let (output, sums) = forward(&sizes, visible, &q, &k, &v);
    let back = backward(&sizes, visible, &q, &k, &v, &sums, &upstream);
    let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let operands = [wide(&q), wide(&k), wide(&v)];
    let computed =
        |operands: &[Vec<f64>; 3]| plain(&sizes, visible, operands.each_ref().map(Vec::as_slice));
    for (ours, plain) in output.iter().zip(computed(&operands)) {
        assert!(
            (f64::from(*ours) - plain).abs() < 1e-5,
            "{sizes:?}: {ours} for {plain}"
        );
    }
    let loss = |operands: &[Vec<f64>; 3]| -> f64 {
        computed(operands)
            .iter()
            .zip(&upstream)
            .map(|(y, g)| y * f64::from(*g))
            .sum()
    };
    for (operand, found) in back.iter().enumerate() {
        assert_eq!(found.len(), operands[operand].len());
        for at in (0..found.len()).step_by(1 + found.len() / 5) {
            let sides = [1e-5, -1e-5].map(|by| {
                let mut operands = operands.clone();
                operands[operand][at] += by;
                loss(&operands)
            });
            let wanted = (sides[0] - sides[1]) / 2e-5;
            assert!(
                (f64::from(found[at]) - wanted).abs() < 1e-4,
                "{sizes:?}: {} for {wanted} of {operand} at {at}",
                found[at]
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn attention_is_that_of_the_definition(
        (items, heads, width) in (1usize..4, 1usize..4, 1usize..6),
        (queries, keys) in (0usize..9, 1usize..9),
        is_causal in any::<bool>(),
        seed in 0u64..1000,
    ) {
        check(Attention { items, heads, queries, keys, width, is_causal, arithmetic: Arithmetic::Fast }, seed);
    }
}

#[test]
fn long_sequences_are_taken_in_blocks() {
    for is_causal in [false, true] {
        check(
            Attention {
                items: 1,
                heads: 2,
                queries: 70,
                keys: 70,
                width: 5,
                is_causal,
                arithmetic: Arithmetic::Fast,
            },
            1,
        );
        check(
            Attention {
                items: 1,
                heads: 1,
                queries: 40,
                keys: 67,
                width: 3,
                is_causal,
                arithmetic: Arithmetic::Fast,
            },
            2,
        );
        check(
            Attention {
                items: 1,
                heads: 1,
                queries: 67,
                keys: 35,
                width: 3,
                is_causal,
                arithmetic: Arithmetic::Fast,
            },
            3,
        );
    }
}

#[test]
fn more_padding_changes_no_bit() {
    let run = |keys: usize| {
        let sizes = Attention {
            items: 1,
            heads: 2,
            queries: 40,
            keys,
            width: 3,
            is_causal: false,
            arithmetic: Arithmetic::Fast,
        };
        let mut of_keys = numbers(6 * 60, 2);
        of_keys[6 * 35..].fill(9.0);
        let (q, k) = (numbers(6 * 40, 1), &of_keys[..6 * keys]);
        let mask: Vec<u32> = (0..keys).map(|at| u32::from(at < 35 && at != 4)).collect();
        let visible = Visible {
            keys: Some(&mask),
            documents: None,
        };
        let (output, sums) = forward(&sizes, visible, &q, k, k);
        let [of_q, of_k, of_v] = backward(&sizes, visible, &q, k, k, &sums, &numbers(6 * 40, 3));
        assert!(
            [&of_k, &of_v]
                .iter()
                .all(|all| all[6 * 35..].iter().all(|x| *x == 0.0))
        );
        (
            output,
            of_q,
            of_k[..6 * 35].to_vec(),
            of_v[..6 * 35].to_vec(),
        )
    };
    assert_eq!(run(35), run(60));
}

/// A document has the outputs and gradients that it would have alone, to the bit, wherever it is.
#[test]
fn a_document_does_not_depend_on_its_neighbors() {
    const COLUMNS: usize = 6;
    let sizes = |items: usize, positions: usize, is_causal: bool, arithmetic| Attention {
        items,
        heads: 2,
        queries: positions,
        keys: positions,
        width: 3,
        is_causal,
        arithmetic,
    };
    let lengths = [5, 40, 1, 33];
    let total: usize = lengths.iter().sum();
    let documents: Vec<u32> = (lengths.iter().zip(0..))
        .flat_map(|(length, number)| vec![number; *length])
        .collect();
    for (is_causal, arithmetic) in [
        (true, Arithmetic::Fast),
        (false, Arithmetic::Fast),
        (true, Arithmetic::Portable),
    ] {
        let [q, k, v, g] = [1, 2, 3, 4].map(|seed| numbers(COLUMNS * total, seed));
        let visible = Visible {
            keys: None,
            documents: Some(&documents),
        };
        let whole = sizes(1, total, is_causal, arithmetic);
        let (output, sums) = forward(&whole, visible, &q, &k, &v);
        let back = backward(&whole, visible, &q, &k, &v, &sums, &g);
        let mut first = 0;
        for length in lengths {
            let part = |all: &[f32]| all[COLUMNS * first..][..COLUMNS * length].to_vec();
            let alone = sizes(1, length, is_causal, arithmetic);
            let [q, k, v, g] = [&q, &k, &v, &g].map(|all| part(all));
            let (y, sums) = forward(&alone, Visible::default(), &q, &k, &v);
            assert_eq!(y, part(&output));
            let found = backward(&alone, Visible::default(), &q, &k, &v, &sums, &g);
            assert_eq!(found, back.each_ref().map(|all| part(all)));
            first += length;
        }
    }
}

#[test]
fn blocks_before_a_number_that_is_none_do_not_see_it() {
    let sizes = Attention {
        items: 1,
        heads: 1,
        queries: 40,
        keys: 40,
        width: 2,
        is_causal: true,
        arithmetic: Arithmetic::Fast,
    };
    for special in [f32::NAN, f32::INFINITY] {
        let (q, mut k, mut v) = (numbers(80, 1), numbers(80, 2), numbers(80, 3));
        (k[2 * 37], v[2 * 37]) = (special, special);
        let (output, _) = forward(&sizes, Visible::default(), &q, &k, &v);
        assert!(output[..2 * QUERIES].iter().all(|x| x.is_finite()));
        assert!(output[2 * 37..].iter().any(|x| !x.is_finite()));
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let sizes = Attention {
        items: 3,
        heads: 4,
        queries: 50,
        keys: 50,
        width: 16,
        is_causal: true,
        arithmetic: Arithmetic::Fast,
    };
    let num = 3 * 50 * 64;
    let (q, k, v, g) = (
        numbers(num, 1),
        numbers(num, 2),
        numbers(num, 3),
        numbers(num, 4),
    );
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(|| {
            let (y, sums) = forward(&sizes, Visible::default(), &q, &k, &v);
            let [a, b, c] = backward(&sizes, Visible::default(), &q, &k, &v, &sums, &g);
            [y, a, b, c].map(|values| values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
        })
    };
    assert!(run(1) == run(2) && run(2) == run(5));
}
