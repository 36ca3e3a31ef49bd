//! Byte strings of a store's overlay (keys, headers) in pages, so that entries that come and go do not go to the
//! allocator.
//!
//! Owns pages of [`PAGE_BYTES`], each cut into pieces of one size class; a longer string has a page of its own. A page
//! whose pieces are all free is given back, but for one that is kept. Invariant: a piece handed out lies in no other.
//! Bound: the caller's, who asks [`ByteSlab::growth`] before he allocates. Called by the overlay only. Needs no
//! `unsafe`: a piece is a page and an offset.

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Sizes of pieces. A step is at most a third, so at most a quarter of a piece is unused, beyond the smallest.
const CLASSES: [u16; 15] = [16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256, 336, 448, 672, 1008];
const LARGE: u8 = 15;
const NONE: u32 = u32::MAX;
/// Stands for the length of a string that has a page of its own.
const LONG: u16 = u16::MAX;
/// End of a page's list of free pieces.
const NO_PIECE: u16 = u16::MAX;

/// Where a byte string lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    page: u32,
    at: u16,
    /// Bytes of the string; [`LONG`] if its page knows.
    len: u16,
}

impl Piece {
    /// The empty string, which lies nowhere.
    pub(crate) const EMPTY: Self = Self { page: NONE, at: 0, len: 0 };
}

struct Page {
    data: Box<[u8]>,
    /// Bytes of the one string of a page of its own.
    len: u32,
    class: u8,
    /// Pieces handed out.
    used: u16,
    /// First free piece; a free piece begins with the offset of the next one.
    free: u16,
    /// Where the part that was never handed out begins.
    fresh: u16,
    /// Neighbours among the pages of the class that have a free piece.
    prev: u32,
    next: u32,
}

/// Byte strings in pages.
pub(crate) struct ByteSlab {
    pages: Vec<Page>,
    /// Places in `pages` without a page.
    vacant: Vec<u32>,
    /// By class, the first page with a free piece.
    open: [u32; CLASSES.len()],
    /// A whole page kept for the next that is needed.
    spare: Option<Box<[u8]>>,
    bytes: usize,
}

impl ByteSlab {
    pub(crate) fn new() -> Self {
        Self { pages: Vec::new(), vacant: Vec::new(), open: [NONE; CLASSES.len()], spare: None, bytes: 0 }
    }

