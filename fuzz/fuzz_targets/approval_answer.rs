//! `cargo +nightly fuzz run approval_answer --features libfuzzer`
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| lodestar_fuzz::approval_answer(data));
