//! Mistakes of people who write TOML, and what they are told.

use std::path::PathBuf;

use toml::de::DeTable;

use super::diagnostics;

/// A text in each paragraph.
const WRONG: &str = r#"type = iris

type = 'iris

type = "iris'

type = iris"

type: "iris"

type: iris

type == "iris"

type := "iris"

"type": "iris",

type = "iris",

type = "iris";

type = “iris”

type = iris  # the “small” one

strategy:

layers:

rate = 1e−3

rate = .001

rate = 1.

rate = -.5e-3

rates = [1., .5, 2]

epochs = 010

rate = 0,001

rate = 1,5

steps = 10,000

sizes = 64, 32

sizes = [64 32]

sizes = [64,, 32]

sizes = (64, 32)

kinds = [adam, sgd]

kinds = ["adam", 'sgd]

memory = 4GiB

deep = True

deep = yes

top = None

top =

epochs

epochs 3

learning rate = 0.1

path = "C:\users\data.csv"

path = r"C:\users\data.csv"

path = data/train.csv

name = my first try

// a comment

-- a comment

epochs = 3 // enough

[train

[[model.layers]

[train]]

[train] epochs = 3

data = { type: "iris", seed: 1 }

data = { type = "iris" seed = 1 }

data = { "type": "iris" }

data = { type = iris }

a.b, a.c = [[1, 2]]

this is not TOML

x = 3 *

rate = 1e-3 * 2

sizes = [64, 32
[optimizer]
type = "adam"

sizes = [
  [1, 2],
  [3, 4]
rate = 1e-3

sizes = [
  64 32,
  16,
]

sizes = [
  64 # neurons
  32
]

names = [
  adam,
]

data = { type = "iris"
model = { type = "mlp" }

names = [
  adam,
  sgd,
]

layers = [
  { type: "flatten" },
]

tags = [
  "a",
  "b,
]

kinds = ["adam, "sgd"]

kinds = ["mse"", "r2"]

kinds = ["mse', "psnr"]

kinds = ["a", "sgd']

model = { type = 'vit", size = 32 }

rate = "1e-2

[[optimizer]

[model.layers]]

[sweep grid]

train]

optimizer:

seeds = [1, 2, 3}

clip = {
  global_norm: 1.0
}

- 16

value: null

path = None

"model.hidden" = [[2], [4]
"train.epochs" = [1, 2]

path = "C:\data\"

path = C:\data\iris.csv

question = "What is "small"?"

question = 'What's small?'

question = How small can it be?

question = run #3

name = adam # the best

value = 20%

value = 3 * 2

value = ${train.batch_size * 2}

model hidden = [4]

--epochs 40

let epochs = 40

model.hidden = [2], [4]

sizes = 1, 2]

sizes = [1; 2]

sizes = {1, 2}

seeds =
  [1, 2]

<<<<<<< HEAD
a = 1
=======
a = 2
>>>>>>> other

```toml

; a comment

text = """
a
[b]
"#;

#[test]
fn mistakes_are_named_with_what_to_write() {
    let mut said = String::new();
    for text in WRONG.split("\n\n") {
        let (_, errors) = DeTable::parse_recoverable(text);
        assert!(!errors.is_empty(), "{text}");
        said += &format!("{}\n", text.trim_end());
        for wrong in diagnostics(text, 0, &errors) {
            said += &format!("  {}\n", wrong.message);
            wrong
                .helps
                .iter()
                .for_each(|help| said += &format!("    {help}\n"));
        }
    }
    insta::assert_snapshot!(said);
}

/// A slip of the keyboard in a shipped experiment is found, and a line that is proposed is the one before the slip.
#[test]
fn slips_of_the_keyboard_are_mended() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|it| it == "toml"));
    files.sort();
    let text = |file: &PathBuf| String::from_utf8(std::fs::read(file).unwrap()).unwrap();
    let texts: Vec<String> = files.iter().map(text).collect();
    let mut random = 1_u64;
    let mut below = |most: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % most
    };
    let (mut num, mut mended) = (0, 0);
    while num < 300 {
        let text = &texts[below(texts.len())];
        let (mark, other) = [
            ('"', "'"),
            ('[', "("),
            (']', ")"),
            ('{', "["),
            ('}', "]"),
            ('=', ":"),
            (',', ";"),
        ][below(7)];
        let places: Vec<usize> = text.match_indices(mark).map(|(at, _)| at).collect();
        if places.is_empty() {
            continue;
        }
        let at = places[below(places.len())];
        let slip = [String::new(), format!("{mark}{mark}"), other.to_owned()][below(3)].clone();
        let wrong = format!("{}{slip}{}", &text[..at], &text[at + 1..]);
        let (_, errors) = DeTable::parse_recoverable(&wrong);
        if errors.is_empty() {
            continue;
        }
        num += 1;
        let found = diagnostics(&wrong, 0, &errors);
        assert!((1..=3).contains(&found.len()), "{wrong}");
        let line = found[0].helps[0].strip_prefix("write `");
        let line = line.and_then(|line| line.strip_suffix('`'));
        let Some(line) = line.filter(|line| !line.contains('`')) else {
            continue;
        };
        mended += 1;
        let start = found[0].span.unwrap().start as usize;
        let begin = wrong[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = wrong[begin..]
            .find('\n')
            .map_or(wrong.len(), |end| begin + end);
        let right = format!("{}{line}{}", &wrong[..begin], &wrong[end..]);
        let table = |text: &str| toml::from_str::<toml::Table>(text).ok();
        assert_eq!(
            table(&right),
            table(text),
            "{} -> {line}",
            &wrong[begin..end]
        );
    }
    assert!(mended > 260, "{mended} of {num}");
}

/// Many errors are as quick as one.
#[test]
fn long_texts_take_no_longer() {
    for text in [
        "1,2,3,hello\n".repeat(40_000),
        "[".repeat(20_000),
        "a = [\n".to_owned() + &"1\n".repeat(20_000),
    ] {
        let (_, errors) = DeTable::parse_recoverable(&text);
        assert!((1..=3).contains(&diagnostics(&text, 0, &errors).len()));
    }
}
