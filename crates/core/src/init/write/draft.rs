//! An experiment file that grows table by table, with comments.

use crate::init::guess::{Guess, Item};
use crate::init::{Line, Wishes, quoted};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// Comments after values start in this column, if the values leave room.
const COMMENTS_AT: usize = 40;

/// A file that grows table by table.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) raw: String,
    /// The lines of the current table, which are aligned together.
    pub(super) lines: Vec<Line>,
}

impl Draft {
    pub(super) fn head(&mut self, wishes: &Wishes, what: &str) {
        match &wishes.schema {
            Some(schema) => self.raw.push_str(&format!("#:schema {}\n\n", one_line(schema))),
            None => self.raw.push_str(
                "# For help in editors: `runner schema experiment.schema.json`, and this first line:\n# #:schema experiment.schema.json\n\n",
            ),
        }
        let (what, file) = (one_line(what), one_line(&wishes.file));
        self.raw.push_str(&format!(
            "# A first experiment {what}, created by `runner init`. The inferred settings may be wrong: edit them.\n#\n# Check the file:    runner check {file}\n# Train and report:  runner run {file}\n"
        ));
    }

    pub(super) fn experiment(&mut self, question: &str, seeds: &str) {
        self.table("[experiment]");
        self.text(
            "question",
            question,
            "the question to answer; it heads the report",
        );
        self.line(
            "seeds",
            seeds,
            "every trial runs once with each seed, to show how much is chance",
        );
    }

    pub(super) fn task(&mut self, task: TaskKind) {
        let meaning = match task {
            TaskKind::Classification => "one class per item; accuracy is reported",
            TaskKind::MultiLabel => "several labels per item",
            TaskKind::Regression => "numbers per item; their errors and R² are reported",
            TaskKind::NextToken => "the next token at each position; perplexity is reported",
            TaskKind::MaskedToken => "the hidden tokens of a text; perplexity is reported",
            TaskKind::Autoencoding => "reconstruction of the item through a bottleneck",
            TaskKind::Segmentation => "one class per pixel",
            TaskKind::Generation => {
                "items from noise; their distance from those of the data is reported"
            }
        };
        self.table("[task]");
        self.text("type", task.name(), meaning);
    }

    pub(super) fn tokens(&mut self, item: &Item) {
        self.table("[data.tokens]");
        match item {
            Item::Text => {
                self.text(
                    "tokenizer",
                    "char",
                    "the tokens to predict: characters; or \"byte\" or \"word\"",
                );
                self.line("length", "64", "characters per sequence");
            }
            _ => {
                self.text(
                    "tokenizer",
                    "word",
                    "the tokens of a text: words; or \"char\" or \"byte\"",
                );
                self.line("length", "64", "words per text; longer texts are truncated");
                self.line("lowercase", "true", "converts the text to lower case first");
            }
        }
    }

    /// Everything after the network.
    pub(super) fn training(&mut self, num_train: usize, guess: &Guess, axis: Option<Line>) {
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
            "how weights are updated; Adam with weight decay suits most networks",
        );
        self.line("learning_rate", "1e-3", "size of each update");
        if matches!(guess.item, Item::Series | Item::Text | Item::Note) {
            self.line(
                "clip",
                "{ global_norm = 1.0 }",
                "limits the size of updates, which keeps long sequences stable",
            );
        }
        self.table("[scheduler]");
        self.text(
            "type",
            "cosine",
            "the learning rate decays to 0 over the training",
        );
        self.table("[train]");
        self.line("epochs", epochs.to_string(), "passes over the train split");
        let batch_size = num_train.clamp(1, batch_size).to_string();
        self.line("batch_size", batch_size, "items per update");
        self.table("[sweep.grid]");
        self.line(
            "optimizer.learning_rate",
            "[1e-3, 1e-2]",
            "every value on this line …",
        );
        if let Some(axis) = axis {
            let meaning = format!("… with every value on this one: {}", axis.meaning);
            self.lines.push(Line { meaning, ..axis });
        }
    }

    pub(super) fn table(&mut self, head: &str) {
        self.end_lines();
        self.raw.push_str(&format!("\n{head}\n"));
    }

    pub(super) fn text(&mut self, key: &str, text: &str, meaning: impl Into<String>) {
        self.line(key, quoted(text), meaning);
    }

    pub(super) fn line(&mut self, key: &str, value: impl Into<String>, meaning: impl Into<String>) {
        self.lines.push(Line::new(key, value, meaning));
    }

    /// Aligns the lines of a table: their comments share a column, or are above lines that are too long.
    pub(super) fn end_lines(&mut self) {
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

    pub(super) fn finish(mut self) -> String {
        self.end_lines();
        self.raw
    }
}

/// A comment must stay on its line; control characters are not allowed in comments.
pub(super) fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect()
}
