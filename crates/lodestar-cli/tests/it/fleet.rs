//! A gateway, an owner and three devices: real processes, each with an installation of its own.

mod attested;
mod away;
mod proxied;
mod reports;
mod stopped;
mod tokens;
mod world;
