//! Questions for language models: the log probabilities of transformers, answers, comparisons, refusals.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use burn_runner::model::{Generation, Model, Options};
use serde_json::{Value as Json, json};

use super::support::peers::python_with;
use super::support::{folder_with, goes_on, read_json, root, run};

const SPEC: &str = r#"
model = { type = "llama", d_model = 32, num_layers = 2, num_heads = 4, num_kv_heads = 2, feedforward_size = 48 }
optimizer = { type = "adamw", learning_rate = 1e-2 }
train = { epochs = 2, batch_size = 32 }

[data]
type = "text"
path = "harbour.txt"
tokens = { tokenizer = "bpe", length = 32, max_vocabulary = 400, separator = "<eos>" }
split = { valid = 0.1, order = "time" }
"#;

/// A trained language model.
fn trained() -> tempfile::TempDir {
    let folder = folder_with(SPEC);
    let text = root().join("experiments/data/harbour.txt");
    fs::copy(text, folder.path().join("harbour.txt")).unwrap();
    goes_on(folder.path());
    folder
}

/// Pieces of the text, with pieces from elsewhere as wrong choices.
fn questions(folder: &Path) -> Vec<Json> {
    let text = fs::read_to_string(folder.join("harbour.txt")).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let piece = |at: usize, num: usize| words[at % (words.len() - 16)..][..num].join(" ");
    let question = |at: usize| {
        let first = at * 97;
        let mut choices: Vec<String> = (1..4)
            .map(|by| piece(first + 331 * by, 1 + (at + by) % 4))
            .collect();
        choices.insert(at % 4, piece(first + 6, 1 + at % 3));
        json!({ "context": piece(first, 6), "choices": choices, "answer": at % 4 })
    };
    (0..40).map(question).collect()
}

fn evaluated(folder: &Path, arguments: &[&str]) -> (i32, Json, String) {
    let all = [&["evaluate", "results/spec", "--json"], arguments].concat();
    let (code, out, said) = run(folder, &all);
    (code, serde_json::from_str(&out).unwrap_or_default(), said)
}

fn lines(questions: &[Json]) -> String {
    questions.iter().fold(String::new(), |mut text, question| {
        writeln!(text, "{question}").unwrap();
        text
    })
}

