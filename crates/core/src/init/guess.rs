//! What could be learned from what was found, and by which network.

use super::{Found, Line, quoted_all};
use crate::data::DataError;
use crate::data::profile::{ColumnProfile, ValueProfile, short};
use crate::data::records::ColumnKind;
use crate::data::suspects::names_rows;
use crate::spec::data::{DataKind, Missing};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// What the experiment file is to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// What is learned.
    pub task: TaskKind,
    /// What is foretold.
    pub target: Vec<String>,
    /// What it is foretold from, where not from all other columns.
    pub features: Option<String>,
    /// Columns that are left out, with the reason.
    pub ignored: Vec<(String, String)>,
    /// `[[data.columns]]`
    pub columns: Vec<Vec<Line>>,
    /// What becomes of missing values, and where they are in words.
    pub missing: Option<(Missing, String)>,
    /// What an item is to a network.
    pub item: Item,
}

impl Guess {
    /// A task over rows, with nothing found out yet.
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

/// What an item is to a network.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Numbers, one behind the other.
    Row,
    /// Steps of numbers.
    Series,
    /// A picture of a shape \[channels, height, width\].
    Picture([usize; 3]),
    /// An array of another shape.
    Array(Vec<usize>),
    /// Running text.
    Text,
    /// A text of its own.
    Note,
}

/// Names that targets go by, the surest first.
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
/// Whole numbers of at most so many different values are classes.
const MAX_CLASSES: usize = 20;

impl Found {
    /// Decides what to learn. Only a task that was asked for and does not fit is refused.
    pub(super) fn guess(&self, wish: Option<TaskKind>) -> Result<Guess, DataError> {
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
            (None, Some(target)) => usual_task(target),
            (None, None) => TaskKind::Autoencoding,
        };
        let mut guess = Guess::of_rows(task);
        let is_target = |column: &&ColumnProfile| targets.contains(column);
        let features: Vec<_> = self.columns.iter().filter(|c| !is_target(c)).collect();
        if !has_roles {
            let input = features.first().copied().or(self.columns.first());
            guess.item = input.map_or(Item::Row, item);
            // Nothing can be said of single columns, and what is to be learned cannot be filled in.
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
            guess.columns.extend(said_of_target(target, task));
        }
        guess.choose(&features);
        guess.say(&self.said);
        if !features.is_empty() && guess.ignored.len() == features.len() {
            let reasons = guess.ignored.iter().take(8);
            let reasons: Vec<_> = reasons
                .map(|(name, why)| format!("`{name}`: {why}"))
                .collect();
            let what = match &guess.target[..] {
                [target] => format!("no column is of use to foretell `{target}`"),
                _ => "no column is of use".to_owned(),
            };
            return Err(DataError::new(what)
                .note(reasons.join("; "))
                .help("give a table with columns that say something of its rows"));
        }
        Ok(guess)
    }

    fn running_text(&self, wish: Option<TaskKind>) -> Result<Guess, DataError> {
        if let Some(wish) = wish.filter(|wish| *wish != TaskKind::NextToken) {
            let message = format!(
                "the task `{}` needs targets, and a plain text has none",
                wish.name()
            );
            return Err(DataError::new(message)
                .help("leave `--task` out to foretell the next character, or give a csv of texts with their targets"));
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

    /// The column of a name that targets go by, or else the last one that can be foretold.
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
            // Something must be left to foretell it from.
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
                "several labels need columns of 0 and 1 beside others, and {} of {} columns are such",
                labels.len(),
                self.columns.len()
            );
            return Err(DataError::new(message).help("leave `--task` out"));
        }
        Ok(labels)
    }

    /// Refuses a task that the target cannot be used for.
    fn fits(&self, wish: TaskKind, target: Option<&ColumnProfile>) -> Result<(), DataError> {
        let refuse = |reason: String| {
            let message = format!("the task `{}` does not fit: {reason}", wish.name());
            let help = match target.map(usual_task) {
                Some(task) => format!("leave `--task` out, or write `--task {}`", task.name()),
                None => "leave `--task` out".to_owned(),
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
            (TaskKind::Segmentation, _) if !is_mask => {
                refuse("it needs pictures with masks".into())
            }
            (TaskKind::NextToken, _) => refuse("it needs a text".into()),
            (TaskKind::Classification | TaskKind::Regression, _) if is_mask => {
                refuse("the targets are masks".into())
            }
            (TaskKind::Regression, ValueProfile::Categories(_)) => {
                refuse(format!("`{name}` holds names, not numbers"))
            }
            (TaskKind::Classification, ValueProfile::Numbers(numbers))
                if numbers.different.is_none() || !numbers.is_whole =>
            {
                refuse(format!(
                    "`{name}` holds numbers with many values or fractions"
                ))
            }
            _ => Ok(()),
        }
    }
}

