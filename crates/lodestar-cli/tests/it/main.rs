//! Drives the real `lodestar` binary on logs that were written through `lodestar-log`, and on beliefs
//! that were taken in through `lodestar-firewall`.

mod anchor;
mod belief;
mod confirm;
mod demo;
mod explain;
mod export;
mod gated;
mod generated;
mod governed;
mod guard;
mod halt;
mod help;
mod import;
mod keygen;
mod keys;
mod list;
mod names;
mod pipes;
mod policy;
mod proofs;
mod redact;
mod reflect;
mod replay;
mod show;
mod signed;
mod store;
mod tamper;
mod terminal;
mod tools;
mod verify;
mod why;
mod world;
