//! The Python functions that convert a run's data to the network's input.

use std::collections::BTreeSet;
use std::fmt::Write;

pub use super::texts::is_subwords_file;
use super::texts::{subwords_file, texts};
use crate::marks::Marks;
use crate::state::names;
use runner_core::data::Transforms;
use runner_core::data::encode::tokenizer::Tokenizer;
use runner_core::data::encode::{
    EncodedInput, Feature, Form, Indexed, InputEncoder, Scaling, broadcast,
};
use runner_core::data::records::ColumnKind;
use runner_core::spec::data::WindowSpec;

/// The function `encode`, and `CLASSES` if outputs have names.
pub fn functions(transforms: &Transforms, marks: Marks<'_>, names: Option<&[String]>) -> String {
    let mut text = encode(transforms, marks);
    if let Some(names) = names {
        let names = quoted(names.iter());
        let _ = write!(
            text,
            "\n\n# The meaning of the outputs, in order.\nCLASSES = [{names}]\n"
        );
    }
    text
}

/// The tokenizers of subwords, each with the name of its file beside the source.
pub fn subword_files(transforms: &Transforms) -> Vec<(String, String)> {
    let suffixes = match &transforms.input {
        InputEncoder::Inputs { inputs } => {
            let names = names::identifiers(inputs.iter().map(|input| input.name.as_str()));
            names.into_iter().map(|name| format!("_{name}")).collect()
        }
        _ => vec![String::new()],
    };
    let all = transforms.input.branches().into_iter().zip(suffixes);
    let of = |(input, suffix): (&InputEncoder, String)| {
        let subwords = input.tokenizer().and_then(Tokenizer::subwords)?;
        Some((subwords_file(&suffix), subwords))
    };
    all.filter_map(of).collect()
}

/// The data that functions are written for.
#[derive(Clone, Copy)]
struct Source<'a> {
    transforms: &'a Transforms,
    marks: Marks<'a>,
    /// The rows with what is missing in them, in Python.
    rows: &'static str,
}

impl Source<'_> {
    /// The name of a column.
    fn name(&self, column: usize) -> &str {
        let column = self.transforms.columns.get(column);
        column.map_or("", |column| &column.name)
    }

    /// Whether shorter lists in a column are filled up with missing numbers.
    fn is_filled_up(&self, column: usize) -> bool {
        let column = self.transforms.columns.get(column);
        column.is_some_and(|column| self.marks.is_filled_up(column))
    }
}

fn encode(transforms: &Transforms, marks: Marks<'_>) -> String {
    let mut helpers = BTreeSet::new();
    let missing = missing(transforms, marks);
    let needed = needed(transforms, marks);
    let rows = match (missing.is_empty(), needed.is_empty()) {
        (true, true) => "rows",
        (true, false) => "map(complete, rows)",
        (false, true) => "map(known, rows)",
        (false, false) => "map(complete, map(known, rows))",
    };
    let source = Source {
        transforms,
        marks,
        rows,
    };
    let functions = match &transforms.input {
        InputEncoder::Inputs { inputs } => {
            let names = names::identifiers(inputs.iter().map(|input| input.name.as_str()));
            let each = inputs.iter().zip(&names);
            let each = each.map(|(input, name)| {
                let suffix = format!("_{name}");
                single(source, &input.encoder, &suffix, &mut helpers) + "\n\n"
            });
            each.collect::<String>() + &all_inputs(transforms, inputs, &names)
        }
        input => single(source, input, "", &mut helpers),
    };
    if !needed.is_empty() || helpers.contains(NUMBERS) || helpers.contains(CATEGORY) {
        helpers.insert(NOTHING);
    }
    missing + &needed + &helpers.into_iter().collect::<String>() + &functions
}

/// The columns whose values a row has. Arrays are none, and have marks of their own.
fn columns_of_rows(transforms: &Transforms) -> Vec<&String> {
    let branches = transforms.input.branches().into_iter();
    let names = branches.flat_map(|input| match input {
        InputEncoder::Features { features, .. } => features.iter().map(|of| &of.name).collect(),
        InputEncoder::Indices { columns } => columns.iter().map(|of| &of.name).collect(),
        _ => Vec::new(),
    });
    names.collect()
}

