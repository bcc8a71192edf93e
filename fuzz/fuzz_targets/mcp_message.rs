//! `cargo +nightly fuzz run mcp_message --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::mcp_message(data));
