//! An experiment file that grows table by table, with comments.

use crate::init::guess::{Guess, Item};
use crate::init::{Line, Wishes, quoted};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// Comments behind values stand in this column, where the values leave room.
const COMMENTS_AT: usize = 40;

/// A file that grows table by table.
#[derive(Default)]
pub(super) struct Text {
    pub(super) raw: String,
    /// The lines of the table that is being written, which are laid out together.
    pub(super) lines: Vec<Line>,
}

impl Text {
    pub(super) fn head(&mut self, wishes: &Wishes, what: &str) {
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

    pub(super) fn experiment(&mut self, question: &str, seeds: &str) {
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

    pub(super) fn task(&mut self, task: TaskKind) {
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

    pub(super) fn tokens(&mut self, item: &Item) {
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

    /// Everything behind the network.
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

    /// Lays out the lines of a table: their comments stand in one column, or above what is too long.
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

/// A comment must not end in the middle; control characters are no comments.
pub(super) fn one_line(text: &str) -> String {
    let shown = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    shown.collect()
}