/// What finds values that mean missing in rows; empty if there are none.
fn missing(transforms: &Transforms, marks: Marks<'_>) -> String {
    let mut text = String::new();
    for name in columns_of_rows(transforms) {
        let texts = marks.texts(name);
        let texts = texts.iter().map(|text| quote(text));
        let mut numbers = marks.numbers(name);
        let in_32_bits: Vec<f64> = numbers
            .iter()
            .map(|number| f64::from(*number as f32))
            .collect();
        numbers.extend(in_32_bits);
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        let numbers = numbers.iter().map(|number| format!("{number:?}"));
        let all: Vec<String> = texts.chain(numbers).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "    {}: {{{}}},", quote(name), all.join(", "));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("# Values that mean missing, by column.\nMISSING = {{\n{text}}}\n{KNOWN}")
}

const KNOWN: &str = r#"

def known(row):
    """A row with None for each value that means missing, also in lists."""
    return {name: without_marks(name, value) for name, value in row.items()}


def without_marks(name, value):
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [without_marks(name, of) for of in value]
    return None if is_missing(name, value) else value


def is_missing(name, value):
    if value.__hash__ is None or isinstance(value, bool):
        return False
    return (value.strip() if isinstance(value, str) else value) in MISSING.get(name, ())


"#;

/// What refuses rows without a value that they need, as the run does; empty if all values may be missing.
fn needed(transforms: &Transforms, marks: Marks<'_>) -> String {
    let mut names = columns_of_rows(transforms);
    names.retain(|name| marks.is_needed(name));
    if names.is_empty() {
        return String::new();
    }
    let names = quoted(names.into_iter());
    format!("# Columns whose missing values are refused.\nNEEDED = [{names}]\n{COMPLETE}")
}

const COMPLETE: &str = r#"

def complete(row):
    """The row; an error if it lacks a value that must not be missing."""
    for name in NEEDED:
        if is_empty(row[name]):
            raise ValueError(f"column {name!r} has no value, and its missing values are refused")
    return row


def is_empty(value):
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return any(map(is_empty, value))
    return is_nothing(value)


"#;

/// The function from rows to each of several inputs.
fn all_inputs(transforms: &Transforms, inputs: &[EncodedInput], names: &[String]) -> String {
    let mut text = "def encode(rows):\n    \"\"\"Converts rows, each a dict from column to value, to the inputs of the network. None is a missing value.\"\"\"\n    return (\n".to_owned();
    for (input, name) in inputs.iter().zip(names) {
        let given = match &input.encoder {
            InputEncoder::Array { column, .. }
            | InputEncoder::Tokens { column, .. }
            | InputEncoder::Text { column, .. } => {
                let column = quote(&transforms.columns[*column].name);
                format!("[row[{column}] for row in rows]")
            }
            _ => "rows".to_owned(),
        };
        let _ = writeln!(text, "        encode_{name}({given}),");
    }
    text + "    )\n"
}

/// The function `encode<suffix>` of one input; what it needs is added to the helpers.
fn single(
    source: Source<'_>,
    input: &InputEncoder,
    suffix: &str,
    helpers: &mut BTreeSet<&'static str>,
) -> String {
    match input {
        InputEncoder::Features {
            features,
            normalize,
            window,
        } => {
            let has = |wanted: fn(&Form) -> bool| features.iter().any(|of| wanted(&of.form));
            if has(|form| !matches!(form, Form::OneHot { .. })) {
                helpers.insert(NUMBERS);
            }
            if has(|form| matches!(form, Form::OneHot { .. })) {
                helpers.insert(ONE_HOT);
            }
            if has(|form| !matches!(form, Form::Numbers { .. })) {
                helpers.insert(CATEGORY);
            }
            if features.iter().any(|of| source.is_filled_up(of.column)) {
                helpers.insert(FILLED_UP);
            }
            columns(source, features, *normalize, window.as_ref(), suffix)
        }
        InputEncoder::Indices { columns } => {
            helpers.insert(CATEGORY);
            indices(source, columns, suffix)
        }
        InputEncoder::Inputs { .. } => unreachable!("inputs do not contain inputs"),
        InputEncoder::Array {
            column,
            shape,
            scaling,
            axis,
            normalize,
            ..
        } => {
            let is_filled_up = source.is_filled_up(*column);
            let column = source.transforms.columns.get(*column);
            let missing = column.map_or_else(Vec::new, |of| source.marks.elements(&of.name));
            let needed = column.map(|of| of.name.as_str());
            let needed = needed.filter(|name| source.marks.is_needed(name));
            if is_filled_up {
                helpers.insert(FILLED_UP);
            }
            let lacks = Lacks {
                missing,
                needed,
                is_filled_up,
            };
            array(shape, &lacks, scaling, *axis, *normalize, suffix)
        }
        InputEncoder::Tokens { shape, shift, .. } => {
            let sizes = sizes(shape);
            let given = match shape.as_slice() {
                // As in the data, where -1 follows the tokens of shorter lists.
                [length] if *shift > 0 => {
                    helpers.insert(FILLED_UP);
                    format!("[filled_up(of, {length}, -1) for of in tokens]")
                }
                _ => "tokens".to_owned(),
            };
            format!(
                "def encode{suffix}(tokens):\n    \"\"\"Converts tokens of the data, of shape [{sizes}], to items for the network.\"\"\"\n    \
                 items = torch.as_tensor({given}, dtype=torch.int64) + {shift}\n    \
                 if items.shape[1:] != ({sizes},):\n        raise ValueError(f\"tokens of shape {{tuple(items.shape[1:])}}, expected ({sizes},)\")\n    \
                 return items\n"
            )
        }
        InputEncoder::Text {
            tokenizer,
            length,
            column,
        } => texts(
            tokenizer,
            Some(*length),
            (source.name(*column), suffix),
            helpers,
        ),
        InputEncoder::Stream {
            tokenizer, column, ..
        } => texts(tokenizer, None, (source.name(*column), suffix), helpers),
    }
}

