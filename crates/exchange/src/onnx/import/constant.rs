//! Tensors of a graph that do not depend on its inputs.

use std::rc::Rc;

use runner_core::show::show_bytes;

use super::refused::Read;

/// The number of values that nodes of a graph may compute in any case.
const MAX_COMPUTED: usize = 1 << 28;
/// How many values they may compute for each one in the file: weights are transposed, or cast.
const PER_VALUE: usize = 4;
/// Bytes of a value, at least.
const WIDTH: u64 = 4;

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Constant {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Values,
}

/// Values of a constant, which others may share.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Floats.
    Floats(Rc<Vec<f32>>),
    /// Integers and booleans.
    Integers(Rc<Vec<i64>>),
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Integers(values) => values.len(),
        }
    }
}

/// How many values nodes may still compute: a small file must not be able to fill the memory.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    most: usize,
}

impl Budget {
    /// That of a graph with so many values in its file.
    pub fn of(num_values: usize) -> Self {
        let most = num_values
            .saturating_mul(PER_VALUE)
            .saturating_add(MAX_COMPUTED);
        Self { left: most, most }
    }

    /// One of so many values.
    #[cfg(test)]
    pub fn exactly(num: usize) -> Self {
        Self {
            left: num,
            most: num,
        }
    }

    /// Counts the values of a shape; an error if there are too many.
    pub fn take(&mut self, shape: &[usize]) -> Read<usize> {
        let num = shape
            .iter()
            .try_fold(1_usize, |num, size| num.checked_mul(*size));
        let left = num.and_then(|num| self.left.checked_sub(num));
        match (num, left) {
            (Some(num), Some(left)) => {
                self.left = left;
                Ok(num)
            }
            _ => Err(format!(
                "its constant of shape {shape:?} has too many values: those that the nodes of this graph compute may take {}",
                show_bytes((self.most as u64).saturating_mul(WIDTH))
            )
            .into()),
        }
    }
}

impl Constant {
    /// Floats of a shape.
    pub fn floats_of(shape: Vec<usize>, values: Vec<f32>) -> Self {
        Self {
            shape,
            values: Values::Floats(Rc::new(values)),
        }
    }

    /// Integers of a shape.
    pub fn integers_of(shape: Vec<usize>, values: Vec<i64>) -> Self {
        Self {
            shape,
            values: Values::Integers(Rc::new(values)),
        }
    }

    /// A list of integers.
    pub fn row(values: Vec<i64>) -> Self {
        Self::integers_of(vec![values.len()], values)
    }

    /// The values as floats.
    pub fn floats(&self) -> Rc<Vec<f32>> {
        match &self.values {
            Values::Floats(values) => Rc::clone(values),
            Values::Integers(values) => Rc::new(values.iter().map(|value| *value as f32).collect()),
        }
    }

    /// The values as integers, truncated toward zero.
    pub fn integers(&self) -> Rc<Vec<i64>> {
        match &self.values {
            Values::Floats(values) => Rc::new(values.iter().map(|value| *value as i64).collect()),
            Values::Integers(values) => Rc::clone(values),
        }
    }

    /// Whether all values are integers.
    pub fn is_integer(&self) -> bool {
        matches!(self.values, Values::Integers(_))
    }

