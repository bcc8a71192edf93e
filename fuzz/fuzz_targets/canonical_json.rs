//! `cargo +nightly fuzz run canonical_json --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::canonical_json(data));
