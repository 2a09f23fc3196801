//! Named inputs: which columns each has.

use super::{Uses, names_of, unknown, why_text};
use crate::data::DataError;
use crate::data::records::{Column, ColumnKind, Records};
use crate::spec::data::{FilesSpec, InputEncode, InputSpec};
use crate::spec::model::name::{Unfit, unfit};

/// Columns that are in no input for a reason.
pub(super) struct Apart<'a> {
    /// The targets.
    pub targets: &'a [usize],
    /// Other roles, and ignored columns.
    pub others: Vec<usize>,
}

/// The columns of each input, in order.
pub(super) fn columns_of(
    files: &FilesSpec,
    columns: &[Column],
    apart: &Apart<'_>,
) -> Result<Vec<Vec<usize>>, DataError> {
    let inputs = &files.roles.inputs;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    refuse_names(inputs)?;
    refuse_other_keys(files)?;
    let mut owners: Vec<Option<usize>> = vec![None; columns.len()];
    let mut all: Vec<Vec<usize>> = Vec::with_capacity(inputs.len());
    for (number, input) in inputs.iter().enumerate() {
        let key = key(number);
        let mut own = Vec::new();
        for name in input.columns.iter().flatten() {
            let found = columns.iter().position(|column| column.name == *name);
            let at = found.ok_or_else(|| {
                let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                unknown(name, &key, &names, files)
            })?;
            if let Some(owner) = owners[at] {
                return Err(twice(name, &inputs[owner], input).key(&key));
            }
            refuse_apart(at, columns, apart).map_err(|error| error.key(&key))?;
            owners[at] = Some(number);
            own.push(at);
        }
        all.push(own);
    }
    let is_left = |at: &usize| {
        owners[*at].is_none() && !apart.targets.contains(at) && !apart.others.contains(at)
    };
    let left: Vec<usize> = (0..columns.len()).filter(is_left).collect();
    match inputs.iter().position(|input| input.columns.is_none()) {
        Some(number) if left.is_empty() => {
            let message = format!("no column is left for the input `{}`", inputs[number].name);
            return Err(DataError::new(message)
                .key(format!("data.inputs[{number}].name"))
                .help("list its `columns`, and fewer in other inputs, or remove it"));
        }
        Some(number) => all[number] = left,
        None if !left.is_empty() => {
            let names = names_of(columns, left.iter().copied());
            let (is, help) = match left.len() {
                1 => ("is", "it"),
                _ => ("are", "them"),
            };
            return Err(DataError::new(format!("{names} {is} in no input"))
                .key("data.inputs")
                .help(format!(
                    "add {help} to the `columns` of an input, or list {help} in `ignore`"
                )));
        }
        None => {}
    }
    Ok(all)
}

fn key(number: usize) -> String {
    format!("data.inputs[{number}].columns")
}

/// Refuses names that layers could not tell apart, and more than one input without columns.
fn refuse_names(inputs: &[InputSpec]) -> Result<(), DataError> {
    for (number, input) in inputs.iter().enumerate() {
        let name = &input.name;
        let at = format!("data.inputs[{number}].name");
        if let Some(unfit) = unfit(name).filter(|unfit| *unfit != Unfit::Signs) {
            let message = format!("`{name}` cannot be the name of an input");
            let note = if unfit == Unfit::Number {
                "a number refers to the layer at that position"
            } else {
                "in the `inputs` of layers, `input` is the input of a block, and `previous` the preceding layer"
            };
            let error = DataError::new(message).key(at).note(note);
            return Err(error.help("choose another name"));
        }
        let earlier = &inputs[..number];
        if earlier.iter().any(|other| other.name == *name) {
            let error = DataError::new(format!("two inputs are named `{name}`")).key(at);
            return Err(error.help("rename one of them, or put their columns into one"));
        }
        let open = earlier.iter().find(|other| other.columns.is_none());
        if let (Some(other), None) = (open, &input.columns) {
            let message = format!(
                "neither `{}` nor `{name}` lists its `columns`, so which has which is not known",
                other.name
            );
            let error = DataError::new(message).key(at);
            return Err(error.help("list the `columns` of one of them"));
        }
    }
    Ok(())
}

/// Refuses settings that are those of a single input.
fn refuse_other_keys(files: &FilesSpec) -> Result<(), DataError> {
    if files.roles.features.is_some() {
        return Err(DataError::new(
            "`features` lists the columns of a single input, but `[[data.inputs]]` has named ones",
        )
        .key("data.features")
        .help("remove `features`, and list columns in the inputs and in `ignore`"));
    }
    if files.roles.window.is_some() {
        return Err(DataError::new(
            "`[data.window]` makes each item a window of rows, which `[[data.inputs]]` cannot",
        )
        .key("data.window")
        .note("the rows of a window have one shape, and cannot be divided")
        .help("remove one of them; arrays with named inputs can have a time axis of their own"));
    }
    Ok(())
}

