//! Language models: subwords, and folders of model hubs, judged by the library transformers.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::sharing::losses;
use super::support::peers::python_with;
use super::support::{read_json, root, run};

/// A tokenizer of whole words.
fn words(num: usize) -> String {
    let word = |at: usize| {
        (
            if at == 0 {
                "?".into()
            } else {
                format!("w{at}")
            },
            json!(at),
        )
    };
    let vocabulary: serde_json::Map<String, Json> = (0..num).map(word).collect();
    let model = json!({ "type": "WordLevel", "vocab": vocabulary, "unk_token": "?" });
    json!({ "model": model, "pre_tokenizer": { "type": "Whitespace" } }).to_string()
}

/// The configuration of a small model.
fn config() -> Json {
    json!({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
        "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "max_position_embeddings": 64, "tie_word_embeddings": true, "vocab_size": 12, "use_cache": true,
        "attention_bias": false, "rope_scaling": null, "bos_token_id": 1, "eos_token_id": 2,
    })
}

/// A folder of a hub without weights that a network could use.
fn hub(folder: &Path, config: &[u8], tokenizer: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
    fs::write(folder.join("model.safetensors"), b"").unwrap();
}

#[test]
fn models_of_hubs_train_and_continue_texts_as_in_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("language_check.py", &[folder.path()]);
    for name in ["tied", "scaled", "mistral", "gpt2"] {
        let expected = read_json(&folder.path().join(format!("{name}.json")));
        let (code, _, said) = run(
            folder.path(),
            &[
                "import",
                "hub",
                name,
                "--text",
                "train.txt",
                "--length",
                "16",
            ],
        );
        assert_eq!(code, 0, "{said}");
        let file = format!("{name}.toml");
        let batch = format!("train.batch_size={}", expected["batch"]);
        let sets = [
            "data.valid_path=valid.txt",
            "data.split.test=0",
            "train.epochs=20",
            &batch,
            "backend.precision=f64",
            "optimizer.learning_rate=0.01",
            "optimizer.weight_decay=0.01",
            "scheduler.type=constant",
        ];
        let mut arguments = vec!["run", &file, "--quiet"];
        for set in &sets {
            arguments.extend(["--set", set]);
        }
        let (code, _, said) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{name}: {said}");
        let found = losses(&folder.path().join(format!("results/{name}")));
        let of = expected["losses"].as_array().unwrap().iter();
        let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
        assert_eq!(found.len(), of.len(), "{name}");
        let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
        let errors: Vec<f64> = errors.collect();
        let largest = |upto: usize| errors[..upto].iter().copied().fold(0.0, f64::max);
        // transformers computes rotations and norms in 32 bits, and AdamW divides small gradients by their size.
        assert!(
            largest(1) < 1e-7 && largest(10) < 1e-5 && largest(20) < 1e-3,
            "{name}: {errors:?}"
        );
        let (code, text, said) = run(
            folder.path(),
            &[
                "generate",
                &format!("results/{name}"),
                "--weights",
                "final",
                "--prompt",
                "the harbour",
                "--temperature",
                "0",
                "--max-tokens",
                "12",
                "--json",
            ],
        );
        assert_eq!(code, 0, "{said}");
        let made: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(made["tokens"], expected["tokens"], "{name}");
    }
}

/// A classifier of texts from the weights of BERT, whose padding reaches attention.
const BERT: &str = r#"
[data]
type = "csv"
path = "train.csv"
valid_path = "valid.csv"
target = "kind"
columns = [{ name = "review", type = "text" }]
tokens = { path = "bert/tokenizer.json", length = 12 }
split = { test = 0.0 }

[init]
from = "bert/model.safetensors"
remap = [
    ['^bert\.(embeddings\.|encoder\.)?', ''],
    ['^LayerNorm\.', 'embeddings_norm.'],
    ['^(position_embeddings|token_type_embeddings)\.weight$', '$1.value'],
    ['^layer\.0\.', 'layer1.'],
    ['^layer\.1\.', 'layer2.'],
    ['\.attention\.self\.query\.', '.attention.q_proj.'],
    ['\.attention\.self\.key\.', '.attention.k_proj.'],
    ['\.attention\.self\.value\.', '.attention.v_proj.'],
    ['\.attention\.output\.dense\.', '.attention.o_proj.'],
    ['\.attention\.output\.LayerNorm\.', '.attention_norm.'],
    ['\.output\.LayerNorm\.', '.output_norm.'],
    ['\.dense\.', '.'],
]

[model]
type = "bert"
d_model = 32
num_layers = 2
num_heads = 4
feedforward_size = 48
max_length = 20
dropout = 0.0
attention_dropout = 0.0

[optimizer]
type = "adamw"
learning_rate = 0.003
weight_decay = 0.01

[scheduler]
type = "constant"

[train]
epochs = 20
batch_size = 32

[backend]
precision = "f64"
"#;

#[test]
fn bert_trains_as_in_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    python.run("bert_check.py", &[folder.path()]);
    fs::write(folder.path().join("spec.toml"), BERT).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let expected = read_json(&folder.path().join("bert.json"));
    let of = expected["losses"].as_array().unwrap().iter();
    let of: Vec<f64> = of.map(|loss| loss.as_f64().unwrap()).collect();
    let found = losses(&folder.path().join("results/spec"));
    assert_eq!(found.len(), of.len());
    let errors = found.iter().zip(&of).map(|(a, b)| ((a - b) / b).abs());
    let largest = errors.fold(0.0, f64::max);
    assert!(largest < 1e-7, "{largest}");
}

