//! Oddities of files that a run could still use: found where data is located, and judged by rules that know the task.

use super::DataError;
use super::encode::{Groups, InputEncoder, TargetEncoder, moments};
use super::load::Splits;
use super::oddity::Oddity;
use super::profile::short;
use super::records::{ColumnKind, Records};
use super::serve::{Set, Split};
use super::{suspects, unseen};
use crate::spec::data::{ColumnSpec, DataSpec, FilesSpec, ScaleAxis};

/// Findings beyond what a run needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noticed {
    /// Probable mistakes, whatever the task.
    pub warnings: Vec<DataError>,
    /// The names of the target's classes, labels or numbers, where they are known before training.
    pub target_names: Vec<String>,
    /// How often each class occurs, if each item has one.
    pub classes: Option<ClassCounts>,
    /// For each input, the token that short items are padded with, if there is one.
    pub padding: Vec<Option<u32>>,
    /// The token that ends a document, if documents in an item are kept apart.
    pub document_end: Option<u32>,
    /// The classes of the train split, of the target and of each target of `[[losses]]`: only if a loss needs them and
    /// the data is here. Nothing for targets without classes.
    pub train_classes: Vec<Option<Vec<ClassCount>>>,
    /// The least number of the target and of each target of `[[losses]]`, over all splits, with its column. Nothing for
    /// targets that are not numbers of files.
    pub least_targets: Vec<Option<(String, f64)>>,
}

/// How often a class occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCount {
    /// Its name or number.
    pub name: String,
    /// How many items, or positions of items, it has.
    pub count: u64,
}

/// How often each class occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassCounts {
    /// The name of the target's column.
    pub column: String,
    /// The classes' names.
    pub names: Vec<String>,
    /// How often each occurs in train, valid and test.
    pub counts: Vec<[u64; 3]>,
}

impl Noticed {
    /// Oddities of file splits.
    pub(super) fn of(files: &FilesSpec, splits: &Splits, spec: &DataSpec) -> Self {
        let set = splits.train.set();
        let features: Vec<usize> = match &set.encoder.input {
            InputEncoder::Features { features, .. } => features.iter().map(|f| f.column).collect(),
            InputEncoder::Text { column, .. } | InputEncoder::Array { column, .. } => vec![*column],
            InputEncoder::Inputs { .. } => set.encoder.input.columns(),
            _ => Vec::new(),
        };
        let mut targets = set.encoder.target_columns();
        let mut warnings = Vec::new();
        let inputs = set.inputs();
        if set.pairs.is_some() {
            // Columns of two tables.
            warnings.extend(of_columns(files, &set.records, &[], &targets));
            targets.clear();
        }
        warnings.extend(of_columns(files, inputs, &features, &targets));
        warnings.extend(uneven_ranges(set, spec));
        let classes = ClassCounts::of(splits);
        warnings.extend(unseen::unused_classes(files, splits, classes.as_ref()));
        warnings.extend(unseen::categories(splits));
        Self {
            warnings,
            target_names: match set.encoder.target {
                TargetEncoder::Class { .. } | TargetEncoder::Labels { .. } => set.target_names(),
                _ => Vec::new(),
            },
            classes,
            padding: set.encoder.input.padding(),
            document_end: (set.encoder.input.document_end())
                .and_then(|token| token.try_into().ok()),
            train_classes: if spec.counts_classes {
                ClassCount::of(&splits.train)
            } else {
                Vec::new()
            },
            least_targets: least_targets(splits),
        }
    }
}

/// Train, valid and test.
fn all(splits: &Splits) -> [Option<&Split>; 3] {
    [
        Some(&splits.train),
        Some(&splits.valid),
        splits.test.as_ref(),
    ]
}

fn least_targets(splits: &Splits) -> Vec<Option<(String, f64)>> {
    let encoder = &splits.train.set().encoder;
    let targets = [&encoder.target].into_iter().chain(&encoder.more_targets);
    let least = targets.map(|target| {
        let TargetEncoder::Values { columns, .. } = target else {
            return None;
        };
        let sets = all(splits).into_iter().flatten().map(Split::set);
        let all = sets.flat_map(|set| {
            let of_column = |(at, _): &(usize, _)| {
                let least = set.records.header.extents.get(*at)?.min?;
                Some((set.records.columns()[*at].name.clone(), least))
            };
            columns.iter().filter_map(of_column)
        });
        all.min_by(|(_, a), (_, b)| a.total_cmp(b))
    });
    least.collect()
}

/// Oddities of the columns of a table.
fn of_columns(
    files: &FilesSpec,
    records: &Records,
    features: &[usize],
    targets: &[usize],
) -> Vec<DataError> {
    let all = [features, targets].concat();
    let mut warnings = Vec::new();
    for nearly in &records.header.nearly_numbers {
        let column = all
            .iter()
            .find(|at| records.columns()[**at].name == nearly.column);
        if let Some(column) = column {
            let kind = records.columns()[*column].kind.show();
            let note = format!("so it is read as {kind}");
            warnings.push(nearly.error(files).note(note));
        }
    }
    let mut is_used = |name: &str| all.iter().any(|at| records.columns()[*at].name == name);
    let odd = records.header.oddities.iter();
    let odd = odd.filter(|odd| odd.is_about(&mut is_used));
    warnings.extend(odd.map(Oddity::error));
    warnings.extend(suspects::sentinels(files, records, &all));
    warnings.extend(suspects::row_numbers(files, records, features));
    for (at, said) in files.roles.columns.iter().enumerate() {
        let column = features
            .iter()
            .find(|at| records.columns()[**at].name == said.name);
        if let Some(warning) = column.and_then(|column| clipped_away(records, *column, said)) {
            warnings.push(warning.key(format!("data.columns[{at}].clip")));
        }
    }
    warnings
}

