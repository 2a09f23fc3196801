//! The role of each column of files, by the names in the experiment file.

mod inputs;
mod weight;

use super::DataError;
use super::records::{Column, ColumnKind, NearlyNumbers, Records};
use crate::diagnostic::nearest;
use crate::spec::data::{
    ColumnSpec, DataKind, FilesSpec, Format, Missing, MoreTarget, RolesSpec, SplitSpec,
};
use crate::spec::document::Value;

/// Columns by role, as column indices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uses {
    /// The inputs.
    pub features: Vec<usize>,
    /// The same for each named input, in order; empty if there are none.
    pub inputs: Vec<Vec<usize>>,
    /// The targets.
    pub targets: Vec<usize>,
    /// The targets of `[[losses]]` that are other columns.
    pub more_targets: Vec<Vec<usize>>,
    /// The weight.
    pub weight: Option<usize>,
    /// The sort key.
    pub order_by: Option<usize>,
    /// The group.
    pub group_by: Option<usize>,
}

/// Which table columns are looked up in.
#[derive(Clone, Copy)]
pub enum Table<'a> {
    /// The only one.
    Whole,
    /// That of nodes, if items are edges.
    Nodes {
        /// The columns of the edges.
        edges: &'a [Column],
    },
    /// That of edges, which have the targets.
    Edges {
        /// The columns of the nodes.
        nodes: &'a [Column],
    },
}

impl Table<'_> {
    /// The columns of the other table.
    fn other(&self) -> &[Column] {
        match self {
            Self::Whole => &[],
            Self::Nodes { edges } => edges,
            Self::Edges { nodes } => nodes,
        }
    }

    fn is_in_other(&self, name: &str) -> bool {
        self.other().iter().any(|column| column.name == name)
    }
}

impl RolesSpec {
    /// The settings of a column.
    pub fn of(&self, name: &str) -> Option<&ColumnSpec> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// How a column's missing values are handled.
    pub fn missing_of(&self, name: &str) -> Missing {
        let said = self.of(name).and_then(|said| said.missing);
        said.unwrap_or(self.missing)
    }
}

/// The columns with the first names found, for formats that name the target columns themselves.
const TARGETS: [&str; 3] = ["target", "class", "mask"];

impl Uses {
    /// Resolves the names of a file against its columns.
    pub fn new(files: &FilesSpec, split: &SplitSpec, records: &Records) -> Result<Self, DataError> {
        Self::of_table(files, split, records, Table::Whole)
    }

