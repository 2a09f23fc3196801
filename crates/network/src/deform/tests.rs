//! Compared with PyTorch and torchvision, as recorded by `tests/golden/windows.py`.

use burn::tensor::DType;

use super::*;
use crate::testing::planned;
use runner_core::spec::model::layer::LayerKind;

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    settings: String,
    /// Shapes of the inputs, with the batch, and of the weight and the bias.
    shapes: Vec<Vec<usize>>,
    output: Vec<f64>,
    /// Of the sum of squares of the output, with respect to each.
    gradients: Vec<Vec<f64>>,
}

fn formula(number: usize, dims: &[usize]) -> TensorData {
    let scale = if number == 1 { 1.7 } else { 1.0 };
    let value = |at: usize| scale * (1.0 + 0.5 * number as f64 + 0.37 * at as f64).sin();
    let values: Vec<f64> = (0..dims.iter().product()).map(value).collect();
    TensorData::new(values, dims.to_vec())
}

fn tensor<const D: usize>(number: usize, dims: &[usize]) -> Tensor<D> {
    let device = Device::flex().autodiff();
    Tensor::from_data(formula(number, dims), (&device, DType::F64)).require_grad()
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    tensor.into_data().iter::<f64>().collect()
}

fn near(what: &str, ours: &[f64], theirs: &[f64]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let pairs = ours.iter().zip(theirs);
    let most = pairs.fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    assert!(most < 1e-11, "{what}: {most:e}");
}

fn kind(settings: &str) -> LayerKind {
    let plan = planned(&format!(
        "data = {{ type = \"digits\" }}\ntrain.epochs = 1\n\
         optimizer = {{ type = \"sgd\", learning_rate = 0.1 }}\n\
         model.layers = [{{ type = \"conv2d\", out_channels = 72, kernel_size = 3, padding = 1, name = \"x\" }}, {settings}, {{ type = \"flatten\" }}, {{ type = \"linear\" }}]\n"
    ));
    plan.network.layers[plan.network.layers.len() - 3]
        .kind
        .clone()
}

#[test]
fn outputs_and_gradients_are_those_of_torchvision() {
    let golden = include_str!("../../../../tests/golden/windows.json");
    let cases = serde_json::from_str::<Golden>(golden).unwrap().cases;
    assert_eq!(cases.len(), 6);
    for case in cases {
        let what = &case.settings;
        let shape = |at: usize| case.shapes[at].as_slice();
        let x: Tensor<4> = tensor(0, shape(0));
        match kind(what) {
            LayerKind::Unfold(window) => {
                let output = unfolded(&window, x.clone());
                near(what, &values(output.clone()), &case.output);
                let gradients = (output.clone() * output).sum().backward();
                let gradient = x.grad(&gradients).unwrap();
                near(what, &values(gradient), &case.gradients[0]);
            }
            LayerKind::DeformConv2d(settings) => {
                let offsets: Tensor<4> = tensor(1, shape(1));
                let has_weights = case.shapes.len() > 4;
                let weights = has_weights.then(|| tensor::<4>(2, shape(4)));
                let weight: Tensor<4> = tensor(3, shape(2));
                let bias: Tensor<1> = tensor(4, shape(3));
                let conv = DeformConv2d {
                    weight: Param::from_tensor(weight),
                    bias: Some(Param::from_tensor(bias)),
                    settings,
                    arithmetic: Arithmetic::default(),
                };
                let output = conv.forward(x.clone(), offsets.clone(), weights.clone());
                near(what, &values(output.clone()), &case.output);
                let gradients = (output.clone() * output).sum().backward();
                let mut found = vec![
                    values(x.grad(&gradients).unwrap()),
                    values(offsets.grad(&gradients).unwrap()),
                    values(conv.weight.val().grad(&gradients).unwrap()),
                    values(conv.bias.unwrap().val().grad(&gradients).unwrap()),
                ];
                found.extend(weights.map(|weights| values(weights.grad(&gradients).unwrap())));
                for (at, (ours, theirs)) in found.iter().zip(&case.gradients).enumerate() {
                    near(&format!("{what}, gradient {at}"), ours, theirs);
                }
                assert_eq!(found.len(), case.gradients.len());
            }
            other => panic!("{other:?}"),
        }
    }
}
