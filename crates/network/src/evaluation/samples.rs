//! Items that are shown: some that are spread evenly over the split, and some with the largest losses.

use std::collections::BTreeMap;

use runner_core::data::{Pictures, Places, Split};
use runner_core::record::evaluation::Sample;

use super::worst::{Kept, Worst};
use super::{SIDE, plain};

/// Items of each kind.
const NUM_EACH: usize = 3;

/// The positions of items that are spread evenly over a split, at most this many.
pub fn spread(num_items: usize, most: usize) -> Vec<usize> {
    let num = most.min(num_items);
    let mut items: Vec<usize> = (0..num)
        .map(|at| (2 * at + 1) * num_items / (2 * num))
        .collect();
    items.dedup();
    items
}

/// The pictures of what is known of an item.
pub struct Drawn {
    /// The mask, if that is predicted.
    pub target: Option<String>,
    /// The predicted mask, or the reconstructed item.
    pub predicted: String,
}

/// The items that are kept so far.
pub struct Samples<T> {
    evenly: Vec<usize>,
    kept: Vec<Kept<T>>,
    worst: Worst<T>,
}

impl<T> Samples<T> {
    /// Keeps none yet of a split with so many items.
    pub fn new(num_items: usize) -> Self {
        Self {
            evenly: spread(num_items, NUM_EACH),
            kept: Vec::new(),
            worst: Worst::new(NUM_EACH),
        }
    }

    /// Adds an item that follows all previous ones.
    pub fn add(&mut self, item: usize, loss: f64, known: impl Fn() -> T) {
        if self.evenly.contains(&item) {
            let known = known();
            self.kept.push(Kept { item, loss, known });
        }
        self.worst.add(item, loss, known);
    }

    /// The kept items as pictures, in the order of the split. `draw` adds those of what is known; items without are left
    /// out.
    pub fn into_shown(
        self,
        split: &Split,
        places: &Places<'_>,
        draw: impl Fn(Option<&Pictures<'_>>, T) -> Option<Drawn>,
    ) -> Vec<Sample> {
        let pictures = Pictures::of(split.set());
        let shown = self.into_kept().into_iter().filter_map(|kept| {
            let drawn = draw(pictures.as_ref(), kept.known)?;
            let input = pictures.as_ref().zip(split.row(kept.item));
            Some(Sample {
                item: kept.item,
                loss: plain(kept.loss),
                place: places.of(kept.item),
                input: input.and_then(|(pictures, row)| pictures.thumbnail(row, SIDE)),
                target: drawn.target,
                predicted: drawn.predicted,
            })
        });
        shown.collect()
    }

    /// The kept items in the order of the split.
    fn into_kept(self) -> Vec<Kept<T>> {
        let all = self.worst.into_kept().into_iter().chain(self.kept);
        let by_item: BTreeMap<usize, Kept<T>> = all.map(|kept| (kept.item, kept)).collect();
        by_item.into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_spread_and_the_worst_are_among_them_once() {
        assert_eq!(spread(10, 3), [1, 5, 8]);
        assert_eq!(spread(2, 3), [0, 1]);
        assert_eq!(spread(0, 3), [0; 0]);
        let mut samples = Samples::new(10);
        for (item, loss) in [0.0, 9.0, 1.0, 0.0, 7.0, 2.0, 0.0, 8.0, 0.0, 0.0]
            .into_iter()
            .enumerate()
        {
            samples.add(item, loss, || ());
        }
        let items: Vec<usize> = samples.into_kept().iter().map(|kept| kept.item).collect();
        assert_eq!(items, [1, 4, 5, 7, 8]);
    }
}
