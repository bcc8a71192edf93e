//! Drives the real `lodestar` binary on logs that were written through `lodestar-log`, and on beliefs
//! that were taken in through `lodestar-firewall`.

mod anchor;
mod belief;
mod demo;
mod export;
mod generated;
mod governed;
mod help;
mod import;
mod keygen;
mod keys;
mod list;
mod names;
mod pipes;
mod proofs;
mod redact;
mod reflect;
mod show;
mod store;
mod tamper;
mod terminal;
mod verify;
mod why;
mod world;
