//! Updates compared with those of PyTorch, as recorded by `tests/golden/optimizers.py`.

use burn::module::Param;
use burn::nn::Linear;
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::method::AdjustLearningRate;

use super::Momentum;
use super::muon::Muon;
use crate::optimizer::optimizer;
use crate::paths::{Parameter, Paths};
use crate::testing::{generator, planned};

const STEPS: usize = 300;
const DIMS: [usize; 2] = [5, 7];

#[derive(serde::Deserialize)]
struct Golden {
    optimizers: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    settings: String,
    is_table: bool,
    float64: Vec<f64>,
    float32: Vec<f64>,
    bfloat16: Option<Vec<f64>>,
}

fn cases() -> Vec<Case> {
    let golden = include_str!("../../../../tests/golden/optimizers.json");
    serde_json::from_str::<Golden>(golden).unwrap().optimizers
}

fn matrix(value: impl Fn(usize) -> f64, dtype: DType, device: &Device) -> Tensor<2> {
    let values: Vec<f64> = (0..DIMS[0] * DIMS[1]).map(value).collect();
    Tensor::from_data(TensorData::new(values, DIMS), (device, dtype))
}

/// The last weights with runner's updates.
fn trained(case: &Case, kernels: &str, dtype: DType) -> Vec<f64> {
    let adamw = if case.name.starts_with("muon") {
        ", adamw = { learning_rate = 0.05 }"
    } else {
        ""
    };
    let plan = planned(&format!(
        "data.type = \"iris\"\nmodel.type = \"mlp\"\ntrain = {{ epochs = 1, batch_size = 25 }}\n\
         optimizer = {{ {}, learning_rate = 0.05{adamw} }}\nbackend.kernels = \"{kernels}\"\n",
        case.settings
    ));
    let parameters = [Parameter {
        burn: "weight".to_owned(),
        path: "weight".to_owned(),
        rank: 2,
        inputs_first: !case.is_table,
    }];
    let mut optimizer = optimizer(&plan, &parameters);
    let device = Device::flex();
    let weight = matrix(
        |at| (0.5 * at as f64).cos(),
        dtype,
        &device.clone().autodiff(),
    );
    let mut linear = Linear {
        weight: Param::from_tensor(weight.require_grad()),
        bias: None,
    };
    for step in 0..STEPS {
        let gradient = |at: usize| {
            (0.7 * step as f64 + 0.37 * at as f64).sin() * 10f64.powi(-((at % 4) as i32))
        };
        let mut gradients = GradientsParams::new();
        gradients.register(linear.weight.id, matrix(gradient, dtype, &device));
        linear = optimizer.step(0.05, linear, gradients);
    }
    assert_eq!(linear.weight.val().dtype(), dtype);
    linear.weight.val().into_data().iter::<f64>().collect()
}

/// The largest difference, relative to the largest weight.
fn distance(ours: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(ours.len(), expected.len());
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let pairs = ours.iter().zip(expected);
    largest(&mut pairs.map(|(ours, expected)| (ours - expected).abs()))
        / largest(&mut expected.iter().map(|value| value.abs()))
}

#[test]
fn updates_in_64_bits_are_those_of_pytorch() {
    for case in cases() {
        let distance = distance(&trained(&case, "reference", DType::F64), &case.float64);
        assert!(distance < 1e-12, "{}: {distance:e}", case.name);
    }
}

/// In 32 bits, sums of 300 updates differ by their rounding: ours must be no further from the sum in 64 bits than
/// PyTorch's.
#[test]
fn updates_in_32_bits_are_as_exact_as_those_of_pytorch() {
    for case in cases() {
        for kernels in ["fast", "reference"] {
            let ours = trained(&case, kernels, DType::F32);
            let from_exact = distance(&ours, &case.float64);
            let of_pytorch = distance(&case.float32, &case.float64);
            assert!(
                from_exact < 1.5 * of_pytorch + 2e-7,
                "{} by {kernels}: {from_exact:e}, and PyTorch {of_pytorch:e}",
                case.name
            );
        }
    }
}

/// PyTorch's Muon multiplies matrices in `bfloat16`, so that it is only close.
#[test]
fn muon_is_close_to_pytorchs_of_fewer_bits() {
    for case in cases() {
        let Some(bfloat16) = &case.bfloat16 else {
            continue;
        };
        let distance = distance(&trained(&case, "reference", DType::F32), bfloat16);
        assert!(distance < 0.06, "{}: {distance}", case.name);
    }
}

#[test]
fn muon_scales_by_outputs_over_inputs() {
    let muon = |adjust, inputs_first| Muon {
        momentum: Momentum {
            momentum: 0.95,
            dampening: 0.0,
            nesterov: true,
        },
        ns_steps: 5,
        epsilon: 1e-7,
        adjust,
        arithmetic: Arithmetic::Fast,
        inputs_first,
        weight_decay: 0.0,
    };
    let original =
        |inputs_first, dims| muon(AdjustLearningRate::Original, inputs_first).factor(dims);
    // A linear layer from 100 to 400 numbers and back, and a table of 400 entries.
    assert_eq!(original(true, [100, 400]), 2.0);
    assert_eq!(original(true, [400, 100]), 1.0);
    assert_eq!(original(false, [400, 100]), 2.0);
    let symmetric = |dims| muon(AdjustLearningRate::MatchRmsAdamw, true).factor(dims);
    assert_eq!((symmetric([100, 400]), symmetric([400, 100])), (4.0, 4.0));
}

#[test]
fn tables_are_not_inputs_first() {
    let _generator = generator();
    let plan = planned(
        "data.type = \"copy_sequence\"\ntrain.epochs = 1\n\
         optimizer = { type = \"muon\", learning_rate = 1e-2, adamw = { learning_rate = 1e-3 } }\n\
         model.layers = [{ type = \"embedding\", embedding_dim = 8 }, { type = \"linear\", out_features = 8 }, { type = \"linear\" }]\n",
    );
    let network = crate::network::Network::new(&plan, &Device::flex());
    let parameters = Paths::new(&plan).parameters(&network);
    let tables: Vec<_> = parameters
        .iter()
        .filter(|parameter| !parameter.inputs_first)
        .collect();
    assert_eq!(tables.len(), 1);
    assert_eq!(tables[0].path, "embedding_1.weight");
}
