//! `cargo +nightly fuzz run mcp_result --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::mcp_result(data));
