//! The proxy over Streamable HTTP, on both faces: real sockets, and peers that other people made.

#![expect(
    deprecated,
    reason = "the newest revision deprecates sampling; peers of older ones have it"
)]

mod attacks;
mod behind;
mod face;
mod inline;
mod resume;
mod world;
