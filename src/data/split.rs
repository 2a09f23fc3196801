//! Which item goes into which split: disjoint, seeded, stratified where asked.

use super::order::{Purpose, permutation, shuffle};
use crate::spec::data::SplitSpec;

/// How many items each split gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Items of the train split.
    pub train: usize,
    /// Items of the valid split.
    pub valid: usize,
    /// Items of the test split.
    pub test: usize,
}

impl Sizes {
    /// The sizes for `num` items: fractions are rounded, and the train split takes what is left.
    pub fn new(num: usize, split: &SplitSpec) -> Self {
        let share = |fraction: f64| (num as f64 * fraction).round() as usize;
        let valid = share(split.valid).min(num);
        let test = share(split.test).min(num - valid);
        Self {
            train: num - valid - test,
            valid,
            test,
        }
    }
}

/// Indices of the items of each split, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// The train split.
    pub train: Vec<u32>,
    /// The valid split.
    pub valid: Vec<u32>,
    /// The test split.
    pub test: Vec<u32>,
}

/// Assigns `num_items` items; where the split is stratified, by the class of each.
pub fn assign(num_items: usize, classes: Option<&[i32]>, split: &SplitSpec) -> Assigned {
    let sizes = Sizes::new(num_items, split);
    let mut groups: Vec<Vec<u32>> = match classes.filter(|_| split.stratified) {
        None => vec![permutation(num_items, split.seed, Purpose::Split, 0)],
        Some(classes) => {
            let num_classes = classes.iter().max().map_or(0, |last| *last as usize + 1);
            let mut groups = vec![Vec::new(); num_classes];
            for (at, class) in classes.iter().enumerate() {
                groups[*class as usize].push(at as u32);
            }
            for (class, group) in groups.iter_mut().enumerate() {
                shuffle(group, split.seed, Purpose::Split, class as u64);
            }
            groups
        }
    };
    let mut take = |num: usize| {
        let available: Vec<_> = groups.iter().map(Vec::len).collect();
        let shares = apportion(num, &available);
        let mut taken: Vec<u32> = Vec::with_capacity(num);
        for (group, share) in groups.iter_mut().zip(shares) {
            taken.extend(group.drain(group.len() - share..));
        }
        taken.sort_unstable();
        taken
    };
    let valid = take(sizes.valid);
    let test = take(sizes.test);
    let train = take(sizes.train);
    Assigned { train, valid, test }
}

/// Splits `num` over groups in proportion to their sizes, by the method of largest remainders; ties go
/// to the first. No group gives more than it has.
fn apportion(num: usize, sizes: &[usize]) -> Vec<usize> {
    let total: usize = sizes.iter().sum();
    if total == 0 {
        return vec![0; sizes.len()];
    }
    let quota = |size: usize| (size as u128 * num as u128) / total as u128;
    let remainder = |size: usize| (size as u128 * num as u128) % total as u128;
    let mut shares: Vec<_> = sizes.iter().map(|size| quota(*size) as usize).collect();
    let mut order: Vec<_> = (0..sizes.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(remainder(sizes[*at])));
    let left = num - shares.iter().sum::<usize>();
    for at in order
        .into_iter()
        .filter(|at| remainder(sizes[*at]) > 0)
        .take(left)
    {
        shares[at] += 1;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(valid: f64, test: f64, stratified: bool) -> SplitSpec {
        SplitSpec {
            valid,
            test,
            stratified,
            seed: 3,
            order: Default::default(),
            order_by: None,
            group_by: None,
            folds: None,
            fold: 0,
        }
    }

    #[test]
    fn splits_are_disjoint_and_complete() {
        let labels: Vec<i32> = (0..103).map(|i| i % 7).collect();
        for stratified in [false, true] {
            let assigned = assign(103, Some(&labels), &spec(0.2, 0.1, stratified));
            let mut all = [assigned.train, assigned.valid, assigned.test].concat();
            assert_eq!(all.len(), 103);
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len(), 103);
        }
    }

    #[test]
    fn stratified_splits_keep_the_shares_of_classes() {
        let labels: Vec<i32> = (0..200).map(|i| i32::from(i % 4 == 0)).collect();
        let assigned = assign(200, Some(&labels), &spec(0.2, 0.0, true));
        let ones = assigned
            .valid
            .iter()
            .filter(|at| labels[**at as usize] == 1)
            .count();
        assert_eq!((assigned.valid.len(), ones), (40, 10));
    }

    #[test]
    fn the_seed_decides_the_split() {
        let labels = vec![0; 50];
        let assign = |split: &SplitSpec| assign(50, Some(&labels), split);
        let first = assign(&spec(0.5, 0.0, true));
        assert_eq!(first, assign(&spec(0.5, 0.0, true)));
        let other = SplitSpec {
            seed: 4,
            ..spec(0.5, 0.0, true)
        };
        assert_ne!(first, assign(&other));
    }
}
