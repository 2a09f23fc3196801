//! How the axes of a graph's value are composed of those of a layer's output.
//!
//! Graphs reshape and transpose often, and merge the batch with other axes in between, as attention does with its
//! heads. A [`View`] tracks all of that without computing it: every axis is a product of factors of the layer's axes. A
//! layer that needs a different arrangement gets it by at most one reshape, one permutation and another reshape.

/// A layer's output with other axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Sizes of the factors of the output's axes, in its order. Factor 0 is the batch.
    factors: Vec<usize>,
    /// The factors of each axis, the outermost first. Factors of size 1 may be in none.
    axes: Vec<Vec<usize>>,
}

/// The factor that is the batch.
pub const BATCH: usize = 0;

/// How to rearrange a layer's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrangement {
    /// The sizes to reshape an item to first.
    pub split: Vec<usize>,
    /// The axis of these at each new position.
    pub order: Vec<usize>,
    /// The sizes of an item at the end.
    pub shape: Vec<usize>,
}

impl View {
    /// The axes of a layer's output for items of a shape, after the batch if there is one.
    pub fn fresh(batch: Option<usize>, dims: &[usize]) -> Self {
        let factors = [&[batch.unwrap_or(1)], dims].concat();
        let first = usize::from(batch.is_none());
        Self {
            axes: (first..factors.len()).map(|factor| vec![factor]).collect(),
            factors,
        }
    }

    /// Factors of a layer's output with the axes that they form.
    pub fn of(factors: Vec<usize>, axes: Vec<Vec<usize>>) -> Self {
        Self { factors, axes }
    }

