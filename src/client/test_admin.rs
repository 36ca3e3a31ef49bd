//! An administrator for tests.
use std::sync::Arc;
use std::time::Duration;

use super::admin::Admin;
use super::offered::ask_offered;
use crate::ffi::kafka::Handle;
use crate::ffi::kafka_conf::HandleSettings;
use crate::net::Security;

const PATIENCE: Duration = Duration::from_secs(30);

/// An administrator with a handle of its own.
pub(crate) fn admin(bootstrap: &str, group: &str) -> Admin {
    let user = [("bootstrap.servers".to_owned(), bootstrap.to_owned())];
    let (client_id, group_id) = ("plimsoll-test", group);
    let settings =
        HandleSettings { user: &user, owned: &[], group_id, client_id, instance_id: None, read_committed: false };
    let handle = Arc::new(Handle::start(&settings).unwrap());
    let offered = ask_offered(&[bootstrap.to_owned()], &Security::default(), client_id, PATIENCE).unwrap();
    Admin::new(handle, offered, PATIENCE)
}
