//! `cargo +nightly fuzz run dsse_envelope --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::dsse_envelope(data));
