//! What is changed while iterators are open: what was there before, so that they go on seeing it.
//!
//! Invariant: an iterator that began at a number sees the first image of a key at that number or above, or else what is
//! in the store. Bound: [`IMAGES_BYTES`] a store.
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Bytes of all images of a store.
const IMAGES_BYTES: usize = 1 << 20;

/// Timestamp and encoded value; `None`: the key was not there.
pub(super) type Image = Option<(i64, Vec<u8>)>;

/// Images of one store on one thread.
#[derive(Default)]
pub(crate) struct Watch {
    open: Cell<u32>,
    next: Cell<u64>,
    /// When the youngest iterator began.
    latest: Cell<u64>,
    bytes: Cell<usize>,
    /// By key (partition included) and number.
    images: RefCell<BTreeMap<(Vec<u8>, u64), Image>>,
}

impl Watch {
    /// An iterator begins.
    pub(super) fn begin(&self) -> u64 {
        self.open.set(self.open.get() + 1);
        let begun = self.next.get();
        self.latest.set(begun);
        begun
    }

    /// One ends.
    pub(super) fn end(&self) {
        self.open.set(self.open.get().saturating_sub(1));
        if self.open.get() == 0 {
            self.images.borrow_mut().clear();
            self.bytes.set(0);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.get() > 0
    }

    /// Whether every open iterator has an image of this key.
    pub(super) fn knows(&self, key: &[u8]) -> bool {
        let images = self.images.borrow();
        images.range((key.to_vec(), self.latest.get())..).next().is_some_and(|((at, _), _)| at == key)
    }

    /// Keeps what a key was; false when there is no room.
    pub(super) fn keep(&self, key: &[u8], image: Image) -> bool {
        let bytes = self.bytes.get() + key.len() + image.as_ref().map_or(0, |(_, value)| value.len());
        if bytes > IMAGES_BYTES {
            return false;
        }
        self.bytes.set(bytes);
        let number = self.next.get();
        self.next.set(number + 1);
        self.images.borrow_mut().insert((key.to_vec(), number), image);
        true
    }

    /// What an iterator that began at `begun` sees at a key instead of the store's row.
    pub(super) fn image(&self, key: &[u8], begun: u64) -> Option<Image> {
        let images = self.images.borrow();
        if images.is_empty() {
            return None;
        }
        let ((at, _), image) = images.range((key.to_vec(), begun)..).next()?;
        (at == key).then(|| image.clone())
    }

    /// Keys in a range that were there when the iterator began and have changed since, in order.
    pub(super) fn changed(&self, from: &[u8], to: &[u8], begun: u64) -> Vec<Vec<u8>> {
        let images = self.images.borrow();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut last: Option<&[u8]> = None;
        for ((key, number), image) in images.range((from.to_vec(), 0)..(to.to_vec(), 0)) {
            if *number < begun || last == Some(key.as_slice()) {
                continue;
            }
            last = Some(key);
            if image.is_some() {
                keys.push(key.clone());
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(value: &[u8]) -> Image {
        Some((0, value.to_vec()))
    }

    #[test]
    fn an_iterator_sees_what_was_there_when_it_began() {
        let watch = Watch::default();
        let first = watch.begin();
        assert!(watch.keep(b"k", image(b"1")) && watch.knows(b"k"));
        let second = watch.begin();
        assert!(!watch.knows(b"k"), "the second iterator has no image yet");
        assert!(watch.keep(b"k", image(b"2")) && watch.keep(b"new", None));
        assert_eq!(watch.image(b"k", first), Some(image(b"1")));
        assert_eq!(watch.image(b"k", second), Some(image(b"2")));
        assert_eq!(watch.image(b"new", first), Some(None));
        assert_eq!(watch.image(b"other", first), None);
        assert_eq!(watch.changed(b"a", b"z", first), [b"k".to_vec()]);
        watch.end();
        assert!(watch.is_open());
        watch.end();
        assert_eq!(watch.image(b"k", first), None);
        assert!(!watch.keep(b"k", image(&vec![0; IMAGES_BYTES])));
    }
}
