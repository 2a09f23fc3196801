//! The possible tasks for the data, and a network for each.

use super::{Found, Line, quoted_all};
use crate::data::DataError;
use crate::data::profile::{ColumnProfile, ValueProfile, short};
use crate::data::records::ColumnKind;
use crate::data::suspects::names_rows;
use crate::spec::data::{DataKind, Missing};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// The content of the experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The task.
    pub task: TaskKind,
    /// The target.
    pub target: Vec<String>,
    /// The features, if not all other columns.
    pub features: Option<String>,
    /// Excluded columns, with the reason.
    pub ignored: Vec<(String, String)>,
    /// `[[data.columns]]`
    pub columns: Vec<Vec<Line>>,
    /// The handling of missing values, and a description of where they are.
    pub missing: Option<(Missing, String)>,
    /// The form of an item for the network.
    pub item: Item,
}

impl Guess {
    /// A task over rows, before anything is known.
    pub fn of_rows(task: TaskKind) -> Self {
        Self {
            task,
            target: Vec::new(),
            features: None,
            ignored: Vec::new(),
            columns: Vec::new(),
            missing: None,
            item: Item::Row,
        }
    }
}

/// The form of an item for the network.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Numbers, one after the other.
    Row,
    /// Steps of numbers.
    Series,
    /// An image of shape \[channels, height, width\].
    Picture([usize; 3]),
    /// An array of a different shape.
    Array(Vec<usize>),
    /// Running text.
    Text,
    /// A single text.
    Note,
}

/// Usual names of targets, the surest first.
const TARGETS: [&str; 22] = [
    "target",
    "targets",
    "label",
    "labels",
    "class",
    "y",
    "outcome",
    "response",
    "species",
    "price",
    "saleprice",
    "diagnosis",
    "survived",
    "churn",
    "sentiment",
    "category",
    "quality",
    "medv",
    "mpg",
    "mask",
    "charges",
    "output",
];
/// Integers with at most this many distinct values are classes.
const MAX_CLASSES: usize = 20;

impl Found {
    /// Decides the task. Only an explicitly requested task that does not fit is refused.
    pub(super) fn guess(&self, wish: Option<TaskKind>) -> Result<Guess, DataError> {
        if wish == Some(TaskKind::Generation) {
            let message = "`runner init` writes no experiment that generates items";
            let help = "start from `experiments/digits_gan.toml`, or remove `--task`";
            return Err(DataError::new(message).help(help));
        }
        if self.kind == DataKind::Text {
            return self.running_text(wish);
        }
        let has_roles = matches!(
            self.kind,
            DataKind::Csv
                | DataKind::JsonLines
                | DataKind::Parquet
                | DataKind::Npz
                | DataKind::Safetensors
        );
        let targets = match wish {
            Some(TaskKind::Autoencoding) => Vec::new(),
            Some(TaskKind::MultiLabel) => self.labels()?,
            _ => self.target().into_iter().collect(),
        };
        let task = match (wish, targets.first()) {
            (Some(wish), target) => {
                self.fits(wish, target.copied())?;
                wish
            }
            (None, Some(target)) => usual_task(target, self.are_arrays()),
            (None, None) => TaskKind::Autoencoding,
        };
        let mut guess = Guess::of_rows(task);
        let is_target = |column: &&ColumnProfile| targets.contains(column);
        let features: Vec<_> = self.columns.iter().filter(|c| !is_target(c)).collect();
        if !has_roles {
            let input = features.first().copied().or(self.columns.first());
            guess.item = input.map_or(Item::Row, item);
            // Single columns cannot be configured, and targets cannot be imputed.
            let lacks = |column: &&ColumnProfile| column.missing > 0;
            let policy = match (&guess.item, targets.iter().any(|target| target.missing > 0)) {
                (Item::Row, false) => Missing::Median,
                _ => Missing::Drop,
            };
            let lacking: Vec<_> = self
                .columns
                .iter()
                .filter(lacks)
                .map(show_missing)
                .collect();
            guess.missing = (!lacking.is_empty()).then(|| (policy, lacking.join(", ")));
            return Ok(guess);
        }
        guess.target = targets.iter().map(|t| t.column.name.clone()).collect();
        if let [target] = targets[..] {
            guess
                .columns
                .extend(said_of_target(target, task, self.are_arrays()));
        }
        guess.choose(&features);
        guess.say(&self.said);
        if !features.is_empty() && guess.ignored.len() == features.len() {
            let reasons = guess.ignored.iter().take(8);
            let reasons: Vec<_> = reasons
                .map(|(name, why)| format!("`{name}`: {why}"))
                .collect();
            let what = match &guess.target[..] {
                [target] => format!("no column helps to predict `{target}`"),
                _ => "no column is usable".to_owned(),
            };
            return Err(DataError::new(what)
                .note(reasons.join("; "))
                .help("use a table with columns that describe its rows"));
        }
        Ok(guess)
    }