/// Positions along an axis of arrays, such as channels, that are scaled together although the range of one is many
/// times that of another.
fn uneven_ranges(set: &Set, spec: &DataSpec) -> Option<DataError> {
    /// Items that are looked at, evenly spread.
    const ITEMS: usize = 256;
    let InputEncoder::Array {
        column,
        shape,
        axis,
        ..
    } = &set.encoder.input
    else {
        return None;
    };
    let column = *column;
    let (records, said) = (set.inputs(), &set.inputs().columns()[column]);
    if !spec.scale.is_measured() || shape.len() < 2 {
        return None;
    }
    let mut candidates = Vec::new();
    if spec.scale_axis == ScaleAxis::All {
        let is_bytes = said.kind == ColumnKind::Bytes;
        candidates.extend(ScaleAxis::Auto.resolve(shape, is_bytes).ok().flatten());
    }
    // Fewer positions than along all other axes: probably channels.
    let least = shape.iter().min()?;
    let mut shortest = (0..shape.len()).filter(|at| shape[*at] == *least);
    if let (Some(shortest), None) = (shortest.next(), shortest.next())
        && (axis.is_some() || spec.scale_axis == ScaleAxis::All)
    {
        candidates.push(shortest);
    }
    let num = records.len().min(ITEMS);
    let rows: Vec<u32> = (0..num)
        .map(|at| (at * records.len() / num) as u32)
        .collect();
    let candidates = candidates.into_iter();
    let mut others = candidates.filter(|candidate| Some(*candidate) != *axis);
    others.find_map(|suggested| uneven_along(suggested, shape, (records, column), &rows))
}

/// Positions along an axis whose ranges in some rows differ much.
fn uneven_along(
    suggested: usize,
    shape: &[usize],
    (records, column): (&Records, usize),
    rows: &[u32],
) -> Option<DataError> {
    /// From this many times on.
    const TIMES: f64 = 10.0;
    let said = &records.columns()[column];
    let found = moments(rows, Groups::along(shape, Some(suggested)), |row, out| {
        records.numbers(row, column, |number| out.push(number));
    });
    let sizes = found.iter().map(|found| found.max - found.min).enumerate();
    let varied = sizes.filter(|(_, size)| *size > 0.0 && size.is_finite());
    let by_size = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
    let (least, most) = (varied.clone().min_by(by_size)?, varied.max_by(by_size)?);
    (most.1 >= TIMES * least.1).then(|| {
        DataError::new(format!(
            "along axis {suggested} of `{}`, the values at {} range over {} and those at {} over {}, but are scaled together",
            said.name, most.0, short(most.1), least.0, short(least.1)
        ))
        .key("data.scale_axis")
        .help(format!("set `scale_axis = {suggested}` to scale the positions along that axis separately"))
    })
}

/// A column whose values are all on one side of its `clip`.
fn clipped_away(records: &Records, column: usize, said: &ColumnSpec) -> Option<DataError> {
    let [low, high] = said.clip?;
    let extent = records.header.extents[column];
    let (min, max) = (extent.min?, extent.max?);
    let is_all_one = max <= low || min >= high;
    is_all_one.then(|| {
        DataError::new(format!(
            "`clip` of `{}` is from {low} to {high}, but its values are from {min} to {max}: they all become one number",
            said.name
        ))
        .help("choose bounds within its values, or list the column in `ignore`")
    })
}

impl ClassCount {
    /// How often each class occurs in a split, of each target that has classes. Positions without a class do not count.
    pub(super) fn of(split: &Split) -> Vec<Option<Vec<Self>>> {
        let encoder = &split.set().encoder;
        let columns = split.set().records.columns();
        let targets = [&encoder.target].into_iter().chain(&encoder.more_targets);
        let counts = targets.map(|target| {
            let (TargetEncoder::Class {
                column,
                num_classes,
            }
            | TargetEncoder::Classes {
                column,
                num_classes,
                ..
            }) = target
            else {
                return None;
            };
            let mut counts = vec![0; *num_classes];
            for class in classes(split, target) {
                let at = usize::try_from(class).ok();
                if let Some(count) = at.and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
            let named = counts.into_iter().enumerate().map(|(class, count)| Self {
                name: columns[*column].class_name(class),
                count,
            });
            Some(named.collect())
        });
        counts.collect()
    }
}

impl ClassCounts {
    fn of(splits: &Splits) -> Option<Self> {
        let set = splits.train.set();
        let TargetEncoder::Class {
            column,
            num_classes,
        } = set.encoder.target
        else {
            return None;
        };
        let mut counts = vec![[0; 3]; num_classes];
        for (at, split) in all(splits).into_iter().enumerate() {
            for class in split
                .into_iter()
                .flat_map(|split| classes(split, &set.encoder.target))
            {
                if let Some(counts) = counts.get_mut(class as usize) {
                    counts[at] += 1;
                }
            }
        }
        let column = &set.records.columns()[column];
        Some(Self {
            column: column.name.clone(),
            names: set.target_names(),
            counts,
        })
    }
}

pub(super) fn classes<'a>(
    split: &'a Split,
    target: &'a TargetEncoder,
) -> impl Iterator<Item = i32> + 'a {
    const CHUNK: u32 = 1024;
    let num = split.num_items() as u32;
    (0..num).step_by(CHUNK as usize).flat_map(move |start| {
        let places: Vec<u32> = (start..(start + CHUNK).min(num)).collect();
        split.classes_of(target, &places)
    })
}
