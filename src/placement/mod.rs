//! Which member owns which task: a pure function of the group's view.