    /// Whether columns are arrays, whose types are their own.
    fn are_arrays(&self) -> bool {
        matches!(
            self.kind,
            DataKind::Npy | DataKind::Npz | DataKind::Safetensors | DataKind::Idx
        )
    }

    fn running_text(&self, wish: Option<TaskKind>) -> Result<Guess, DataError> {
        if let Some(wish) = wish.filter(|wish| *wish != TaskKind::NextToken) {
            let message = format!(
                "the task `{}` needs targets, but plain text has none",
                wish.name()
            );
            return Err(DataError::new(message).help(
                "remove `--task` to predict the next character, or use a csv of texts with targets",
            ));
        }
        Ok(Guess {
            task: TaskKind::NextToken,
            target: Vec::new(),
            features: None,
            ignored: Vec::new(),
            columns: Vec::new(),
            missing: None,
            item: Item::Text,
        })
    }

    /// The column with a usual name of a target, or the last one that can be predicted.
    fn target(&self) -> Option<&ColumnProfile> {
        let could: Vec<_> = self
            .columns
            .iter()
            .filter(|column| {
                column.column.kind != ColumnKind::Text
                    && reason_against(column).is_none()
                    && (column.values != ValueProfile::Nothing
                        || self.kind == DataKind::ImageFolder)
            })
            .collect();
        let named = TARGETS.iter().find_map(|name| {
            let mut named = could.iter().filter(|column| {
                let of = column.column.name.to_lowercase();
                of == *name
                    || of
                        .strip_suffix(name)
                        .is_some_and(|rest| rest.ends_with('_'))
            });
            named.next_back()
        });
        match (named, self.columns.len()) {
            (Some(named), _) => Some(named),
            // At least one feature must be left.
            (None, 0 | 1) => None,
            (None, _) => could.last().copied(),
        }
    }

    /// The columns that are 0 or 1.
    fn labels(&self) -> Result<Vec<&ColumnProfile>, DataError> {
        let is_label = |column: &&ColumnProfile| match &column.values {
            ValueProfile::Numbers(numbers) => {
                let all = numbers.different.as_deref().unwrap_or_default();
                numbers.is_whole && all.len() == 2 && (numbers.min, numbers.max) == (0.0, 1.0)
            }
            _ => false,
        };
        let labels: Vec<_> = self.columns.iter().filter(is_label).collect();
        if labels.len() < 2 || labels.len() == self.columns.len() {
            let message = format!(
                "multi-label classification needs columns of 0 and 1 in addition to others; {} of {} columns qualify",
                labels.len(),
                self.columns.len()
            );
            return Err(DataError::new(message).help("remove `--task`"));
        }
        Ok(labels)
    }