#[test]
fn choices_have_the_log_probabilities_of_transformers() {
    let Some(python) = python_with(&["torch", "transformers", "tokenizers"]) else {
        return;
    };
    let folder = trained();
    let path = |name: &str| folder.path().join(name);
    let asked = questions(folder.path());
    fs::write(path("questions.jsonl"), lines(&asked)).unwrap();
    let export = ["export", "hub", "results/spec", "--out", "hub"];
    let (code, _, said) = run(folder.path(), &export);
    assert_eq!(code, 0, "{said}");
    let arguments = [path("hub"), path("questions.jsonl"), path("expected.json")];
    let arguments = arguments.each_ref().map(|path| path.as_path());
    python.run("questions_check.py", &arguments);
    let expected = read_json(&path("expected.json"));
    let model = Model::open(&path("results/spec"), &Options::default()).unwrap();
    for (question, expected) in asked.iter().zip(expected["choices"].as_array().unwrap()) {
        let context = question["context"].as_str().unwrap();
        let choices = question["choices"].as_array().unwrap().iter();
        for (choice, expected) in choices.zip(expected.as_array().unwrap()) {
            let found = model.likelihood(context, choice.as_str().unwrap()).unwrap();
            let (sum, num) = (expected[0].as_f64().unwrap(), expected[1].as_u64().unwrap());
            assert!(
                (found.sum / sum - 1.0).abs() < 1e-5,
                "{} for {sum}",
                found.sum
            );
            assert_eq!(found.num_tokens as u64, num);
        }
    }
    choices_in_batches_are_those_one_at_a_time(&model, &asked);
    let (code, found, said) = evaluated(folder.path(), &["--data", "questions.jsonl"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(found["num_items"], 40);
    for measure in found["metrics"].as_array().unwrap() {
        let name = measure["name"].as_str().unwrap();
        let interval = measure["interval"].as_array().unwrap();
        let value = measure["value"].as_f64().unwrap();
        assert_eq!(measure["value"], expected["metrics"][name], "{name}");
        assert!(interval[0].as_f64() <= Some(value) && Some(value) <= interval[1].as_f64());
    }
    assert_eq!(found["metrics"].as_array().unwrap().len(), 4);
}

fn choices_in_batches_are_those_one_at_a_time(model: &Model, asked: &[Json]) {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    let pairs = asked.iter().flat_map(|question| {
        let choices = question["choices"].as_array().unwrap().iter();
        choices.map(move |choice| (text(&question["context"]), text(choice)))
    });
    let pairs: Vec<(String, String)> = pairs.collect();
    let all: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    let found = model.likelihoods(&all).unwrap();
    assert_eq!(found.len(), 160);
    for ((context, choice), together) in all.iter().zip(&found) {
        let alone = model.likelihood(context, choice).unwrap();
        assert!(
            (together.sum / alone.sum - 1.0).abs() < 1e-6,
            "{together:?} for {alone:?}"
        );
        assert_eq!(
            (together.num_tokens, together.is_cut),
            (alone.num_tokens, alone.is_cut)
        );
    }
}

#[test]
fn two_runs_answer_the_same_questions() {
    let folder = trained();
    let asked = questions(folder.path());
    fs::write(folder.path().join("questions.jsonl"), lines(&asked)).unwrap();
    let data = ["--data", "questions.jsonl", "--against", "results/spec"];
    let (code, found, said) = evaluated(folder.path(), &data);
    assert_eq!(code, 0, "{said}");
    assert_eq!(found["against"]["right"]["p"], 1.0);
    assert_eq!(found["against"]["metrics"][1]["name"], "acc_norm");
    assert_eq!(
        found["against"]["metrics"][1]["interval"],
        json!([0.0, 0.0])
    );
    // A table says the same.
    let cell = |text: &Json| format!("\"{}\"", text.as_str().unwrap().replace('"', "\"\""));
    let row = |question: &Json| {
        let choices = question["choices"].as_array().unwrap().iter().map(cell);
        let choices: Vec<String> = choices.collect();
        format!(
            "{},{},{}\n",
            cell(&question["context"]),
            choices.join(","),
            question["answer"]
        )
    };
    let rows: String = asked.iter().map(row).collect();
    let table = format!("context,choice_1,choice_2,choice_3,choice_4,answer\n{rows}");
    fs::write(folder.path().join("questions.csv"), table).unwrap();
    let (code, of_table, said) = evaluated(folder.path(), &["--data", "questions.csv"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        of_table["metrics"],
        evaluated(folder.path(), &data[..2]).1["metrics"]
    );
}

#[test]
fn answers_are_the_first_line_of_what_the_model_continues() {
    let folder = trained();
    let model = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
    let continued = |prompt: &str| {
        let mut asked = Generation::new(prompt);
        (asked.max_tokens, asked.sampling.temperature) = (60, 0.0);
        model.generate(&asked).unwrap().text
    };
    let prompts = [
        "The harbour",
        "At night the",
        "The boats",
        "A keeper of",
        "When the tide",
    ];
    let mut asked = Vec::new();
    for prompt in prompts {
        let text = continued(prompt);
        if let Some((line, _)) = text.trim_start().split_once('\n') {
            asked.push(json!({ "prompt": prompt, "answer": line.trim() }));
        }
    }
    let num = asked.len();
    asked.push(json!({ "prompt": "The harbour", "answer": "zzz" }));
    fs::write(folder.path().join("answers.jsonl"), lines(&asked)).unwrap();
    let (code, found, said) = evaluated(folder.path(), &["--data", "answers.jsonl"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(found["metrics"][0]["name"], "exact_match");
    let share = num as f64 / (num + 1) as f64;
    assert_eq!(found["metrics"][0]["value"].as_f64(), Some(share));
}

#[test]
fn questions_that_cannot_be_asked_are_refused_with_their_line() {
    let folder = trained();
    let long = "the boats of the harbour ".repeat(20);
    let long = json!({ "context": "a", "answer": 0, "choices": [long, "c"] });
    let long = format!("\n{long}\n");
    let wrong = [
        (
            "{\"context\": \"a\", \"answer\": 7, \"choices\": [\"b\", \"c\"]}\n",
            "`a.jsonl:1`: the answer 7 is none of the 2 choices",
        ),
        (
            "{\"note\": \"a\"}\n",
            "`a.jsonl:1`: no text before the answer was found",
        ),
        (long.as_str(), "line 2: "),
    ];
    for (text, expected) in wrong {
        fs::write(folder.path().join("a.jsonl"), text).unwrap();
        let (code, _, said) = evaluated(folder.path(), &["--data", "a.jsonl"]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let arguments = ["--data", "a.jsonl", "--ignore", "id"];
    let (code, _, said) = evaluated(folder.path(), &arguments);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`--ignore` has no effect"), "{said}");
}
