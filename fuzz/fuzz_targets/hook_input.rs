//! `cargo +nightly fuzz run hook_input --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::hook_input(data));
