//! `cargo +nightly fuzz run run_bundle --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::run_bundle(data));
