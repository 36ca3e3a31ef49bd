//! Divides what is left above the floors: by weight, up to each row's ceiling.
//!
//! Pure arithmetic. Invariant: the parts never exceed the total, and none of them falls when the total rises (a water
//! level that only rises), which is what makes a plan monotone.

/// One row's claim on what is left above the floors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Bytes wanted per unit of the level; 0 takes nothing.
    pub(super) weight: u64,
    /// Most bytes that it can use.
    pub(super) room: u64,
}

impl Claim {
    fn at(self, level: u64) -> u64 {
        self.weight.saturating_mul(level).min(self.room)
    }
}

/// Parts of `total` bytes for each claim. What cannot be placed (ceilings, division) stays with the caller.
pub(super) fn split(total: u64, claims: &[Claim]) -> Vec<u64> {
    let sum = |level: u64| claims.iter().fold(0u64, |sum, claim| sum.saturating_add(claim.at(level)));
    // The highest level whose sum still fits; every weight is at least 1, so no level above the total can.
    let (mut low, mut high) = (0u64, total);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if sum(middle) <= total {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    claims.iter().map(|claim| claim.at(low)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_the_weights() {
        let claims = [Claim { weight: 1, room: u64::MAX }, Claim { weight: 3, room: u64::MAX }];
        assert_eq!(split(100, &claims), [25, 75]);
    }

    #[test]
    fn what_a_full_row_leaves_goes_to_the_others() {
        let claims = [Claim { weight: 1, room: 10 }, Claim { weight: 1, room: u64::MAX }];
        assert_eq!(split(100, &claims), [10, 90]);
    }

    #[test]
    fn nothing_is_placed_beyond_the_ceilings() {
        let claims = [Claim { weight: 5, room: 10 }, Claim { weight: 0, room: u64::MAX }];
        assert_eq!(split(100, &claims), [10, 0]);
    }
}
