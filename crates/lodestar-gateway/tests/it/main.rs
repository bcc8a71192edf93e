//! The gateway as its callers see it: its rooms, its databases, its routes, and runs that real sessions made.
#![allow(
    clippy::unwrap_used,
    reason = "a test that unwraps an error has failed"
)]

mod attacks;
mod bundle;
mod daemon;
mod http;
mod killed;
mod lab;
mod openapi;
mod pages;
mod process;
mod ran;
mod service;
mod store;
mod three;
mod world;
