//! The items with the largest losses.

use std::cmp::Ordering;

/// An item that is kept for its loss.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept<T> {
    /// Its position in the split.
    pub item: usize,
    /// Its loss.
    pub loss: f64,
    /// Its data.
    pub known: T,
}

/// This many items, the largest loss first; among equal losses the first item.
#[derive(Clone, Debug)]
pub struct Worst<T> {
    most: usize,
    kept: Vec<Kept<T>>,
}

impl<T> Worst<T> {
    /// Keeps none yet.
    pub fn new(most: usize) -> Self {
        Self {
            most,
            kept: Vec::new(),
        }
    }

    /// Adds an item that follows all previous ones.
    pub fn add(&mut self, item: usize, loss: f64, known: impl FnOnce() -> T) {
        // Strictly larger: earlier items come first.
        let before = |kept: &Kept<T>| kept.loss.total_cmp(&loss) != Ordering::Less;
        let at = self.kept.partition_point(before);
        if at < self.most {
            let known = known();
            self.kept.insert(at, Kept { item, loss, known });
            self.kept.truncate(self.most);
        }
    }

    /// The kept items.
    pub fn into_kept(self) -> Vec<Kept<T>> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_and_of_equals_the_first() {
        let mut worst = Worst::new(3);
        for (item, loss) in [1.0, 3.0, 2.0, 3.0, 2.0, 0.5, 9.0].into_iter().enumerate() {
            worst.add(item, loss, || ());
        }
        let items: Vec<usize> = worst.into_kept().iter().map(|kept| kept.item).collect();
        assert_eq!(items, [6, 1, 3]);
    }
}
