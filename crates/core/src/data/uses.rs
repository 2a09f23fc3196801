//! What each column of files is for, by the names in the experiment file.

use super::DataError;
use super::records::{Column, ColumnKind, NearlyNumbers, Records};
use crate::diagnostic::nearest;
use crate::spec::data::{ColumnSpec, Encode, FilesSpec, Format, Missing, RolesSpec, SplitSpec};
use crate::spec::document::Value;

/// Columns by what they are for, as numbers of columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses {
    /// What a network is given.
    pub features: Vec<usize>,
    /// What it is to give.
    pub targets: Vec<usize>,
    /// What items are ordered by.
    pub order_by: Option<usize>,
    /// Whose values are kept together.
    pub group_by: Option<usize>,
}

impl RolesSpec {
    /// What the file says of a column.
    pub fn of(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// What becomes of a column's missing values.
    pub fn missing_of(&self, name: &str) -> Missing {
        let said = self.of(name).and_then(|said| said.missing);
        said.unwrap_or(self.missing)
    }
}

/// The columns of the first names found, for the columns of targets that formats name themselves.
const TARGETS: [&str; 3] = ["target", "class", "mask"];

impl Uses {
    /// Resolves the names of a file against its columns.
    pub fn new(files: &FilesSpec, split: &SplitSpec, records: &Records) -> Result<Self, DataError> {
        let (roles, columns) = (&files.roles, records.columns());
        let find = |name: &str, key: &str| {
            let found = records.column(name);
            found.ok_or_else(|| {
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                unknown(name, key, &names, files)
            })
        };
        let all = |names: &[String], key: &str| {
            let found = names.iter().map(|name| find(name, key));
            found.collect::<Result<Vec<_>, _>>()
        };
        for (at, column) in roles.columns.iter().enumerate() {
            find(&column.name, &format!("data.columns[{at}].name"))?;
            if roles.columns[..at]
                .iter()
                .any(|other| other.name == column.name)
            {
                let message = format!("`[[data.columns]]` names `{}` twice", column.name);
                return Err(DataError::new(message)
                    .key(format!("data.columns[{at}].name"))
                    .help("put all that is said of a column into one table"));
            }
        }
        let named = matches!(
            files.format,
            Format::Csv { .. }
                | Format::JsonLines
                | Format::Parquet
                | Format::Npz
                | Format::Safetensors
        );
        let targets = if named {
            all(&roles.target, "data.target")?
        } else {
            let found = TARGETS.iter().filter_map(|name| records.column(name));
            found.collect()
        };
        let ignored = all(&roles.ignore, "data.ignore")?;
        let by = |name: &Option<String>, key: &str| {
            let found = name.as_ref().map(|name| find(name, key));
            found.transpose()
        };
        let order_by = by(&split.order_by, "data.split.order_by")?;
        let group_by = by(&split.group_by, "data.split.group_by")?;
        let features = match &roles.features {
            Some(names) => all(names, "data.features")?,
            None => {
                // What a series was is what its next value is foretold from.
                let is_target = |at: &usize| targets.contains(at) && roles.window.is_none();
                let apart = |at: &usize| {
                    ignored.contains(at) || order_by == Some(*at) || group_by == Some(*at)
                };
                (0..columns.len())
                    .filter(|at| !is_target(at) && !apart(at))
                    .collect()
            }
        };
        let uses = Self {
            features,
            targets,
            order_by,
            group_by,
        };
        uses.refuse_ignored(&ignored, columns)?;
        uses.fit(files, records)?;
        uses.refuse_without_effect(roles, columns)?;
        Ok(uses)
    }

    /// Refuses columns that are to be used and not to be used. What items are ordered or grouped by is no
    /// feature, so `ignore` says nothing else of it.
    fn refuse_ignored(&self, ignored: &[usize], columns: &[Column]) -> Result<(), DataError> {
        let named = [
            (self.features.as_slice(), "features"),
            (&self.targets, "target"),
        ];
        for (all, key) in named {
            if let Some(at) = all.iter().find(|at| ignored.contains(at)) {
                let message = format!("`{}` is in `ignore` and in `{key}`", columns[*at].name);
                return Err(DataError::new(message)
                    .key("data.ignore")
                    .help("take it out of one of them"));
            }
        }
        if let (Some(at), [target]) = (self.group_by, &self.targets[..])
            && at == *target
        {
            let message = format!("`{}` is the target and in `group_by`", columns[at].name);
            return Err(DataError::new(message)
                .key("data.split.group_by")
                .note("whole groups are held out: no class of the valid split would be learned")
                .help("group by what items share besides their class, such as a patient, or remove `group_by`"));
        }
        Ok(())
    }

