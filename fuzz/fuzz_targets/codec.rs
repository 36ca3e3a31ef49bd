//! Every codec of keys and values. The room is compiled into this target alone, as in `wire`.
#![no_main]
#![allow(dead_code, unreachable_pub, unused_imports)]

#[path = "../../src/codec/mod.rs"]
mod codec;

libfuzzer_sys::fuzz_target!(|input: &[u8]| codec::fuzz::run(input));
