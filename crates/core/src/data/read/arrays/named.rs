//! Files with several named arrays, each a column: npz and safetensors.

use std::collections::BTreeSet;
use std::path::Path;

use super::stream::{self, Progress, Stream};
use super::{Array, Columns, show, single_value};
use crate::data::DataError;
use crate::data::read::{Watch, parts};
use crate::data::records::Writer;
use crate::spec::data::{FilesSpec, RolesSpec};

/// An array of a file; an unsupported type is an error only if the array is used.
pub struct Found<'a> {
    /// Its name.
    pub name: String,
    /// The array.
    pub array: Result<Array<'a>, DataError>,
}

/// Receives the arrays of a file while it is open.
pub type Visit<'a> = &'a mut dyn FnMut(Vec<Found<'_>>) -> Result<(), DataError>;

/// Opens a file and passes on its arrays.
type Open = fn(&Path, Visit<'_>) -> Result<(), DataError>;

/// Reads the files into the writer.
pub fn read(
    files: &FilesSpec,
    open: Open,
    writer: &mut Writer,
    watch: Watch<'_>,
) -> Result<(), DataError> {
    let mut columns = Columns::default();
    let is_target = |name: &String| files.roles.is_target(name);
    let mut names: Option<(Vec<String>, String)> = None;
    let mut total: usize = 0;
    for (part, path) in parts(files).flat_map(|(part, paths)| paths.iter().map(move |p| (part, p)))
    {
        let path = Path::new(path);
        open(path, &mut |found| {
            let arrays = select(&files.roles, &show(path), names.as_ref(), found)?;
            for (at, (name, array)) in arrays.iter().enumerate() {
                columns.agree(at, name, is_target(name), array)?;
            }
            total = total.saturating_add(arrays[0].1.shape[0]);
            if names.is_none() {
                let all = arrays.into_iter().map(|(name, _)| name).collect();
                names = Some((all, show(path)));
            }
            Ok(())
        })
        .map_err(|error| error.or_key(part.key()))?;
    }
    writer.begin(columns.columns);
    let mut progress = Progress::new(watch, total);
    for (part, paths) in parts(files) {
        writer.part(part);
        for path in paths.iter().map(Path::new) {
            writer.begin_file();
            open(path, &mut |found| {
                let arrays = select(&files.roles, &show(path), names.as_ref(), found)?;
                let num = arrays[0].1.shape[0];
                let streams = arrays.into_iter();
                let streams = streams.map(|(name, array)| Stream::new(array, is_target(&name)));
                stream::pump(files, writer, streams.collect(), num, &mut progress)
            })
            .map_err(|error| error.or_key(part.key()))?;
        }
    }
    Ok(())
}

/// The used arrays of a file, in column order, all with the same number of items.
///
/// If the features are listed, these and the targets are used; also scalars per item, since they may determine the
/// split.
fn select<'a>(
    roles: &RolesSpec,
    place: &str,
    first: Option<&(Vec<String>, String)>,
    mut found: Vec<Found<'a>>,
) -> Result<Vec<(String, Array<'a>)>, DataError> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = found.iter().find(|array| !seen.insert(array.name.clone())) {
        return Err(DataError::new(format!(
            "{place} contains two arrays named `{}`",
            twice.name
        ))
        .help("give each array a different name"));
    }
    let all: Vec<_> = found.iter().map(|array| array.name.clone()).collect();
    if all.is_empty() {
        return Err(DataError::new(format!("{place} contains no arrays"))
            .help("save arrays by name, for example with `np.savez(path, x=x, y=y)`"));
    }
    let mut ignored = roles.ignore.iter();
    if let (Some(name), None) = (ignored.find(|name| !all.contains(name)), first) {
        let error = DataError::new(format!("{place} has no array `{name}`"));
        return Err(error
            .key("data.ignore")
            .note(format!("its arrays: {}", quoted(&all)))
            .help("remove it from `ignore`"));
    }
    found.retain(|array| !roles.ignore.contains(&array.name));
    let mut take = |name: &String| {
        let at = found.iter().position(|array| array.name == *name);
        let Some(at) = at else {
            if roles.ignore.contains(name) {
                let message = format!("`{name}` is in `ignore`, but is used as well");
                return Err(DataError::new(message).key("data.ignore").help(format!(
                    "remove `{name}` from `ignore`, or where it is used"
                )));
            }
            let error = DataError::new(format!("{place} has no array `{name}`"));
            let error = match first {
                Some((names, first)) if names.contains(name) => error.note(format!(
                    "{first} has one; all files of a data set must have the same arrays"
                )),
                _ => error,
            };
            return Err(error.note(format!("its arrays: {}", quoted(&all))));
        };
        let Found { name, array } = found.remove(at);
        array.map(|array| (name, array))
    };
    let wanted = wanted(roles, first, &all);
    for name in roles.targets().chain(&roles.weight) {
        if !wanted.contains(name) {
            take(name)?;
        }
    }
    let mut arrays = wanted
        .iter()
        .map(&mut take)
        .collect::<Result<Vec<_>, _>>()?;
    let Some((_, leading)) = arrays.first() else {
        return Err(DataError::new(format!("{place} has no array to use"))
            .note(format!("its arrays: {}", quoted(&all)))
            .help("list fewer of them in `ignore`"));
    };
    let num = leading.shape.first().copied();
    match (first, &roles.features) {
        (None, Some(_)) => {
            for Found { name, array } in found {
                if let Ok(array) = array
                    && array.shape.as_slice() == num.as_slice()
                {
                    arrays.push((name, array));
                }
            }
        }
        (Some((_, first)), None) => {
            if let Some(more) = found.first() {
                return Err(DataError::new(format!(
                    "{place} has an array `{}` that {first} does not have",
                    more.name
                ))
                .help(
                    "all files of a data set must have the same arrays; list others in `ignore`",
                ));
            }
        }
        _ => {}
    }
    check_lengths(&arrays, num)?;
    Ok(arrays)
}

