//! `cargo +nightly fuzz run proof --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::proof(data));
