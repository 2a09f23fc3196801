//! Assignment of items to splits: disjoint, seeded; on request stratified, grouped, in order or in folds.

use std::collections::BTreeMap;

use super::order::{Purpose, permutation, shuffle};
use crate::spec::data::{SplitOrder, SplitSpec};

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
    /// The sizes for `num` items: fractions are rounded, and the train split gets the rest.
    pub fn new(num: usize, split: &SplitSpec) -> Self {
        let share = |fraction: f64| (num as f64 * fraction).round() as usize;
        if let Some(folds) = split.folds {
            let test = share(split.test).min(num);
            let rest = num - test;
            // Items are dealt like cards: the first folds get one more.
            let valid = (rest + folds - 1).saturating_sub(split.fold) / folds;
            return Self {
                train: rest - valid,
                valid,
                test,
            };
        }
        let valid = share(split.valid).min(num);
        let test = share(split.test).min(num - valid);
        Self {
            train: num - valid - test,
            valid,
            test,
        }
    }
}

/// Items of each split: ascending, or in their order if they have one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assigned {
    /// The train split.
    pub train: Vec<u32>,
    /// The valid split.
    pub valid: Vec<u32>,
    /// The test split.
    pub test: Vec<u32>,
}

/// What is known about items when they are assigned, by item position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The class of each, for stratified splits.
    pub classes: Option<&'a [i32]>,
    /// The groups that are kept together.
    pub groups: Option<&'a [i64]>,
    /// The sort keys; equal ones stay in their order.
    pub keys: Option<&'a [f64]>,
}

/// Assigns `num_items` items.
pub fn assign(num_items: usize, known: Known<'_>, split: &SplitSpec) -> Assigned {
    match (known.groups, split.order) {
        (Some(groups), _) => by_groups(groups, known.keys, split),
        (None, SplitOrder::Time) => in_order(num_items, known.keys, split),
        (None, SplitOrder::Random) => at_random(num_items, known.classes, split),
    }
}

/// The positions of items in their order.
pub fn ordered(num_items: usize, keys: Option<&[f64]>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..num_items as u32).collect();
    if let Some(keys) = keys {
        order.sort_by(|a, b| keys[*a as usize].total_cmp(&keys[*b as usize]));
    }
    order
}

fn in_order(num_items: usize, keys: Option<&[f64]>, split: &SplitSpec) -> Assigned {
    // Ordered folds are refused: most would be trained on later items than the ones they are evaluated on.
    let sizes = Sizes::new(num_items, split);
    let mut train = ordered(num_items, keys);
    let test = train.split_off(num_items - sizes.test);
    let valid = train.split_off(sizes.train);
    Assigned { train, valid, test }
}

fn at_random(num_items: usize, classes: Option<&[i32]>, split: &SplitSpec) -> Assigned {
    let sizes = Sizes::new(num_items, split);
    let mut groups: Vec<Vec<u32>> = match classes.filter(|_| split.stratified) {
        None => vec![permutation(num_items, split.seed, Purpose::Split, 0)],
        Some(classes) => {
            let mut groups: BTreeMap<i32, Vec<u32>> = BTreeMap::new();
            for (at, class) in classes.iter().enumerate() {
                groups.entry(*class).or_default().push(at as u32);
            }
            for (class, group) in &mut groups {
                shuffle(group, split.seed, Purpose::Split, *class as u64);
            }
            groups.into_values().collect()
        }
    };
    let are_classes = groups.len() > 1;
    let mut take = |num: usize, keep: usize| {
        let available: Vec<_> = groups.iter().map(Vec::len).collect();
        let mut shares = apportion(num, &available);
        if are_classes {
            leave(keep, &mut shares, &available);
        }
        let mut taken: Vec<u32> = Vec::with_capacity(num);
        for (group, share) in groups.iter_mut().zip(shares) {
            taken.extend(group.drain(group.len() - share..));
        }
        taken.sort_unstable();
        taken
    };
    if let Some(folds) = split.folds {
        let test = take(sizes.test, 1);
        let (mut train, mut valid) = (Vec::new(), Vec::new());
        for (at, item) in groups.into_iter().flatten().enumerate() {
            if at % folds == split.fold {
                valid.push(item)
            } else {
                train.push(item)
            }
        }
        train.sort_unstable();
        valid.sort_unstable();
        return Assigned { train, valid, test };
    }
    let valid = take(sizes.valid, 1);
    let test = take(sizes.test, 1);
    let mut train: Vec<u32> = groups.into_iter().flatten().collect();
    train.sort_unstable();
    Assigned { train, valid, test }
}

/// Leaves the last items of each class in the train split: other classes give items instead, those with the most left
/// first.
fn leave(keep: usize, shares: &mut [usize], available: &[usize]) {
    let left = |shares: &[usize], at: usize| available[at] - shares[at];
    let mut owed = 0;
    for at in 0..shares.len() {
        while shares[at] > 0 && left(shares, at) < keep {
            shares[at] -= 1;
            owed += 1;
        }
    }
    for _ in 0..owed {
        let most = (0..shares.len()).rev().max_by_key(|at| left(shares, *at));
        match most.filter(|at| left(shares, *at) > keep) {
            Some(at) => shares[at] += 1,
            None => return,
        }
    }
}