/// What a configuration asks for and is not computed is refused by its key, before any weights are read.
#[test]
fn folders_that_are_no_models_are_refused_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let mut refused = |name: &str, config: &[u8], tokenizer: &str| {
        let place = folder.path().join(name);
        hub(&place, config, tokenizer);
        let (code, out, error) = run(folder.path(), &["import", "hub", name, "--out", "made"]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {error}");
        assert!(!folder.path().join("made").exists(), "{name}");
        said.push(format!("{name}:\n{}", error.trim_end()));
    };
    let keys: [(&str, Json); 20] = [
        ("model_type", json!("gpt_neox")),
        ("model_type", Json::Null),
        ("auto_map", json!({ "AutoModel": "modeling.Evil" })),
        ("hidden_size", json!(-8)),
        ("hidden_size", json!("eight")),
        ("hidden_size", json!(1e300)),
        ("num_hidden_layers", json!(0)),
        ("num_attention_heads", Json::Null),
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("head_dim", json!(16)),
        ("sliding_window", json!(4096)),
        (
            "rope_scaling",
            json!({ "rope_type": "llama3", "factor": 8.0 }),
        ),
        ("rope_scaling", json!({ "type": "linear", "factor": -1.0 })),
        ("rope_theta", json!(0)),
        ("rms_norm_eps", json!("small")),
        ("quantization_config", json!({ "bits": 4 })),
        ("vocab_size", json!(5)),
        ("logit_softcapping", json!(30.0)),
    ];
    for (at, (key, value)) in keys.into_iter().enumerate() {
        let mut config = config();
        config[key] = value;
        refused(
            &format!("{at} {key}"),
            config.to_string().as_bytes(),
            &words(12),
        );
    }
    refused("not JSON", b"{", &words(12));
    refused("a list", b"[]", &words(12));
    refused("no tokenizer", config().to_string().as_bytes(), "{}");
    refused(
        "another tokenizer",
        config().to_string().as_bytes(),
        &words(40),
    );
    let (code, _, error) = run(folder.path(), &["import", "hub", "nowhere"]);
    assert_eq!(code, 2);
    said.push(error);
    let place = folder.path().join("no weights");
    hub(&place, config().to_string().as_bytes(), &words(12));
    fs::remove_file(place.join("model.safetensors")).unwrap();
    let (code, _, error) = run(folder.path(), &["import", "hub", "no weights"]);
    assert_eq!(code, 2);
    said.push(error);
    insta::assert_snapshot!(said.join("\n\n"));
}

/// Counts of parameters that are published: 124,439,808 for GPT-2, 134,515,008 for SmolLM2-135M, 1,100,048,384 for TinyLlama.
#[test]
fn networks_of_hubs_have_the_published_numbers_of_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let llama = |sizes: [usize; 6], tie| {
        let keys = [
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
        ];
        let mut config = config();
        for (key, size) in keys.into_iter().zip(sizes) {
            config[key] = json!(size);
        }
        config["tie_word_embeddings"] = json!(tie);
        config
    };
    let gpt2 = json!({
        "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024, "n_ctx": 1024,
        "vocab_size": 50257, "activation_function": "gelu_new", "resid_pdrop": 0.1, "embd_pdrop": 0.1,
        "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-5,
    });
    for (name, config, published) in [
        ("gpt2", gpt2, "124,439,808"),
        (
            "smollm2",
            llama([576, 1536, 30, 9, 3, 49152], true),
            "134,515,008",
        ),
        (
            "tinyllama",
            llama([2048, 5632, 22, 32, 4, 32000], false),
            "1,100,048,384",
        ),
    ] {
        hub(
            &folder.path().join(name),
            config.to_string().as_bytes(),
            &words(500),
        );
        let (code, _, said) = run(folder.path(), &["import", "hub", name]);
        assert_eq!(code, 0, "{said}");
        // The network alone: this folder has no weights.
        let file = folder.path().join(format!("{name}.toml"));
        let text = fs::read_to_string(&file).unwrap();
        let (before, after) = (text.find("[init]").unwrap(), text.find("[model]").unwrap());
        fs::write(&file, format!("{}{}", &text[..before], &text[after..])).unwrap();
        let (code, described, said) = run(folder.path(), &["describe", &format!("{name}.toml")]);
        assert_eq!(code, 0, "{said}");
        assert!(
            described.contains(&format!("{published} parameters")),
            "{described}"
        );
    }
}

#[test]
fn subwords_are_trained_on_the_train_split_and_stay_with_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = root().join("experiments/data/harbour.txt");
    fs::copy(text, folder.path().join("harbour.txt")).unwrap();
    let spec = "data = { type = 'text', path = 'harbour.txt', tokens = { tokenizer = 'bpe', length = 32, max_vocabulary = 400, separator = '<eos>' }, split = { valid = 0.1, order = 'time' } }\n\
        model = { type = 'llama', d_model = 16, num_layers = 1, num_heads = 2, num_kv_heads = 1, feedforward_size = 24 }\n\
        optimizer = { type = 'adamw', learning_rate = 1e-2 }\n\
        train = { epochs = 1, batch_size = 32 }\n";
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    // Without the text, from what the run has.
    fs::remove_file(folder.path().join("harbour.txt")).unwrap();
    let generate = |more: &[&str]| {
        let arguments = [
            "generate",
            "results/spec",
            "--prompt",
            "The harbour",
            "--max-tokens",
            "20",
        ];
        let (code, text, said) = run(folder.path(), &[&arguments, more].concat());
        assert_eq!(code, 0, "{said}");
        text
    };
    assert_eq!(generate(&[]), generate(&["--no-cache"]));
    let (code, _, said) = run(
        folder.path(),
        &["export", "pytorch", "results/spec", "--out", "torch"],
    );
    assert_eq!(code, 0, "{said}");
    let Some(python) = python_with(&["torch", "safetensors", "tokenizers"]) else {
        return;
    };
    let output = python.output(&folder.path().join("torch/model.py"), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
}
