//! Schemas and codecs: how values look while they flow and how they are stored.
