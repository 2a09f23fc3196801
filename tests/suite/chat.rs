//! Conversations: chat templates as the library transformers renders them, training on what the assistant wrote, answers.

use std::fs;
use std::path::Path;

use burn_runner::model::{Generation, Model, Options};
use burn_runner::predict::Sampling;
use runner_core::data::encode::tokenizer::chat::{ChatTemplate, Conversation, Renderer};
use runner_core::data::{TargetValues, Trust, Values};
use serde_json::{Value as Json, json};

use super::edit::Edit;
use super::support::peers::python_with;
use super::support::{folder_with, goes_on, read_json, root, run};

const SPEC: &str = r#"
model = { type = "llama", d_model = 16, num_layers = 1, num_heads = 2, num_kv_heads = 2, feedforward_size = 24 }
optimizer = { type = "adamw", learning_rate = 1e-2 }
train = { epochs = 1, batch_size = 8 }

[data]
type = "json_lines"
path = "chats.jsonl"
columns = [{ name = "messages", type = "chat" }]
tokens = { tokenizer = "bpe", length = 24, max_vocabulary = 300, separator = "<eos>", template = "chat.jinja" }
split = { valid = 0.2, order = "time" }
"#;

const TEMPLATE: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

/// An experiment on conversations about numbers.
fn folder() -> tempfile::TempDir {
    let folder = folder_with(SPEC);
    let line = |at: usize| {
        let message = |role: &str, content: String| json!({ "role": role, "content": content });
        let first = message("user", format!("What follows {at}?"));
        let second = message("assistant", format!("It is {}.", at + 1));
        let third = message("user", "Thank you, and goodbye.".to_owned());
        json!({ "messages": [first, second, third] }).to_string() + "\n"
    };
    let lines: String = (0..60).map(line).collect();
    fs::write(folder.path().join("chats.jsonl"), lines).unwrap();
    fs::write(folder.path().join("chat.jinja"), TEMPLATE).unwrap();
    folder
}

fn trained() -> tempfile::TempDir {
    let folder = folder();
    goes_on(folder.path());
    folder
}

fn model(folder: &Path) -> Model {
    Model::open(&folder.join("results/spec"), &Options::default()).unwrap()
}

#[test]
fn templates_are_rendered_as_by_transformers() {
    let Some(python) = python_with(&["transformers"]) else {
        return;
    };
    let folder = root().join("tests/files/chat");
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("expected.json");
    python.run("chat_check.py", &[&folder, &out]);
    let expected = read_json(&out);
    let conversations = read_json(&folder.join("conversations.json"));
    let special = [("bos_token", "<s>"), ("eos_token", "</s>")];
    let special = special.map(|(name, token)| (name.to_owned(), token.to_owned()));
    let expected = expected.as_object().unwrap();
    assert_eq!(expected.len(), 10 * conversations.as_array().unwrap().len());
    for (case, expected) in expected {
        let (name, number) = case.split_once(' ').unwrap();
        let text = fs::read_to_string(folder.join(format!("{name}.jinja"))).unwrap();
        let special = special.clone().into();
        let template = ChatTemplate {
            text,
            tools: None,
            special,
            ends: Vec::new(),
        };
        let renderer = Renderer::new(&template, None).unwrap();
        let of = &conversations[number.parse::<usize>().unwrap()];
        let conversation = Conversation::of(of.clone()).unwrap();
        for (key, adds_prompt) in [("plain", false), ("prompt", true)] {
            let found = renderer.render(&conversation, adds_prompt);
            match expected[key].as_str() {
                Some(expected) => assert_eq!(found.as_deref(), Ok(expected), "{case}"),
                None => assert!(found.is_err(), "{case}: {found:?} for {}", expected[key]),
            }
        }
        if let Some(expected) = expected.get("assistant") {
            let found = renderer.marked(&conversation).unwrap();
            let parts = found.assistant.iter().map(|at| &found.text[at.clone()]);
            assert_eq!(json!(parts.collect::<Vec<_>>()), *expected, "{case}");
        }
    }
}

/// The texts that an item's targets are, with `_` for tokens that are not predicted.
fn learned(folder: &Path) -> String {
    let model = model(folder);
    let data = runner_core::data::load_by(&model.plan().data, Trust::Stamps, &|_, _| ()).unwrap();
    let served = data.train.serve(&[0, 1, 2], None);
    let (Values::Tokens(tokens), TargetValues::Classes(targets)) =
        (&served.values, &served.targets)
    else {
        panic!("tokens are served");
    };
    let tokenizer = model.transforms().input.tokenizer().unwrap().clone();
    assert!(tokens.iter().all(|token| *token >= 0));
    for (target, next) in targets.iter().zip(&tokens[1..]).take(23) {
        assert!(*target == -1 || target == next);
    }
    let shown = targets.iter().map(|target| match target {
        -1 => "_".to_owned(),
        token if Some(*token) == tokenizer.separator() => "<eos>".to_owned(),
        token => tokenizer.decode(&[*token]),
    });
    shown.collect()
}

