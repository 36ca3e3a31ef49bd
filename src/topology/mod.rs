//! The logical graph: names, subtopologies, validation, describe.
