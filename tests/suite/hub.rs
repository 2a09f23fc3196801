//! Folders of model hubs: networks that are opened from them and written to them, judged by the library transformers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use burn::tensor::TensorData;
use burn_runner::model::{Model, Options, Weights};
use runner_network::tensor::DynTensor;
use serde_json::{Value as Json, json};

use super::edit::Edit;
use super::support::peers::{Python, python_with};
use super::support::{read_json, run};

/// Experiments over the folders that `hub_check.py` writes.
const REST: &str = "optimizer = { type = \"adamw\", learning_rate = 1e-3 }\ntrain = { epochs = 1, batch_size = 8 }\n";
const TEXT: &str = "data = { type = 'text', path = 'train.txt', tokens = { length = 12 }, split = { valid = 0.2 } }\n";
const HIDDEN: &str = "data = { type = 'text', path = 'train.txt', tokens = { length = 12, masked = 0.2 }, split = { valid = 0.2 } }\n";
const IMAGES: &str = "data = { type = 'digits' }\n";
const LARGE: &str = "data = { type = 'digits', image_size = '28x28' }\n";
const KINDS: &str = "data = { type = 'csv', path = 'train.csv', target = 'kind', columns = [{ name = 'review', type = 'text' }], tokens = { length = 12 }, split = { valid = 0.2 } }\n";

/// What a network gives for the tokens or the images of a file.
fn outputs(run: &Path, weights: Weights, of: &Json) -> Vec<f32> {
    let options = Options {
        weights: Some(weights),
        ..Options::default()
    };
    let model = Model::open(run, &options).unwrap_or_else(|refusal| panic!("{refusal:?}"));
    let items = &model.plan().network.items;
    let key = if items.vocabulary.is_some() {
        "tokens"
    } else {
        "images"
    };
    let values = flat(&of[key]);
    let shape = [&[of[key].as_array().unwrap().len()], items.dims.as_slice()].concat();
    let data = match items.vocabulary {
        Some(_) => TensorData::new(values.iter().map(|value| *value as i64).collect(), shape),
        None => TensorData::new(values, shape),
    };
    let graph = model.network().graph();
    let found = graph.forward(DynTensor::from_data(data, model.device()));
    found.into_data().try_to_vec::<f32>().unwrap()
}

fn flat(values: &Json) -> Vec<f32> {
    match values {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        number => vec![number.as_f64().unwrap() as f32],
    }
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max)
}

/// Runs an experiment on a folder of a hub, and returns the run.
fn trained(folder: &Path, name: &str, data: &str, keys: &str) -> std::path::PathBuf {
    let file = format!("of_{name}.toml");
    let path = name.strip_suffix("_of_28").unwrap_or(name);
    let spec = format!("{data}model = {{ type = 'hub', path = '{path}'{keys} }}\n{REST}");
    fs::write(folder.join(&file), spec).unwrap();
    let (code, _, said) = run(folder, &["run", &file, "--quiet"]);
    assert_eq!(code, 0, "{name}: {said}");
    folder.join(format!("results/of_{name}/runs/base-s1"))
}

#[test]
fn folders_of_hubs_are_opened_and_written_as_by_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    python.run("hub_check.py", &[folder]);
    networks_are_those_of_transformers_both_ways(folder, &python);
    padding_is_masked_as_in_the_training(folder);
    residual_networks_are_described_as_layers(folder);
    a_new_head_begins_with_random_values(folder);
    classes_have_the_order_of_the_folder(folder);
    a_change_of_any_file_of_the_folder_is_another_run(folder);
}

