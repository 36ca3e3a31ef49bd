//! Asks the processor to have memory in its cache soon.

/// Bytes of a cache line.
const LINE: usize = 64;

/// A hint that `at` is read soon; it changes nothing but what the cache holds.
#[inline(always)]
pub(crate) fn prefetch<T>(at: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for line in 0..size_of::<T>().div_ceil(LINE) {
            // SAFETY: a prefetch neither reads nor writes for the program, and no address makes it fault.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast::<i8>().wrapping_add(line * LINE)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_an_array_and_values_larger_than_a_line_may_be_asked_for() {
        let values = vec![[7u8; 96]; 43].into_boxed_slice(); // ends near the end of a page
        values.iter().for_each(prefetch);
        prefetch(&());
        assert!(values.iter().all(|value| *value == [7; 96]));
    }
}
