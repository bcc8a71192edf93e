//! The `lodestar` command. It parses, calls the libraries, and prints.

mod beliefs;
mod bridge;
mod cli;
mod commands;
mod configured;
mod diff;
mod failure;
mod files;
mod gateway;
mod installation;
mod operator;
mod operator_key;
mod output;
mod owner;
mod paint;
mod pinned;
mod place;
mod progress;
mod refusals;
mod terminal;
mod text;
mod trust;

use lodestar_report::{inert, json, words};

/// A call makes some hundred small allocations; this allocator serves them in less than half the time of the
/// system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // A hook runs before and after every tool of a client: nothing is done for it that it does not need.
    if let Some(exit) = commands::hook::at_once() {
        return exit.into();
    }
    cli::main().into()
}