fn networks_are_those_of_transformers_both_ways(folder: &Path, python: &Python) {
    fs::create_dir(folder.join("exported")).unwrap();
    let cases = [
        ("hidden", HIDDEN),
        ("kinds", KINDS),
        ("gpt2", TEXT),
        ("llama", TEXT),
        ("llama3", TEXT),
        ("yarn", TEXT),
        ("dynamic", TEXT),
        ("longrope", TEXT),
        ("vit", IMAGES),
        ("vit_of_28", LARGE),
        ("basic", IMAGES),
        ("bottleneck", IMAGES),
    ];
    let mut final_outputs = BTreeMap::new();
    for (name, data) in cases {
        let expected = read_json(&folder.join(format!("{name}.json")));
        let keys = if data == LARGE {
            ", image_size = 28"
        } else {
            ""
        };
        let run_folder = trained(folder, name, data, keys);
        let before = outputs(&run_folder, Weights::Initial, &expected);
        let difference = largest_difference(&before, &flat(&expected["outputs"]));
        assert!(difference < 1e-4, "{name}: {difference}");
        let after = outputs(&run_folder, Weights::Final, &expected);
        assert!(
            largest_difference(&before, &after) > 1e-3,
            "{name} was not trained"
        );
        final_outputs.insert(name, after);
        let out = format!("exported/{name}");
        let (code, _, said) = run(
            folder,
            &[
                "export",
                "hub",
                run_folder.to_str().unwrap(),
                "--weights",
                "final",
                "--out",
                &out,
            ],
        );
        assert_eq!(code, 0, "{name}: {said}");
        // What was exported is opened like what was opened.
        let (code, _, said) = run(
            folder,
            &[
                "check",
                &format!("of_{name}.toml"),
                "--set",
                &format!("model.path={out}"),
            ],
        );
        assert_eq!(code, 0, "{name}: {said}");
    }
    python.run("hub_check.py", &[folder, Path::new("judge")]);
    for (name, after) in final_outputs {
        let judged = read_json(&folder.join(format!("exported/{name}.json")));
        let difference = largest_difference(&after, &flat(&judged["outputs"]));
        assert!(difference < 1e-4, "{name}: {difference}");
        if judged.get("padding").is_none() {
            assert_eq!(judged["labels"].as_object().unwrap().len(), 10, "{name}");
            continue;
        }
        assert_eq!(judged["padding"], json!(0), "{name}");
        assert!(judged["text"].as_array().unwrap().len() >= 3, "{name}");
        if name == "kinds" {
            assert_eq!(
                judged["labels"],
                json!({ "0": "calm", "1": "rough", "2": "wild" })
            );
        }
    }
}

/// The library passes a mask of padding unless the folder says otherwise.
fn padding_is_masked_as_in_the_training(folder: &Path) {
    let data = KINDS.edit("tokens = {", "tokens = { path = 'kinds/tokenizer.json',");
    for (mask, names) in [
        (true, Json::Null),
        (false, json!(["input_ids", "token_type_ids"])),
    ] {
        let name = format!("bert_{mask}");
        let model = "type = 'bert', d_model = 8, num_layers = 1, num_heads = 2, feedforward_size = 8, max_length = 12";
        let spec = format!("{data}model = {{ {model}, mask = {mask} }}\n{REST}");
        fs::write(folder.join(format!("{name}.toml")), spec).unwrap();
        let results = format!("results/{name}");
        for arguments in [
            vec!["run", &format!("{name}.toml"), "--quiet"],
            vec!["export", "hub", &results, "--out", &name],
        ] {
            let (code, _, said) = run(folder, &arguments);
            assert_eq!(code, 0, "{name}: {said}");
        }
        let config = read_json(&folder.join(name).join("tokenizer_config.json"));
        assert_eq!(config["model_input_names"], names);
    }
}

/// Residual networks are no preset: their layers are listed.
fn residual_networks_are_described_as_layers(folder: &Path) {
    for name in ["basic", "bottleneck"] {
        let layers = ["describe", &format!("of_{name}.toml"), "--as-layers"];
        let (code, _, said) = run(folder, &layers);
        assert_eq!(code, 0, "{said}");
    }
}

/// An encoder without a head, and a classifier with other classes, need `head = "new"`: then all other weights are those
/// of the folder.
fn a_new_head_begins_with_random_values(folder: &Path) {
    let three = fs::read_to_string(folder.join("train.csv")).unwrap();
    fs::write(folder.join("train.csv"), three.edit(",wild", ",calm")).unwrap();
    let check = |name: &str, keys: &str| {
        let spec = format!("{KINDS}model = {{ type = 'hub', path = '{name}'{keys} }}\n{REST}");
        fs::write(folder.join("spec.toml"), spec).unwrap();
        let (code, _, said) = run(folder, &["check", "spec.toml"]);
        (code, said)
    };
    for name in ["kinds", "encoder", "hidden"] {
        let (code, said) = check(name, "");
        assert!(
            code == 2 && said.contains("head = \"new\""),
            "{name}: {said}"
        );
        let (code, said) = check(name, ", head = 'new'");
        assert_eq!(code, 0, "{name}: {said}");
        let (code, described, said) = run(folder, &["describe", "spec.toml"]);
        assert_eq!(code, 0, "{said}");
        // 2 + 3 + 2 * 16 of the encoder, and a pooler unless the folder has none.
        let num = if name == "hidden" { 37 } else { 39 };
        assert!(
            described.contains(&format!("{num} matched")),
            "{name}: {described}"
        );
    }
    fs::write(folder.join("train.csv"), three).unwrap();
}

