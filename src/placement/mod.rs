//! Which member owns which task: pure functions of what the group offers.
pub(crate) mod leading;