    /// The value, if all are equal.
    pub fn single(&self) -> Option<f32> {
        let values = self.floats();
        let first = *values.first()?;
        let is_same = values
            .iter()
            .all(|value| value.to_bits() == first.to_bits());
        is_same.then_some(first)
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values at some positions.
    pub fn at(&self, shape: Vec<usize>, places: &[usize]) -> Self {
        match &self.values {
            Values::Floats(all) => {
                Self::floats_of(shape, places.iter().map(|at| all[*at]).collect())
            }
            Values::Integers(all) => {
                Self::integers_of(shape, places.iter().map(|at| all[*at]).collect())
            }
        }
    }

    /// The same with other sizes.
    pub fn reshaped(&self, shape: Vec<usize>) -> Read<Self> {
        if shape
            .iter()
            .try_fold(1_usize, |num, size| num.checked_mul(*size))
            == Some(self.len())
        {
            Ok(Self {
                shape,
                values: self.values.clone(),
            })
        } else {
            Err(format!(
                "its constant of shape {:?} does not fit {shape:?}",
                self.shape
            )
            .into())
        }
    }

    /// Axes in a different order.
    pub fn permuted(&self, axes: &[usize]) -> Self {
        let own = strides(&self.shape);
        let shape: Vec<usize> = axes.iter().map(|axis| self.shape[*axis]).collect();
        let by: Vec<usize> = axes.iter().map(|axis| own[*axis]).collect();
        self.at(shape.clone(), &walk(&shape, &by, 0))
    }

    /// Broadcasts sizes of 1 to those of a shape; existing sizes are kept where the shape has 1.
    pub fn expanded(&self, shape: &[usize], budget: &mut Budget) -> Read<Self> {
        let shape = broadcast(&self.shape, shape)?;
        if shape == self.shape {
            return Ok(self.clone());
        }
        budget.take(&shape)?;
        let skip = shape.len() - self.shape.len();
        let own = strides(&self.shape);
        let by = (0..shape.len()).map(|at| match at.checked_sub(skip) {
            Some(at) if self.shape[at] != 1 => own[at],
            _ => 0,
        });
        let by: Vec<usize> = by.collect();
        Ok(self.at(shape.clone(), &walk(&shape, &by, 0)))
    }

    /// Some positions along an axis, in their order.
    pub fn selected(&self, axis: usize, places: &[usize]) -> Self {
        let inner: usize = self.shape[axis + 1..].iter().product();
        let outer: usize = self.shape[..axis].iter().product();
        let size = self.shape[axis];
        let rows =
            (0..outer).flat_map(|row| places.iter().map(move |at| (row * size + at) * inner));
        let all: Vec<usize> = rows.flat_map(|start| start..start + inner).collect();
        let mut shape = self.shape.clone();
        shape[axis] = places.len();
        self.at(shape, &all)
    }

    /// Removes an axis along which all values are equal; `None` if they are not.
    pub fn without(&self, axis: usize) -> Option<Self> {
        let first = self.selected(axis, &[0]);
        if self.shape[axis] > 1 {
            let all: Vec<usize> = vec![0; self.shape[axis]];
            if self.selected(axis, &all).values != self.values {
                return None;
            }
        }
        let mut shape = first.shape.clone();
        shape.remove(axis);
        first.reshaped(shape).ok()
    }
}

/// The stride of each axis, in values.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// The positions of all values of a shape in order, for the given strides.
pub fn walk(shape: &[usize], by: &[usize], start: usize) -> Vec<usize> {
    let num: usize = shape.iter().product();
    let mut places = Vec::with_capacity(num);
    let mut at = vec![0; shape.len()];
    let mut place = start;
    for _ in 0..num {
        places.push(place);
        for axis in (0..shape.len()).rev() {
            at[axis] += 1;
            place += by[axis];
            if at[axis] < shape[axis] {
                break;
            }
            place -= at[axis] * by[axis];
            at[axis] = 0;
        }
    }
    places
}

/// The shape that two shapes are broadcast to.
pub fn broadcast(a: &[usize], b: &[usize]) -> Read<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |shape: &[usize], at: usize| {
        let place = (at + shape.len()).checked_sub(rank);
        place.map_or(1, |at| shape[at])
    };
    let sizes = (0..rank).map(|at| match (size(a, at), size(b, at)) {
        (a, b) if a == b || b == 1 => Ok(a),
        (1, b) => Ok(b),
        _ => Err(format!("the shapes {a:?} and {b:?} are incompatible").into()),
    });
    sizes.collect()
}
