//! `cargo +nightly fuzz run pack_scenario --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::pack_scenario(data));