/// The rows of a head that is kept are classes by number: data with the same names in another order is refused, and with
/// other names it is a warning.
fn classes_have_the_order_of_the_folder(folder: &Path) {
    let three = fs::read_to_string(folder.join("train.csv")).unwrap();
    let check = |rows: &str, keys: &str| {
        fs::write(folder.join("train.csv"), rows).unwrap();
        let spec = format!("{KINDS}model = {{ type = 'hub', path = 'kinds'{keys} }}\n{REST}");
        fs::write(folder.join("spec.toml"), spec).unwrap();
        let (code, _, said) = run(folder, &["check", "spec.toml"]);
        (code, said)
    };
    let other = three
        .edit(",calm", ",1")
        .edit(",rough", ",2")
        .edit(",wild", ",3");
    let (code, said) = check(&other, "");
    assert!(
        code == 0 && said.contains("the outputs of the folder `calm`, `rough`, `wild`"),
        "{said}"
    );
    let (code, said) = check(&other, ", head = 'new'");
    assert!(code == 0 && !said.contains("warning"), "{said}");
    let config = folder.join("kinds/config.json");
    let before = fs::read_to_string(&config).unwrap();
    let mixed = before
        .edit("\"0\": \"calm\"", "\"0\": \"Wild\"")
        .edit("\"2\": \"wild\"", "\"2\": \"calm\"");
    assert_ne!(mixed, before);
    fs::write(&config, mixed).unwrap();
    let (code, said) = check(&three, "");
    assert!(code == 2 && said.contains("the order differs"), "{said}");
    let (code, said) = check(&three, ", head = 'new'");
    assert_eq!(code, 0, "{said}");
    fs::write(&config, before).unwrap();
}

/// Each file of a folder is a part of a run's identity, and where the folder is, is not.
fn a_change_of_any_file_of_the_folder_is_another_run(folder: &Path) {
    let fingerprint = |place: &str| {
        let spec = format!("{TEXT}model = {{ type = 'hub', path = '{place}' }}\n{REST}");
        let (plan, _) = super::support::plan_in(Some(folder), "spec.toml", &spec).unwrap();
        plan.runs[0].fingerprint.clone()
    };
    let first = fingerprint("gpt2");
    fs::rename(folder.join("gpt2"), folder.join("moved")).unwrap();
    assert_eq!(fingerprint("moved"), first);
    type Change<'a> = &'a dyn Fn(&mut Vec<u8>);
    let edits: [(&str, Change<'_>); 3] = [
        ("config.json", &|text| {
            let edited = String::from_utf8(text.clone()).unwrap();
            let edited = edited.edit(
                "\"layer_norm_epsilon\": 1e-05",
                "\"layer_norm_epsilon\": 1e-06",
            );
            assert_ne!(edited.as_bytes(), text.as_slice());
            *text = edited.into_bytes();
        }),
        ("model.safetensors", &|bytes| {
            let last = bytes.len() - 2;
            bytes[last] ^= 1;
        }),
        ("tokenizer.json", &|text| {
            let edited = String::from_utf8(text.clone()).unwrap();
            *text = edited.edit("\"night\"", "\"nights\"").into_bytes();
        }),
    ];
    for (name, edit) in edits {
        let path = folder.join("moved").join(name);
        let before = fs::read(&path).unwrap();
        let mut after = before.clone();
        edit(&mut after);
        assert_ne!(before, after, "{name}");
        fs::write(&path, after).unwrap();
        assert_ne!(fingerprint("moved"), first, "{name}");
        fs::write(&path, before).unwrap();
    }
    assert_eq!(fingerprint("moved"), first);
}

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

type Shapes = BTreeMap<String, Vec<usize>>;

/// The tensors of that model.
fn shapes() -> Shapes {
    let of_layer = [
        ("input_layernorm", vec![8]),
        ("self_attn.q_proj", vec![8, 8]),
        ("self_attn.k_proj", vec![4, 8]),
        ("self_attn.v_proj", vec![4, 8]),
        ("self_attn.o_proj", vec![8, 8]),
        ("post_attention_layernorm", vec![8]),
        ("mlp.gate_proj", vec![12, 8]),
        ("mlp.up_proj", vec![12, 8]),
        ("mlp.down_proj", vec![8, 12]),
    ];
    let of_layer = of_layer.map(|(name, shape)| (format!("model.layers.0.{name}.weight"), shape));
    let rest = [("model.embed_tokens", vec![12, 8]), ("model.norm", vec![8])];
    let rest = rest.map(|(name, shape)| (format!("{name}.weight"), shape));
    of_layer.into_iter().chain(rest).collect()
}

/// A file of zeros with some tensors.
fn weights(shapes: &Shapes, value: f32) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, shape) in shapes {
        let start = data.len();
        for _ in 0..shape.iter().product::<usize>() {
            data.extend(value.to_le_bytes());
        }
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name.clone(), entry);
    }
    let header = Json::Object(header).to_string();
    let length = (header.len() as u64).to_le_bytes();
    [length.as_slice(), header.as_bytes(), &data].concat()
}

