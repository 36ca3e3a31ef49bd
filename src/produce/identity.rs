//! Who the producer is to the brokers: producer id and epoch, and where in a partition's sequence it stands.
//!
//! Each partition keeps the identity its batches were stamped with until all of them are decided, and only then takes
//! over a newer one with sequence 0. So raising the epoch for one partition (KIP-360) leaves the others alone, and a
//! pair of epoch and sequence never names two batches.
//!
//! A transactional producer gets its identity from its coordinator alone, which also raises the epoch: see `txn`.

/// What the broker knows a producer by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity {
    pub(super) id: i64,
    pub(super) epoch: i16,
}

/// How far the identity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// To be asked for, not before this time.
    Unknown { retry_at_ms: i64 },
    /// Asked for on some connection.
    Asked,
    /// Given by the cluster, epoch raised since by ourselves.
    Known(Identity),
}

impl Standing {
    pub(super) fn known(self) -> Option<Identity> {
        match self {
            Self::Known(identity) => Some(identity),
            Self::Unknown { .. } | Self::Asked => None,
        }
    }

    /// A partition can use `used` no longer. Raises the epoch, unless that has happened since; when no epoch is left a
    /// new id is asked for.
    pub(super) fn outdate(&mut self, used: Identity) {
        if *self != Self::Known(used) {
            return;
        }
        *self = match used.epoch.checked_add(1) {
            Some(epoch) if epoch < i16::MAX => Self::Known(Identity { epoch, ..used }),
            _ => Self::Unknown { retry_at_ms: i64::MIN },
        };
    }
}

/// The sequence number `count` records after `sequence`: they wrap from 2^31 - 1 to 0.
#[inline]
pub(super) fn sequence_after(sequence: i32, count: u32) -> i32 {
    let sum = i64::from(sequence) + i64::from(count);
    // Masked to 31 bits, so it fits.
    (sum & i64::from(i32::MAX)) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_at_two_to_the_31() {
        assert_eq!(sequence_after(0, 5), 5);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }

    #[test]
    fn an_epoch_is_raised_once_for_all_that_used_it_and_runs_out_into_a_new_id() {
        let used = Identity { id: 7, epoch: 3 };
        let mut standing = Standing::Known(used);
        standing.outdate(used);
        standing.outdate(used);
        assert_eq!(standing, Standing::Known(Identity { id: 7, epoch: 4 }));
        let last = Identity { id: 7, epoch: i16::MAX - 1 };
        let mut standing = Standing::Known(last);
        standing.outdate(last);
        assert_eq!(standing, Standing::Unknown { retry_at_ms: i64::MIN });
        standing.outdate(last);
        assert_eq!(standing.known(), None);
    }
}
