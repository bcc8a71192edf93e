//! `cargo +nightly fuzz run policy_suite --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::policy_suite(data));
