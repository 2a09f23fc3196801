//! Attention compared with that of PyTorch, as recorded by `tests/golden/attention.py`, and step by step with itself.

use burn::module::{ModuleMapper, Param};
use burn::tensor::DType;

use super::*;
use crate::testing::{generator, planned};
use runner_core::spec::model::layer::LayerKind;

const DIMS: [usize; 3] = [2, 5, 6];

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    settings: String,
    output: Vec<f64>,
}

/// The `number`-th tensor, as the script has it.
fn formula<const D: usize>(number: usize, dims: [usize; D]) -> Tensor<D> {
    let value = |at: usize| (1.0 + 0.5 * number as f64 + 0.37 * at as f64).sin();
    let values: Vec<f64> = (0..dims.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, dims), (&Device::flex(), DType::F64))
}

/// Sets every parameter in order.
struct Weights(usize);

impl ModuleMapper for Weights {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        self.0 += 1;
        let dims: [usize; D] = param.lazy_shape().dims();
        let fan = if D == 2 { dims[0] as f64 } else { 1.0 };
        Param::from_tensor(formula(self.0, dims).div_scalar(fan.sqrt()))
    }
}

fn attention(settings: &str) -> GroupedAttention {
    let plan = planned(&format!(
        "data = {{ type = \"sine_windows\", length = 30 }}\ntrain.epochs = 1\n\
         optimizer = {{ type = \"sgd\", learning_rate = 0.1 }}\n\
         model.layers = [{{ type = \"reshape\", shape = [5, 6] }}, {{ type = \"multi_head_attention\", {settings} }}, {{ type = \"flatten\" }}, {{ type = \"linear\" }}]\n"
    ));
    let LayerKind::GroupedAttention(spec) = &plan.network.layers[1].kind else {
        panic!("attention with options");
    };
    let widths = [DIMS[2]; 3];
    let _generator = generator();
    GroupedAttention::new(spec, widths, Default::default(), &Device::flex()).map(&mut Weights(0))
}

fn cases() -> Vec<Case> {
    let golden = include_str!("../../../../tests/golden/attention.json");
    serde_json::from_str::<Golden>(golden).unwrap().cases
}

fn difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b);
    pairs.fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
}

fn values(tensor: Tensor<3>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

#[test]
fn outputs_are_those_of_pytorch() {
    let cases = cases();
    assert_eq!(cases.len(), 13);
    for case in cases {
        // The library's frequencies have 32 bits.
        let is_stretched = case.settings.contains("rotary_type");
        let tolerance = if is_stretched { 1e-6 } else { 1e-12 };
        let x = formula(0, DIMS);
        let output = values(attention(&case.settings).forward(
            [x.clone(), x.clone(), x],
            &Seen::default(),
            Positions::From(0),
            true,
        ));
        let difference = difference(&output, &case.output);
        assert!(difference < tolerance, "{}: {difference:e}", case.settings);
    }
}

#[test]
fn outputs_token_by_token_are_those_of_the_whole() {
    for case in cases()
        .into_iter()
        .filter(|case| case.settings.contains("causal"))
    {
        let attention = attention(&case.settings);
        let x = formula(0, DIMS);
        let whole = attention.forward(
            [x.clone(), x.clone(), x.clone()],
            &Seen::default(),
            Positions::From(0),
            true,
        );
        let mut outputs = Vec::new();
        let mut pasts = [Past::Nothing, Past::Nothing];
        for (at, num) in [(0, 2), (2, 1), (3, 2)] {
            let mut pasts = pasts.each_mut();
            let x = x.clone().narrow(1, at, num);
            outputs.push(attention.step(x, &[at; 2], &mut pasts));
        }
        let steps = values(Tensor::cat(outputs, 1));
        let difference = difference(&steps, &values(whole));
        assert!(difference < 1e-12, "{}: {difference:e}", case.settings);
    }
}

#[test]
fn keys_and_values_have_their_own_number_of_heads() {
    let attention = attention("num_heads = 4, num_kv_heads = 2, head_dim = 8, bias = false");
    assert_eq!(attention.query.weight.dims(), [6, 32]);
    assert_eq!(attention.key.weight.dims(), [6, 16]);
    assert_eq!(attention.output.weight.dims(), [32, 6]);
    assert!(attention.value.bias.is_none());
}