    /// Bytes of all pages.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn class_of(len: usize) -> u8 {
        CLASSES.iter().position(|size| usize::from(*size) >= len).map_or(LARGE, |class| class as u8)
    }

    /// Bytes by which the slab would grow for a string of this length.
    pub(crate) fn growth(&self, len: usize) -> usize {
        match Self::class_of(len) {
            _ if len == 0 => 0,
            LARGE => len.next_multiple_of(16),
            class if self.open[usize::from(class)] != NONE || self.spare.is_some() => 0,
            _ => PAGE_BYTES,
        }
    }

    /// Keeps a copy of the bytes.
    pub(crate) fn insert(&mut self, bytes: &[u8]) -> Piece {
        let Ok(len) = u32::try_from(bytes.len()) else { return Piece::EMPTY };
        if len == 0 {
            return Piece::EMPTY;
        }
        let class = Self::class_of(bytes.len());
        let page = match class {
            LARGE => self.add_page(LARGE, vec![0; bytes.len().next_multiple_of(16)].into_boxed_slice()),
            _ if self.open[usize::from(class)] != NONE => self.open[usize::from(class)],
            _ => self.open_page(class),
        };
        let at = self.take(page, class);
        let start = usize::from(at);
        self.pages[page as usize].data[start..start + bytes.len()].copy_from_slice(bytes);
        if class == LARGE {
            self.pages[page as usize].len = len;
        }
        Piece { page, at, len: if class == LARGE { LONG } else { len as u16 } }
    }

    /// The bytes of a piece.
    #[inline]
    pub(crate) fn get(&self, piece: Piece) -> &[u8] {
        match self.pages.get(piece.page as usize) {
            Some(page) => {
                let start = usize::from(piece.at);
                let len = if piece.len == LONG { page.len as usize } else { usize::from(piece.len) };
                &page.data[start..start + len]
            }
            None => &[],
        }
    }

    /// Gives a piece back.
    pub(crate) fn remove(&mut self, piece: Piece) {
        let Some(page) = self.pages.get_mut(piece.page as usize) else { return };
        let was_full = page.used == Self::pieces(page.class);
        page.used -= 1;
        if page.class == LARGE {
            return self.give_back(piece.page);
        }
        let start = usize::from(piece.at);
        page.data[start..start + 2].copy_from_slice(&page.free.to_le_bytes());
        page.free = piece.at;
        if page.used == 0 {
            if !was_full {
                self.close(piece.page);
            }
            self.give_back(piece.page);
        } else if was_full {
            self.open(piece.page);
        }
    }

    fn pieces(class: u8) -> u16 {
        CLASSES.get(usize::from(class)).map_or(1, |size| PAGE_BYTES as u16 / size)
    }

    fn add_page(&mut self, class: u8, data: Box<[u8]>) -> u32 {
        self.bytes += data.len();
        let page = Page { data, len: 0, class, used: 0, free: NO_PIECE, fresh: 0, prev: NONE, next: NONE };
        match self.vacant.pop() {
            Some(at) => {
                self.pages[at as usize] = page;
                at
            }
            None => {
                self.pages.push(page);
                (self.pages.len() - 1) as u32
            }
        }
    }

    fn open_page(&mut self, class: u8) -> u32 {
        let data = match self.spare.take() {
            Some(data) => {
                self.bytes -= PAGE_BYTES;
                data
            }
            None => vec![0; PAGE_BYTES].into_boxed_slice(),
        };
        let at = self.add_page(class, data);
        self.open(at);
        at
    }

    /// Hands out a piece of a page that has one.
    fn take(&mut self, at: u32, class: u8) -> u16 {
        let page = &mut self.pages[at as usize];
        page.used += 1;
        let full = page.used == Self::pieces(class);
        let piece = if page.free == NO_PIECE {
            let fresh = page.fresh;
            page.fresh += CLASSES.get(usize::from(class)).copied().unwrap_or(0);
            fresh
        } else {
            let free = page.free;
            let start = usize::from(free);
            page.free = u16::from_le_bytes([page.data[start], page.data[start + 1]]);
            free
        };
        if full && class != LARGE {
            self.close(at);
        }
        piece
    }

    /// Puts a page into its class's list.
    fn open(&mut self, at: u32) {
        let class = usize::from(self.pages[at as usize].class);
        let next = std::mem::replace(&mut self.open[class], at);
        let page = &mut self.pages[at as usize];
        (page.prev, page.next) = (NONE, next);
        if let Some(next) = self.pages.get_mut(next as usize) {
            next.prev = at;
        }
    }

    /// Takes a page out of its class's list.
    fn close(&mut self, at: u32) {
        let page = &self.pages[at as usize];
        let (class, prev, next) = (usize::from(page.class), page.prev, page.next);
        match self.pages.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.open[class] = next,
        }
        if let Some(next) = self.pages.get_mut(next as usize) {
            next.prev = prev;
        }
    }

    fn give_back(&mut self, at: u32) {
        let data = std::mem::take(&mut self.pages[at as usize].data);
        if data.len() == PAGE_BYTES && self.spare.is_none() {
            self.spare = Some(data);
        } else {
            self.bytes -= data.len();
        }
        self.vacant.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_of_all_lengths_stay_what_they_are_while_others_come_and_go() {
        let mut slab = ByteSlab::new();
        let mut random = fastrand::Rng::with_seed(7);
        let mut live: Vec<(Piece, Vec<u8>)> = Vec::new();
        for round in 0..20_000 {
            if random.u8(..) < 120 && !live.is_empty() {
                let (piece, _) = live.swap_remove(random.usize(..live.len()));
                slab.remove(piece);
            } else {
                let len = if random.u8(..) < 8 { random.usize(..6000) } else { random.usize(..80) };
                let text: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
                let before = slab.bytes();
                let growth = slab.growth(len);
                let piece = slab.insert(&text);
                assert_eq!(slab.bytes(), before + growth, "round {round}, length {len}");
                live.push((piece, text));
            }
        }
        assert!(live.len() > 500);
        for (piece, text) in &live {
            assert_eq!(slab.get(*piece), text);
        }
        for (piece, _) in live {
            slab.remove(piece);
        }
        assert_eq!(slab.bytes(), PAGE_BYTES, "one page is kept");
    }

    #[test]
    fn a_page_of_one_class_serves_another_when_it_is_empty() {
        let mut slab = ByteSlab::new();
        let small: Vec<Piece> = (0..256u32).map(|n| slab.insert(&n.to_be_bytes())).collect();
        assert_eq!(slab.bytes(), PAGE_BYTES);
        assert_eq!(slab.growth(4), PAGE_BYTES, "256 pieces of 16 bytes fill a page");
        small.into_iter().for_each(|piece| slab.remove(piece));
        assert_eq!(slab.growth(1000), 0);
        slab.insert(&[1; 1000]);
        assert_eq!(slab.bytes(), PAGE_BYTES);
    }
}
