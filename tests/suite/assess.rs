//! `runner evaluate` gives what the training recorded, with intervals, and `runner generate` the same text for the same
//! seed, with keys, values and states kept or not.

use std::fs;
use std::path::Path;

use burn_runner::model::{Generation, Model, Options};
use burn_runner::predict::Sampling;
use serde_json::{Value as Json, json};

use super::support::{folder_with, run};

/// Trains a spec; returns its folder and what was recorded of its best epoch.
fn trained(spec: &str) -> (tempfile::TempDir, Json) {
    let folder = folder_with(spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let text = fs::read_to_string(folder.path().join("results/spec/runs/base-s1/summary.json"));
    let summary: Json = serde_json::from_str(&text.unwrap()).unwrap();
    (folder, summary["metrics"].clone())
}

fn spec(data: &str, model: &str) -> String {
    format!(
        "[data]\n{data}\n[model]\n{model}\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n\
         [train]\nepochs = 2\nbatch_size = 32\n"
    )
}

fn evaluated(folder: &Path, more: &[&str]) -> Json {
    let all = [&["evaluate", "results/spec", "--json"], more].concat();
    let (code, stdout, stderr) = run(folder, &all);
    assert_eq!(code, 0, "{stderr}");
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn metrics_are_those_that_the_training_recorded() {
    let mlp = "type = \"mlp\"\nhidden = [8]";
    for (data, model) in [
        (
            "type = \"iris\"\n[task]\nmetrics = [\"accuracy\", \"f_beta\", \"auroc\", \"balanced_accuracy\", \"specificity\", \"jaccard\", \"mcc\", \"cohen_kappa\", \"log_loss\", \"brier\", \"calibration_error\"]\naverage = \"binary\"\npositive_class = \"2\"",
            mlp,
        ),
        (
            "type = \"shapes\"\ntarget = \"labels\"\nsize = 8\nnum_items = 150\n[task]\nmetrics = [\"hamming_score\", \"subset_accuracy\", \"recall\", \"specificity\", \"log_loss\", \"brier\"]\naverage = \"weighted\"\nzero_division = \"one\"",
            mlp,
        ),
        (
            "type = \"regression\"\nnum_items = 200\n[task]\nmetrics = [\"r2\", \"rmse\", \"mae\", \"mape\"]",
            mlp,
        ),
        (
            "type = \"shapes\"\ntarget = \"mask\"\nsize = 8\nnum_items = 80\n[task]\nmetrics = [\"accuracy\", \"mean_iou\"]",
            "layers = [{ type = \"conv2d\", kernel_size = 3, padding = \"same\" }]",
        ),
        (
            "type = \"copy_sequence\"\nlength = 3\nvocabulary = 5\nnum_items = 150\n[task]\nmetrics = [\"accuracy\", \"perplexity\"]",
            "type = \"transformer_lm\"\nd_model = 16\nnum_layers = 1\nnum_heads = 2",
        ),
    ] {
        let (folder, recorded) = trained(&spec(data, model));
        let found = evaluated(folder.path(), &["--split", "valid"]);
        let metrics = found["metrics"].as_array().unwrap();
        assert!(metrics.len() > 2, "{data}: {found}");
        for metric in metrics {
            let name = metric["name"].as_str().unwrap();
            let value = metric["value"].as_f64().unwrap();
            let known = &recorded[format!("valid/{name}")];
            let is_asked = name == "loss" || data.contains(&format!("\"{name}\""));
            assert_eq!(known.is_number(), is_asked, "{data}: {name}");
            if is_asked {
                // The batches are those of the training, so every bit is.
                assert_eq!(Some(value), known.as_f64(), "{data}: {name}");
            }
            // Resamples add noise to it.
            if name == "calibration_error" {
                assert!(metric.get("interval").is_none_or(Json::is_null), "{metric}");
                continue;
            }
            let low = metric["interval"][0].as_f64().unwrap();
            let high = metric["interval"][1].as_f64().unwrap();
            assert!(
                low <= high
                    && low <= value + 0.05 * value.abs()
                    && high >= value - 0.05 * value.abs(),
                "{data}: {metric}"
            );
        }
    }
}

#[test]
fn runs_of_different_precisions_are_not_compared() {
    let text = spec("type = \"iris\"", "type = \"mlp\"\nhidden = [8]");
    let axis = "[sweep.grid]\nbackend.precision = [\"f32\", \"f64\"]\n";
    let folder = folder_with(&format!("{text}{axis}"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let [first, second] =
        ["f32", "f64"].map(|name| format!("results/spec/runs/precision={name}-s1"));
    let arguments = ["evaluate", &first, "--split", "valid", "--against", &second];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    let wanted = "cannot change to f64: use runs of one precision in a command";
    assert!(
        stderr.contains(wanted) && !stderr.contains("help"),
        "{stderr}"
    );
}

#[test]
fn runs_of_one_id_are_told_apart() {
    let folder = folder_with(&spec("type = \"iris\"", "type = \"mlp\"\nhidden = [8]"));
    for name in ["first", "second"] {
        let named = format!("experiment.name={name}");
        let (code, _, stderr) = run(
            folder.path(),
            &["run", "spec.toml", "--quiet", "--set", &named],
        );
        assert_eq!(code, 0, "{stderr}");
    }
    let both = [
        "results/first",
        "--split",
        "valid",
        "--against",
        "results/second",
    ];
    let (code, stdout, stderr) = run(folder.path(), &[&["evaluate"][..], &both].concat());
    assert_eq!(code, 0, "{stderr}");
    for name in ["first/base-s1", "second/base-s1"] {
        assert!(stdout.contains(name), "{stdout}");
    }
}

/// Numbers that were scaled in different ways are compared in their units.
#[test]
fn runs_with_other_scales_are_compared_in_units() {
    let rows: String = (0..60)
        .map(|at| format!("{},{},{}\n", at % 9, at % 4, 100 * (at % 9) + at % 7))
        .collect();
    let text = spec(
        "type = \"csv\"\npath = \"x.csv\"\ntarget = \"price\"",
        "type = \"mlp\"\nhidden = [8]",
    ) + "[sweep.grid]\ndata.target_scale = [\"standardize\", \"min_max\"]\n";
    let folder = folder_with(&text);
    fs::write(folder.path().join("x.csv"), format!("a,b,price\n{rows}")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let of = |scale: &str| format!("results/spec/runs/target_scale={scale}-s1");
    let against = |first: &str, second: &str| {
        let (first, second) = (of(first), of(second));
        let arguments = [
            "evaluate",
            &first,
            "--data",
            "x.csv",
            "--against",
            &second,
            "--json",
        ];
        let (code, stdout, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{stderr}");
        let found: Json = serde_json::from_str(&stdout).unwrap();
        let metrics = found["against"]["metrics"].as_array().unwrap().clone();
        let names = metrics
            .iter()
            .map(|metric| metric["name"].as_str().unwrap());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        (
            names,
            found["residuals"][0]["mean_absolute"].clone(),
            metrics,
        )
    };
    let (names, error, metrics) = against("standardize", "min_max");
    assert_eq!(names, ["mape", "r2", "target_mae", "target_rmse"]);
    let mae = metrics.iter().find(|metric| metric["name"] == "target_mae");
    let (mae, error) = (
        mae.unwrap()["value"].as_f64().unwrap(),
        error.as_f64().unwrap(),
    );
    assert!((mae - error).abs() < 1e-4 * error, "{mae} {error}");
    let (names, ..) = against("min_max", "min_max");
    assert_eq!(
        names,
        [
            "loss",
            "mae",
            "mape",
            "mse",
            "r2",
            "rmse",
            "target_mae",
            "target_rmse"
        ]
    );
}

#[test]
fn two_runs_are_compared_item_by_item_and_shown_as_a_page() {
    let rows: String = (0..90)
        .map(|at| {
            format!(
                "{},{},{}\n",
                at % 9,
                at % 4,
                if at % 9 > 4 { "yes" } else { "no" }
            )
        })
        .collect();
    let text = spec(
        "type = \"csv\"\npath = \"x.csv\"\ntarget = \"big\"",
        "type = \"mlp\"\nhidden = [8]",
    ) + "[sweep.grid]\noptimizer.learning_rate = [1e-5, 1e-1]\n";
    let folder = folder_with(&text);
    fs::write(folder.path().join("x.csv"), format!("a,b,big\n{rows}")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let other = "results/spec/runs/learning_rate=1e-5-s1";
    let found = evaluated(
        folder.path(),
        &["--data", "x.csv", "--against", other, "--html", "page.html"],
    );
    assert_eq!(found["num_items"], 90);
    let right = &found["against"]["right"];
    let count = |name: &str| right[name].as_u64().unwrap();
    assert_eq!(
        count("both") + count("first") + count("other") + count("neither"),
        90
    );
    assert!(count("first") > count("other"), "{right}");
    assert!(right["p"].as_f64().unwrap() < 0.05, "{right}");
    let of = |name: &str| {
        let metrics = found["against"]["metrics"].as_array().unwrap();
        metrics
            .iter()
            .find(|metric| metric["name"] == name)
            .unwrap()
            .clone()
    };
    let accuracy = of("accuracy");
    let share = (count("both") + count("first")) as f64 / 90.0;
    assert!((accuracy["value"].as_f64().unwrap() - share).abs() < 1e-12);
    assert!(
        accuracy["interval"][0].as_f64().unwrap() > 0.0,
        "{accuracy}"
    );
    let confusion = found["confusion"]["confusion"].as_array().unwrap();
    let all = confusion.iter().flat_map(|row| row.as_array().unwrap());
    assert_eq!(all.map(|count| count.as_u64().unwrap()).sum::<u64>(), 90);
    let page = fs::read_to_string(folder.path().join("page.html")).unwrap();
    for part in ["<svg", "McNemar", "accuracy", "Evaluation on x.csv"] {
        assert!(page.contains(part), "{part}");
    }
    // A page replaces other pages, and not what is evaluated.
    let before = fs::read(folder.path().join("x.csv")).unwrap();
    for (page, code) in [("page.html", 0), ("x.csv", 2)] {
        let arguments = [
            "evaluate",
            "results/spec",
            "--data",
            "x.csv",
            "--force",
            "--html",
            page,
        ];
        let (found, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(found, code, "{stderr}");
        assert_eq!(
            code == 2,
            stderr.contains("is data that this command reads"),
            "{stderr}"
        );
    }
    assert_eq!(fs::read(folder.path().join("x.csv")).unwrap(), before);
    let (code, stdout, _) = run(
        folder.path(),
        &["evaluate", "results/spec", "--data", "x.csv"],
    );
    assert_eq!(code, 0);
    assert!(
        stdout.contains("90 items") && stdout.contains("Confusion"),
        "{stdout}"
    );
    // Without targets, or with other classes, there is nothing to measure.
    fs::write(folder.path().join("y.csv"), "a,b\n1,2\n").unwrap();
    fs::write(folder.path().join("z.csv"), "a,b,big\n1,2,maybe\n").unwrap();
    for (name, reason) in [
        ("y.csv", "lacks the column `big`"),
        ("z.csv", "`maybe` is not a category"),
    ] {
        let (code, stdout, stderr) =
            run(folder.path(), &["evaluate", "results/spec", "--data", name]);
        assert_eq!((code, stdout.as_str()), (2, ""));
        assert!(stderr.contains(reason), "{stderr}");
    }
}

const LM: &str =
    "type = \"transformer_lm\"\nd_model = 16\nnum_layers = 2\nnum_heads = 2\nfeedforward_size = 32";

fn language(model: &str) -> tempfile::TempDir {
    let data = "type = \"text\"\npath = \"t.txt\"\ntokens = { tokenizer = \"char\", length = 12 }\nsplit = { valid = 0.2 }";
    let folder = folder_with(&spec(data, model));
    fs::write(
        folder.path().join("t.txt"),
        "the sea is wide and the ship is old. ".repeat(40),
    )
    .unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    folder
}

#[test]
fn texts_are_continued_alike_with_and_without_a_cache() {
    let recurrent = |layer: &str| {
        format!(
            "layers = [{{ type = \"embedding\", embedding_dim = 8 }}, {{ type = \"{layer}\", hidden_size = 16 }}, {{ type = \"linear\" }}]"
        )
    };
    let attention = "layers = [{ type = \"embedding\", embedding_dim = 8 }, { type = \"rotary_encoding\" }, { type = \"multi_head_attention\", num_heads = 2, causal = true }, { type = \"layer_norm\" }, { type = \"linear\" }]";
    let grouped = "layers = [{ type = \"embedding\", embedding_dim = 8 }, { type = \"multi_head_attention\", num_heads = 4, num_kv_heads = 2, rotary = true, bias = false, qk_norm = true, window = 4, causal = true }, { type = \"multi_head_attention\", num_heads = 2, alibi = true, causal = true }, { type = \"linear\" }]";
    for model in [
        LM.to_owned(),
        grouped.to_owned(),
        recurrent("lstm"),
        recurrent("gru"),
        recurrent("rnn"),
        attention.to_owned(),
    ] {
        let folder = language(&model);
        let opened = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
        for temperature in [0.0, 0.9] {
            // Longer than the network's window, so that it has to move.
            let cached = Generation {
                max_tokens: 40,
                sampling: Sampling {
                    temperature,
                    seed: 7,
                    ..Sampling::default()
                },
                ..Generation::new("the s")
            };
            let plain = Generation {
                is_cached: false,
                ..cached.clone()
            };
            let generated = opened.generate(&cached).unwrap();
            assert_eq!(generated.tokens.len(), 40);
            assert_eq!(generated, opened.generate(&plain).unwrap(), "{model}");
        }
    }
}

#[test]
fn prompts_of_a_file_have_the_texts_that_each_has_alone() {
    let folder = language(LM);
    let path = |name: &str| folder.path().join(name);
    let generate = |more: &[&str]| {
        let common = [
            "generate",
            "results/spec",
            "--max-tokens",
            "30",
            "--seed",
            "5",
        ];
        run(folder.path(), &[&common, more].concat())
    };
    // More than are computed at a time, of several lengths; one is longer than the network's window.
    let prompts: Vec<String> = (0..20)
        .map(|at| {
            "the sea and the ship "
                .chars()
                .cycle()
                .skip(at)
                .take(1 + 3 * at)
                .collect()
        })
        .collect();
    let lines = prompts
        .iter()
        .map(|prompt| json!(prompt).to_string() + "\n");
    fs::write(path("prompts.jsonl"), lines.collect::<String>()).unwrap();
    let (code, out, said) = generate(&["--prompts", "prompts.jsonl", "--json"]);
    assert_eq!(code, 0, "{said}");
    let found: Vec<Json> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let model = Model::open(&path("results/spec"), &Options::default()).unwrap();
    assert_eq!(found.len(), prompts.len());
    for (prompt, found) in prompts.iter().zip(&found) {
        let alone = Generation {
            max_tokens: 30,
            sampling: Sampling {
                seed: 5,
                ..Sampling::default()
            },
            ..Generation::new(prompt)
        };
        let alone = model.generate(&alone).unwrap();
        assert_eq!(found["prompt"], json!(prompt));
        assert_eq!(found["text"], json!(alone.text), "{prompt}");
    }
    let text = found[3]["text"].as_str().unwrap();
    let (code, printed, said) = generate(&["--prompt", &prompts[3]]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        printed.trim_end_matches('\n'),
        format!("{}{text}", prompts[3]).trim_end_matches('\n')
    );
    // It ends before the first of the texts to stop at.
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let stop = &text[places[10]..places[12]];
    let first = text.find(stop).unwrap();
    let (code, out, said) = generate(&[
        "--prompt",
        &prompts[3],
        "--json",
        "--stop",
        "QQ",
        "--stop",
        stop,
    ]);
    assert_eq!(code, 0, "{said}");
    let stopped: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(stopped["text"], json!(text[..first]));
    let (code, out, said) = generate(&["--prompt", &prompts[3], "--stop", stop]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        out.trim_end_matches('\n'),
        format!("{}{}", prompts[3], &text[..first]).trim_end_matches('\n')
    );
    for (name, text, reason) in [
        ("wrong.jsonl", "\"a\"\n{\"text\": 1}\n", "wrong.jsonl:2"),
        ("empty.txt", "\n", "has no prompts"),
        ("none.txt", "", "cannot be read"),
    ] {
        if name != "none.txt" {
            fs::write(path(name), text).unwrap();
        }
        let (code, _, said) = generate(&["--prompts", name]);
        assert!(code == 2 && said.contains(reason), "{name}: {said}");
    }
}

#[test]
fn the_same_seed_gives_the_same_text_and_what_cannot_go_on_is_refused() {
    let folder = language(LM);
    let generate = |more: &[&str]| {
        let all = [&["generate", "results/spec"], more].concat();
        run(folder.path(), &all)
    };
    let (code, first, stderr) = generate(&["--prompt", "the ", "--seed", "3"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        first.starts_with("the ") && first.trim_end().len() >= 90,
        "{first}"
    );
    assert_eq!(
        generate(&["--prompt", "the ", "--seed", "3", "--no-cache"]).1,
        first
    );
    assert_ne!(generate(&["--prompt", "the ", "--seed", "4"]).1, first);
    let (_, greedy, _) = generate(&[
        "--prompt",
        "the ",
        "--temperature",
        "0",
        "--json",
        "--max-tokens",
        "5",
    ]);
    let greedy: Json = serde_json::from_str(&greedy).unwrap();
    assert_eq!(greedy["tokens"].as_array().unwrap().len(), 5);
    let (_, one, _) = generate(&[
        "--prompt",
        "the ",
        "--top-k",
        "1",
        "--json",
        "--max-tokens",
        "5",
        "--seed",
        "9",
    ]);
    let one: Json = serde_json::from_str(&one).unwrap();
    assert_eq!(one["tokens"], greedy["tokens"]);
    let (_, _, stderr) = generate(&["--prompt", "the Z", "--max-tokens", "1"]);
    assert!(
        stderr.contains("1 of the 5 tokens in the prompt is not in the vocabulary"),
        "{stderr}"
    );
    let (code, _, stderr) = generate(&["--prompt", ""]);
    assert_eq!(code, 2);
    assert!(stderr.contains("the prompt has no tokens"), "{stderr}");
    let (code, _, _) = generate(&["--prompt", "a", "--top-p", "1.5"]);
    assert_eq!(code, 2);
    let folder = folder_with(&spec("type = \"iris\"", "type = \"mlp\"\nhidden = [4]"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(
        folder.path(),
        &["generate", "results/spec", "--prompt", "a"],
    );
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot continue texts"), "{stderr}");
}

#[test]
fn targets_beside_a_table_are_refused() {
    let (folder, _) = trained(&spec("type = \"iris\"", "type = \"mlp\"\nhidden = [8]"));
    fs::write(folder.path().join("new.csv"), "a,b\n1,2\n").unwrap();
    let asked = [
        "evaluate",
        "results/spec",
        "--data",
        "new.csv",
        "--targets",
        "none.csv",
    ];
    let (code, _, stderr) = run(folder.path(), &asked);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("remove `--targets`"), "{stderr}");
}
