//! From a plan to items in memory: read, checked, split, scaled and digested.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::{
    DataError, DataPlan, Dataset, Inputs, Items, TargetPlan, TargetValues, embedded, generate, hex,
    mnist, split,
};

/// The items of one split, ready to be trained on.
#[derive(Clone, Debug)]
pub struct Split {
    /// All items in order: `num_items` times the product of the item's shape.
    pub values: Values,
    /// The target of each item in order.
    pub targets: TargetValues,
    /// Number of items.
    pub num_items: usize,
}

/// What a network is given.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers.
    Floats(Vec<f32>),
    /// Tokens.
    Tokens(Vec<i32>),
}

impl Split {
    /// The items at some indices, in their order.
    pub fn gather(&self, indices: &[u32]) -> Self {
        Self {
            values: match &self.values {
                Values::Floats(all) => Values::Floats(rows(all, self.num_items, indices)),
                Values::Tokens(all) => Values::Tokens(rows(all, self.num_items, indices)),
            },
            targets: match &self.targets {
                TargetValues::Classes(all) => {
                    TargetValues::Classes(rows(all, self.num_items, indices))
                }
                TargetValues::Floats(all) => {
                    TargetValues::Floats(rows(all, self.num_items, indices))
                }
            },
            num_items: indices.len(),
        }
    }
}

fn rows<T: Copy>(all: &[T], num_items: usize, indices: &[u32]) -> Vec<T> {
    let size = all.len() / num_items.max(1);
    let mut gathered = Vec::with_capacity(indices.len() * size);
    for index in indices {
        let at = *index as usize;
        gathered.extend_from_slice(&all[at * size..(at + 1) * size]);
    }
    gathered
}

/// A data set in memory.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The items that are trained on.
    pub train: Split,
    /// The items that epochs are compared on.
    pub valid: Split,
    /// The items that are looked at once.
    pub test: Option<Split>,
    /// What values of images are multiplied by, and what is added then, for pixels from 0 to 1.
    pub to_pixels: (f32, f32),
    /// sha256 of each split's items in order, by split.
    pub digests: BTreeMap<String, String>,
}

/// Reads, checks and splits the items of a plan.
pub fn load(plan: &DataPlan) -> Result<Loaded, DataError> {
    let (items, official_test) = match &plan.dataset {
        Dataset::Iris => (embedded::iris()?, None),
        Dataset::Digits { image_size } => (embedded::digits(*image_size)?, None),
        Dataset::Mnist { folder, part } => mnist::load(folder, *part)?,
        Dataset::Synthetic(generated) => (generate::generate(generated), None),
    };
    let classes = match (&items.target, &items.targets) {
        (TargetPlan::Class { .. }, TargetValues::Classes(classes)) => Some(classes.as_slice()),
        _ => None,
    };
    let assigned = split::assign(items.len(), classes, &plan.split);
    let scaling = match plan.standardize {
        true => Scaling::standard(&items, &assigned.train),
        false => Scaling::plain(&items),
    };
    let whole = |items: &Items| Split {
        values: scaling.values(items),
        targets: items.targets.clone(),
        num_items: items.len(),
    };
    let mut digests = BTreeMap::new();
    let mut gather = |name: &str, items: &Items, all: &Split, indices: &[u32]| {
        digests.insert(name.to_owned(), digest(items, indices));
        all.gather(indices)
    };
    let all = whole(&items);
    let train = gather("train", &items, &all, &assigned.train);
    let valid = gather("valid", &items, &all, &assigned.valid);
    let test = match &official_test {
        Some(test) => {
            let indices: Vec<u32> = (0..test.len() as u32).collect();
            Some(gather("test", test, &whole(test), &indices))
        }
        None if assigned.test.is_empty() => None,
        None => Some(gather("test", &items, &all, &assigned.test)),
    };
    let expected = (plan.num_train, plan.num_valid);
    let found = (train.num_items, valid.num_items);
    if expected != found {
        let message = format!(
            "the data changed since it was planned: {} train and {} valid items were expected, found {} and {}",
            expected.0, expected.1, found.0, found.1
        );
        return Err(DataError::new(message).help("run `runner run` on the experiment again"));
    }
    Ok(Loaded {
        to_pixels: scaling.inverse(&items),
        train,
        valid,
        test,
        digests,
    })
}