/// The names of the arrays to use: those of the first file, those listed, or all.
fn wanted(roles: &RolesSpec, first: Option<&(Vec<String>, String)>, all: &[String]) -> Vec<String> {
    match (first, &roles.features) {
        (Some((names, _)), _) => names.clone(),
        (None, Some(features)) => {
            let mut wanted: Vec<String> = Vec::new();
            let named = features.iter().chain(roles.targets());
            for name in named.chain(&roles.weight) {
                if !wanted.contains(name) {
                    wanted.push(name.clone());
                }
            }
            wanted
        }
        (None, None) => all
            .iter()
            .filter(|name| !roles.ignore.contains(name))
            .cloned()
            .collect(),
    }
}

/// Refuses arrays with other numbers of items than `num`.
fn check_lengths(arrays: &[(String, Array<'_>)], num: Option<usize>) -> Result<(), DataError> {
    if let Some((_, single)) = arrays.iter().find(|(_, array)| array.shape.is_empty()) {
        return Err(single_value(&single.place).help("list it in `ignore`"));
    }
    let differs = |(_, array): &&(String, Array<'_>)| array.shape.first().copied() != num;
    if let Some((_, other)) = arrays.iter().find(differs) {
        let (_, leading) = &arrays[0];
        return Err(DataError::new(format!(
            "{} and {} have different numbers of items",
            leading.place, other.place
        ))
        .note(format!("their shapes are {:?} and {:?}", leading.shape, other.shape))
        .help("the first dimension of every array is the items; list other arrays in `ignore`, or select arrays with `features` and `target`"));
    }
    Ok(())
}

fn quoted(names: &[String]) -> String {
    let names: Vec<_> = names
        .iter()
        .take(20)
        .map(|name| format!("`{name}`"))
        .collect();
    names.join(", ")
}
