//! `cargo +nightly fuzz run nostr_key --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::nostr_key(data));
