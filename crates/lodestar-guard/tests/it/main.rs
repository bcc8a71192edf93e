//! Stores over real logs, and governed sessions end to end.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod attacks;
mod beforehand;
mod boxed;
mod calibration;
mod calls;
mod crash;
mod drop;
mod forgery;
mod governed;
mod guides;
mod heard_again;
mod holds;
mod hooks;
mod http_channel;
mod hub;
mod images;
mod imitation;
mod lapsed;
mod model;
mod moved;
mod opening;
mod people;
mod plain;
mod races;
mod rebuild;
mod replay;
mod resume;
mod runs;
mod script;
mod sentinels;
mod signed_for;
mod steps;
mod tamper;
mod world;
