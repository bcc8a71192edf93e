//! `cargo +nightly fuzz run shell_command --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::shell_command(data));