    /// The same for one of the tables of a graph whose items are edges.
    pub fn of_table(
        files: &FilesSpec,
        split: &SplitSpec,
        records: &Records,
        table: Table<'_>,
    ) -> Result<Self, DataError> {
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
            if records.column(&column.name).is_none() && !table.is_in_other(&column.name) {
                let names = columns.iter().chain(table.other());
                let names: Vec<_> = names.map(|column| column.name.as_str()).collect();
                let key = format!("data.columns[{at}].name");
                return Err(unknown(&column.name, &key, &names, files));
            }
            if roles.columns[..at]
                .iter()
                .any(|other| other.name == column.name)
            {
                let message = format!("`[[data.columns]]` names `{}` twice", column.name);
                return Err(DataError::new(message)
                    .key(format!("data.columns[{at}].name"))
                    .help("put all settings of a column into one table"));
            }
        }
        let targets = if files.format.has_columns() {
            all(&roles.target, "data.target")?
        } else {
            let found = TARGETS.iter().filter_map(|name| records.column(name));
            found.collect()
        };
        let more_targets = roles.more_targets.iter();
        let more_targets = more_targets.map(|more| all(&more.columns, &more.key()));
        let more_targets = more_targets.collect::<Result<Vec<_>, _>>()?;
        let ignored = match files.kind() {
            // Their reader found each of them, and left them out.
            DataKind::Npz | DataKind::Safetensors => Vec::new(),
            _ => all(&roles.ignore, "data.ignore")?,
        };
        let by = |name: &Option<String>, key: &str| {
            let found = name.as_ref().map(|name| find(name, key));
            found.transpose()
        };
        let order_by = by(&split.order_by, "data.split.order_by")?;
        let group_by = by(&split.group_by, "data.split.group_by")?;
        let graph = files.graph.as_ref().and_then(|graph| graph.id.clone());
        let id = by(&graph, "data.graph.id")?;
        let weight = by(&roles.weight, "data.weight")?;
        let of = files.graph.as_ref().and_then(|graph| graph.of.clone());
        let of = by(&of, "data.graph.of")?;
        let all_targets = more_targets.iter().flatten();
        let all_targets: Vec<usize> = targets.iter().chain(all_targets).copied().collect();
        let apart = inputs::Apart {
            targets: &all_targets,
            others: ignored
                .iter()
                .copied()
                .chain(order_by)
                .chain(group_by)
                .chain(id)
                .chain(weight)
                .chain(of)
                .collect(),
        };
        let inputs = inputs::columns_of(files, columns, &apart)?;
        let features = match &roles.features {
            _ if !inputs.is_empty() => inputs.concat(),
            Some(names) => all(names, "data.features")?,
            None => {
                // Earlier values of a series are used to predict its next value.
                let is_target = |at: &usize| all_targets.contains(at) && roles.window.is_none();
                let apart = |at: &usize| {
                    let others = [order_by, group_by, id, of, weight];
                    ignored.contains(at) || others.contains(&Some(*at))
                };
                (0..columns.len())
                    .filter(|at| !is_target(at) && !apart(at))
                    .collect()
            }
        };
        let uses = Self {
            // Edges only have targets.
            features: match table {
                Table::Edges { .. } => Vec::new(),
                Table::Whole | Table::Nodes { .. } => features,
            },
            inputs,
            targets,
            more_targets,
            weight,
            order_by,
            group_by,
        };
        uses.refuse_ignored(&ignored, columns)?;
        uses.check_weight(&ignored, records)?;
        match table {
            Table::Edges { .. } => uses.fit_targets(files, records)?,
            Table::Whole | Table::Nodes { .. } => uses.fit(files, records)?,
        }
        uses.refuse_without_effect(roles, columns)?;
        Ok(uses)
    }

    /// Refuses columns that are both used and ignored. Sort and group columns are not features, so `ignore` has no
    /// further effect on them.
    fn refuse_ignored(&self, ignored: &[usize], columns: &[Column]) -> Result<(), DataError> {
        let named = [
            (self.features.as_slice(), "features"),
            (&self.targets, "target"),
        ];
        let more = self.more_targets.iter();
        for (all, key) in named
            .into_iter()
            .chain(more.map(|all| (all.as_slice(), "losses")))
        {
            if let Some(at) = all.iter().find(|at| ignored.contains(at)) {
                let message = format!("`{}` is both in `ignore` and in `{key}`", columns[*at].name);
                return Err(DataError::new(message)
                    .key("data.ignore")
                    .help("remove it from one of them"));
            }
        }
        if let (Some(at), [target]) = (self.group_by, &self.targets[..])
            && at == *target
        {
            let message = format!(
                "`{}` is both the target and in `group_by`",
                columns[at].name
            );
            return Err(DataError::new(message)
                .key("data.split.group_by")
                .note("whole groups are held out, so no class of the valid split would be in the train split")
                .help("group by something else that items share, such as a patient, or remove `group_by`"));
        }
        Ok(())
    }

    /// Refuses settings of a target that have no effect.
    fn refuse_without_effect(
        &self,
        roles: &RolesSpec,
        columns: &[Column],
    ) -> Result<(), DataError> {
        for (at, said) in roles.columns.iter().enumerate() {
            let is_target = |column: &usize| columns[*column].name == said.name;
            let Some(target) = self.all_targets().find(|column| is_target(column)) else {
                continue;
            };
            if self.features.contains(&target) {
                continue;
            }
            let is_class = matches!(columns[target].kind, ColumnKind::Categories { .. });
            let (key, help) = match said {
                ColumnSpec { scale: Some(_), .. } if is_class => {
                    ("scale", "remove it: classes are not scaled")
                }
                ColumnSpec { scale: Some(_), .. } => (
                    "scale",
                    "remove it, and set `target_scale` under `[data]`, which scales numeric targets",
                ),
                ColumnSpec { clip: Some(_), .. } => ("clip", "remove it: targets are not clipped"),
                ColumnSpec {
                    says_encode: true, ..
                } => (
                    "encode",
                    "remove it: a class is encoded by its index in the list of classes",
                ),
                _ => continue,
            };
            let message = format!("`{key}` has no effect on the target `{}`", said.name);
            return Err(DataError::new(message)
                .key(format!("data.columns[{at}].{key}"))
                .help(help));
        }
        Ok(())
    }

    /// Refuses targets that cannot be combined, without features.
    fn fit_targets(&self, files: &FilesSpec, records: &Records) -> Result<(), DataError> {
        self.refuse_oddities(records)?;
        self.check_repeats(records.columns(), false)?;
        self.check_targets(files, records)
    }

    /// Training on wrong values is not worth a run.
    fn refuse_oddities(&self, records: &Records) -> Result<(), DataError> {
        let columns = records.columns();
        let mut is_used = |name: &str| self.used().any(|at| columns[at].name == name);
        let mut oddities = records.header.oddities.iter();
        match oddities.find(|odd| odd.is_refused && odd.is_about(&mut is_used)) {
            Some(odd) => Err(odd.error()),
            None => Ok(()),
        }
    }

    /// Refuses columns that cannot be combined.
    fn fit(&self, files: &FilesSpec, records: &Records) -> Result<(), DataError> {
        let columns = records.columns();
        self.refuse_oddities(records)?;
        if self.features.is_empty() {
            return Err(DataError::new("no column is left for the input")
                .key("data.features")
                .note(format!(
                    "the columns are {}",
                    names_of(columns, 0..columns.len())
                ))
                .help("list some in `features`, or fewer in `ignore`"));
        }
        self.check_repeats(columns, files.roles.window.is_some())?;
        if self.inputs.is_empty() {
            self.check_features(files, records)?;
        } else {
            self.check_inputs(files, records)?;
        }
        self.check_targets(files, records)
    }

    /// Refuses columns that are used twice; with windows, the target may be a feature.
    fn check_repeats(&self, columns: &[Column], has_windows: bool) -> Result<(), DataError> {
        let both = self.all_targets().find(|at| self.features.contains(at));
        if let (Some(at), false) = (both, has_windows) {
            let message = format!("`{}` is both a feature and a target", columns[at].name);
            return Err(DataError::new(message)
                .key("data.features")
                .help("remove it from `features`: the network would only have to copy it"));
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
                let message = format!("`{key}` lists `{}` twice", columns[at].name);
                return Err(DataError::new(message)
                    .key(format!("data.{key}"))
                    .help("remove one of them"));
            }
        }
        Ok(())
    }

    /// Refuses features that cannot be one input.
    fn check_features(&self, files: &FilesSpec, records: &Records) -> Result<(), DataError> {
        let (roles, columns) = (&files.roles, records.columns());
        let texts: Vec<usize> = self
            .features
            .iter()
            .copied()
            .filter(|at| columns[*at].kind == ColumnKind::Text)
            .collect();
        if let (Some(at), true) = (texts.first(), self.features.len() > 1) {
            let name = &columns[*at].name;
            let note = "so it is read as text, which cannot be combined with other features";
            if let Some(error) = why_text(name, files, records, note) {
                return Err(error.key("data.features"));
            }
            return Err(DataError::new(format!(
                "column `{name}` contains text, which cannot be combined with other features"
            ))
            .key("data.features")
            .note(format!(
                "the features are {}",
                names_of(columns, self.features.iter().copied())
            ))
            .help(format!(
                "set `features = \"{name}\"` to use only this column, or `ignore = \"{name}\"`"
            )));
        }
        if let Some(at) = texts.first()
            && roles.window.is_some()
        {
            return Err(DataError::new(format!(
                "windows need numbers, but `{}` contains text",
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
                "column `{}` has items of shape {:?}, which cannot be combined with other features or rows",
                columns[*at].name, columns[*at].shape
            ))
            .key("data.features")
            .help("list only this column in `features`, and its classes or values in `target`")
            .help("or give it an input of its own: `[[data.inputs]]`"));
        }
        Ok(())
    }

    /// Refuses targets of text.
    fn check_targets(&self, files: &FilesSpec, records: &Records) -> Result<(), DataError> {
        let columns = records.columns();
        if let Some(text) = self
            .all_targets()
            .find(|at| columns[*at].kind == ColumnKind::Text)
        {
            let name = &columns[text].name;
            let more = files.roles.more_targets.iter();
            let mut more = more.filter(|more| more.columns.contains(name));
            let key = more.next().map_or("data.target".into(), MoreTarget::key);
            let note = "so it is read as text, which cannot be a target";
            if let Some(error) = why_text(name, files, records, note) {
                return Err(error.key(key));
            }
            return Err(DataError::new(format!("the target `{name}` contains text"))
                .key(key)
                .help(format!(
                    "for classes, add `[[data.columns]]` with `name = \"{name}\"` and `type = \"category\"`"
                )));
        }
        Ok(())
    }

    /// All columns that matter for items.
    pub fn used(&self) -> impl Iterator<Item = usize> + '_ {
        self.features.iter().copied().chain(self.all_targets())
    }

    /// The targets of the task and of `[[losses]]`.
    pub fn all_targets(&self) -> impl Iterator<Item = usize> + '_ {
        let more = self.more_targets.iter().flatten();
        self.targets.iter().chain(more).copied()
    }
}