#[test]
fn only_what_the_assistant_wrote_is_learned() {
    let folder = trained();
    let found = learned(folder.path());
    let parts: Vec<&str> = found.split('_').filter(|part| !part.is_empty()).collect();
    assert_eq!(parts[..2], ["It is 1.\n", "It is 2.\n"], "{found}");
    assert!(
        !found.contains("user") && !found.contains("<eos>"),
        "{found}"
    );
    let spec = SPEC.edit("template = ", "learn_prompts = true, template = ");
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    fs::remove_dir_all(folder.path().join("results")).unwrap();
    goes_on(folder.path());
    let found = learned(folder.path());
    assert!(
        found.contains("What follows") && found.contains("<eos>") && !found.contains('_'),
        "{found}"
    );
}

#[test]
fn a_changed_template_is_another_run() {
    let folder = folder();
    let id = || {
        let (code, out, said) = run(folder.path(), &["plan", "spec.toml", "--json"]);
        assert_eq!(code, 0, "{said}");
        let plan: Json = serde_json::from_str(&out).unwrap();
        plan["runs"][0]["fingerprint"].clone()
    };
    let first = id();
    assert!(first.is_string());
    fs::write(folder.path().join("chat.jinja"), TEMPLATE.edit("<", "[")).unwrap();
    assert_ne!(first, id());
    fs::write(folder.path().join("chat.jinja"), TEMPLATE).unwrap();
    assert_eq!(first, id());
}

#[test]
fn conversations_are_answered() {
    let folder = trained();
    let messages = json!([{ "role": "user", "content": "What follows 7?" }]);
    fs::write(folder.path().join("messages.json"), messages.to_string()).unwrap();
    let common = [
        "generate",
        "results/spec",
        "--max-tokens",
        "6",
        "--temperature",
        "0",
    ];
    let of = |arguments: &[&str]| run(folder.path(), &[&common[..], arguments].concat());
    let (code, text, said) = of(&["--messages", "messages.json"]);
    assert_eq!(code, 0, "{said}");
    let (code, chat, said) = of(&["--chat", "--prompt", "What follows 7?"]);
    assert_eq!((code, &chat), (0, &text), "{said}");
    let (code, out, said) = of(&["--messages", "messages.json", "--json"]);
    assert_eq!(code, 0, "{said}");
    let found: Json = serde_json::from_str(&out).unwrap();
    let prompt = "<user>What follows 7?\n<assistant>";
    assert_eq!(found["prompt"], prompt);
    assert_eq!(found["text"].as_str().unwrap().trim_end(), text.trim_end());
    let (code, plain, said) = of(&["--prompt", prompt, "--json"]);
    assert_eq!(code, 0, "{said}");
    let plain: Json = serde_json::from_str(&plain).unwrap();
    assert_eq!(plain["tokens"], found["tokens"]);
    for (file, wrong) in [
        ("{}", "it has no `messages`"),
        ("[{\"content\": 1}]", "message 1 has no `role`"),
    ] {
        fs::write(folder.path().join("wrong.json"), file).unwrap();
        let (code, _, said) = of(&["--messages", "wrong.json"]);
        assert_eq!(code, 2);
        assert!(said.contains(wrong), "{said}");
    }
    let (code, _, said) = of(&["--messages", "none.json"]);
    assert!(code == 2 && said.contains("cannot be read"), "{said}");
}

/// The loss over what the assistant wrote, computed from the outputs of the network.
fn loss_of_the_assistant(model: &Model, lines: &str) -> (f64, usize) {
    let tokenizer = model.transforms().input.tokenizer().unwrap();
    let renderer = Renderer::new(tokenizer.chat.as_ref().unwrap(), None).unwrap();
    let (mut sum, mut num) = (0.0, 0);
    for line in lines.lines() {
        let marked = renderer
            .marked(&Conversation::parse(line).unwrap())
            .unwrap();
        let mut tokens = tokenizer
            .encode_marked(&marked.text, &marked.assistant)
            .unwrap();
        tokens.insert(0, (tokenizer.separator().unwrap(), false));
        for at in (1..tokens.len()).filter(|at| tokens[*at].1) {
            let first = at.saturating_sub(24);
            let before: Vec<i32> = tokens[first..at].iter().map(|(token, _)| *token).collect();
            let all = model.activated_values(Values::Tokens(before.clone()), 1);
            let row = &all[all.len() - all.len() / before.len()..];
            sum -= f64::from(row[tokens[at].0 as usize]).ln();
            num += 1;
        }
    }
    (sum / num as f64, num)
}