    /// Refuses what is said of a target and changes nothing.
    fn refuse_without_effect(
        &self,
        roles: &RolesSpec,
        columns: &[Column],
    ) -> Result<(), DataError> {
        for (at, said) in roles.columns.iter().enumerate() {
            let is_target = |column: &usize| columns[*column].name == said.name;
            let Some(target) = self.targets.iter().find(|column| is_target(column)) else {
                continue;
            };
            if self.features.contains(target) {
                continue;
            }
            let is_class = matches!(columns[*target].kind, ColumnKind::Categories { .. });
            let (key, help) = match said {
                ColumnSpec { scale: Some(_), .. } if is_class => {
                    ("scale", "remove it: classes are not scaled")
                }
                ColumnSpec { scale: Some(_), .. } => (
                    "scale",
                    "remove it, and write `target_scale` under `[data]`, which scales targets that are numbers",
                ),
                ColumnSpec { clip: Some(_), .. } => ("clip", "remove it: targets are not clipped"),
                ColumnSpec {
                    encode: Encode::Ordinal,
                    ..
                } => (
                    "encode",
                    "remove it: a class is its place in the list of classes",
                ),
                _ => continue,
            };
            let message = format!("`{key}` is written for the target `{}`", said.name);
            return Err(DataError::new(message)
                .key(format!("data.columns[{at}].{key}"))
                .help(help));
        }
        Ok(())
    }

    /// Refuses what cannot be put together.
    fn fit(&self, files: &FilesSpec, records: &Records) -> Result<(), DataError> {
        let (roles, columns) = (&files.roles, records.columns());
        // What most likely made a column of texts comes first.
        let nearly = |at: usize| {
            let found = records.header.nearly_numbers.iter();
            found
                .clone()
                .find(|nearly| nearly.column == columns[at].name)
        };
        let names = |all: &[usize]| {
            let names: Vec<_> = all
                .iter()
                .map(|at| format!("`{}`", columns[*at].name))
                .collect();
            names.join(", ")
        };
        // What is learned from values that nobody meant is not worth a run.
        let mut is_used = |name: &str| self.used().any(|at| columns[at].name == name);
        let mut oddities = records.header.oddities.iter();
        if let Some(odd) = oddities.find(|odd| odd.is_refused && odd.is_about(&mut is_used)) {
            return Err(odd.error());
        }
        let odd = |at: usize| records.header.oddity_of(&columns[at].name);
        if self.features.is_empty() {
            return Err(DataError::new("no column is left to give the network")
                .key("data.features")
                .note(format!(
                    "the columns are {}",
                    names(&(0..columns.len()).collect::<Vec<_>>())
                ))
                .help("name some in `features`, or fewer in `ignore`"));
        }
        let both = self.features.iter().find(|at| self.targets.contains(at));
        if let (Some(at), None) = (both, &roles.window) {
            let message = format!("`{}` is a feature and a target", columns[*at].name);
            return Err(DataError::new(message)
                .key("data.features")
                .help("take it out of `features`: the network would only have to copy it"));
        }
        let twice = |all: &[usize]| {
            let mut seen = Vec::new();
            all.iter().copied().find(|at| {
                let is_twice = seen.contains(at);
                seen.push(*at);
                is_twice
            })
        };
        for (all, key) in [(&self.features, "features"), (&self.targets, "target")] {
            if let Some(at) = twice(all) {
                let message = format!("`{key}` names `{}` twice", columns[at].name);
                return Err(DataError::new(message)
                    .key(format!("data.{key}"))
                    .help("remove one of them"));
            }
        }
        let texts: Vec<usize> = self
            .features
            .iter()
            .copied()
            .filter(|at| columns[*at].kind == ColumnKind::Text)
            .collect();
        if let (Some(at), true) = (texts.first(), self.features.len() > 1) {
            let name = &columns[*at].name;
            if let Some(odd) = odd(*at) {
                return Err(odd.error().key("data.features"));
            }
            if let Some(nearly) = nearly(*at) {
                let note = "so it is taken for texts, which cannot be put beside other features";
                return Err(nearly.error(files).key("data.features").note(note));
            }
            return Err(DataError::new(format!(
                "column `{name}` holds texts, which cannot be put beside other features"
            ))
            .key("data.features")
            .note(format!("the features are {}", names(&self.features)))
            .help(format!(
                "write `features = \"{name}\"` to learn from it alone, or `ignore = \"{name}\"`"
            )));
        }
        if let Some(at) = texts.first()
            && roles.window.is_some()
        {
            return Err(DataError::new(format!(
                "windows are of numbers, and `{}` holds texts",
                columns[*at].name
            ))
            .key("data.window")
            .help("remove `[data.window]`"));
        }
        let large = self
            .features
            .iter()
            .find(|at| columns[**at].shape.len() > 1);
        if let (Some(at), true) = (large, self.features.len() > 1 || roles.window.is_some()) {
            return Err(DataError::new(format!(
                "column `{}` has items of shape {:?}, which cannot be put beside other features or rows",
                columns[*at].name, columns[*at].shape
            ))
            .key("data.features")
            .help("name it alone in `features`, and its classes or values in `target`"));
        }
        if let Some(text) = self
            .targets
            .iter()
            .find(|at| columns[**at].kind == ColumnKind::Text)
        {
            let name = &columns[*text].name;
            if let Some(odd) = odd(*text) {
                return Err(odd.error().key("data.target"));
            }
            if let Some(nearly) = nearly(*text) {
                let note = "so it is taken for texts, which cannot be a target";
                return Err(nearly.error(files).key("data.target").note(note));
            }
            return Err(DataError::new(format!("the target `{name}` holds texts"))
                .key("data.target")
                .help(format!(
                    "for classes write `[[data.columns]]` with `name = \"{name}\"` and `type = \"category\"`"
                )));
        }
        Ok(())
    }

