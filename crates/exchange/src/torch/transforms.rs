//! The Python functions that convert a run's data to the network's input.

use std::fmt::Write;

use runner_core::data::Transforms;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::{Feature, Form, InputEncoder, Scaling, broadcast};
use runner_core::data::records::ColumnKind;
use runner_core::spec::data::{TokenizerKind, WindowSpec};

/// The function `encode`, and `CLASSES` if outputs have names.
pub fn functions(transforms: &Transforms, names: Option<&[String]>) -> String {
    let mut text = encode(transforms);
    if let Some(names) = names {
        let names = quoted(names.iter());
        let _ = write!(
            text,
            "\n\n# The meaning of the outputs, in order.\nCLASSES = [{names}]\n"
        );
    }
    text
}

fn encode(transforms: &Transforms) -> String {
    match &transforms.input {
        InputEncoder::Features {
            features,
            normalize,
            window,
        } => columns(transforms, features, *normalize, window.as_ref()),
        InputEncoder::Array {
            shape,
            scaling,
            axis,
            normalize,
            ..
        } => array(shape, scaling, *axis, *normalize),
        InputEncoder::Tokens { shift, .. } => format!(
            "def encode(tokens):\n    \"\"\"Converts tokens of the data to items for the network.\"\"\"\n    \
             return torch.as_tensor(tokens, dtype=torch.int64) + {shift}\n"
        ),
        InputEncoder::Text {
            tokenizer, length, ..
        } => texts(tokenizer, Some(*length)),
        InputEncoder::Stream { tokenizer, .. } => texts(tokenizer, None),
    }
}

/// A quoted string that is valid in JSON and Python.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn quoted<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = texts.map(|text| quote(text)).collect();
    quoted.join(", ")
}

const NUMBERS: &str = r#"def numbers(values, fill, scaling, clip=None):
    """The numbers of a column: missing ones are filled in, and each becomes (number - shift) * factor."""
    values = values if isinstance(values, (list, tuple)) else [values]
    values = [math.nan if value is None else value for value in values]
    values = torch.tensor(values, dtype=torch.float64)
    values = torch.where(values.isnan(), torch.tensor(fill, dtype=torch.float64), values)
    if clip is not None:
        values = values.clamp(*clip)
    shift, factor = torch.tensor(scaling, dtype=torch.float64).unbind(-1)
    return ((values - shift) * factor).float()


"#;

const ONE_HOT: &str = r#"def one_hot(value, places, width, fill):
    """One-hot encoding: 1 for the category of the value; all 0 for a category that did not occur in training."""
    place = fill if value is None else places[value]
    return torch.zeros(width) if place is None else F.one_hot(torch.tensor(place), width).float()


"#;

fn columns(
    transforms: &Transforms,
    features: &[Feature],
    normalize: bool,
    window: Option<&WindowSpec>,
) -> String {
    let mut text = String::new();
    let has = |wanted: fn(&Form) -> bool| features.iter().any(|feature| wanted(&feature.form));
    if has(|form| !matches!(form, Form::OneHot { .. })) {
        text += NUMBERS;
    }
    if has(|form| matches!(form, Form::OneHot { .. })) {
        text += ONE_HOT;
    }
    text += "def encode(rows):\n    \"\"\"Converts rows, each a dict from column to value, to items for the network. None is a missing value.\"\"\"\n    items = []\n    for row in rows:\n        item = [\n";
    for feature in features {
        let _ = writeln!(text, "            {},", column(transforms, feature));
    }
    text += "        ]\n        items.append(torch.cat(item))\n    items = torch.stack(items)\n";
    if normalize {
        text += UNIT_LENGTH;
    }
    if let Some(window) = window {
        let width: usize = features.iter().map(Feature::width).sum();
        let length = window.length;
        let _ = writeln!(text, "    # An item is {length} rows, one after the other.");
        let _ = writeln!(text, "    items = items.reshape(-1, {length}, {width})");
    }
    text + "    return items\n"
}

const UNIT_LENGTH: &str = r#"    lengths = items.double().flatten(1).norm(dim=1).reshape(-1, *[1] * (items.dim() - 1))
    items = torch.where(lengths > 0, items / lengths, items).float()
"#;

fn column(transforms: &Transforms, feature: &Feature) -> String {
    let value = format!("row[{}]", quote(&feature.name));
    let names: &[String] = match transforms.columns.get(feature.column).map(|c| &c.kind) {
        Some(ColumnKind::Categories { names }) => names,
        _ => &[],
    };
    match &feature.form {
        Form::Numbers {
            fill,
            clip,
            scaling,
        } => {
            let clip = match clip {
                Some([low, high]) => format!(", clip=({low:?}, {high:?})"),
                None => String::new(),
            };
            let scaling = scalings(scaling);
            format!("numbers({value}, {fill:?}, [{scaling}]{clip})")
        }
        Form::OneHot {
            places,
            width,
            fill,
        } => {
            let place = |place: &Option<usize>| match place {
                Some(place) => place.to_string(),
                None => "None".into(),
            };
            let places = names.iter().zip(places);
            let places: Vec<String> = places
                .map(|(name, at)| format!("{}: {}", quote(name), place(at)))
                .collect();
            let places = places.join(", ");
            format!("one_hot({value}, {{{places}}}, {width}, {})", place(fill))
        }
        Form::Ordinal {
            numbers,
            fill,
            scaling,
        } => {
            let numbers = names.iter().zip(numbers);
            let numbers: Vec<String> = numbers
                .map(|(name, number)| format!("{}: {number:?}", quote(name)))
                .collect();
            let numbers = numbers.join(", ");
            let scaling = scalings(std::slice::from_ref(scaling));
            // An unknown category is an error, as in runner; None is filled in.
            format!("numbers({{{numbers}, None: None}}[{value}], [{fill:?}], [{scaling}])")
        }
    }
}