/// A folder of a hub.
fn hub(folder: &Path, config: &[u8], tokenizer: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.json"), config).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer).unwrap();
    fs::write(folder.join("model.safetensors"), weights(&shapes(), 0.0)).unwrap();
}

/// An experiment on a folder, with further keys.
fn spec(name: &str, more: &str) -> String {
    format!(
        "data = {{ type = 'text', path = 'train.txt', tokens = {{ length = 8 }}, split = {{ valid = 0.2 }} }}\n\
         model = {{ type = 'hub', path = '{name}' }}\n{more}{REST}"
    )
}

/// What a folder says and is not computed is refused with the key, before anything is written.
#[test]
fn wrong_folders_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("train.txt"),
        "w1 w2 w3 w4 w5 w6 w7\n".repeat(30),
    )
    .unwrap();
    let mut said = Vec::new();
    let mut refused = |name: &str, more: &str| {
        fs::write(folder.join("spec.toml"), spec(name, more)).unwrap();
        let (code, out, error) = run(folder, &["run", "spec.toml"]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {error}");
        assert!(!folder.join("results").exists(), "{name}");
        let error = error.replace(&folder.display().to_string(), "[FOLDER]");
        said.push(format!("{name}:\n{}", error.trim_end()));
    };
    let keys: [(&str, Json); 29] = [
        ("model_type", json!("gpt_neox")),
        ("model_type", Json::Null),
        ("auto_map", json!({ "AutoModel": "modeling.Evil" })),
        ("trust_remote_code", json!(true)),
        ("hidden_size", json!(-8)),
        ("hidden_size", json!("eight")),
        ("hidden_size", json!(1e300)),
        ("num_hidden_layers", json!(0)),
        ("num_attention_heads", Json::Null),
        ("num_attention_heads", json!(3)),
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("attention_dropout", json!(0.1)),
        ("mlp_bias", json!(true)),
        ("head_dim", json!(16)),
        ("sliding_window", json!(4096)),
        (
            "rope_scaling",
            json!({ "rope_type": "llama3", "factor": 8.0 }),
        ),
        ("rope_scaling", json!({ "type": "linear", "factor": -1.0 })),
        ("rope_scaling", json!({ "rope_type": "dynamic" })),
        (
            "rope_scaling",
            json!({ "rope_type": "longrope", "factor": 8.0, "short_factor": [1.0], "long_factor": [-1.0] }),
        ),
        (
            "rope_scaling",
            json!({ "rope_type": "longrope", "factor": 8.0, "short_factor": [1.0], "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0] }),
        ),
        (
            "rope_scaling",
            json!({ "rope_type": "proportional", "factor": 8.0 }),
        ),
        (
            "rope_scaling",
            json!({ "rope_type": "yarn", "factor": 8.0, "truncate": false }),
        ),
        (
            "rope_parameters",
            json!({ "rope_type": "default", "partial_rotary_factor": 0.5 }),
        ),
        ("rope_theta", json!(0)),
        ("rms_norm_eps", json!("small")),
        ("quantization_config", json!({ "bits": 4 })),
        ("vocab_size", json!(5)),
        ("logit_softcapping", json!(30.0)),
    ];
    for (at, (key, value)) in keys.into_iter().enumerate() {
        let mut config = config();
        config[key] = value;
        let name = format!("{at} {key}");
        hub(
            &folder.join(&name),
            config.to_string().as_bytes(),
            &words(12),
        );
        refused(&name, "");
    }
    let right = config().to_string();
    let right = right.as_bytes();
    let texts: [(&str, &[u8], &str); 4] = [
        ("not JSON", b"{", &words(12)),
        ("a list", b"[]", &words(12)),
        ("no tokenizer", right, "{}"),
        ("another tokenizer", right, &words(40)),
    ];
    for (name, config, tokenizer) in texts {
        hub(&folder.join(name), config, tokenizer);
        refused(name, "");
    }
    refused("nowhere", "");
    refused("train.txt", "");
    let mut removed = |name: &str, file: &str| {
        hub(&folder.join(name), right, &words(12));
        fs::remove_file(folder.join(name).join(file)).unwrap();
        refused(name, "");
    };
    removed("missing config", "config.json");
    removed("missing weights", "model.safetensors");
    removed("missing tokenizer", "tokenizer.json");
    insta::assert_snapshot!(said.join("\n\n"));
}

/// The same for weights: of other shapes, in files that lack some, behind an index that leaves the folder, or in a pickle
/// that would run code.
#[test]
fn wrong_weights_of_a_folder_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("train.txt"),
        "w1 w2 w3 w4 w5 w6 w7\n".repeat(30),
    )
    .unwrap();
    let right = config().to_string();
    let mut said = Vec::new();
    let mut refused = |name: &str, more: &str, files: &[(&str, Vec<u8>)]| {
        let place = folder.join(name);
        hub(&place, right.as_bytes(), &words(12));
        if !files.is_empty() {
            fs::remove_file(place.join("model.safetensors")).unwrap();
        }
        for (file, bytes) in files {
            fs::write(place.join(file), bytes).unwrap();
        }
        fs::write(folder.join("spec.toml"), spec(name, more)).unwrap();
        let (code, out, error) = run(folder, &["run", "spec.toml"]);
        assert_eq!((code, out.as_str()), (2, ""), "{name}: {error}");
        assert!(!folder.join("results").exists(), "{name}");
        let error = error.replace(&folder.display().to_string(), "[FOLDER]");
        said.push(format!("{name}:\n{}", error.trim_end()));
    };
    let of = |edit: &dyn Fn(&mut Shapes)| {
        let mut all = shapes();
        edit(&mut all);
        weights(&all, 0.0)
    };
    let model = "model.safetensors";
    let norm = "model.norm.weight";
    refused(
        "another shape",
        "",
        &[(model, of(&|all| _ = all.insert(norm.into(), vec![9])))],
    );
    refused(
        "a tensor less",
        "",
        &[(model, of(&|all| _ = all.remove(norm)))],
    );
    let more =
        |all: &mut Shapes| _ = all.insert("model.layers.1.input_layernorm.weight".into(), vec![8]);
    refused("a layer more", "", &[(model, of(&more))]);
    refused("not finite", "", &[(model, weights(&shapes(), f32::NAN))]);
    let whole = weights(&shapes(), 0.0);
    refused("cut", "", &[(model, whole[..whole.len() - 40].to_vec())]);
    refused(
        "twice",
        "",
        &[(
            model,
            of(&|all| _ = all.insert("norm.weight".into(), vec![8])),
        )],
    );
    let index = |file: &str| {
        let map = shapes().into_keys().map(|name| {
            let file = if name == norm {
                file
            } else {
                "model-1.safetensors"
            };
            (name, json!(file))
        });
        let index = json!({ "weight_map": map.collect::<serde_json::Map<_, _>>() });
        (
            "model.safetensors.index.json",
            index.to_string().into_bytes(),
        )
    };
    let first = ("model-1.safetensors", of(&|all| _ = all.remove(norm)));
    refused(
        "a file less",
        "",
        &[index("model-2.safetensors"), first.clone()],
    );
    refused(
        "outside",
        "",
        &[index("../secret.safetensors"), first.clone()],
    );
    refused("not there", "", &[index("model-1.safetensors"), first]);
    // `os.system("touch pwned")` as a pickle is refused because it is one, and when it is asked for, before it is parsed.
    let poisoned = b"cposix\nsystem\n(S'touch pwned'\ntR.".to_vec();
    refused(
        "only a pickle",
        "",
        &[("pytorch_model.bin", poisoned.clone())],
    );
    refused(
        "a poisoned pickle",
        "init.from = 'a poisoned pickle/pytorch_model.bin'\n",
        &[("pytorch_model.bin", poisoned)],
    );
    assert!(!folder.join("pwned").exists());
    refused("names", "init.remap = [['^a', 'b']]\n", &[]);
    insta::assert_snapshot!(said.join("\n\n"));
}