    /// Refuses a task that the target does not support.
    fn fits(&self, wish: TaskKind, target: Option<&ColumnProfile>) -> Result<(), DataError> {
        let refuse = |reason: String| {
            let message = format!("the task `{}` does not fit: {reason}", wish.name());
            let help = match target.map(|target| usual_task(target, self.are_arrays())) {
                Some(task) => format!("remove `--task`, or use `--task {}`", task.name()),
                None => "remove `--task`".to_owned(),
            };
            Err(DataError::new(message).help(help))
        };
        let Some(target) = target else {
            return match wish {
                TaskKind::Autoencoding | TaskKind::MultiLabel => Ok(()),
                _ => refuse("no column can be its target".into()),
            };
        };
        let name = &target.column.name;
        let is_mask = self.kind == DataKind::ImageFolder && name == "mask";
        match (wish, &target.values) {
            (TaskKind::Segmentation, _) if !is_mask => refuse("it needs images with masks".into()),
            (TaskKind::NextToken | TaskKind::MaskedToken, _) => refuse("it needs text".into()),
            (TaskKind::Classification | TaskKind::Regression, _) if is_mask => {
                refuse("the targets are masks".into())
            }
            (TaskKind::Regression, ValueProfile::Categories(_)) => {
                refuse(format!("`{name}` contains names, not numbers"))
            }
            (TaskKind::Classification, ValueProfile::Numbers(numbers))
                if numbers.different.is_none() || !numbers.is_whole =>
            {
                refuse(format!(
                    "`{name}` contains many distinct numbers or fractions"
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Guess {
    /// The other columns that are used as features.
    fn choose(&mut self, columns: &[&ColumnProfile]) {
        let mut kept = Vec::new();
        for column in columns {
            match reason_against(column) {
                Some(reason) => self.ignored.push((column.column.name.clone(), reason)),
                None => kept.push(*column),
            }
        }
        // Arrays and texts cannot be combined.
        let alone = |column: &&&ColumnProfile| column.column.shape.len() > 1;
        let is_text = |column: &&&ColumnProfile| column.column.kind == ColumnKind::Text;
        let only = match kept.iter().find(alone) {
            Some(array) => Some(*array),
            None if kept.iter().all(|column| is_text(&column)) => kept.first().copied(),
            None => None,
        };
        match only {
            Some(only) => {
                if columns.len() > 1 {
                    self.features = Some(only.column.name.clone());
                }
                self.ignored.clear();
                self.item = item(only);
                kept = vec![only];
            }
            None => {
                let texts = kept.iter().filter(is_text);
                let reason = "text, which cannot be combined with other columns";
                let texts = texts.map(|column| (column.column.name.clone(), reason.to_owned()));
                self.ignored.extend(texts);
                kept.retain(|column| column.column.kind != ColumnKind::Text);
            }
        }
        let lacking: Vec<_> = kept
            .iter()
            .filter(|column| column.missing > 0)
            .map(|column| show_missing(column))
            .collect();
        let shown = match lacking.len() {
            0 => None,
            num if num > 4 => Some(format!("{} and {} more", lacking[..4].join(", "), num - 4)),
            _ => Some(lacking.join(", ")),
        };
        let policy = match self.item {
            Item::Row => Missing::Median,
            _ => Missing::Drop,
        };
        self.missing = shown.map(|shown| (policy, shown));
    }

    /// Adds the settings that used columns need.
    fn say(&mut self, said: &[(String, Vec<Line>)]) {
        let is_ignored = |name: &String| self.ignored.iter().any(|(other, _)| other == name);
        let used = said.iter().filter(|(name, _)| !is_ignored(name));
        for (name, lines) in used.cloned().collect::<Vec<_>>() {
            let named = Line::text("name", &name, "more about this column");
            let is_it =
                |of: &&mut Vec<Line>| of.first().is_some_and(|line| line.value == named.value);
            match self.columns.iter_mut().find(is_it) {
                Some(of) => {
                    let known = |line: &Line| of.iter().any(|other| other.key == line.key);
                    let more: Vec<Line> = lines.into_iter().filter(|line| !known(line)).collect();
                    of.extend(more);
                }
                None => self.columns.push([vec![named], lines].concat()),
            }
        }
    }

    /// The excluded columns, as TOML.
    pub fn ignored_names(&self) -> String {
        let names: Vec<_> = self.ignored.iter().map(|(name, _)| name.clone()).collect();
        quoted_all(&names)
    }
}

fn show_missing(column: &ColumnProfile) -> String {
    format!("{} {}", column.column.name, column.missing)
}

/// Why a column is not useful, whatever its role.
fn reason_against(column: &ColumnProfile) -> Option<String> {
    let name = column.column.name.to_lowercase();
    let is_id = names_rows(&name) || name.starts_with("unnamed");
    let looks_like_date = |name: &String| {
        let bytes = name.as_bytes();
        bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[0].is_ascii_digit()
    };
    let always = "it is constant";
    let reason = match &column.values {
        ValueProfile::Numbers(numbers)
            if numbers.is_counting && (is_id || numbers.min.abs() <= 1.0) =>
        {
            return Some(format!(
                "it numbers the rows from {} to {}",
                short(numbers.min),
                short(numbers.max)
            ));
        }
        ValueProfile::Numbers(numbers) if numbers.is_counting => {
            return Some(format!(
                "it increases by 1 from row to row, {} to {}, like a row number",
                short(numbers.min),
                short(numbers.max)
            ));
        }
        ValueProfile::Numbers(numbers) if numbers.num > 1 && numbers.min == numbers.max => always,
        ValueProfile::Categories(counts) if counts.len() == 1 => always,
        ValueProfile::Categories(counts)
            if counts.iter().all(|(name, _)| looks_like_date(name)) =>
        {
            "dates; `data.split.order_by` can hold out the latest"
        }
        ValueProfile::Categories(counts)
            if counts.len() > MAX_CLASSES && counts.iter().all(|(_, num)| *num == 1) =>
        {
            "it identifies each row"
        }
        ValueProfile::Numbers(numbers) if is_id && name != "column_1" && numbers.is_whole => {
            match &numbers.different {
                // Rows that share it belong to one patient or shop.
                Some(all) if (all.len() as u64) < numbers.num => {
                    "its name suggests an identifier that rows share; `data.split.group_by` can keep them together"
                }
                _ => "its name and its integers suggest an identifier",
            }
        }
        ValueProfile::Nothing if !matches!(column.column.kind, ColumnKind::Bytes) => {
            "it has no values"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

/// The settings that a target needs.
fn usual_task(target: &ColumnProfile, are_arrays: bool) -> TaskKind {
    if target.column.name == "mask" && target.column.shape.len() == 2 {
        return TaskKind::Segmentation;
    }
    match &target.values {
        ValueProfile::Categories(_) => TaskKind::Classification,
        ValueProfile::Numbers(numbers) if is_classes(target, are_arrays) && numbers.is_whole => {
            TaskKind::Classification
        }
        _ => TaskKind::Regression,
    }
}

/// Whether numbers may be classes. In an array, these are integers from 0 without holes, and floats are amounts.
fn is_classes(target: &ColumnProfile, are_arrays: bool) -> bool {
    let is_of_integers = matches!(target.column.kind, ColumnKind::Bytes | ColumnKind::Whole);
    match &target.values {
        ValueProfile::Numbers(numbers) => {
            let different = numbers.different.as_ref();
            let is_numbered = |num: usize| {
                is_of_integers && numbers.min == 0.0 && numbers.max == num as f64 - 1.0
            };
            target.column.shape.is_empty()
                && numbers.is_whole
                && different.is_some_and(|all| {
                    all.len() <= MAX_CLASSES && (!are_arrays || is_numbered(all.len()))
                })
        }
        _ => false,
    }
}

/// `[[data.columns]]` of a target whose values are ambiguous.
fn said_of_target(target: &ColumnProfile, task: TaskKind, are_arrays: bool) -> Option<Vec<Line>> {
    let name = &target.column.name;
    let is_number = matches!(target.values, ValueProfile::Numbers(_));
    let mut lines = vec![Line::text("name", name, "more about the target")];
    let could_be_classes =
        is_classes(target, are_arrays) || target.column.kind == ColumnKind::Whole;
    if is_number && task == TaskKind::Classification {
        let meaning = "its numbers are classes; use \"number\" to predict the number itself";
        lines.push(Line::text("type", "category", meaning));
    } else if is_number && task == TaskKind::Regression && could_be_classes {
        let meaning = "its integers are quantities; use \"category\" to treat them as classes";
        lines.push(Line::text("type", "number", meaning));
    }
    if target.missing > 0 {
        let meaning = format!("{} items without it are dropped", target.missing);
        lines.push(Line::text("missing", "drop", meaning));
    }
    (lines.len() > 1).then_some(lines)
}

fn item(column: &ColumnProfile) -> Item {
    let kind = &column.column.kind;
    match (&column.column.shape[..], kind) {
        (_, ColumnKind::Text) => Item::Note,
        ([] | [_], _) => Item::Row,
        ([_, _], _) => Item::Series,
        (&[channels @ (1 | 3 | 4), height, width], _) => Item::Picture([channels, height, width]),
        (shape, _) => Item::Array(shape.to_vec()),
    }
}
