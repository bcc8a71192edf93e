//! `cargo +nightly fuzz run tool_arguments --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::tool_arguments(data));
