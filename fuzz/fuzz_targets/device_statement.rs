//! `cargo +nightly fuzz run device_statement --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::device_statement(data));
