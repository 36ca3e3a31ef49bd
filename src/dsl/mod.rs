//! The typed shell over the graph.
