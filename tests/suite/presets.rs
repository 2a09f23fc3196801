//! Presets of networks from papers: as many parameters as torchvision's networks, and their outputs.

use std::fs;

use burn_runner::check::network::{Items, Network, Shape, lay_out};
use burn_runner::spec::document::{Node, Value};
use burn_runner::spec::model::NetworkInputs;
use burn_runner::spec::model::expand::expand;
use burn_runner::spec::model::preset::{ModelType, Preset};
use burn_runner::spec::section::Findings;

use super::exchange::{graph, write_pytorch};
use super::support::peers::python_with;
use super::support::plan_in;

/// Keys of a preset with their values.
type Keys<'a> = &'a [(&'a str, i64)];

/// The network of a preset with some numbers among its keys, over images.
pub fn network(kind: ModelType, keys: Keys<'_>, image: &[usize], output: &[usize]) -> Network {
    let preset = Preset::of(kind).unwrap();
    let arguments = preset.parameters.iter().map(|parameter| {
        let set = keys.iter().find(|(key, _)| *key == parameter.key);
        let value = set.map_or_else(
            || parameter.default.value.clone(),
            |(_, number)| Value::Int(*number),
        );
        let span = parameter.default.span;
        (parameter.key.clone(), Node { value, span })
    });
    let mut findings = Findings::default();
    let place = (preset.name, Default::default());
    let layers = expand(
        &preset.model,
        arguments.collect(),
        Some(place),
        &NetworkInputs::default(),
        &mut findings,
    );
    assert_eq!(findings.diagnostics.num_found(), 0, "{}", preset.name);
    lay_out(&layers, &Items::single(Shape::numbers(image)), output, &[])
        .unwrap_or_else(|wrong| panic!("{wrong:?}"))
}

#[test]
fn presets_have_as_many_parameters_as_torchvisions_networks() {
    for (kind, num) in [
        (ModelType::MobilenetV2, 3_504_872),
        (ModelType::Densenet, 7_978_856),
        (ModelType::EfficientnetB0, 5_288_548),
        (ModelType::Convnext, 28_589_128),
        (ModelType::Vit, 86_567_656),
    ] {
        let network = network(kind, &[], &[3, 224, 224], &[1000]);
        assert_eq!(network.num_parameters, num, "{kind:?}");
    }
    // As the papers' code for 4 classes: 22 electrodes and 256 samples; one feature.
    let eegnet = network(ModelType::Eegnet, &[("channels", 22)], &[22, 256], &[4]);
    assert_eq!(eegnet.num_parameters, 1_972);
    // As the authors' code with a state and a width of 64 and four blocks, for 6 features and 5 classes.
    let oscillators = network(ModelType::Dlinoss, &[], &[100, 6], &[5]);
    let block = 4 * 64 * 64 + 64 + 3 * 64 + 2 * (64 * 64 + 64);
    assert_eq!(oscillators.num_parameters, 7 * 64 + 4 * block + 65 * 5);
    // `FTTransformer` of the authors' package with its defaults, and PyTorch's example of a VAE.
    let tables = network(ModelType::FtTransformer, &[], &[8], &[1]);
    assert_eq!(tables.num_parameters, 894_913);
    let vae = network(ModelType::Vae, &[], &[1, 28, 28], &[1, 28, 28]);
    assert_eq!(vae.num_parameters, 652_824);
    let tcn = network(ModelType::Tcn, &[], &[784, 1], &[10]);
    assert_eq!(tcn.num_parameters, 66_510);
    // The U-Net of the paper, with padding and batch norm instead of biases, for two classes.
    let unet = network(ModelType::Unet, &[], &[1, 256, 256], &[2, 256, 256]);
    assert_eq!(unet.num_parameters, 31_036_546);
}

/// As in the authors' code: a length for each output of the causal convolutions.
#[test]
fn a_tcn_may_have_weight_norm() {
    let planned = |keys: &str| {
        let text = format!(
            "data = {{ type = 'sine_windows' }}\nmodel = {{ type = 'tcn'{keys} }}\n\
             optimizer = {{ type = 'adam', learning_rate = 1e-3 }}\ntrain.epochs = 1\n"
        );
        let (plan, _) = plan_in(None, "spec.toml", &text).unwrap();
        let run = &plan.runs[0];
        (run.network.num_parameters, run.fingerprint.clone())
    };
    let (plain, fingerprint) = planned("");
    let (normed, _) = planned(", parametrization = 'weight_norm'");
    assert_eq!(normed, plain + 8 * 2 * 25);
    assert_eq!(planned(", parametrization = 'none'").1, fingerprint);
}

#[test]
fn presets_give_the_outputs_of_torchvisions_networks() {
    let Some(python) = python_with(&["torch", "torchvision", "safetensors"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, network: Network| {
        write_pytorch(&folder.path().join(name), &network, &graph(&network)).unwrap();
    };
    let small: [(ModelType, &str, Keys<'_>); 5] = [
        (ModelType::MobilenetV2, "mobilenet_v2", &[]),
        (ModelType::Densenet, "densenet", &[("growth", 4)]),
        (ModelType::EfficientnetB0, "efficientnet_b0", &[]),
        (ModelType::Convnext, "convnext", &[("channels", 8)]),
        (
            ModelType::Vit,
            "vit",
            &[
                ("image_size", 64),
                ("d_model", 16),
                ("num_heads", 2),
                ("num_layers", 3),
                ("feedforward_size", 24),
            ],
        ),
    ];
    for (kind, name, keys) in small {
        write(name, network(kind, keys, &[3, 64, 64], &[10]));
    }
    let unet = network(
        ModelType::Unet,
        &[("channels", 4)],
        &[3, 32, 32],
        &[5, 32, 32],
    );
    write("unet", unet);
    let tables: Keys<'_> = &[
        ("features", 5),
        ("d_model", 16),
        ("num_heads", 2),
        ("feedforward_size", 12),
    ];
    write(
        "ft_transformer",
        network(ModelType::FtTransformer, tables, &[5], &[4]),
    );
    let sizes: Keys<'_> = &[("image_size", 6), ("hidden_size", 24), ("latent_size", 3)];
    write(
        "vae",
        network(ModelType::Vae, sizes, &[1, 6, 6], &[1, 6, 6]),
    );
    let series: [(ModelType, &str, Keys<'_>, [usize; 2]); 4] = [
        (
            ModelType::Tcn,
            "tcn",
            &[("channels", 6), ("blocks", 3), ("kernel_size", 3)],
            [20, 2],
        ),
        (
            ModelType::Dlinoss,
            "dlinoss",
            &[("d_model", 6), ("state_size", 5), ("num_layers", 2)],
            [20, 2],
        ),
        (
            ModelType::InceptionTime,
            "inception_time",
            &[("filters", 4), ("kernel_size", 12)],
            [30, 2],
        ),
        (
            ModelType::Eegnet,
            "eegnet",
            &[("channels", 5), ("kernel_size", 16)],
            [5, 96],
        ),
    ];
    for (kind, name, keys, items) in series {
        write(name, network(kind, keys, &items, &[4]));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 12);
    println!("{}", python.run("presets_check.py", &[folder.path()]));
}