#[test]
fn conversations_are_evaluated_and_predicted() {
    let folder = trained();
    let path = |name: &str| folder.path().join(name);
    let lines = fs::read_to_string(path("chats.jsonl")).unwrap();
    let few: String = lines
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(path("few.jsonl"), &few).unwrap();
    let evaluated = |data: &str| {
        let arguments = ["evaluate", "results/spec", "--data", data, "--json"];
        let (code, out, said) = run(folder.path(), &arguments);
        assert_eq!(code, 0, "{said}");
        let found: Json = serde_json::from_str(&out).unwrap();
        let metrics = found["metrics"].as_array().unwrap().clone();
        let value = move |name: &str| {
            let found = metrics.iter().find(|metric| metric["name"] == name);
            found.unwrap_or_else(|| panic!("{name}"))["value"]
                .as_f64()
                .unwrap()
        };
        (found["num_items"].as_u64().unwrap(), value)
    };
    let (num, value) = evaluated("few.jsonl");
    assert_eq!(num, 6);
    // The conversations fit into an item together with what is counted of them.
    let (expected, num_tokens) = loss_of_the_assistant(&model(folder.path()), &few);
    let loss = value("loss");
    assert!(
        num_tokens > 20 && (loss - expected).abs() < 0.05 * expected,
        "{loss} for {expected}"
    );
    assert!((value("perplexity") - loss.exp()).abs() < 1e-9);
    let bytes = 6 * "It is 1.\n".len();
    let bits = loss * num_tokens as f64 / bytes as f64 / 2f64.ln();
    assert!((value("bits_per_byte") - bits).abs() < 1e-9);
    let asked = |more: Json| {
        let mut row = json!({ "messages": [{ "role": "user", "content": "What follows 7?" }] });
        row.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        row.to_string() + "\n"
    };
    fs::write(
        path("choices.jsonl"),
        asked(json!({ "choices": ["It is 8.", "Qx zz"], "answer": 0 })),
    )
    .unwrap();
    assert_eq!(evaluated("choices.jsonl").1("acc"), 1.0);
    // What the model answers, as far as it is compared.
    let opened = model(folder.path());
    let tokenizer = opened.transforms().input.tokenizer().unwrap();
    let answer = "It is 8.";
    let made = opened.generate(&Generation {
        conversation: Some(Conversation::parse(&asked(json!({}))).unwrap()),
        max_tokens: 2 * tokenizer.encode(answer).unwrap().len() + 8,
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        ..Generation::new("")
    });
    let made = made.unwrap().text;
    let line = made.trim_start().lines().next().unwrap_or_default();
    let right = f64::from(u8::from(line.trim() == answer));
    fs::write(path("answers.jsonl"), asked(json!({ "answer": answer }))).unwrap();
    assert_eq!(evaluated("answers.jsonl").1("exact_match"), right);
    fs::write(path("held_out.txt"), "What follows 7? It is 8.\n".repeat(9)).unwrap();
    assert_eq!(evaluated("held_out.txt").0, 1);
    let predict = [
        "predict",
        "results/spec",
        "--data",
        "few.jsonl",
        "--format",
        "csv",
    ];
    let (code, out, said) = run(folder.path(), &predict);
    assert_eq!(code, 0, "{said}");
    assert_eq!(out.lines().count(), 7, "{out}");
    // A conversation in which the assistant wrote nothing.
    fs::write(path("mute.jsonl"), asked(json!({}))).unwrap();
    let arguments = ["evaluate", "results/spec", "--data", "mute.jsonl"];
    let (code, _, said) = run(folder.path(), &arguments);
    assert!(
        code == 2 && said.contains("assistant wrote nothing"),
        "{said}"
    );
}

#[test]
fn templates_go_along_to_hubs() {
    let Some(python) = python_with(&["transformers", "tokenizers"]) else {
        return;
    };
    let folder = trained();
    let path = |name: &str| folder.path().join(name);
    let (code, _, said) = run(
        folder.path(),
        &["export", "hub", "results/spec", "--out", "hub"],
    );
    assert_eq!(code, 0, "{said}");
    python.run(
        "chat_check.py",
        &[&path("hub"), &path("chats.jsonl"), &path("tokens.json")],
    );
    let expected = read_json(&path("tokens.json"));
    let model = model(folder.path());
    let tokenizer = model.transforms().input.tokenizer().unwrap();
    let renderer = Renderer::new(tokenizer.chat.as_ref().unwrap(), None).unwrap();
    let lines = fs::read_to_string(path("chats.jsonl")).unwrap();
    for (line, expected) in lines.lines().zip(expected.as_array().unwrap()) {
        let conversation = Conversation::parse(line).unwrap();
        let text = renderer.render(&conversation, true).unwrap();
        assert_eq!(json!(tokenizer.encode(&text).unwrap()), *expected);
    }
}
