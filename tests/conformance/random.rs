//! CPython's random numbers (the Mersenne Twister), so that the scenarios of a seed are the same in both languages.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// As `random.Random(seed)`.
pub struct Random {
    state: [u32; WORDS],
    next: usize,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        let words = [seed as u32, (seed >> 32) as u32];
        let key = if words[1] == 0 { &words[..1] } else { &words[..] };
        let mut state = [0u32; WORDS];
        state[0] = 19_650_218;
        for i in 1..WORDS {
            let before = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(i as u32);
        }
        let (mut i, mut j) = (1, 0);
        let mixed =
            |state: &[u32; WORDS], i: usize, by: u32| state[i] ^ (state[i - 1] ^ (state[i - 1] >> 30)).wrapping_mul(by);
        for _ in 0..WORDS.max(key.len()) {
            state[i] = mixed(&state, i, 1_664_525).wrapping_add(key[j]).wrapping_add(j as u32);
            (i, j) = (i + 1, (j + 1) % key.len());
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        for _ in 1..WORDS {
            state[i] = mixed(&state, i, 1_566_083_941).wrapping_sub(i as u32);
            i += 1;
            if i == WORDS {
                state[0] = state[WORDS - 1];
                i = 1;
            }
        }
        state[0] = 0x8000_0000;
        Self { state, next: WORDS }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            for i in 0..WORDS {
                let y = (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % WORDS] & 0x7fff_ffff);
                let odd = if y & 1 == 0 { 0 } else { 0x9908_b0df };
                self.state[i] = self.state[(i + MIDDLE) % WORDS] ^ (y >> 1) ^ odd;
            }
            self.next = 0;
        }
        let mut y = self.state[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    /// As `random()`: at least 0, below 1.
    pub fn random(&mut self) -> f64 {
        let (a, b) = (self.word() >> 5, self.word() >> 6);
        (f64::from(a) * 67_108_864.0 + f64::from(b)) / 9_007_199_254_740_992.0
    }

    /// Below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        let bits = usize::BITS - n.leading_zeros();
        loop {
            let drawn = (self.word() >> (32 - bits)) as usize;
            if drawn < n {
                return drawn;
            }
        }
    }

    /// As `choice`.
    pub fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// As `randint`: both ends may come.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// As `sample` of a short list.
    pub fn sample<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut pool = of.to_vec();
        let mut drawn = Vec::new();
        for i in 0..count {
            let j = self.below(of.len() - i);
            drawn.push(pool[j]);
            pool[j] = pool[of.len() - i - 1];
        }
        drawn
    }
}
