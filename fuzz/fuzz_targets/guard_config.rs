//! `cargo +nightly fuzz run guard_config --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::guard_config(data));
