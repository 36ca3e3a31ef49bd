//! The threads: stream, restore, control, governor.