/// Whole groups go to the test split, then to the valid split, as long as each brings the split closer to its fraction:
/// in random order, or in time order with the groups whose last item is latest first. So nothing in the train split is
/// later than everything held out. Folds take the largest groups first, each into the fold with the fewest items.
fn by_groups(groups: &[i64], keys: Option<&[f64]>, split: &SplitSpec) -> Assigned {
    let mut members: Vec<(i64, Vec<u32>)> = Vec::new();
    let mut order = ordered(groups.len(), keys);
    let mut place = vec![0; groups.len()];
    for (at, item) in (0_u32..).zip(&order) {
        place[*item as usize] = at;
    }
    let in_order = |items: &mut Vec<u32>| items.sort_unstable_by_key(|at| place[*at as usize]);
    order.sort_by_key(|at| groups[*at as usize]);
    for at in order {
        let group = groups[at as usize];
        match members.last_mut() {
            Some((last, items)) if *last == group => items.push(at),
            _ => members.push((group, vec![at])),
        }
    }
    let drawn = match split.order {
        SplitOrder::Random => permutation(members.len(), split.seed, Purpose::Split, 0),
        SplitOrder::Time => {
            let last = |at: &u32| members[*at as usize].1.last().map(|at| place[*at as usize]);
            let mut order = ordered(members.len(), None);
            order.sort_by_key(last);
            order
        }
    };
    let mut waiting: Vec<Vec<u32>> = drawn
        .iter()
        .map(|at| std::mem::take(&mut members[*at as usize].1))
        .collect();
    let wanted = |fraction: f64| (groups.len() as f64 * fraction).round() as usize;
    let take = |num: usize, waiting: &mut Vec<Vec<u32>>| {
        let mut taken: Vec<u32> = Vec::new();
        while let Some(next) = waiting.last() {
            let after = taken.len() + next.len();
            let is_nearer = after.abs_diff(num) < taken.len().abs_diff(num);
            // One group must be left to train on.
            if !is_nearer || waiting.len() == 1 {
                break;
            }
            taken.extend(waiting.pop().unwrap_or_default());
        }
        in_order(&mut taken);
        taken
    };
    let test = take(wanted(split.test), &mut waiting);
    let (mut train, valid) = match split.folds {
        None => {
            let valid = take(wanted(split.valid), &mut waiting);
            (waiting.concat(), valid)
        }
        Some(folds) => {
            waiting.sort_by_key(|group| std::cmp::Reverse(group.len()));
            let mut parts: Vec<Vec<u32>> = vec![Vec::new(); folds];
            for group in waiting {
                let smallest = parts.iter_mut().min_by_key(|part| part.len());
                smallest.into_iter().for_each(|part| part.extend(&group));
            }
            let mut valid = std::mem::take(&mut parts[split.fold.min(folds - 1)]);
            in_order(&mut valid);
            (parts.concat(), valid)
        }
    };
    in_order(&mut train);
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
            ..SplitSpec::default()
        }
    }

    fn all(assigned: &Assigned) -> Vec<u32> {
        let Assigned { train, valid, test } = assigned;
        let mut all = [train.as_slice(), valid, test].concat();
        all.sort_unstable();
        all
    }

    fn of_classes(classes: &[i32]) -> Known<'_> {
        Known {
            classes: Some(classes),
            ..Known::default()
        }
    }

    #[test]
    fn splits_are_disjoint_and_complete() {
        let classes: Vec<i32> = (0..103).map(|i| i % 7).collect();
        let groups: Vec<i64> = (0..103).map(|i| i % 10).collect();
        let everything: Vec<u32> = (0..103).collect();
        let known = Known {
            groups: Some(&groups),
            ..of_classes(&classes)
        };
        for (stratified, order) in [
            (false, SplitOrder::Random),
            (true, SplitOrder::Random),
            (false, SplitOrder::Time),
        ] {
            for folds in [None, Some(4)] {
                if folds.is_some() && order == SplitOrder::Time {
                    continue;
                }
                let split = SplitSpec {
                    order,
                    folds,
                    ..spec(0.2, 0.1, stratified)
                };
                let plain = assign(103, of_classes(&classes), &split);
                assert_eq!(all(&plain), everything);
                let sizes = Sizes::new(103, &split);
                if order == SplitOrder::Random {
                    let found = (plain.train.len(), plain.valid.len(), plain.test.len());
                    assert_eq!(found, (sizes.train, sizes.valid, sizes.test));
                }
                assert_eq!(all(&assign(103, known, &split)), everything);
            }
        }
    }

    #[test]
    fn every_item_is_valid_in_one_fold() {
        let classes: Vec<i32> = (0..50).map(|i| i32::from(i < 10)).collect();
        let mut seen = Vec::new();
        for fold in 0..5 {
            let split = SplitSpec {
                folds: Some(5),
                fold,
                ..spec(0.2, 0.0, true)
            };
            let valid = assign(50, of_classes(&classes), &split).valid;
            assert_eq!(
                (valid.len(), valid.iter().filter(|at| **at < 10).count()),
                (10, 2)
            );
            seen.extend(valid);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn groups_stay_together() {
        let groups: Vec<i64> = (0..100).map(|i| i / 7).collect();
        let known = Known {
            groups: Some(&groups),
            ..Known::default()
        };
        for folds in [None, Some(3)] {
            let split = SplitSpec {
                folds,
                ..spec(0.25, 0.2, false)
            };
            let assigned = assign(100, known, &split);
            let of = |items: &[u32]| -> std::collections::BTreeSet<i64> {
                items.iter().map(|at| groups[*at as usize]).collect()
            };
            let (train, valid, test) =
                (of(&assigned.train), of(&assigned.valid), of(&assigned.test));
            assert!(
                train.is_disjoint(&valid) && train.is_disjoint(&test) && valid.is_disjoint(&test)
            );
            assert!(
                (14..=28).contains(&assigned.test.len()),
                "{}",
                assigned.test.len()
            );
            assert!(assigned.valid.len() >= 18, "{}", assigned.valid.len());
        }
    }

    #[test]
    fn the_last_items_in_time_are_held_out() {
        let keys: Vec<f64> = (0..10).map(|at| f64::from((at * 7) % 10)).collect();
        let split = SplitSpec {
            order: SplitOrder::Time,
            ..spec(0.2, 0.1, true)
        };
        let known = Known {
            keys: Some(&keys),
            ..Known::default()
        };
        let assigned = assign(10, known, &split);
        let times =
            |items: &[u32]| -> Vec<f64> { items.iter().map(|at| keys[*at as usize]).collect() };
        assert_eq!(times(&assigned.train), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(times(&assigned.valid), [7.0, 8.0]);
        assert_eq!(times(&assigned.test), [9.0]);
    }

    #[test]
    fn the_groups_that_end_last_are_held_out_in_time() {
        // Group 2 begins first and ends last.
        let groups = [2, 0, 0, 1, 1, 1, 2, 2];
        let keys: Vec<f64> = (0..8).map(f64::from).collect();
        let known = |keys| Known {
            groups: Some(&groups),
            keys,
            ..Known::default()
        };
        let split = SplitSpec {
            order: SplitOrder::Time,
            ..spec(0.4, 0.3, false)
        };
        let assigned = assign(8, known(Some(&keys)), &split);
        assert_eq!(assigned.test, [0, 6, 7]);
        assert_eq!(assigned.valid, [3, 4, 5]);
        assert_eq!(assigned.train, [1, 2]);
        assert_eq!(assigned, assign(8, known(None), &split));
        let backwards: Vec<f64> = keys.iter().map(|key| -key).collect();
        let assigned = assign(8, known(Some(&backwards)), &split);
        assert_eq!(
            (assigned.test, assigned.train),
            (vec![7, 6, 0], vec![5, 4, 3])
        );
    }

    #[test]
    fn every_class_keeps_an_item_to_be_learned_from() {
        let mut classes = vec![0; 40];
        classes.extend([1, 2, 2, 3]);
        for seed in 0..20 {
            let split = SplitSpec {
                seed,
                ..spec(0.4, 0.3, true)
            };
            let assigned = assign(44, of_classes(&classes), &split);
            let learned: std::collections::BTreeSet<_> = assigned
                .train
                .iter()
                .map(|at| classes[*at as usize])
                .collect();
            assert_eq!(learned.len(), 4, "{seed}");
            let sizes = Sizes::new(44, &split);
            assert_eq!(
                (assigned.valid.len(), assigned.test.len()),
                (sizes.valid, sizes.test)
            );
        }
    }

    #[test]
    fn stratified_splits_keep_the_shares_of_classes() {
        let classes: Vec<i32> = (0..200).map(|i| i32::from(i % 4 == 0)).collect();
        let assigned = assign(200, of_classes(&classes), &spec(0.2, 0.0, true));
        let ones = assigned
            .valid
            .iter()
            .filter(|at| classes[**at as usize] == 1)
            .count();
        assert_eq!((assigned.valid.len(), ones), (40, 10));
    }

    #[test]
    fn the_seed_decides_the_split() {
        let classes = vec![0; 50];
        let assign = |split: &SplitSpec| assign(50, of_classes(&classes), split);
        let first = assign(&spec(0.5, 0.0, true));
        assert_eq!(first, assign(&spec(0.5, 0.0, true)));
        let other = SplitSpec {
            seed: 4,
            ..spec(0.5, 0.0, true)
        };
        assert_ne!(first, assign(&other));
    }
}