impl NearlyNumbers {
    /// The column as an error, or as the text of a warning, with a remedy.
    pub fn error(&self, files: &FilesSpec) -> DataError {
        let error = DataError::new(self.show()).key("data.path");
        let error = match &files.format {
            Format::Csv { missing_values, .. } => {
                // Known markers stay known: the key replaces them.
                let all = missing_values.iter().chain([&self.text]);
                let all: Vec<_> = all.map(|text| Value::Str(text.clone()).to_toml()).collect();
                error.help(format!(
                    "fix it; if it means missing, set `missing_values = [{}]` and how to handle missing values, such as `missing = \"drop\"`",
                    all.join(", ")
                ))
            }
            _ => error.help(format!(
                "fix it; if it means missing, set `missing_values = [{}]` and how to handle missing values, such as `missing = \"drop\"`",
                Value::Str(self.text.clone()).to_toml()
            )),
        };
        error.help(format!(
            "or set the column's kind with `[[data.columns]]`, `name = {}` and `type`: with \"number\", such rows are refused, or skipped with `on_bad_item = \"skip\"`; \"category\" keeps the values as they are",
            Value::Str(self.column.clone()).to_toml()
        ))
    }
}

/// A name without a column.
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
            .note("the first row of the file looks like values rather than names")
            .help(
                "set `header = false` if it is data: the columns are then `column_1`, `column_2`, …",
            );
    }
    match nearest(name, columns.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error.help("use the name of a column; `runner data` shows all of them"),
    }
}

/// The probable reason why a column is text; `note` says what follows.
fn why_text(name: &str, files: &FilesSpec, records: &Records, note: &str) -> Option<DataError> {
    if let Some(odd) = records.header.oddity_of(name) {
        return Some(odd.error());
    }
    let mut found = records.header.nearly_numbers.iter();
    let nearly = found.find(|nearly| nearly.column == name)?;
    Some(nearly.error(files).note(note))
}

fn names_of(columns: &[Column], places: impl Iterator<Item = usize>) -> String {
    let names: Vec<_> = places.map(|at| format!("`{}`", columns[at].name)).collect();
    names.join(", ")
}
