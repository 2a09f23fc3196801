//! Weight deltas: the differences between two sets of weights, by parameter.
//!
//! Differences are 64-bit floats. In floating point, `a + (b - a)` is not always `b`: not if `b` is tiny beside `a`, is a
//! negative zero, or is not finite. So a delta also keeps, bit for bit, each value of `b` that the sum does not give.
//! Applied to the very weights that it starts from, a delta therefore gives the other ones exactly, for every type of
//! float and every bit pattern.

mod file;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use runner_core::data::sha256_hex;
use runner_core::spec::init::InitLayout;

use crate::tensors::{Dtype, NamedTensor, Tensors};
pub(crate) use file::KEY;
pub use file::{read, write};
pub use table::{Change, Changes, changes};

/// The differences between two sets of weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Delta {
    /// Whose names and layouts the parameters have.
    pub layout: InitLayout,
    /// The digest of the weights that it starts from; none if deltas with different ones were averaged.
    pub base: Option<String>,
    /// The digest of the weights that it leads to; none for an average.
    pub target: Option<String>,
    /// The differences of each parameter.
    pub parameters: Vec<Parameter>,
}

/// The differences of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    name: String,
    shape: Vec<usize>,
    differences: Vec<f64>,
    /// The places of values that sums do not give, in increasing order.
    at: Vec<u64>,
    /// These values.
    to: Option<NamedTensor>,
}

/// How two sets of tensors do not match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// Only the first set has it.
    OnlyFirst(String, Vec<usize>),
    /// Only the second set has it.
    OnlySecond(String, Vec<usize>),
    /// It has different shapes.
    Shape(String, Vec<usize>, Vec<usize>),
    /// Its values have different types.
    Dtype(String, Dtype, Dtype),
}

impl Mismatch {
    /// In words, with names for the two sets.
    pub fn show(&self, first: &str, second: &str) -> String {
        match self {
            Self::OnlyFirst(name, shape) => format!("only in {first}: `{name}` {shape:?}"),
            Self::OnlySecond(name, shape) => format!("only in {second}: `{name}` {shape:?}"),
            Self::Shape(name, one, other) => {
                format!("`{name}` is {one:?} in {first} and {other:?} in {second}")
            }
            Self::Dtype(name, one, other) => {
                format!("`{name}` is {one} in {first} and {other} in {second}")
            }
        }
    }
}

/// Why deltas cannot be averaged.
#[derive(Clone, Debug, PartialEq)]
pub enum NotAveraged {
    /// A delta, by its place, does not match the first one.
    Mismatched(usize, Vec<Mismatch>),
    /// The factors are not one finite, positive number for each delta, or there is no delta.
    Factors,
}

/// The digest of weights: of names, types, shapes and values, in whatever order and file they are.
pub fn digest(tensors: &Tensors) -> String {
    let sorted: BTreeMap<&str, &NamedTensor> = tensors
        .iter()
        .map(|tensor| (tensor.name(), tensor))
        .collect();
    let mut text = String::new();
    for (name, tensor) in sorted {
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        let values = sha256_hex(tensor.bytes());
        // Names are quoted, so that none can look like two.
        text += &format!("{name:?} {dtype} {shape:?} {values}\n");
    }
    sha256_hex(text.as_bytes())
}

impl Delta {
    /// What leads from one set of weights to another, both of floats and in the same layout.
    ///
    /// # Errors
    /// Everything in which their names, shapes and types differ.
    pub fn between(
        base: &Tensors,
        target: &Tensors,
        layout: InitLayout,
    ) -> Result<Self, Vec<Mismatch>> {
        let sides = [base, target].map(|side| side.iter().map(Described::of).collect::<Vec<_>>());
        let mismatches = mismatches(&sides[0], &sides[1]);
        if !mismatches.is_empty() {
            return Err(mismatches);
        }
        let pairs = base
            .iter()
            .filter_map(|one| Some((one, target.get(one.name())?)));
        Ok(Self {
            layout,
            base: Some(digest(base)),
            target: Some(digest(target)),
            parameters: pairs
                .map(|(one, other)| Parameter::between(one, other))
                .collect(),
        })
    }

