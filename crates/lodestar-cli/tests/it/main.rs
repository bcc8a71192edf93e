//! Drives the real `lodestar` binary on logs that were written through `lodestar-log`, and on beliefs
//! that were taken in through `lodestar-firewall`.

mod anchor;
mod approve;
mod asked;
mod belief;
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
mod tmux;
mod tools;
mod verify;
mod watch;
mod why;
mod world;