fn scalings(all: &[Scaling]) -> String {
    let pairs: Vec<String> = all
        .iter()
        .map(|Scaling { shift, factor }| format!("({shift:?}, {factor:?})"))
        .collect();
    pairs.join(", ")
}

fn array(shape: &[usize], scaling: &[Scaling], axis: Option<usize>, normalize: bool) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    let sizes = sizes.join(", ");
    let mut text = format!(
        "def encode(arrays):\n    \"\"\"Converts arrays of shape [{sizes}] of untransformed data to items for the network.\"\"\"\n    \
         items = torch.as_tensor(arrays, dtype=torch.float32).nan_to_num(0.0).reshape(-1, {sizes})\n"
    );
    let single = |value: f64| value as f32;
    match scaling {
        [one] => {
            let (shift, factor) = (single(one.shift), single(one.factor));
            let _ = writeln!(text, "    items = (items - {shift:?}) * {factor:?}");
        }
        several => {
            let list = |part: fn(&Scaling) -> f64| {
                let numbers: Vec<String> = several
                    .iter()
                    .map(|scaling| format!("{:?}", single(part(scaling))))
                    .collect();
                numbers.join(", ")
            };
            let shifts = list(|scaling| scaling.shift);
            let factors = list(|scaling| scaling.factor);
            let sizes = broadcast(shape, scaling, axis);
            let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
            let sizes = sizes.join(", ");
            let _ = writeln!(
                text,
                "    shift = torch.tensor([{shifts}]).reshape({sizes})"
            );
            let _ = writeln!(
                text,
                "    factor = torch.tensor([{factors}]).reshape({sizes})"
            );
            text += "    items = (items - shift) * factor\n";
        }
    }
    if normalize {
        text += UNIT_LENGTH;
    }
    text + "    return items\n"
}

/// The file of a tokenizer of subwords.
pub const SUBWORDS: &str = "tokenizer.json";

const WORDS: &str = r#"# Letters and digits, with apostrophes inside; a line's end; any other sign.
PART = r"(?:[^\W_]|[\u0300-\u036f])"
WORD = re.compile(rf"{PART}+(?:['’]{PART}+)*|\n|\S")


"#;

/// With the tokenizer's file beside the source.
fn subwords(tokenizer: &Tokenizer, length: Option<usize>) -> String {
    let mut text = format!(
        "TOKENIZER = tokenizers.Tokenizer.from_file(str(Path(__file__).with_name(\"{SUBWORDS}\")))\nTOKENIZER.no_padding()\n"
    );
    let encoded = match length {
        Some(length) => {
            let _ = writeln!(text, "TOKENIZER.enable_truncation({length})\n\n");
            "TOKENIZER.encode(text).ids"
        }
        None => {
            text += "TOKENIZER.no_truncation()\n\n\n";
            "TOKENIZER.encode(text, add_special_tokens=False).ids"
        }
    };
    text += "def encode(texts):\n    \"\"\"Converts texts to tokens.\"\"\"\n    items = []\n    for text in texts:\n";
    let _ = writeln!(text, "        tokens = {encoded}");
    if let Some(length) = length {
        let (padding, unknown) = (tokenizer.padding(), tokenizer.unknown());
        let empty = unknown.map_or(String::new(), |unknown| format!(" or [{unknown}]"));
        let _ = writeln!(text, "        tokens = tokens{empty}");
        let _ = writeln!(
            text,
            "        tokens += [{padding}] * ({length} - len(tokens))"
        );
    }
    text + "        items.append(tokens)\n    return torch.tensor(items)\n"
}

fn texts(tokenizer: &Tokenizer, length: Option<usize>) -> String {
    let mut text = String::new();
    let split = match tokenizer.spec.tokenizer {
        TokenizerKind::Byte => "[2 + byte for byte in text.encode()]",
        TokenizerKind::Char => "[TOKENS.get(char, 1) for char in text]",
        TokenizerKind::Word => "[TOKENS.get(word, 1) for word in WORD.findall(text)]",
        TokenizerKind::Bpe | TokenizerKind::Wordpiece | TokenizerKind::File => {
            return subwords(tokenizer, length);
        }
    };
    if tokenizer.spec.tokenizer == TokenizerKind::Word {
        text += WORDS;
    }
    if tokenizer.spec.tokenizer != TokenizerKind::Byte {
        let _ = write!(
            text,
            "# Token 0 fills up short texts, 1 is what the training lacked.\nTOKENS = {{token: number for number, token in enumerate([{}], start=2)}}\n\n\n",
            quoted(tokenizer.tokens.iter())
        );
    }
    text += "def encode(texts):\n    \"\"\"Converts texts to tokens.\"\"\"\n    items = []\n    for text in texts:\n";
    if tokenizer.spec.lowercase {
        text += "        text = \"\".join(char.lower() for char in text)\n";
    }
    let _ = writeln!(text, "        tokens = {split}");
    if let Some(length) = length {
        let _ = writeln!(text, "        tokens = tokens[:{length}] or [1]");
        let _ = writeln!(text, "        tokens += [0] * ({length} - len(tokens))");
    }
    text + "        items.append(tokens)\n    return torch.tensor(items)\n"
}