    /// All columns that matter for items.
    pub fn used(&self) -> impl Iterator<Item = usize> + '_ {
        self.features.iter().chain(&self.targets).copied()
    }
}

impl NearlyNumbers {
    /// The column as an error, or as what a warning says, with what to do.
    pub fn error(&self, files: &FilesSpec) -> DataError {
        let error = DataError::new(self.show()).key("data.path");
        let error = match &files.format {
            Format::Csv { missing_values, .. } => {
                // Those that are known stay known: the key replaces them.
                let all = missing_values.iter().chain([&self.text]);
                let all: Vec<_> = all.map(|text| Value::Str(text.clone()).to_toml()).collect();
                error.help(format!(
                    "mend it; or, where it stands for a missing value, write `missing_values = [{}]` and what becomes of missing values, such as `missing = \"drop\"`",
                    all.join(", ")
                ))
            }
            _ => error.help(format!(
                "mend it; or, where it stands for a missing value, write `missing_values = [{}]` and what becomes of missing values, such as `missing = \"drop\"`",
                Value::Str(self.text.clone()).to_toml()
            )),
        };
        error.help(format!(
            "or say what the column is, with `[[data.columns]]`, `name = {}` and `type`: with \"number\" such rows are refused, or left out with `on_bad_item = \"skip\"`; \"category\" keeps it as it is",
            Value::Str(self.column.clone()).to_toml()
        ))
    }
}

/// A name that no column has.
pub fn unknown(name: &str, key: &str, columns: &[&str], files: &FilesSpec) -> DataError {
    const SHOWN: usize = 12;
    let error = DataError::new(format!("the data has no column `{name}`")).key(key);
    let mut shown: Vec<_> = columns
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if columns.len() > SHOWN {
        shown.push(format!("and {} more", columns.len() - SHOWN));
    }
    let error = match shown.as_slice() {
        [only] => error.note(format!("its only column is {only}")),
        _ => error.note(format!("its columns are {}", shown.join(", "))),
    };
    let looks_like_values = columns.iter().any(|name| name.parse::<f64>().is_ok());
    if matches!(files.format, Format::Csv { header: true, .. }) && looks_like_values {
        return error
            .note("the first row of the file looks like values, not like names")
            .help(
                "write `header = false` if it is: the columns are then `column_1`, `column_2`, …",
            );
    }
    match nearest(name, columns.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("write the name of a column; `runner data` shows them all"),
    }
}
