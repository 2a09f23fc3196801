use std::collections::BTreeSet;

use super::*;
use runner_core::check::network::examples::examples;

/// Every parameter that a plan counts is in exactly one entry; all others are batch norm's statistics and constants.
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
        burn.retain(|name| !name.contains(".running_") && !name.contains(".spectral_norm."));
        let planned: BTreeSet<String> = example.network.parameter_paths().into_iter().collect();
        assert_eq!(burn, planned, "{}", example.layers);
        let torch: BTreeSet<_> = state.entries.iter().map(|entry| &entry.torch).collect();
        assert_eq!(torch.len(), state.entries.len(), "{}", example.layers);
    }
}

#[test]
fn tensors_are_turned_and_stacked() {
    let entry = Entry {
        torch: "lstm.weight_ih_l0".into(),
        burn: vec!["lstm.a".into(), "lstm.b".into()],
        is_transposed: true,
        rank: None,
        is_constant: false,
    };
    let part = |first: f32| {
        let values: Vec<f32> = (0..6).map(|at| first + at as f32).collect();
        NamedTensor::from_f32s("part", vec![2, 3], &values)
    };
    let torch = entry.to_torch(&[&part(0.0), &part(10.0)]);
    assert_eq!(
        (torch.name(), torch.shape()),
        ("lstm.weight_ih_l0", &[6, 2][..])
    );
    assert_eq!(
        torch.to_f32s(),
        [
            0.0, 3.0, 1.0, 4.0, 2.0, 5.0, 10.0, 13.0, 11.0, 14.0, 12.0, 15.0
        ]
    );
}