/// A quoted string that is valid in JSON and Python.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

pub(super) fn quoted<'a>(texts: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = texts.map(|text| quote(text)).collect();
    quoted.join(", ")
}

const NUMBERS: &str = r#"def numbers(values, fill, scaling, clip=None):
    """The numbers of a column: missing ones are filled in, and each becomes (number - shift) * factor."""
    values = values if isinstance(values, (list, tuple)) else [values]
    while any(isinstance(value, (list, tuple)) for value in values):
        values = [of for value in values for of in value]
    values = [math.nan if is_nothing(value) else value for value in values]
    values = torch.tensor(values, dtype=torch.float64)
    if values.isinf().any():
        raise ValueError("a number is not finite")
    values = torch.where(values.isnan(), torch.tensor(fill, dtype=torch.float64), values)
    if clip is not None:
        values = values.clamp(*clip)
    shift, factor = torch.tensor(scaling, dtype=torch.float64).unbind(-1)
    return ((values - shift) * factor).float()


"#;

const FILLED_UP: &str = r#"def filled_up(values, length, fill):
    """A list with `fill` up to a length, as shorter lists of the data."""
    values = values.tolist() if hasattr(values, "tolist") else list(values)
    if len(values) > length:
        raise ValueError(f"a list of {len(values)} values, where the run was trained on at most {length}")
    return values + [fill] * (length - len(values))


"#;

const NOTHING: &str = r#"def is_nothing(value):
    """Whether a value is missing: None, NaN, or what pandas has instead."""
    return value is None or type(value).__name__ == "NAType" or value != value


"#;

const CATEGORY: &str = r#"def of_category(name, value, known, fill):
    """What a column has for the category of a value, and `fill` for a missing value."""
    if is_nothing(value):
        return fill
    text = category(value)
    if text in known:
        return known[text]
    same = [of for other, of in known.items() if plain(other) == plain(text)]
    if len(same) != 1:
        raise ValueError(f"column {name!r}: {text!r} is not a category that the run was trained on")
    return same[0]


