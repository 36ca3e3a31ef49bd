//! Queues, stream time, the step and the commit of one task.