    /// The sizes of all axes.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().map(|axis| self.size(axis)).collect()
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.axes.len()
    }

    /// The factors of each axis.
    pub fn axes(&self) -> &[Vec<usize>] {
        &self.axes
    }

    /// The sizes of all factors.
    pub fn factors(&self) -> &[usize] {
        &self.factors
    }

    /// The size of a factor.
    pub fn factor(&self, factor: usize) -> usize {
        self.factors[factor]
    }

    /// The product of factors.
    pub fn size(&self, factors: &[usize]) -> usize {
        factors.iter().map(|factor| self.factors[*factor]).product()
    }

    /// The axis that the batch is in.
    pub fn batch_axis(&self) -> Option<usize> {
        self.axes.iter().position(|axis| axis.contains(&BATCH))
    }

    /// The same values with axes of different sizes; `None` if an axis would split the batch.
    pub fn reshaped(&self, sizes: &[usize]) -> Option<Self> {
        let mut view = self.clone();
        let mut queue: Vec<usize> = self.axes.iter().flatten().copied().collect();
        let mut at = 0;
        let mut axes: Vec<Vec<usize>> = Vec::with_capacity(sizes.len());
        for size in sizes {
            let mut axis = Vec::new();
            let mut left = *size;
            // An axis of size 1 takes a factor of size 1 if it is next, which may be the batch.
            while left > 1 || (axis.is_empty() && at < queue.len() && view.factors[queue[at]] == 1)
            {
                let factor = *queue.get(at)?;
                let own = view.factors[factor];
                if own > 0 && left.is_multiple_of(own) {
                    left /= own;
                } else if factor != BATCH && own.is_multiple_of(left) {
                    view.split(factor, left);
                    let later = |other: &mut usize| *other += usize::from(*other > factor);
                    queue.iter_mut().for_each(later);
                    axes.iter_mut().flatten().chain(&mut axis).for_each(later);
                    queue.insert(at + 1, factor + 1);
                    left = 1;
                } else {
                    return None;
                }
                axis.push(queue[at]);
                at += 1;
            }
            axes.push(axis);
        }
        let rest = &queue[at..];
        if rest.iter().any(|factor| view.factors[*factor] != 1) {
            return None;
        }
        if rest.contains(&BATCH) {
            axes.last_mut()?.push(BATCH);
        }
        view.axes = axes;
        Some(view)
    }

    /// Splits a factor into `first` times the rest.
    fn split(&mut self, factor: usize, first: usize) {
        let rest = self.factors[factor] / first;
        self.factors[factor] = first;
        self.factors.insert(factor + 1, rest);
    }

    /// Axes in a different order; every axis is named once.
    pub fn permuted(&self, order: &[usize]) -> Self {
        Self {
            factors: self.factors.clone(),
            axes: order.iter().map(|at| self.axes[*at].clone()).collect(),
        }
    }

    /// Without an axis of size 1; `None` if it is the batch.
    pub fn squeezed(&self, at: usize) -> Option<Self> {
        if self.axes[at].contains(&BATCH) {
            return None;
        }
        let mut view = self.clone();
        view.axes.remove(at);
        Some(view)
    }

    /// With a new axis of size 1.
    pub fn unsqueezed(&self, at: usize) -> Self {
        let mut view = self.clone();
        view.axes.insert(at, Vec::new());
        view
    }

    /// How an item gets the axes `wanted`, which together are all of its factors.
    pub fn arrangement(&self, wanted: &[Vec<usize>]) -> Arrangement {
        let is_wide = |factor: &usize| self.factors[*factor] != 1;
        let order: Vec<usize> = wanted.iter().flatten().copied().filter(is_wide).collect();
        let mut source = order.clone();
        source.sort_unstable();
        let place = |factor: usize| {
            source
                .iter()
                .position(|other| *other == factor)
                .unwrap_or(0)
        };
        // Factors that stay adjacent move together.
        let mut runs: Vec<Vec<usize>> = Vec::new();
        for factor in order {
            match runs.last_mut() {
                Some(run)
                    if run
                        .last()
                        .is_some_and(|last| place(*last) + 1 == place(factor)) =>
                {
                    run.push(factor);
                }
                _ => runs.push(vec![factor]),
            }
        }
        let mut places: Vec<usize> = (0..runs.len()).collect();
        places.sort_by_key(|at| runs[*at][0]);
        let split = places.iter().map(|at| self.size(&runs[*at])).collect();
        let order = (0..runs.len()).map(|at| places.iter().position(|place| *place == at));
        Arrangement {
            split,
            order: order.map(Option::unwrap_or_default).collect(),
            shape: wanted.iter().map(|axis| self.size(axis)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_attention_are_one_permutation() {
        // [length, batch, features] as torch.nn.MultiheadAttention splits it.
        let view = View::fresh(Some(3), &[6, 8]).permuted(&[1, 0, 2]);
        let heads = view.reshaped(&[6, 3 * 2, 4]).unwrap().permuted(&[1, 0, 2]);
        let heads = heads.reshaped(&[3, 2, 6, 4]).unwrap();
        assert_eq!(heads.axes()[0], [BATCH]);
        let arrangement = heads.arrangement(&heads.axes()[1..]);
        assert_eq!(arrangement.split, [6, 2, 4]);
        assert_eq!(arrangement.order, [1, 0, 2]);
        assert_eq!(arrangement.shape, [2, 6, 4]);
    }

    #[test]
    fn a_batch_of_one_stays_in_front() {
        let view = View::fresh(Some(1), &[1024, 1, 1]);
        let flat = view.reshaped(&[1, 1024]).unwrap();
        assert_eq!(flat.axes(), [vec![BATCH], vec![1]]);
        let arrangement = flat.arrangement(&flat.axes()[1..]);
        assert_eq!(
            (arrangement.order, arrangement.shape),
            (vec![0], vec![1024])
        );
        // If the batch is merged with other axes, it is found there.
        let joined = view.reshaped(&[1024]).unwrap();
        assert_eq!(joined.axes(), [vec![BATCH, 1]]);
        assert!(View::fresh(Some(4), &[3]).reshaped(&[2, 6]).is_none());
    }

    #[test]
    fn axes_of_size_one_come_and_go() {
        let view = View::fresh(Some(2), &[1, 5]);
        assert!(view.squeezed(0).is_none());
        let view = view.squeezed(1).unwrap().unsqueezed(2);
        assert_eq!(view.shape(), [2, 5, 1]);
        assert_eq!(view.reshaped(&[2, 1, 1, 5]).unwrap().shape(), [2, 1, 1, 5]);
        assert!(view.reshaped(&[2, 4]).is_none());
    }
}
