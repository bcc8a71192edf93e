//! `cargo +nightly fuzz run memory_export --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::memory_export(data));