/// sha256 over the inputs and targets of items as they are stored.
fn digest(items: &Items, indices: &[u32]) -> String {
    let mut hasher = Sha256::new();
    let (size, target_size) = (items.item_size(), items.target.size());
    if let Inputs::Bytes { scale, .. } = &items.inputs {
        hasher.update(scale.to_le_bytes());
    }
    for index in indices {
        let at = *index as usize;
        let range = at * size..(at + 1) * size;
        match &items.inputs {
            Inputs::Bytes { bytes, .. } => hasher.update(&bytes[range]),
            Inputs::Floats(values) => {
                values[range]
                    .iter()
                    .for_each(|value| hasher.update(value.to_le_bytes()));
            }
            Inputs::Tokens(tokens) => {
                tokens[range]
                    .iter()
                    .for_each(|token| hasher.update(token.to_le_bytes()));
            }
        }
        let range = at * target_size..(at + 1) * target_size;
        match &items.targets {
            TargetValues::Classes(classes) => {
                classes[range]
                    .iter()
                    .for_each(|class| hasher.update(class.to_le_bytes()));
            }
            TargetValues::Floats(values) => {
                values[range]
                    .iter()
                    .for_each(|value| hasher.update(value.to_le_bytes()));
            }
        }
    }
    hex(&hasher.finalize())
}

/// How items become values.
struct Scaling {
    /// What is subtracted and what is multiplied by: one pair for all values, or one for each column.
    columns: Vec<(f32, f32)>,
}

impl Scaling {
    fn plain(items: &Items) -> Self {
        let scale = match items.inputs {
            Inputs::Bytes { scale, .. } => scale,
            Inputs::Floats(_) | Inputs::Tokens(_) => 1.0,
        };
        Self {
            columns: vec![(0.0, scale)],
        }
    }

    /// To mean 0 and deviation 1 over `train`, images as a whole and rows by column. Sums of bytes are
    /// whole numbers, so that they are exact in any order; those of numbers are made in the order of
    /// items. A column that does not vary is only shifted.
    fn standard(items: &Items, train: &[u32]) -> Self {
        let size = items.item_size();
        let num_columns = if items.input.shape.len() == 1 {
            size
        } else {
            1
        };
        let rows = train.iter().map(|at| {
            let at = *at as usize;
            at * size..(at + 1) * size
        });
        let num = (train.len() * size / num_columns).max(1) as f64;
        let mut sums = vec![(0.0f64, 0.0f64); num_columns];
        let mut add = |at: usize, value: f64| {
            let (sum, squares) = &mut sums[at % num_columns];
            *sum += value;
            *squares += value * value;
        };
        match &items.inputs {
            Inputs::Bytes { bytes, .. } => {
                rows.flatten().for_each(|at| add(at, f64::from(bytes[at])));
            }
            Inputs::Floats(values) => {
                rows.flatten().for_each(|at| add(at, f64::from(values[at])));
            }
            Inputs::Tokens(_) => return Self::plain(items),
        }
        let column = |(sum, squares): (f64, f64)| {
            let mean = sum / num;
            let deviation = (squares / num - mean * mean).max(0.0).sqrt();
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

    fn values(&self, items: &Items) -> Values {
        match &items.inputs {
            Inputs::Bytes { bytes, .. } => {
                Values::Floats(self.scaled(bytes.iter().map(|byte| f32::from(*byte))))
            }
            Inputs::Floats(values) => Values::Floats(self.scaled(values.iter().copied())),
            Inputs::Tokens(tokens) => Values::Tokens(tokens.clone()),
        }
    }

    fn scaled(&self, values: impl Iterator<Item = f32>) -> Vec<f32> {
        match self.columns.as_slice() {
            [(shift, factor)] => values.map(|value| (value - shift) * factor).collect(),
            columns => {
                let scaled = values.zip(columns.iter().cycle());
                scaled
                    .map(|(value, (shift, factor))| (value - shift) * factor)
                    .collect()
            }
        }
    }

    /// What brings values of images back to what the data holds.
    fn inverse(&self, items: &Items) -> (f32, f32) {
        let (shift, factor) = self.columns[0];
        let scale = match items.inputs {
            Inputs::Bytes { scale, .. } => scale,
            Inputs::Floats(_) | Inputs::Tokens(_) => 1.0,
        };
        (scale / factor, shift * scale)
    }
}