impl Guess {
    /// Which of the other columns the target is foretold from.
    fn choose(&mut self, columns: &[&ColumnProfile]) {
        let mut kept = Vec::new();
        for column in columns {
            match reason_against(column) {
                Some(reason) => self.ignored.push((column.column.name.clone(), reason)),
                None => kept.push(*column),
            }
        }
        // Arrays and texts stand alone.
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
                let reason = "a text, which cannot stand beside other columns";
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

    /// Adds what has to be said of columns that are used.
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

    /// The columns that are left out, as TOML.
    pub fn ignored_names(&self) -> String {
        let names: Vec<_> = self.ignored.iter().map(|(name, _)| name.clone()).collect();
        quoted_all(&names)
    }
}

fn show_missing(column: &ColumnProfile) -> String {
    format!("{} {}", column.column.name, column.missing)
}

/// Why a column is of no use, whatever it is for.
fn reason_against(column: &ColumnProfile) -> Option<String> {
    let name = column.column.name.to_lowercase();
    let is_id = names_rows(&name) || name.starts_with("unnamed");
    let looks_like_date = |name: &String| {
        let bytes = name.as_bytes();
        bytes.len() >= 10 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[0].is_ascii_digit()
    };
    let always = "it is always the same";
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
                "it rises by 1 from row to row, {} to {}, as what only says where a row is",
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
            "it names each row"
        }
        ValueProfile::Numbers(numbers) if is_id && name != "column_1" && numbers.is_whole => {
            match &numbers.different {
                // Rows that share it are of one patient or shop.
                Some(all) if (all.len() as u64) < numbers.num => {
                    "by its name it says what a row is of, and rows share it; `data.split.group_by` can keep them together"
                }
                _ => "by its name and its whole numbers it says which row it is, or what it is of",
            }
        }
        ValueProfile::Nothing if !matches!(column.column.kind, ColumnKind::Bytes) => {
            "it has no values"
        }
        _ => return None,
    };
    Some(reason.to_owned())
}

/// What a target asks for by itself.
fn usual_task(target: &ColumnProfile) -> TaskKind {
    if target.column.name == "mask" && target.column.shape.len() == 2 {
        return TaskKind::Segmentation;
    }
    match &target.values {
        ValueProfile::Categories(_) => TaskKind::Classification,
        ValueProfile::Numbers(numbers) if is_classes(target) && numbers.is_whole => {
            TaskKind::Classification
        }
        _ => TaskKind::Regression,
    }
}

fn is_classes(target: &ColumnProfile) -> bool {
    match &target.values {
        ValueProfile::Numbers(numbers) => {
            let different = numbers.different.as_ref();
            target.column.shape.is_empty()
                && numbers.is_whole
                && different.is_some_and(|all| all.len() <= MAX_CLASSES)
        }
        _ => false,
    }
}

/// `[[data.columns]]` of a target, where its values alone do not say it all.
fn said_of_target(target: &ColumnProfile, task: TaskKind) -> Option<Vec<Line>> {
    let name = &target.column.name;
    let is_number = matches!(target.values, ValueProfile::Numbers(_));
    let mut lines = vec![Line::text("name", name, "more about the target")];
    let could_be_classes = is_classes(target) || target.column.kind == ColumnKind::Whole;
    if is_number && task == TaskKind::Classification {
        let meaning = "its numbers are classes; write \"number\" to foretell the number itself";
        lines.push(Line::text("type", "category", meaning));
    } else if is_number && task == TaskKind::Regression && could_be_classes {
        let meaning = "its whole numbers are amounts; write \"category\" to take them for classes";
        lines.push(Line::text("type", "number", meaning));
    }
    if target.missing > 0 {
        let meaning = format!("{} items without it are left out", target.missing);
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
