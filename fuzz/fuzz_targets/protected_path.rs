//! `cargo +nightly fuzz run protected_path --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::protected_path(data));
