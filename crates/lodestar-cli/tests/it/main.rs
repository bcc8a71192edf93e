//! Drives the real `lodestar` binary on logs that were written through `lodestar-log`.

mod anchor;
mod demo;
mod export;
mod generated;
mod help;
mod keygen;
mod keys;
mod list;
mod names;
mod pipes;
mod proofs;
mod redact;
mod show;
mod tamper;
mod terminal;
mod verify;
mod world;
