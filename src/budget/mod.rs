//! The plan: how the line is divided into rows, and the governor that holds it.
