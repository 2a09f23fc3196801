//! The text of a first experiment file.

mod draft;
mod network;

use super::guess::{Guess, Item};
use super::{Found, Line, Wishes, quoted_all};
use crate::data::DataError;
use crate::data::profile::ValueProfile;
use crate::spec::data::{DataKind, Missing};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;
use draft::{Draft, one_line};

/// Columns that the file describes.
const DESCRIBED: usize = 30;

impl Found {
    /// An experiment file to start from.
    pub fn starter(&self, wishes: &Wishes) -> Result<String, DataError> {
        let guess = self.guess(wishes.task)?;
        let mut out = Draft::default();
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
            TaskKind::NextToken => "How well can the next character of a text be predicted?".into(),
            TaskKind::MaskedToken => {
                "How well can the hidden tokens of a text be predicted?".into()
            }
            TaskKind::Segmentation => "How well can the class of each pixel be predicted?".into(),
            TaskKind::Autoencoding => {
                "How well can items be reconstructed from a few numbers?".into()
            }
            _ => {
                let target = match &guess.target[..] {
                    [] => "the class of an image".to_owned(),
                    [target] => format!("`{target}`"),
                    _ => "the labels".to_owned(),
                };
                let target = match self.kind {
                    DataKind::Npy | DataKind::Idx => "the target".to_owned(),
                    _ => target,
                };
                format!("How well can {target} be predicted?")
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

    fn data(&self, guess: &Guess, out: &mut Draft) {
        out.table("[data]");
        out.text("type", self.kind.name(), "the data format");
        out.text("path", &self.path, "relative to the folder of this file");
        out.lines.extend(self.keys.iter().cloned());
        if let Some(features) = &guess.features {
            out.text("features", features, "the input columns");
        }
        if !guess.target.is_empty() {
            let meaning = match guess.task {
                TaskKind::Classification => "the column to predict: a class",
                TaskKind::Regression => "the column to predict: a number",
                _ => "the columns to predict",
            };
            out.line("target", quoted_all(&guess.target), meaning);
        }
        if !guess.ignored.is_empty() {
            let reasons = guess
                .ignored
                .iter()
                .map(|(name, reason)| format!("{name}: {reason}"));
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            let meaning =
                format!("unused columns ({reasons}); remove a column from the list to use it");
            out.line("ignore", guess.ignored_names(), meaning);
        }
        if let Some((policy, missing)) = &guess.missing {
            match policy {
                Missing::Median => {
                    let meaning = format!(
                        "missing values ({missing}) are imputed from the train split; \"drop\" drops such items instead"
                    );
                    out.text("missing", "median", meaning);
                }
                _ => out.text(
                    "missing",
                    "drop",
                    format!("items without a value ({missing}) are dropped"),
                ),
            }
        }
        if guess.task == TaskKind::Regression && !guess.target.is_empty() {
            let meaning = "targets are standardized to mean 0 and standard deviation 1, which suits common learning rates";
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
            out.line("valid", "0.1", "fraction held out for validation");
            out.text(
                "order",
                "time",
                "the end of the text is held out, rather than pieces of it",
            );
            return;
        }
        if !has_valid {
            out.line("valid", "0.2", "fraction for comparing settings");
        }
        if holds_out_test {
            out.line("test", "0.1", "fraction for the final evaluation only");
        }
    }

    /// The columns as comments.
    fn describe(&self, guess: &Guess, out: &mut Draft) {
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
        out.raw
            .push_str(&format!("\n# Inferred from {} items:\n", self.num_items));
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
            // A name may contain anything, even a line break.
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

/// A first experiment on the embedded iris flowers.
pub fn starter_on_iris(wishes: &Wishes) -> Result<String, DataError> {
    if let Some(task) = wishes.task.filter(|task| *task != TaskKind::Classification) {
        let message = format!("the task `{}` needs your own data", task.name());
        return Err(DataError::new(message).help("pass a file or a folder with `--data`"));
    }
    let mut out = Draft::default();
    out.head(wishes, "on the embedded iris flowers");
    out.experiment(
        "Which learning rate and width suit a small network on the iris flowers?",
        "[1, 2, 3]",
    );
    out.table("[data]");
    out.text("type", "iris", "150 flowers of 3 species with 4 measurements each; for your own file: runner init --data FILE");
    out.table("[data.split]");
    out.line("valid", "0.2", "fraction for comparing settings");
    out.task(TaskKind::Classification);
    out.table("[model]");
    out.mlp(32);
    let axis = Line::new("model.hidden", "[[16], [32]]", "narrow or wide");
    out.training(120, &Guess::of_rows(TaskKind::Classification), Some(axis));
    Ok(out.finish())
}