fn twice(name: &str, owner: &InputSpec, input: &InputSpec) -> DataError {
    if owner.name == input.name {
        let message = format!("the input `{}` lists `{name}` twice", input.name);
        return DataError::new(message).help("remove one of them");
    }
    DataError::new(format!(
        "`{name}` is in the inputs `{}` and `{}`",
        owner.name, input.name
    ))
    .help("remove it from one of them; several layers can take the same input")
}

/// Refuses columns that are used otherwise.
fn refuse_apart(at: usize, columns: &[Column], apart: &Apart<'_>) -> Result<(), DataError> {
    let name = &columns[at].name;
    if apart.targets.contains(&at) {
        let message = format!("`{name}` is both in an input and a target");
        return Err(DataError::new(message)
            .help("remove it from the input: the network would only have to copy it"));
    }
    if apart.others.contains(&at) {
        let message =
            format!("`{name}` is in an input, and in `ignore`, `weight`, `order_by` or `group_by`");
        return Err(DataError::new(message).help("remove it from one of them"));
    }
    Ok(())
}

impl Uses {
    /// Refuses columns that cannot be one input together.
    pub(super) fn check_inputs(
        &self,
        files: &FilesSpec,
        records: &Records,
    ) -> Result<(), DataError> {
        for (number, (input, own)) in files.roles.inputs.iter().zip(&self.inputs).enumerate() {
            let checked = match input.encode {
                InputEncode::Columns => check_columns(input, own, files, records),
                InputEncode::Embedding => check_categories(input, own, records.columns()),
            };
            let key = match (input.encode, &input.columns) {
                (InputEncode::Embedding, None) => format!("data.inputs[{number}].encode"),
                (_, None) => format!("data.inputs[{number}].name"),
                _ => key(number),
            };
            checked.map_err(|error| error.or_key(&key))?;
        }
        Ok(())
    }
}

/// Columns as numbers, or a single one of texts or arrays.
fn check_columns(
    input: &InputSpec,
    own: &[usize],
    files: &FilesSpec,
    records: &Records,
) -> Result<(), DataError> {
    let columns = records.columns();
    let is_alone = |at: &&usize| {
        let column = &columns[**at];
        column.kind == ColumnKind::Text || column.shape.len() > 1
    };
    let Some(at) = own.iter().find(is_alone).filter(|_| own.len() > 1) else {
        return Ok(());
    };
    let column = &columns[*at];
    let what = if column.kind == ColumnKind::Text {
        let note = "so it is read as text, which needs an input of its own";
        if let Some(error) = why_text(&column.name, files, records, note) {
            return Err(error);
        }
        "contains text".to_owned()
    } else {
        format!("has items of shape {:?}", column.shape)
    };
    Err(DataError::new(format!(
        "column `{}` {what}, which cannot be combined with the other columns of the input `{}`",
        column.name, input.name
    ))
    .help(format!(
        "give it an input of its own: another `[[data.inputs]]` with `columns = [\"{}\"]`",
        column.name
    )))
}

/// Categories, or integers that number them.
fn check_categories(input: &InputSpec, own: &[usize], columns: &[Column]) -> Result<(), DataError> {
    for at in own {
        let column = &columns[*at];
        let is_single = column.len() == 1;
        let wrong = match &column.kind {
            ColumnKind::Categories { .. } => continue,
            ColumnKind::Whole | ColumnKind::Bytes if is_single => continue,
            ColumnKind::Whole if column.shape.len() == 1 && own.len() == 1 => continue,
            ColumnKind::Whole => format!("items of shape {:?}", column.shape),
            kind => kind.show().to_owned(),
        };
        let error = DataError::new(format!(
            "`encode = \"embedding\"` needs categories, but column `{}` of the input `{}` contains {wrong}",
            column.name, input.name
        ));
        return Err(match (&column.kind, &input.columns) {
            (ColumnKind::Whole, _) => {
                error.help("give this array an input of its own, with one axis of integers")
            }
            (ColumnKind::Text, _) => error.help(
                "give the text an input of its own without `encode`: it becomes tokens, which are indices too",
            ),
            (_, None) => error.help(format!(
                "list the categories in `columns`, or set `type = \"category\"` for `{}` in `[[data.columns]]`",
                column.name
            )),
            _ => error.help("put numbers into another input, without `encode`"),
        });
    }
    Ok(())
}
