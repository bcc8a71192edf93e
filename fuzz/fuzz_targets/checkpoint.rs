//! `cargo +nightly fuzz run checkpoint --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::checkpoint(data));
