//! Metadata, the fetcher, group membership, admin.
