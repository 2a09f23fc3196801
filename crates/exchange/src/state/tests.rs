use std::collections::BTreeSet;

use super::*;
use runner_core::check::network::examples::examples;

/// Every parameter that a plan counts is in one entry, once, and nothing else but batch norm's statistics and constants.
#[test]
fn entries_are_the_parameters_of_every_type_of_layer() {
    for example in examples() {
        let state = StateDict::of(&example.network);
        let mut burn = BTreeSet::new();
        for entry in state.entries.iter().filter(|entry| !entry.is_constant) {
            for name in &entry.burn {
                assert!(
                    burn.insert(name.clone()),
                    "{name} twice: {}",
                    example.layers
                );
            }
        }
        burn.retain(|name| !name.contains(".running_"));
        let planned: BTreeSet<String> = example.network.parameter_paths().into_iter().collect();
        assert_eq!(burn, planned, "{}", example.layers);
        let torch: BTreeSet<_> = state.entries.iter().map(|entry| &entry.torch).collect();
        assert_eq!(torch.len(), state.entries.len(), "{}", example.layers);
    }
}

#[test]
fn what_goes_out_by_an_entry_comes_in_by_it() {
    let entry = Entry {
        torch: "lstm.weight_ih_l0".into(),
        burn: vec!["lstm.a".into(), "lstm.b".into()],
        is_transposed: true,
        is_constant: false,
    };
    let part = |name: &str, first: f32| {
        let values: Vec<f32> = (0..6).map(|at| first + at as f32).collect();
        NamedTensor::from_f32s(name, vec![2, 3], &values)
    };
    let (a, b) = (part("lstm.a", 0.0), part("lstm.b", 10.0));
    let torch = entry.to_torch(&[&a, &b]);
    assert_eq!(torch.shape(), [6, 2]);
    assert_eq!(
        torch.to_f32s(),
        [
            0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 10.0, 13.0, 11.0, 14.0, 12.0, 15.0
        ]
    );
    assert_eq!(entry.to_burn(&torch).unwrap(), [a, b]);
    let odd = NamedTensor::from_f32s("lstm.weight_ih_l0", vec![3, 1], &[0.0; 3]);
    assert_eq!(
        entry.to_burn(&odd).unwrap_err().to_string(),
        "tensor `lstm.weight_ih_l0` of shape [3, 1] cannot be divided into 2 matrices or vectors"
    );
}