/// The library uses the head of the file, whatever the settings say of it.
#[test]
fn a_head_that_is_no_copy_of_the_table_is_not_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "w1 w2 w3 w4 w5 w6 w7\n".repeat(30);
    fs::write(folder.join("train.txt"), text).unwrap();
    fs::write(folder.join("spec.toml"), spec("model", "")).unwrap();
    let with = |tie: bool, value: f32| {
        let mut config = config();
        config["tie_word_embeddings"] = json!(tie);
        let model = folder.join("model");
        hub(&model, config.to_string().as_bytes(), &words(12));
        // Values of the head alone, which is the first tensor in the file.
        let shapes: Shapes = [("lm_head.weight".to_owned(), vec![12, 8])]
            .into_iter()
            .chain(shapes())
            .collect();
        let mut bytes = weights(&shapes, 0.0);
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        for at in 0..12 * 8 {
            let from = 8 + header + 4 * at;
            bytes[from..from + 4].copy_from_slice(&value.to_le_bytes());
        }
        fs::write(model.join("model.safetensors"), bytes).unwrap();
        run(folder, &["check", "spec.toml"])
    };
    for (tie, value, expected) in [(true, 0.0, 0), (false, 0.5, 0), (true, 0.5, 2)] {
        let (code, _, error) = with(tie, value);
        assert_eq!(code, expected, "{tie} {value}: {error}");
        let is_told = error.contains("`lm_head.weight` differs from the table of tokens");
        assert_eq!(is_told, code == 2, "{error}");
    }
}