def category(value):
    """The name of a category as files have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        # Without an exponent, and without a point if it is whole.
        return format(decimal.Decimal(repr(float(value))), "f").removesuffix(".0")
    if hasattr(value, "isoformat"):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)


def plain(text):
    """An integer without decimals that are zero, truth in lower case, and any other text as it is."""
    whole, point, decimals = text.partition(".")
    if decimals and not decimals.strip("0") and whole.removeprefix("-").isdigit():
        return whole
    return text.lower() if text.lower() in ("true", "false") else text


"#;

const ONE_HOT: &str = r#"def one_hot(place, width):
    """One-hot encoding: 1 for a category; all 0 for one that did not occur in training."""
    return torch.zeros(width) if place is None else F.one_hot(torch.tensor(place), width).float()


"#;

fn columns(
    source: Source<'_>,
    features: &[Feature],
    normalize: bool,
    window: Option<&WindowSpec>,
    suffix: &str,
) -> String {
    let mut text = format!("def encode{suffix}");
    text += "(rows):\n    \"\"\"Converts rows, each a dict from column to value, to items for the network. None is a missing value.\"\"\"\n    items = []\n";
    let _ = write!(text, "    for row in {}:\n        item = [\n", source.rows);
    for feature in features {
        let _ = writeln!(text, "            {},", column(source, feature));
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

fn column(source: Source<'_>, feature: &Feature) -> String {
    let mut value = format!("row[{}]", quote(&feature.name));
    let names: &[String] = match source
        .transforms
        .columns
        .get(feature.column)
        .map(|c| &c.kind)
    {
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
            if source.is_filled_up(feature.column) {
                value = format!("filled_up({value}, {}, None)", fill.len());
            }
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
            format!(
                "one_hot(of_category({}, {value}, {{{places}}}, {}), {width})",
                quote(&feature.name),
                place(fill)
            )
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
            format!(
                "numbers(of_category({}, {value}, {{{numbers}}}, None), [{fill:?}], [{scaling}])",
                quote(&feature.name)
            )
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

/// What is missing in the arrays of a column.
struct Lacks<'a> {
    /// The numbers that mean missing.
    missing: Vec<f32>,
    /// The name of the column, if missing numbers are refused.
    needed: Option<&'a str>,
    /// Whether shorter lists are filled up with missing numbers.
    is_filled_up: bool,
}

fn sizes(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    sizes.join(", ")
}

fn array(
    shape: &[usize],
    lacks: &Lacks<'_>,
    scaling: &[Scaling],
    axis: Option<usize>,
    normalize: bool,
    suffix: &str,
) -> String {
    let sizes_of = sizes;
    let sizes = sizes(shape);
    let given = if lacks.is_filled_up {
        format!("[filled_up(of, {sizes}, math.nan) for of in arrays]")
    } else {
        "arrays".to_owned()
    };
    let mut text = format!(
        "def encode{suffix}(arrays):\n    \"\"\"Converts arrays of shape [{sizes}] of untransformed data to items for the network.\"\"\"\n    \
         items = torch.as_tensor({given}, dtype=torch.float32).reshape(-1, {sizes})\n"
    );
    if !lacks.missing.is_empty() {
        let marks = lacks.missing.iter().map(|mark| format!("{mark:?}"));
        let marks: Vec<String> = marks.collect();
        let _ = writeln!(
            text,
            "    # These numbers mean missing.\n    items = items.masked_fill(torch.isin(items, torch.tensor([{}])), math.nan)",
            marks.join(", ")
        );
    }
    match lacks.needed {
        Some(name) => {
            let message = quote(&format!(
                "`{name}` contains a number that is missing or NaN"
            ));
            let _ = writeln!(
                text,
                "    if items.isnan().any():\n        raise ValueError({message})"
            );
        }
        // Infinity stays.
        None => text += "    items = items.masked_fill(items.isnan(), 0.0)\n",
    }
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
            let sizes = sizes_of(&broadcast(shape, scaling, axis));
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

/// Categories as indices.
fn indices(source: Source<'_>, columns: &[Indexed], suffix: &str) -> String {
    let mut text = format!(
        "def encode{suffix}(rows):\n    \"\"\"Converts rows, each a dict from column to value, to indices. None is a missing value.\"\"\"\n    columns = [\n"
    );
    for of in columns {
        let names: &[String] = match source.transforms.columns.get(of.column).map(|c| &c.kind) {
            Some(ColumnKind::Categories { names }) => names,
            _ => &[],
        };
        let places = names.iter().zip(&of.indices);
        let places: Vec<String> = places
            .map(|(name, at)| format!("{}: {}", quote(name), of.first + at))
            .collect();
        let (name, fill) = (quote(&of.name), of.first + of.fill);
        let place = if of.indices.is_empty() {
            format!(
                "{fill} if is_nothing(value) else {} + int(value)",
                of.first + 1
            )
        } else {
            format!(
                "of_category({name}, value, {{{}}}, {fill})",
                places.join(", ")
            )
        };
        let _ = writeln!(text, "        ({name}, lambda value: {place}),");
    }
    let _ = writeln!(
        text,
        "    ]\n    items = [[place(row[name]) for name, place in columns] for row in {}]",
        source.rows
    );
    text + "    return torch.tensor(items)\n"
}
