//! The text of a first experiment file.

use super::guess::{Guess, Item};
use super::{Found, Line, Wishes, quoted, quoted_all};
use crate::data::DataError;
use crate::data::profile::ValueProfile;
use crate::spec::data::{DataKind, Missing};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// Columns that are described in the file.
const DESCRIBED: usize = 30;
/// Comments behind values stand in this column, where the values leave room.
const COMMENTS_AT: usize = 40;

impl Found {
    /// An experiment file to start from.
    pub fn starter(&self, wishes: &Wishes) -> Result<String, DataError> {
        let guess = self.guess(wishes.task)?;
        let mut out = Text::default();
        out.head(wishes, &format!("on `{}`", self.path));
        let seeds = match self.num_items {
            0..5_000 => "[1, 2, 3]",
            _ => "[1]",
        };
        out.experiment(&self.question(&guess), seeds);
        self.data(&guess, &mut out);
        out.task(guess.task);
        let axis = self.model(&guess, &mut out);
        out.training(self.num_train(), &guess, axis);
        Ok(out.finish())
    }

    fn question(&self, guess: &Guess) -> String {
        match guess.task {
            TaskKind::NextToken => "How well can the next character of a text be foretold?".into(),
            TaskKind::Segmentation => "How well can the class of each pixel be told?".into(),
            TaskKind::Autoencoding => {
                "How well can items be put together again from a few numbers?".into()
            }
            _ => {
                let target = match &guess.target[..] {
                    [] => "the class of a picture".to_owned(),
                    [target] => format!("`{target}`"),
                    _ => "the labels".to_owned(),
                };
                let target = match self.kind {
                    DataKind::Npy | DataKind::Idx => "the target".to_owned(),
                    _ => target,
                };
                format!("How well can {target} be foretold?")
            }
        }
    }

    /// Items of the train split, roughly.
    fn num_train(&self) -> usize {
        match self.kind {
            DataKind::Text => {
                let characters = self.columns.iter().map(|column| match column.values {
                    ValueProfile::Texts { total, .. } => total as usize,
                    _ => 0,
                });
                characters.sum::<usize>() / 64 * 9 / 10
            }
            _ => self.num_items * 4 / 5,
        }
    }

    fn data(&self, guess: &Guess, out: &mut Text) {
        out.table("[data]");
        out.text("type", self.kind.name(), "how the data is read");
        out.text(
            "path",
            &self.path,
            "where it is, from the folder of this file",
        );
        out.lines.extend(self.keys.iter().cloned());
        if let Some(features) = &guess.features {
            out.text("features", features, "what the network is given");
        }
        if !guess.target.is_empty() {
            let meaning = match guess.task {
                TaskKind::Classification => "the column to foretell: a class",
                TaskKind::Regression => "the column to foretell: a number",
                _ => "the columns to foretell",
            };
            out.line("target", quoted_all(&guess.target), meaning);
        }
        if !guess.ignored.is_empty() {
            let reasons = guess
                .ignored
                .iter()
                .map(|(name, reason)| format!("{name}: {reason}"));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            let meaning = format!("columns that are not used ({reasons}); to use one, take it out");
            out.line("ignore", guess.ignored_names(), meaning);
        }
        if let Some((policy, missing)) = &guess.missing {
            match policy {
                Missing::Median => {
                    let meaning = format!(
                        "missing values ({missing}) become the usual value of the train split; \"drop\" leaves such items out"
                    );
                    out.text("missing", "median", meaning);
                }
                _ => out.text(
                    "missing",
                    "drop",
                    format!("items that lack it ({missing}) are left out"),
                ),
            }
        }
        if guess.task == TaskKind::Regression && !guess.target.is_empty() {
            let meaning = "targets are brought to mean 0 and deviation 1, which suits the usual learning rates";
            out.text("target_scale", "standardize", meaning);
        }
        if matches!(guess.item, Item::Text | Item::Note) {
            out.tokens(&guess.item);
        }
        self.describe(guess, out);
        for lines in &guess.columns {
            out.table("[[data.columns]]");
            out.lines.extend(lines.iter().cloned());
        }
        let has = |key: &str| self.keys.iter().any(|line| line.key == key);
        let (has_valid, has_test) = (has("valid_path"), has("test_path"));
        let holds_out_test = self.num_items >= 500 && !has_test;
        if has_valid && !holds_out_test {
            return;
        }
        out.table("[data.split]");
        if guess.item == Item::Text {
            out.line("valid", "0.1", "the part that is held out to measure by");
            out.text(
                "order",
                "time",
                "the end of the text is held out, not pieces of all of it",
            );
            return;
        }
        if !has_valid {
            out.line(
                "valid",
                "0.2",
                "the part of the items that settings are compared by",
            );
        }
        if holds_out_test {
            out.line("test", "0.1", "the part that is looked at once, at the end");
        }
    }

