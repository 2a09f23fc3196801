//! Adapters against the library `peft`: equal steps, and its files in both directions.

use std::fs;
use std::path::Path;

use crate::suite::edit::Edit;
use crate::suite::sharing::losses;
use crate::suite::support::peers::python_with;
use crate::suite::support::{read_json, run};

/// The tables of the adapters of each network of `lora_check.py`.
const NETWORKS: [(&str, &str); 4] = [
    (
        "plain",
        "adapters = [{ type = 'lora', parameters = ['body.weight', 'middle.weight'], rank = 2, alpha = 4 }]",
    ),
    (
        "drawn",
        "adapters = [
             { type = 'lora', parameters = 'body.weight', rank = 4, alpha = 3, scaling = 'rslora', train = 'head.*' },
             { type = 'lora', parameters = 'middle.weight', rank = 2, alpha = 3, scaling = 'rslora' },
         ]",
    ),
    (
        "attention",
        "adapters = [{ type = 'lora', parameters = ['*.query.weight', '*.value.weight'], rank = 4, alpha = 8 }]",
    ),
    (
        "everything",
        "adapters = [{ type = 'lora', parameters = ['*.self_attn.*', '*_proj.weight'], rank = 2, alpha = 2 }]",
    ),
];

const MLP: &str = "
model.layers = [
    { type = 'linear', name = 'body', out_features = 8 }, { type = 'tanh' },
    { type = 'linear', name = 'middle', out_features = 8 }, { type = 'tanh' },
    { type = 'linear', name = 'head' },
]
data = { type = 'csv', path = 'train.csv', valid_path = 'valid.csv', target = 'kind', scale = 'none', split.test = 0 }
optimizer = { type = 'adamw', learning_rate = 0.02, weight_decay = 0.01 }
scheduler = { type = 'constant' }
train = { epochs = 20, batch_size = 30 }
";

/// Writes the experiment of a network, with its adapter.
fn write_spec(folder: &Path, name: &str, adapters: &str) {
    let spec = if folder.join(name).is_dir() {
        let arguments = [
            "import",
            "hub",
            name,
            "--text",
            "train.txt",
            "--length",
            "16",
        ];
        let (code, _, said) = run(folder, &arguments);
        assert_eq!(code, 0, "{said}");
        let text = fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
        let init = format!("[init]\nadapter = '{name}_adapter'\n\n[optimizer]\n");
        let text = text.edit("[optimizer]\n", &init);
        let batch = &read_json(&folder.join(format!("{name}.json")))["batch"];
        let text = text
            .edit("batch_size = 4", &format!("batch_size = {batch}"))
            .edit("epochs = 1", "epochs = 20")
            .edit(
                "learning_rate = 1e-5",
                "learning_rate = 0.02\nweight_decay = 0.01",
            )
            .edit("clip = { global_norm = 1.0 }\n", "")
            .edit(
                "[data]\n",
                "[data]\nvalid_path = 'valid.txt'\nsplit.test = 0\n",
            );
        format!("{adapters}\nscheduler.type = 'constant'\n{text}")
    } else {
        format!(
            "{adapters}\n{MLP}init = {{ from = '{name}.safetensors', adapter = '{name}_adapter' }}\n"
        )
    };
    fs::write(folder.join(format!("{name}.toml")), spec).unwrap();
}

fn trained(folder: &Path, name: &str, precision: &str) -> Vec<f64> {
    let (file, results) = (format!("{name}.toml"), format!("{name}_{precision}"));
    let sets = [
        format!("backend.precision={precision}"),
        format!("experiment.name={results}"),
    ];
    let arguments = [
        "run", &file, "--quiet", "--set", &sets[0], "--set", &sets[1],
    ];
    let (code, _, said) = run(folder, &arguments);
    assert_eq!(code, 0, "{name}: {said}");
    losses(&folder.join("results").join(results))
}

#[test]
fn steps_and_files_are_those_of_peft() {
    let modules = [
        "torch",
        "safetensors",
        "numpy",
        "transformers",
        "tokenizers",
        "peft",
    ];
    let Some(python) = python_with(&modules) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python.run("lora_check.py", &["make".as_ref(), folder]);
    for (name, adapters) in NETWORKS {
        write_spec(folder, name, adapters);
        let expected = read_json(&folder.join(format!("{name}.json")));
        let expected = expected["losses"].as_array().unwrap().iter();
        let expected: Vec<f64> = expected.map(|loss| loss.as_f64().unwrap()).collect();
        let is_language = folder.join(name).is_dir();
        let most = |precision: &str, upto: usize| {
            let found = trained(folder, name, precision);
            assert_eq!(found.len(), expected.len(), "{name}");
            let errors = found.iter().zip(&expected).take(upto);
            errors.map(|(a, b)| ((a - b) / b).abs()).fold(0.0, f64::max)
        };
        // transformers computes rotations and norms in 32 bits.
        let (narrow, wide) = if is_language {
            (1e-4, 1e-5)
        } else {
            (1e-5, 1e-10)
        };
        let in_f32 = most("f32", 20);
        let in_f64 = most("f64", 20);
        eprintln!("{name}: {in_f32:.1e} in f32, {in_f64:.1e} in f64");
        assert!(in_f32 < narrow, "{name} in f32: {in_f32}");
        assert!(in_f64 < wide, "{name} in f64: {in_f64}");
        let (from, out) = (format!("results/{name}_f64"), format!("{name}_written"));
        let (code, _, said) = run(
            folder,
            &[
                "export",
                "weights",
                &from,
                "--weights",
                "final",
                "--format",
                "safetensors",
                "--adapter",
                "--out",
                &out,
            ],
        );
        assert_eq!(code, 0, "{name}: {said}");
    }
    let said = python.run("lora_check.py", &["compare".as_ref(), folder]);
    eprintln!("{said}");
    refuses_broken_adapters(folder);
}

/// What is wrong with an adapter is said when the experiment is checked.
fn refuses_broken_adapters(folder: &Path) {
    let mut said = Vec::new();
    let mut refused = |name: &str, sets: &[&str]| {
        let mut arguments = vec!["check", "plain.toml"];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        let (code, _, error) = run(folder, &arguments);
        assert_eq!(code, 2, "{name}: {error}");
        let error = error.replace(&folder.display().to_string(), "[FOLDER]");
        said.push(format!("{name}:\n{error}"));
    };
    for name in [
        "missing", "shape", "rank", "unknown", "integers", "infinite", "alpha", "dora", "kind",
        "pickle",
    ] {
        refused(name, &[&format!("init.adapter={name}_broken")]);
    }
    refused("nowhere", &["init.adapter=nowhere"]);
    refused("another network", &["init.adapter=attention_adapter"]);
    refused("no adapters", &["adapters=[]"]);
    insta::assert_snapshot!(said.join("\n"));
}
