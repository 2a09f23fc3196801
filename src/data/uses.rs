//! What each column of files is for, by the names in the experiment file.

use super::DataError;
use super::records::{Column, ColumnKind, Records};
use crate::diagnostic::nearest;
use crate::spec::data::{ColumnSpec, FilesSpec, Format, Missing, RolesSpec, SplitSpec};

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
            found.ok_or_else(|| unknown(name, key, columns))
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
        let targets = match named {
            true => all(&roles.target, "data.target")?,
            false => {
                let found = TARGETS.iter().filter_map(|name| records.column(name));
                found.collect()
            }
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
        uses.fit(roles, columns)?;
        Ok(uses)
    }

    /// Refuses what cannot be put together.
    fn fit(&self, roles: &RolesSpec, columns: &[Column]) -> Result<(), DataError> {
        let names = |all: &[usize]| {
            let names: Vec<_> = all
                .iter()
                .map(|at| format!("`{}`", columns[*at].name))
                .collect();
            names.join(", ")
        };
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

fn unknown(name: &str, key: &str, columns: &[Column]) -> DataError {
    const SHOWN: usize = 12;
    let names = || columns.iter().map(|column| column.name.as_str());
    let error = DataError::new(format!("the data has no column `{name}`")).key(key);
    let mut shown: Vec<_> = names()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    if columns.len() > SHOWN {
        shown.push(format!("and {} more", columns.len() - SHOWN));
    }
    let error = error.note(format!("its columns are {}", shown.join(", ")));
    match nearest(name, names()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("write the name of a column; `runner data` shows them all"),
    }
}
