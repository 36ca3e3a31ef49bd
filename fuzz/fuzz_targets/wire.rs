//! Everything that decodes bytes from a socket. The room is compiled into this target alone, without the rest of the
//! library and its native dependencies, so it builds in a minute.
#![no_main]
#![allow(dead_code, unreachable_pub)]

use std::cell::RefCell;

#[path = "../../src/wire/mod.rs"]
mod wire;

thread_local! {
    static STATE: RefCell<Option<wire::fuzz::State>> = const { RefCell::new(None) };
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    STATE.with_borrow_mut(|state| {
        if state.is_none() {
            *state = wire::fuzz::State::new().ok();
        }
        wire::fuzz::run(state.as_mut().expect("memory for the codecs"), input);
    });
});
