//! A value for each character.

/// A value for each character: pages of 256, allocated on first write.
#[derive(Clone, Debug)]
pub(super) struct CharTable<T> {
    usual: T,
    pages: Vec<Option<Box<[T; 256]>>>,
}

impl<T: Copy> CharTable<T> {
    pub(super) fn new(usual: T) -> Self {
        let pages = (0..=char::MAX as usize / 256).map(|_| None).collect();
        Self { usual, pages }
    }

    pub(super) fn get(&self, c: char) -> &T {
        match &self.pages[c as usize / 256] {
            Some(page) => &page[c as usize % 256],
            None => &self.usual,
        }
    }

    pub(super) fn get_mut(&mut self, c: char) -> &mut T {
        let usual = self.usual;
        let page = self.pages[c as usize / 256].get_or_insert_with(|| Box::new([usual; 256]));
        &mut page[c as usize % 256]
    }

    /// The written characters, and others of their pages, in order.
    pub(super) fn each(&self, mut see: impl FnMut(char, T)) {
        let pages = (0..).zip(&self.pages);
        for (high, page) in pages.filter_map(|(high, page)| Some((high, page.as_ref()?))) {
            for (low, value) in (0..).zip(page.iter()) {
                if let Some(c) = char::from_u32(high * 256 + low) {
                    see(c, *value);
                }
            }
        }
    }
}
