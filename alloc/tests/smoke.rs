//! The allocator in a test program.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use plimsoll_alloc::*;
plimsoll_alloc::install!();

#[test]
fn probe_succeeds_in_a_test_program() {
    assert_eq!(probe(), Ok(()));
    assert!(is_installed());
}

#[test]
fn scope_moves_its_module_and_nothing_else() {
    let before = committed_all();
    let block = {
        let _s = scope(Module::Cache);
        vec![1u8; 32 << 20]
    };
    let after = committed_all();
    assert!(after[Module::Cache.index()] - before[Module::Cache.index()] >= 32 << 20);
    assert_eq!(after[Module::Store.index()], before[Module::Store.index()]);
    drop(block);
}
