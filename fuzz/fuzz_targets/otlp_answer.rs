//! `cargo +nightly fuzz run otlp_answer --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::otlp_answer(data));
