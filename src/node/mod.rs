//! Edges, wiring, the operators.
