//! Labels of the train split that are changed on purpose, to see what that does to training.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::generate::below;
use super::order::{Purpose, permutation, stream_seed};

/// The items whose class is changed, by their position, with another class: a fraction of all, of which each is equally
/// likely, and each other class is equally likely.
pub(super) fn changed_classes(
    classes: &[i32],
    num_classes: usize,
    fraction: f64,
    seed: u64,
) -> BTreeMap<u32, i32> {
    let num = (fraction * classes.len() as f64).round() as usize;
    if num_classes < 2 || num == 0 {
        return BTreeMap::new();
    }
    let chosen = permutation(classes.len(), seed, Purpose::LabelNoise, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(seed, Purpose::LabelNoise, 1));
    let changed = chosen.into_iter().take(num).map(|at| {
        let by = 1 + below(&mut rng, num_classes - 1);
        let other = (classes[at as usize] as usize + by) % num_classes;
        (at, other as i32)
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_of_the_labels_becomes_another_class() {
        let classes: Vec<i32> = (0..1000).map(|at| at % 4).collect();
        let changed = changed_classes(&classes, 4, 0.3, 5);
        assert_eq!(changed.len(), 300);
        let mut to = [0; 4];
        for (at, class) in &changed {
            assert_ne!(classes[*at as usize], *class);
            to[*class as usize] += 1;
        }
        assert!(to.iter().all(|num| (50..100).contains(num)), "{to:?}");
        assert_eq!(changed, changed_classes(&classes, 4, 0.3, 5));
        assert_ne!(changed, changed_classes(&classes, 4, 0.3, 6));
        assert!(changed_classes(&classes, 4, 0.0, 5).is_empty());
        assert!(changed_classes(&[0; 10], 1, 0.5, 5).is_empty());
        let all = changed_classes(&classes, 4, 1.0, 5);
        assert_eq!(all.len(), 1000);
    }
}
