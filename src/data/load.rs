//! From a plan to items in memory: read, checked, split, scaled and digested.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{DataError, DataPlan, Dataset, Items, embedded, hex, mnist, split};

/// The items of one split, ready to be trained on.
#[derive(Clone, Debug)]
pub struct Split {
    /// Values of all items in order: `num_items` times the product of the item's shape.
    pub values: Vec<f32>,
    /// The class of each item.
    pub labels: Vec<u8>,
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Shape of one item.
    pub item_shape: Vec<usize>,
    /// Number of classes.
    pub num_classes: usize,
    /// The items that are trained on.
    pub train: Split,
    /// The items that epochs are compared on.
    pub valid: Split,
    /// The items that are looked at once.
    pub test: Option<Split>,
    /// sha256 of each split's items in order, by split.
    pub digests: BTreeMap<String, String>,
}

/// Reads, checks and splits the items of a plan.
pub fn load(plan: &DataPlan) -> Result<Loaded, DataError> {
    let (items, official_test) = match &plan.dataset {
        Dataset::Iris => (embedded::iris()?, None),
        Dataset::Digits { image_size } => (embedded::digits(*image_size)?, None),
        Dataset::Mnist { folder, part } => mnist::load(folder, *part)?,
    };
    let assigned = split::assign(&items.labels, items.num_classes, &plan.split);
    let scaling = match plan.standardize {
        true => Scaling::standard(&items, &assigned.train),
        false => Scaling::plain(&items),
    };
    let mut digests = BTreeMap::new();
    let mut gather = |name: &str, items: &Items, indices: Option<&[u32]>| {
        let size: usize = items.shape.iter().product();
        let all: Vec<u32>;
        let indices = match indices {
            Some(indices) => indices,
            None => {
                all = (0..items.len() as u32).collect();
                &all
            }
        };
        let mut hasher = Sha256::new();
        let mut split = Split {
            values: Vec::with_capacity(indices.len() * size),
            labels: Vec::with_capacity(indices.len()),
        };
        hasher.update(items.scale.to_le_bytes());
        for index in indices {
            let at = *index as usize;
            let bytes = &items.bytes[at * size..(at + 1) * size];
            hasher.update(bytes);
            hasher.update([items.labels[at]]);
            scaling.extend(&mut split.values, bytes);
            split.labels.push(items.labels[at]);
        }
        digests.insert(name.to_owned(), hex(&hasher.finalize()));
        split
    };
    let train = gather("train", &items, Some(&assigned.train));
    let valid = gather("valid", &items, Some(&assigned.valid));
    let test = match &official_test {
        Some(test) => Some(gather("test", test, None)),
        None if !assigned.test.is_empty() => Some(gather("test", &items, Some(&assigned.test))),
        None => None,
    };
    let expected = (plan.num_train, plan.num_valid);
    let found = (train.labels.len(), valid.labels.len());
    if expected != found {
        let message = format!(
            "the data changed since it was planned: {} train and {} valid items were expected, found {} and {}",
            expected.0, expected.1, found.0, found.1
        );
        return Err(DataError::new(message).help("run `runner run` on the experiment again"));
    }
    Ok(Loaded {
        item_shape: items.shape.clone(),
        num_classes: items.num_classes,
        train,
        valid,
        test,
        digests,
    })
}

/// How bytes become values.
struct Scaling {
    /// What is subtracted and what is multiplied by: one pair for all values, or one for each column.
    columns: Vec<(f32, f32)>,
}

impl Scaling {
    fn plain(items: &Items) -> Self {
        Self {
            columns: vec![(0.0, items.scale)],
        }
    }

    /// To mean 0 and deviation 1 over `train`. Sums of bytes are whole numbers, so that they are exact
    /// in any order. A column that does not vary is only shifted.
    fn standard(items: &Items, train: &[u32]) -> Self {
        let size: usize = items.shape.iter().product();
        let num_columns = if items.shape.len() == 1 { size } else { 1 };
        let mut sums = vec![(0u64, 0u64); num_columns];
        for at in train.iter().map(|at| *at as usize) {
            for values in items.bytes[at * size..(at + 1) * size].chunks_exact(num_columns) {
                for (byte, (sum, squares)) in values.iter().zip(&mut sums) {
                    let byte = u64::from(*byte);
                    *sum += byte;
                    *squares += byte * byte;
                }
            }
        }
        let num = (train.len() * size / num_columns).max(1) as f64;
        let column = |(sum, squares): (u64, u64)| {
            let mean = sum as f64 / num;
            let deviation = (squares as f64 / num - mean * mean).max(0.0).sqrt();
            let factor = if deviation > 0.0 {
                1.0 / deviation
            } else {
                1.0
            };
            (mean as f32, factor as f32)
        };
        Self {
            columns: sums.into_iter().map(column).collect(),
        }
    }

    fn extend(&self, values: &mut Vec<f32>, bytes: &[u8]) {
        match self.columns.as_slice() {
            [(shift, factor)] => {
                values.extend(bytes.iter().map(|b| (f32::from(*b) - shift) * factor))
            }
            columns => {
                let scaled = bytes.iter().zip(columns.iter().cycle());
                values.extend(scaled.map(|(b, (shift, factor))| (f32::from(*b) - shift) * factor));
            }
        }
    }
}
