//! Batches under construction, the sender, acknowledgements.
