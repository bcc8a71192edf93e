//! `cargo +nightly fuzz run confirmation --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::confirmation(data));
