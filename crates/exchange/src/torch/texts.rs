//! The Python functions that convert texts to tokens.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::transforms::{quote, quoted};
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::spec::data::TokenizerKind;

/// The file of the tokenizer of subwords of a function `encode<suffix>`.
pub fn subwords_file(suffix: &str) -> String {
    format!("tokenizer{suffix}.json")
}

/// Whether a file has the name of one of them.
pub fn is_subwords_file(name: &str) -> bool {
    name.starts_with("tokenizer") && name.ends_with(".json")
}

const WORDS: &str = r#"# Letters and digits, with apostrophes inside; a line's end; any other sign.
PART = r"(?:[^\W_]|[\u0300-\u036f])"
WORD = re.compile(rf"{PART}+(?:['’]{PART}+)*|\n|\S")


"#;

/// With the tokenizer's file beside the source.
fn subwords(
    tokenizer: &Tokenizer,
    length: Option<usize>,
    (column, suffix): (&str, &str),
) -> String {
    let name = format!("TOKENIZER{}", suffix.to_uppercase());
    let file = subwords_file(suffix);
    let mut text = format!(
        "{name} = tokenizers.Tokenizer.from_file(str(Path(__file__).with_name(\"{file}\")))\n{name}.no_padding()\n"
    );
    let encoded = match length {
        Some(length) => {
            let _ = writeln!(text, "{name}.enable_truncation({length})\n\n");
            format!("{name}.encode(text).ids")
        }
        None => {
            let _ = writeln!(text, "{name}.no_truncation()\n\n");
            format!("{name}.encode(text, add_special_tokens=False).ids")
        }
    };
    text += &head(column, suffix);
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

fn head(column: &str, suffix: &str) -> String {
    let of_row = quote(column);
    format!(
        "def encode{suffix}(texts):\n    \"\"\"Converts texts, or rows with a column of them, to tokens.\"\"\"\n    items = []\n    for text in texts:\n        \
         text = text[{of_row}] if isinstance(text, dict) else text\n"
    )
}

/// The function `encode<suffix>` of texts, of so many tokens if they have a length; what it needs is added to the
/// helpers.
pub fn texts(
    tokenizer: &Tokenizer,
    length: Option<usize>,
    (column, suffix): (&str, &str),
    helpers: &mut BTreeSet<&'static str>,
) -> String {
    let mut text = String::new();
    let name = format!("TOKENS{}", suffix.to_uppercase());
    let split = match tokenizer.spec.tokenizer {
        TokenizerKind::Byte => "[2 + byte for byte in text.encode()]".to_owned(),
        TokenizerKind::Char => format!("[{name}.get(char, 1) for char in text]"),
        TokenizerKind::Word => format!("[{name}.get(word, 1) for word in WORD.findall(text)]"),
        TokenizerKind::Bpe | TokenizerKind::Wordpiece | TokenizerKind::File => {
            return subwords(tokenizer, length, (column, suffix));
        }
    };
    if tokenizer.spec.tokenizer == TokenizerKind::Word {
        helpers.insert(WORDS);
    }
    if tokenizer.spec.tokenizer != TokenizerKind::Byte {
        let _ = write!(
            text,
            "# Token 0 fills up short texts, 1 is what the training lacked.\n{name} = {{token: number for number, token in enumerate([{}], start=2)}}\n\n\n",
            quoted(tokenizer.tokens.iter())
        );
    }
    text += &head(column, suffix);
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