    /// The weights plus the differences times `scale`, each in the type of the weight. If these are the weights that the
    /// delta starts from, and the scale is 1, the result is exactly what it leads to.
    ///
    /// # Errors
    /// Everything in which names and shapes differ.
    pub fn apply(&self, base: &Tensors, scale: f64) -> Result<Tensors, Vec<Mismatch>> {
        let theirs: Vec<_> = base.iter().map(Described::of).collect();
        let mismatches = mismatches(&self.described(), &theirs);
        if !mismatches.is_empty() {
            return Err(mismatches);
        }
        let is_exact = scale == 1.0 && self.starts_from(&digest(base));
        let by_name: BTreeMap<&str, &Parameter> = self
            .parameters
            .iter()
            .map(|parameter| (parameter.name.as_str(), parameter))
            .collect();
        let mut applied = Tensors::new();
        for tensor in base {
            let parameter = by_name[tensor.name()];
            let moved = moved(tensor, &parameter.differences, scale);
            let moved = match &parameter.to {
                Some(to) if is_exact => patched(moved, &parameter.at, to),
                _ => moved,
            };
            applied.push(moved).expect("the names are those of a set");
        }
        Ok(applied)
    }

    /// Whether weights with a digest are those that it starts from.
    pub fn starts_from(&self, digest: &str) -> bool {
        self.base.as_deref() == Some(digest)
    }

    fn described(&self) -> Vec<Described<'_>> {
        self.parameters.iter().map(Parameter::described).collect()
    }

    /// The number of values that are kept because a sum does not give them.
    pub fn num_kept(&self) -> usize {
        self.parameters.iter().map(|it| it.at.len()).sum()
    }

    /// The mean of deltas, weighted by factors. It leads to no known weights, so that no values are kept.
    ///
    /// # Errors
    /// If they do not have the same parameters, or factors are not finite and positive.
    pub fn average(deltas: &[Self], factors: &[f64]) -> Result<Self, NotAveraged> {
        let sum: f64 = factors.iter().sum();
        let are_valid = factors
            .iter()
            .all(|factor| factor.is_finite() && *factor > 0.0);
        let (true, true, [first, rest @ ..]) = (
            are_valid && sum.is_finite(),
            factors.len() == deltas.len(),
            deltas,
        ) else {
            return Err(NotAveraged::Factors);
        };
        for (number, other) in rest.iter().enumerate() {
            let mismatches = mismatches(&first.described(), &other.described());
            if !mismatches.is_empty() {
                return Err(NotAveraged::Mismatched(number + 1, mismatches));
            }
        }
        let by_name = |delta: &'_ Self| -> BTreeMap<String, usize> {
            let names = delta.parameters.iter().map(|it| it.name.clone());
            names.zip(0..).collect()
        };
        let places: Vec<_> = deltas.iter().map(by_name).collect();
        let mean = |parameter: &Parameter| {
            let mut sums = vec![0.0; parameter.differences.len()];
            for ((delta, places), factor) in deltas.iter().zip(&places).zip(factors) {
                let other = &delta.parameters[places[&parameter.name]];
                for (sum, difference) in sums.iter_mut().zip(&other.differences) {
                    *sum += factor * difference;
                }
            }
            Parameter {
                name: parameter.name.clone(),
                shape: parameter.shape.clone(),
                differences: sums.into_iter().map(|value| value / sum).collect(),
                at: Vec::new(),
                to: None,
            }
        };
        let is_common = rest.iter().all(|other| other.base == first.base);
        Ok(Self {
            layout: first.layout,
            base: first.base.clone().filter(|_| is_common),
            target: None,
            parameters: first.parameters.iter().map(mean).collect(),
        })
    }
}

impl Parameter {
    /// The differences between two tensors of the same shape and type.
    fn between(base: &NamedTensor, target: &NamedTensor) -> Self {
        let to = target.to_f64s();
        let pairs = base.to_f64s().into_iter().zip(&to);
        let differences: Vec<f64> = pairs.map(|(from, to)| to - from).collect();
        let size = target.dtype().size();
        let reached = moved(base, &differences, 1.0);
        let pairs = reached
            .bytes()
            .chunks(size)
            .zip(target.bytes().chunks(size));
        // Which bits a NaN has after an addition depends on the processor.
        let is_kept = |((sum, value), to): ((&[u8], &[u8]), &f64)| sum != value || !to.is_finite();
        let kept: Vec<usize> = pairs
            .zip(&to)
            .enumerate()
            .filter(|(_, pair)| is_kept(*pair))
            .map(|(at, _)| at)
            .collect();
        let bytes = kept
            .iter()
            .flat_map(|at| &target.bytes()[at * size..(at + 1) * size]);
        let values = NamedTensor::new(
            base.name(),
            vec![kept.len()],
            target.dtype(),
            bytes.copied().collect(),
        );
        let values = values.expect("there is a value for each place");
        Self {
            name: base.name().to_owned(),
            shape: base.shape().to_vec(),
            differences,
            to: (!kept.is_empty()).then_some(values),
            at: kept.into_iter().map(|at| at as u64).collect(),
        }
    }