    /// The columns as comments.
    fn describe(&self, guess: &Guess, out: &mut Text) {
        let named: Vec<_> = self
            .columns
            .iter()
            .filter(|column| column.values != ValueProfile::Nothing)
            .take(DESCRIBED)
            .collect();
        if named.is_empty() || guess.item == Item::Text {
            return;
        }
        out.end_lines();
        out.raw.push_str(&format!(
            "\n# What was found in {} items:\n",
            self.num_items
        ));
        for warning in &self.warnings {
            let text = one_line(&format!("{}: is it a mistake?", warning.message));
            out.raw.push_str(&format!("# {text}\n"));
        }
        let width = named
            .iter()
            .map(|column| column.column.name.chars().count())
            .max();
        let width = width.unwrap_or(0).min(24);
        for column in named {
            let missing = match column.missing {
                0 => String::new(),
                num => format!("; {num} missing"),
            };
            // A name may hold anything, also the end of a line.
            let text = format!(
                "{:width$}  {}, {}{missing}",
                column.column.name,
                column.show_kind(),
                column.values.show()
            );
            out.raw.push_str(&format!("#   {}\n", one_line(&text)));
        }
        match self.columns.len() {
            num if num > DESCRIBED => {
                out.raw
                    .push_str(&format!("#   and {} more columns\n", num - DESCRIBED));
            }
            _ => {}
        }
    }

    /// Writes the network; returns the axis to vary it by.
    fn model(&self, guess: &Guess, out: &mut Text) -> Option<Line> {
        let width = match self.num_train() {
            0..1_000 => 32,
            1_000..50_000 => 64,
            _ => 128,
        };
        if guess.task == TaskKind::Segmentation {
            return out.convolutions();
        }
        if guess.task == TaskKind::Autoencoding {
            return self.autoencoder(guess, out);
        }
        out.table("[model]");
        if matches!(&guess.item, Item::Array(shape) if matches!(shape[..], [_, _, 1 | 3 | 4])) {
            out.raw.push_str(
                "# These look like pictures whose channels come last; convolutions take [channels, height, width]: turn the\n\
                 # array, with NumPy `x.transpose(0, 3, 1, 2)`, and write `type = \"cnn\"`.\n",
            );
        }
        let both = |key: &str, small: String, large: String, meaning: &str| {
            Some(Line::new(key, format!("[{small}, {large}]"), meaning))
        };
        match &guess.item {
            Item::Row | Item::Array(_) => {
                out.text(
                    "type",
                    "mlp",
                    "a network of linear layers with ReLU between them",
                );
                out.line(
                    "hidden",
                    format!("[{width}]"),
                    "the widths of the layers between input and output",
                );
                out.line("dropout", "0.1", "the part of their values that is left out in training, against learning by heart");
                let meaning = "one layer of this width, or two";
                both(
                    "model.hidden",
                    format!("[{width}]"),
                    format!("[{width}, {width}]"),
                    meaning,
                )
            }
            Item::Picture([_, height, width]) if *height.min(width) < 10 => {
                out.text(
                    "type",
                    "mlp",
                    "a network of linear layers: the pictures are small",
                );
                out.line(
                    "hidden",
                    "[64]",
                    "the widths of the layers between input and output",
                );
                both(
                    "model.hidden",
                    "[64]".into(),
                    "[128]".into(),
                    "narrow or wide",
                )
            }
            Item::Picture([_, height, width]) if *height.max(width) <= 32 => {
                out.text("type", "cnn", "convolutions, then linear layers");
                out.line(
                    "channels",
                    "[16, 32]",
                    "pictures that each convolution makes",
                );
                out.line(
                    "hidden",
                    "[64]",
                    "the widths of the linear layers before the output",
                );
                both(
                    "model.channels",
                    "[8, 16]".into(),
                    "[16, 32]".into(),
                    "narrow or wide",
                )
            }
            Item::Picture(_) => {
                out.text(
                    "type",
                    "resnet",
                    "a residual network, which suits larger pictures",
                );
                out.line(
                    "channels",
                    "[16, 32, 64]",
                    "pictures that each stage makes; each halves the sides",
                );
                both(
                    "model.channels",
                    "[8, 16, 32]".into(),
                    "[16, 32, 64]".into(),
                    "narrow or wide",
                )
            }
            Item::Series => {
                out.text(
                    "type",
                    "lstm",
                    "a recurrent network, which reads step by step",
                );
                out.line("hidden_size", "32", "how much it remembers");
                both(
                    "model.hidden_size",
                    "32".into(),
                    "64".into(),
                    "how much it remembers",
                )
            }
            Item::Text | Item::Note => {
                let (preset, what) = match guess.item {
                    Item::Text => (
                        "transformer_lm",
                        "a transformer that foretells the next token",
                    ),
                    _ => (
                        "transformer_classifier",
                        "a transformer that reads the whole text",
                    ),
                };
                out.text("type", preset, what);
                out.line("d_model", "64", "the width of every position");
                out.line("num_layers", "2", "layers, one on the other");
                both("model.d_model", "32".into(), "64".into(), "narrow or wide")
            }
        }
    }

