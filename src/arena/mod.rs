//! Frame pools and bump arenas: memory for what a stream thread holds.