    fn described(&self) -> Described<'_> {
        Described {
            name: &self.name,
            shape: &self.shape,
            dtype: None,
        }
    }

    /// Its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its differences, in row-major order.
    pub fn differences(&self) -> &[f64] {
        &self.differences
    }
}

/// Values plus differences times `scale`, rounded to the type of the values.
fn moved(base: &NamedTensor, differences: &[f64], scale: f64) -> NamedTensor {
    let values = base.to_f64s();
    let sums = values.iter().zip(differences);
    let bytes = sums.flat_map(|(value, difference)| (value + scale * difference).to_le_bytes());
    NamedTensor::new(
        base.name(),
        base.shape().to_vec(),
        Dtype::F64,
        bytes.collect(),
    )
    .expect("the shape is that of the values")
    .cast(base.dtype())
}

/// The same with some values replaced; those are of the same type.
fn patched(tensor: NamedTensor, at: &[u64], to: &NamedTensor) -> NamedTensor {
    let (name, shape, dtype) = (
        tensor.name().to_owned(),
        tensor.shape().to_vec(),
        tensor.dtype(),
    );
    let size = dtype.size();
    let mut bytes = tensor.into_bytes();
    for (at, value) in at.iter().zip(to.cast(dtype).bytes().chunks(size)) {
        let start = *at as usize * size;
        bytes[start..start + size].copy_from_slice(value);
    }
    NamedTensor::new(name, shape, dtype, bytes).expect("the size has not changed")
}

/// A tensor without its values.
struct Described<'a> {
    name: &'a str,
    shape: &'a [usize],
    /// If it matters.
    dtype: Option<Dtype>,
}

impl<'a> Described<'a> {
    fn of(tensor: &'a NamedTensor) -> Self {
        Self {
            name: tensor.name(),
            shape: tensor.shape(),
            dtype: Some(tensor.dtype()),
        }
    }
}

/// Everything in which two sets differ: first what both have, then what only one has.
fn mismatches(first: &[Described<'_>], second: &[Described<'_>]) -> Vec<Mismatch> {
    let by_name: BTreeMap<&str, &Described<'_>> = second.iter().map(|it| (it.name, it)).collect();
    let mut found = Vec::new();
    for one in first {
        let name = || one.name.to_owned();
        match by_name.get(one.name) {
            Some(other) if other.shape != one.shape => {
                let shapes = (one.shape.to_vec(), other.shape.to_vec());
                found.push(Mismatch::Shape(name(), shapes.0, shapes.1));
            }
            Some(other) => {
                if let (Some(a), Some(b)) = (one.dtype, other.dtype)
                    && a != b
                {
                    found.push(Mismatch::Dtype(name(), a, b));
                }
            }
            None => {}
        }
    }
    let only = |these: &[Described<'_>], others: &[Described<'_>]| -> Vec<(String, Vec<usize>)> {
        let known: BTreeSet<&str> = others.iter().map(|it| it.name).collect();
        let only = these.iter().filter(|it| !known.contains(it.name));
        only.map(|it| (it.name.to_owned(), it.shape.to_vec()))
            .collect()
    };
    let mine = only(first, second).into_iter();
    found.extend(mine.map(|(name, shape)| Mismatch::OnlyFirst(name, shape)));
    let theirs = only(second, first).into_iter();
    found.extend(theirs.map(|(name, shape)| Mismatch::OnlySecond(name, shape)));
    found
}

impl fmt::Display for NotAveraged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatched(..) => f.write_str("the deltas do not have the same parameters"),
            Self::Factors => f.write_str("each delta needs a finite factor above 0"),
        }
    }
}