    /// Layers down to a few numbers and up to the item again.
    fn autoencoder(&self, guess: &Guess, out: &mut Text) -> Option<Line> {
        let shape = match &guess.item {
            Item::Picture(shape) => shape.to_vec(),
            Item::Array(shape) => shape.clone(),
            _ => Vec::new(),
        };
        let layer = |out: &mut Text, kind: &str, lines: &[Line], meaning: &str| {
            out.table("[[model.layers]]");
            out.text("type", kind, meaning);
            out.lines.extend_from_slice(lines);
        };
        if !shape.is_empty() {
            layer(out, "flatten", &[], "all numbers of an item in one row");
        }
        layer(
            out,
            "linear",
            &[
                Line::text("name", "code", "its name, which the sweep below uses"),
                Line::new(
                    "out_features",
                    "8",
                    "the few numbers that an item is put together from",
                ),
            ],
            "weighted sums",
        );
        layer(
            out,
            "linear",
            &[Line::new("out_features", "64", "the width of the layer")],
            "weighted sums",
        );
        layer(out, "gelu", &[], "what makes it more than one linear layer");
        if shape.is_empty() {
            layer(out, "linear", &[], "as wide as the item")
        } else {
            let num: usize = shape.iter().product();
            let num = Line::new("out_features", num.to_string(), "the numbers of an item");
            layer(out, "linear", &[num], "weighted sums");
            let shape = Line::new("shape", format!("{shape:?}"), "the item's shape");
            layer(out, "reshape", &[shape], "the row as an item again");
        }
        Some(Line::new(
            "\"model.layers.code.out_features\"",
            "[2, 8]",
            "how few numbers are enough",
        ))
    }
}

/// A first experiment on the iris flowers, which are inside the program.
pub fn starter_on_iris(wishes: &Wishes) -> Result<String, DataError> {
    if let Some(task) = wishes.task.filter(|task| *task != TaskKind::Classification) {
        let message = format!("the task `{}` needs data of yours", task.name());
        return Err(DataError::new(message).help("name a file or a folder with `--data`"));
    }
    let mut out = Text::default();
    out.head(wishes, "on the iris flowers inside `runner`");
    out.experiment(
        "Which learning rate and width suit a small network on the iris flowers?",
        "[1, 2, 3]",
    );
    out.table("[data]");
    out.text("type", "iris", "150 flowers of 3 species with 4 measurements each; for a file of yours: runner init --data FILE");
    out.table("[data.split]");
    out.line(
        "valid",
        "0.2",
        "the part of the items that settings are compared by",
    );
    out.task(TaskKind::Classification);
    out.table("[model]");
    out.text(
        "type",
        "mlp",
        "a network of linear layers with ReLU between them",
    );
    out.line(
        "hidden",
        "[32]",
        "the widths of the layers between input and output",
    );
    let axis = Line::new("model.hidden", "[[16], [32]]", "narrow or wide");
    out.training(120, &Guess::of_rows(TaskKind::Classification), Some(axis));
    Ok(out.finish())
}

/// A file that grows table by table.
#[derive(Default)]
struct Text {
    raw: String,
    /// The lines of the table that is being written, which are laid out together.
    lines: Vec<Line>,
}

impl Text {
    fn head(&mut self, wishes: &Wishes, what: &str) {
        match &wishes.schema {
            Some(schema) => self.raw.push_str(&format!("#:schema {}\n\n", one_line(schema))),
            None => self.raw.push_str(
                "# For help in editors: `runner schema experiment.schema.json`, and this as the first line:\n\
                 # #:schema experiment.schema.json\n\n",
            ),
        }
        let (what, file) = (one_line(what), one_line(&wishes.file));
        self.raw.push_str(&format!(
            "# A first experiment {what}, written by `runner init`. What was guessed may be wrong: change it.\n#\n\
             # Is all in order?   runner check {file}\n\
             # Train and report:  runner run {file}\n"
        ));
    }

    fn experiment(&mut self, question: &str, seeds: &str) {
        self.table("[experiment]");
        self.text(
            "question",
            question,
            "what you want to know; it heads the report",
        );
        self.line(
            "seeds",
            seeds,
            "everything is trained once with each of these, to see how much is luck",
        );
    }