/// The folder is opened by every verb that reads a file, and nothing of it is copied.
#[test]
fn folders_can_be_looked_at_before_anything_is_trained() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("train.txt"),
        "w1 w2 w3 w4 w5 w6 w7\n".repeat(30),
    )
    .unwrap();
    hub(
        &folder.join("model"),
        config().to_string().as_bytes(),
        &words(12),
    );
    fs::create_dir(folder.join("below")).unwrap();
    fs::write(
        folder.join("below/base.toml"),
        spec("../model", "").edit("'train.txt'", "'../train.txt'"),
    )
    .unwrap();
    fs::write(folder.join("spec.toml"), "extends = 'below/base.toml'\n").unwrap();
    for verb in ["check", "plan", "describe", "memory", "render"] {
        let (code, out, error) = run(folder, &[verb, "spec.toml"]);
        assert_eq!(code, 0, "{verb}: {error}");
        assert!(verb != "describe" || out.contains("11 matched"), "{out}");
        assert!(!folder.join("results").exists(), "{verb}");
    }
}

/// Counts of parameters that are published: 124,439,808 for GPT-2, 134,515,008 for SmolLM2-135M, 1,100,048,384 for
/// TinyLlama.
#[test]
fn networks_of_hubs_have_the_published_numbers_of_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("train.txt"),
        "w1 w2 w3 w4 w5 w6 w7\n".repeat(30),
    )
    .unwrap();
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
            &folder.join(name),
            config.to_string().as_bytes(),
            &words(500),
        );
        fs::write(folder.join("spec.toml"), spec(name, "")).unwrap();
        let (code, layers, said) = run(folder, &["describe", "spec.toml", "--as-layers"]);
        assert_eq!(code, 0, "{said}");
        // The network alone: its weights are not there.
        let data = format!(
            "data = {{ type = 'text', path = 'train.txt', tokens = {{ path = '{name}/tokenizer.json', length = 8, min_vocabulary = {} }}, split = {{ valid = 0.2 }} }}\n",
            config["vocab_size"]
        );
        fs::write(folder.join("layers.toml"), format!("{data}{REST}{layers}")).unwrap();
        let (code, described, said) = run(folder, &["describe", "layers.toml"]);
        assert_eq!(code, 0, "{said}");
        assert!(
            described.contains(&format!("{published} parameters")),
            "{described}"
        );
    }
}
