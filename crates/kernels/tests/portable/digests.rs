//! Digests of what portable kernels compute for fixed numbers: the same on every processor.

use runner_kernels::activation::Activation;
use runner_kernels::attention::{self, Attention, Visible};
use runner_kernels::average::{self, Parts};
use runner_kernels::dropout::Dropout;
use runner_kernels::linear::Linear;
use runner_kernels::matmul::Matmul;
use runner_kernels::norm::{self, Affine, LocalResponse, Planes, RowNorm};
use runner_kernels::optimizer::{Rule, adam::Adam};
use runner_kernels::recurrent::{self, Cell, Sequence, Weights};
use runner_kernels::resample::{Method, Resample};
use runner_kernels::softmax::{self, Form};
use runner_kernels::{Arithmetic, Geometry, axis_sums, embedding};

const PORTABLE: Arithmetic = Arithmetic::Portable;

/// Numbers between -2 and 2.
fn numbers(num: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) + 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        4.0 * ((state >> 40) as f32 / (1u64 << 24) as f32 - 0.5)
    };
    (0..num).map(next).collect()
}

/// FNV-1a of the bits of numbers.
fn digest<'a>(parts: impl IntoIterator<Item = &'a [f32]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for value in parts.into_iter().flatten() {
        for byte in value.to_bits().to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

fn of<const N: usize>(parts: [Vec<f32>; N]) -> u64 {
    digest(parts.iter().map(Vec::as_slice))
}

fn linear() -> u64 {
    let sizes = [[64, 784, 128], [3, 5, 7], [2, 300, 700], [33, 70, 10]];
    let each = sizes.map(|[rows, inputs, outputs]| {
        let layer = Linear {
            rows,
            inputs,
            outputs,
            arithmetic: PORTABLE,
        };
        let (x, weight) = (numbers(rows * inputs, 1), numbers(inputs * outputs, 2));
        let (bias, gradient) = (numbers(outputs, 3), numbers(rows * outputs, 4));
        [
            layer.forward(&x, &weight, Some(&bias)),
            layer.backward_input(&gradient, &weight),
            layer.backward_weight(&x, &gradient),
            layer.backward_bias(&gradient),
        ]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn matmul() -> u64 {
    let sizes = Matmul {
        batch: 3,
        rows: 70,
        terms: 45,
        columns: 37,
        arithmetic: PORTABLE,
    };
    let (a, b) = (numbers(3 * 70 * 45, 1), numbers(3 * 45 * 37, 2));
    let gradient = numbers(3 * 70 * 37, 3);
    of([
        sizes.forward(&a, &b),
        sizes.backward_left(&gradient, &b),
        sizes.backward_right(&a, &gradient),
    ])
}

fn convolution<const D: usize>(geometry: &Geometry<D>) -> u64 {
    let x = numbers(geometry.num_inputs(), 1);
    let weight = numbers(geometry.num_weights(), 2);
    let bias = numbers(geometry.outputs, 3);
    let gradient = numbers(geometry.num_outputs(), 4);
    of([
        runner_kernels::forward(geometry, &x, &weight, Some(&bias)),
        runner_kernels::backward_input(geometry, &gradient, &weight),
        runner_kernels::backward_weight(geometry, &x, &gradient),
        runner_kernels::backward_bias(geometry, &gradient),
    ])
}

/// Convolutions of stride 1, which stay in registers.
fn direct() -> u64 {
    convolution(&Geometry {
        items: 5,
        inputs: 6,
        outputs: 14,
        groups: 2,
        input: [13, 11],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [(1, 1), (1, 0)],
        dilation: [1, 1],
        arithmetic: PORTABLE,
    })
}

/// Strides, dilation and uneven padding.
const STRIDED: Geometry = Geometry {
    items: 3,
    inputs: 10,
    outputs: 21,
    groups: 1,
    input: [17, 19],
    kernel: [3, 2],
    stride: [2, 2],
    padding: [(1, 0), (2, 1)],
    dilation: [1, 2],
    arithmetic: PORTABLE,
};

/// Strided convolutions, which stay in registers too.
fn strided() -> u64 {
    convolution(&STRIDED)
}

/// Convolutions with outputs for whole registers, and enough weights that channels are divided.
fn wide() -> u64 {
    let wide = convolution(&Geometry {
        inputs: 20,
        outputs: 30,
        ..STRIDED
    });
    let divided = convolution(&Geometry {
        items: 20,
        inputs: 130,
        outputs: 140,
        groups: 2,
        input: [4, 4],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [(1, 1), (0, 0)],
        dilation: [1, 1],
        ..STRIDED
    });
    wide ^ divided
}

/// Convolutions with columns.
fn columns() -> u64 {
    convolution(&Geometry {
        kernel: [1, 1],
        stride: [2, 3],
        ..STRIDED
    })
}

/// Convolutions of each channel by itself.
fn depthwise() -> u64 {
    convolution(&Geometry {
        items: 2,
        inputs: 9,
        outputs: 9,
        groups: 9,
        input: [14, 15],
        kernel: [3, 3],
        stride: [2, 2],
        padding: [(1, 1), (1, 1)],
        dilation: [1, 1],
        arithmetic: PORTABLE,
    })
}

/// Convolutions of volumes: with strides, of which only some slabs are copied at a time, and of each channel by itself.
fn volumes() -> u64 {
    const VOLUME: Geometry<3> = Geometry {
        items: 2,
        inputs: 6,
        outputs: 9,
        groups: 3,
        input: [5, 9, 8],
        kernel: [2, 3, 2],
        stride: [1, 2, 2],
        padding: [(1, 0), (1, 1), (0, 1)],
        dilation: [1, 1, 2],
        arithmetic: PORTABLE,
    };
    let large = Geometry {
        inputs: 40,
        outputs: 24,
        groups: 1,
        input: [9, 24, 24],
        ..VOLUME
    };
    let depthwise = Geometry {
        inputs: 4,
        outputs: 4,
        groups: 4,
        ..VOLUME
    };
    convolution(&VOLUME) ^ convolution(&large) ^ convolution(&depthwise)
}

/// Convolutions of single positions.
fn pointwise() -> u64 {
    convolution(&Geometry {
        items: 3,
        inputs: 20,
        outputs: 33,
        groups: 1,
        input: [9, 10],
        kernel: [1, 1],
        stride: [1, 1],
        padding: [(0, 0), (0, 0)],
        dilation: [1, 1],
        arithmetic: PORTABLE,
    })
}

fn attention() -> u64 {
    let each = [false, true].map(|is_causal| {
        let sizes = Attention {
            items: 2,
            heads: 3,
            queries: 45,
            keys: 45,
            width: 11,
            is_causal,
            arithmetic: PORTABLE,
        };
        let num = 2 * 45 * 33;
        let [q, k, v, gradient] = [1, 2, 3, 4].map(|seed| numbers(num, seed));
        let (output, sums) = attention::forward(&sizes, Visible::default(), &q, &k, &v);
        let [of_q, of_k, of_v] =
            attention::backward(&sizes, Visible::default(), &q, &k, &v, &sums, &gradient);
        [output, sums, of_q, of_k, of_v]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn recurrent() -> u64 {
    let each = [Cell::Rnn, Cell::Gru, Cell::Lstm].map(|cell| {
        let sequence = Sequence {
            cell,
            items: 5,
            steps: 7,
            inputs: 6,
            hidden: 19,
            is_reverse: cell == Cell::Gru,
            arithmetic: PORTABLE,
        };
        let input = numbers(6 * cell.input_gates() * 19, 2);
        let hidden = numbers(19 * cell.hidden_gates() * 19, 3);
        let (x, bias) = (numbers(5 * 7 * 6, 1), numbers(cell.gates() * 19, 4));
        let weights = Weights {
            input: &input,
            hidden: &hidden,
            bias: &bias,
        };
        let (output, kept) = recurrent::forward(&sequence, None, &x, weights, true);
        let (kept, gradient) = (kept.expect("kept"), numbers(5 * 7 * 19, 5));
        let found = recurrent::backward(&sequence, &x, weights, &output, kept, &gradient, true);
        let of_x = found.x.expect("asked for");
        [output, of_x, found.input, found.hidden, found.bias]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn norms() -> u64 {
    let (x, gradient) = (numbers(6 * 4 * 35, 1), numbers(6 * 4 * 35, 2));
    let (gamma, beta) = (numbers(35, 3), numbers(35, 4));
    let norms = [
        RowNorm::Layer { epsilon: 1e-5 },
        RowNorm::Rms { epsilon: 1e-5 },
    ];
    let rows = norms.map(|norm| {
        let (output, statistics) = norm::rows_forward(norm, &x, &gamma, Some(&beta));
        let [a, b, c] = norm::rows_backward(norm, &x, &gamma, &statistics, &gradient);
        [output, a, b, c]
    });
    let planes = Planes {
        items: 6,
        channels: 4,
        area: 35,
    };
    let (gamma, beta) = (numbers(4, 5), numbers(4, 6));
    let affine = Affine {
        gamma: &gamma,
        beta: &beta,
        then: None,
    };
    let ones = [1.0; 4];
    let of_forward = Affine {
        gamma: &ones,
        ..affine
    };
    let (batch, moments) = norm::batch_forward(&planes, 1e-5, &x, of_forward);
    let [means, variances] = [0, 1].map(|at| moments.iter().map(|of| of[at]).collect());
    let kept = norm::deviations(&moments, 1e-5);
    let of_batch = norm::batch_backward(&planes, &x, affine, &kept, &gradient);
    let (group, kept) = norm::group_forward(&planes, 2, 1e-5, &x, affine);
    let of_group = norm::group_backward(&planes, 2, &x, affine, &kept, &gradient);
    let rows = rows.iter().flatten();
    let all = rows.chain([&means, &variances, &batch, &group]);
    digest(all.chain(&of_batch).chain(&of_group).map(Vec::as_slice))
}

fn activations() -> u64 {
    let all = [
        Activation::Relu,
        Activation::Gelu,
        Activation::GeluTanh,
        Activation::Silu,
        Activation::Mish,
        Activation::Elu { alpha: 1.5 },
        Activation::Celu { alpha: 0.5 },
        Activation::Selu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::LogSigmoid,
        Activation::Softplus {
            beta: 1.5,
            threshold: 20.0,
        },
        Activation::Softsign,
        Activation::Tanhshrink,
        Activation::HardSwish,
        Activation::Exp,
        Activation::Erf,
        Activation::Log,
    ];
    // From the smallest subnormal numbers to the largest, of both signs.
    let wide = (0..=u32::MAX / 98_317).map(|at| f32::from_bits(at * 98_317));
    let x: Vec<f32> = wide
        .filter(|x| x.is_finite())
        .chain(numbers(1000, 1))
        .collect();
    let each = all.map(|function| {
        let output = function.forward(&x);
        let mut gradient = numbers(x.len(), 2);
        let seen = if function.keeps_output() { &output } else { &x };
        function.backward(seen, &mut gradient);
        // The bits of NaN differ between processors.
        let plain = |x: f32| if x.is_nan() { f32::NAN } else { x };
        [output, gradient].map(|values| values.into_iter().map(plain).collect::<Vec<_>>())
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn dropouts() -> u64 {
    // Of several pieces.
    let x = numbers(10_000, 1);
    let seeds = [0, 7, 1 << 40].map(|seed| Dropout::new(seed, 0.3).forward(&x));
    digest(seeds.iter().map(Vec::as_slice))
}

fn softmaxes() -> u64 {
    let (scores, upstream) = (numbers(40 * 301, 1), numbers(40, 2));
    let classes: Vec<usize> = (0..40).map(|row| row * 7 % 301).collect();
    let (losses, sums) = softmax::cross_entropy(&scores, &classes, 301, 0.1);
    let of_scores = softmax::cross_entropy_backward(&scores, &classes, 301, 0.1, &sums, &upstream);
    let each = [Form::Softmax, Form::LogSoftmax].map(|form| {
        let (mut output, mut gradient) = (scores.clone(), numbers(scores.len(), 3));
        softmax::apply(form, &mut output, 301);
        softmax::backward(form, &output, &mut gradient, 301);
        [output, gradient]
    });
    let each = each.iter().flatten();
    digest(each.chain([&losses, &sums, &of_scores]).map(Vec::as_slice))
}

fn sums() -> u64 {
    let sizes = [[1, 50_000, 1], [40, 33, 1], [3, 50, 17]];
    let each = sizes.map(|sizes| axis_sums(&numbers(sizes.iter().product(), 1), sizes));
    let rows: Vec<usize> = (0..200).map(|at| at * at % 23).collect();
    let scattered = embedding::scatter(&numbers(200 * 9, 2), 9, &rows, 23);
    digest(each.iter().chain([&scattered]).map(Vec::as_slice))
}

fn resampling() -> u64 {
    let each = [Method::Nearest, Method::Linear, Method::Cubic].map(|method| {
        let resample = Resample {
            planes: 6,
            input: [7, 9],
            output: [13, 8],
            method,
            aligns_corners: false,
        };
        [
            resample.forward(&numbers(6 * 7 * 9, 1)),
            resample.backward(&numbers(6 * 13 * 8, 2)),
        ]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn local_responses() -> u64 {
    let planes = Planes {
        items: 3,
        channels: 10,
        area: 133,
    };
    let (x, gradient) = (numbers(planes.num(), 1), numbers(planes.num(), 2));
    let each = [0.75, 0.6].map(|beta| {
        let norm = LocalResponse {
            size: 4,
            alpha: 0.3,
            beta,
            k: 1.5,
        };
        [
            norm.forward(&planes, &x),
            norm.backward(&planes, &x, &gradient),
        ]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

fn pools() -> u64 {
    let geometry = Geometry {
        items: 2,
        inputs: 3,
        outputs: 3,
        groups: 3,
        input: [11, 12],
        kernel: [3, 2],
        stride: [2, 2],
        padding: [(1, 1), (0, 1)],
        dilation: [1, 1],
        arithmetic: PORTABLE,
    };
    let (x, gradient) = (
        numbers(geometry.num_inputs(), 1),
        numbers(geometry.num_outputs(), 2),
    );
    let (most, chosen) = runner_kernels::max_pool(&geometry, &x);
    let parts = Parts {
        planes: 6,
        input: [11, 12],
        output: [4, 5],
    };
    of([
        average::pool(&geometry, false, &x),
        average::pool_backward(&geometry, false, &gradient),
        most,
        runner_kernels::max_pool_backward(&geometry, &gradient, &chosen),
        parts.means(&x),
        parts.backward(&numbers(6 * 20, 3)),
    ])
}

fn updates() -> u64 {
    // Adam with a penalty, and AdamW.
    let each = [[0.1, 1.0], [0.0, 0.999]].map(|[penalty, kept]| {
        let mut weights = numbers(1000, 1);
        let (mut first, mut second) = (vec![0.0; 1000], vec![0.0; 1000]);
        for time in 1..4 {
            let adam = Adam {
                share_1: 0.1,
                beta_2: 0.999,
                share_2: 0.001,
                root: 0.04 * time as f32,
                epsilon: 1e-8,
                rate: 0.1 / time as f32,
                penalty,
                kept,
                cautious: 0.0,
            };
            let gradient = numbers(1000, 1 + time);
            adam.step(&mut weights, [&mut first, &mut second], &gradient);
        }
        [weights, first, second]
    });
    digest(each.iter().flatten().map(Vec::as_slice))
}

/// A name, what computes the digest, and the digest.
pub type Row = (&'static str, fn() -> u64, u64);

/// All kernels with their digests on every processor.
pub const ALL: [Row; 20] = [
    ("linear", linear, 0x118f_a80d_0d8a_f556),
    ("matmul", matmul, 0x0793_6b44_e333_40e2),
    ("direct convolutions", direct, 0xb9d5_3a15_749e_b062),
    ("strided convolutions", strided, 0x2cec_05cd_3957_6e9e),
    ("wide convolutions", wide, 0x6500_f5cf_2680_ec66),
    ("convolutions with columns", columns, 0xc2c5_4de0_7f8f_1266),
    ("depthwise convolutions", depthwise, 0xa9c2_9c68_5022_79c8),
    ("convolutions of volumes", volumes, 0x63e6_1964_1d22_717b),
    ("pointwise convolutions", pointwise, 0x049c_5a9d_519f_c310),
    ("attention", attention, 0x90ca_65ca_3a0a_9ec8),
    ("recurrent", recurrent, 0x4020_b043_c41f_1c4c),
    ("norms", norms, 0xecfd_d862_e0d4_03a1),
    ("activations", activations, 0x9b1a_e578_f87f_9585),
    ("dropouts", dropouts, 0x4d84_30ff_c419_7edd),
    ("softmaxes", softmaxes, 0x3a9f_9235_f807_f574),
    ("sums", sums, 0x32cd_e73b_493e_436e),
    ("resampling", resampling, 0xb8b0_7aab_ba7c_17cb),
    ("local responses", local_responses, 0x16f9_ac3f_9ebb_d070),
    ("pools", pools, 0xdebd_4ad5_dedb_cd03),
    ("updates", updates, 0x7f7c_c43e_a84b_aea0),
];
