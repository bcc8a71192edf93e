//! `cargo +nightly fuzz run bundle --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::bundle(data));
