//! The text of a first experiment file.

mod network;
mod text;

use super::guess::{Guess, Item};
use super::{Found, Line, Wishes, quoted_all};
use crate::data::DataError;
use crate::data::profile::ValueProfile;
use crate::spec::data::{DataKind, Missing};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;
use text::{Text, one_line};

/// Columns that are described in the file.
const DESCRIBED: usize = 30;

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