    fn task(&mut self, task: TaskKind) {
        let meaning = match task {
            TaskKind::Classification => "one class for each item; its accuracy is reported",
            TaskKind::MultiLabel => "any of several labels for each item",
            TaskKind::Regression => "numbers for each item; their errors and R² are reported",
            TaskKind::NextToken => "the next token at each place; its perplexity is reported",
            TaskKind::Autoencoding => "the item itself, through a narrow place",
            TaskKind::Segmentation => "a class for each pixel",
        };
        self.table("[task]");
        self.text("type", task.name(), meaning);
    }

    fn tokens(&mut self, item: &Item) {
        self.table("[data.tokens]");
        match item {
            Item::Text => {
                self.text(
                    "tokenizer",
                    "char",
                    "what is foretold: characters; also \"byte\" or \"word\"",
                );
                self.line("length", "64", "characters that are looked at together");
            }
            _ => {
                self.text(
                    "tokenizer",
                    "word",
                    "what a text is cut into: words; also \"char\" or \"byte\"",
                );
                self.line(
                    "length",
                    "64",
                    "words that are looked at; longer texts are cut",
                );
                self.line("lowercase", "true", "capitals are made small first");
            }
        }
    }

    fn convolutions(&mut self) -> Option<Line> {
        for (name, meaning) in [
            ("first", "filters over the picture"),
            ("second", "filters over these"),
        ] {
            self.table("[[model.layers]]");
            self.text("type", "conv2d", meaning);
            self.text("name", name, "its name");
            self.line("out_channels", "16", "how many filters");
            self.line(
                "kernel_size",
                "3",
                "the side of the square that a filter looks at",
            );
            self.text("padding", "same", "zeros around the picture keep its size");
            self.table("[[model.layers]]");
            self.text("type", "relu", "what makes it more than one linear layer");
        }
        self.table("[[model.layers]]");
        self.text("type", "conv2d", "one channel for each class");
        self.line("kernel_size", "1", "each pixel by itself");
        Some(Line::new(
            "\"model.layers.first.out_channels\"",
            "[8, 16]",
            "few or many filters",
        ))
    }

    /// Everything behind the network.
    fn training(&mut self, num_train: usize, guess: &Guess, axis: Option<Line>) {
        let (batch_size, epochs) = match num_train {
            0..64 => (8, 60),
            64..512 => (16, 40),
            512..4_096 => (32, 20),
            4_096..65_536 => (64, 10),
            _ => (128, 4),
        };
        self.table("[optimizer]");
        self.text(
            "type",
            "adamw",
            "how weights are changed; Adam with weight decay suits most networks",
        );
        self.line(
            "learning_rate",
            "1e-3",
            "how much they are changed at each step",
        );
        if matches!(guess.item, Item::Series | Item::Text | Item::Note) {
            self.line(
                "clip",
                "{ global_norm = 1.0 }",
                "no step is larger than this, which keeps long sequences stable",
            );
        }
        self.table("[scheduler]");
        self.text(
            "type",
            "cosine",
            "the learning rate falls to 0 over the training",
        );
        self.table("[train]");
        self.line("epochs", epochs.to_string(), "passes over the train split");
        let batch_size = num_train.clamp(1, batch_size).to_string();
        self.line("batch_size", batch_size, "items of one step");
        self.table("[sweep.grid]");
        self.line(
            "optimizer.learning_rate",
            "[1e-3, 1e-2]",
            "every value of this line …",
        );
        if let Some(axis) = axis {
            let meaning = format!("… with every value of this one: {}", axis.meaning);
            self.lines.push(Line { meaning, ..axis });
        }
    }

    fn table(&mut self, head: &str) {
        self.end_lines();
        self.raw.push_str(&format!("\n{head}\n"));
    }

    fn text(&mut self, key: &str, text: &str, meaning: impl Into<String>) {
        self.line(key, quoted(text), meaning);
    }

    fn line(&mut self, key: &str, value: impl Into<String>, meaning: impl Into<String>) {
        self.lines.push(Line::new(key, value, meaning));
    }

    /// Lays out the lines of a table: their comments stand in one column, or above what is too long.
    fn end_lines(&mut self) {
        for line in std::mem::take(&mut self.lines) {
            let written = format!("{} = {}", line.key, line.value);
            let meaning = one_line(&line.meaning);
            let is_long = written.chars().count() > COMMENTS_AT || meaning.chars().count() > 76;
            self.raw.push_str(&if is_long {
                format!("# {meaning}\n{written}\n")
            } else {
                format!("{written:COMMENTS_AT$}  # {meaning}\n")
            });
        }
    }

    fn finish(mut self) -> String {
        self.end_lines();
        self.raw
    }
}

/// A comment must not end in the middle; control characters are no comments.
fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect()
}
