//! The application a user builds and starts.
