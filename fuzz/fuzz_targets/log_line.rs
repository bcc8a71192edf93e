//! `cargo +nightly fuzz run log_line --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::log_line(data));
