//! Fuzz targets for every parser that reads what others wrote, as plain functions.
//!
//! A target takes any bytes and panics when a law is broken; that nothing panics, overflows or
//! hangs by itself goes without saying. cargo-fuzz drives them where a nightly toolchain is at hand
//! (`fuzz_targets/`); everywhere else a test runs the seeds in `corpus/` and mutations of them
//! (`tests/seeds.rs`, with [`Mutator`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod approval_answer;
mod bundle;
mod canonical_json;
mod checkpoint;
mod confirmation;
mod device_statement;
mod dsse_envelope;
mod gate;
mod guard_config;
mod hook_input;
mod hook_settings;
mod log_line;
mod mcp_message;
mod memory_export;
mod mutate;
mod nostr_key;
mod otlp_answer;
mod pack_scenario;
mod policy_suite;
mod policy_text;
mod proof;
mod protected_path;
mod run_bundle;
pub mod sample;
mod shell_command;
mod tool_arguments;
mod url;

pub use approval_answer::{approval_answer, brought};
pub use bundle::{bundle, named};
pub use canonical_json::canonical_json;
pub use checkpoint::checkpoint;
pub use confirmation::{confirmation, confirmed};
pub use device_statement::{device_payloads, device_statement, stated};
pub use dsse_envelope::dsse_envelope;
pub use guard_config::guard_config;
pub use hook_input::{heard, hook_input};
pub use hook_settings::{hook_settings, settled};
pub use log_line::log_line;
pub use mcp_message::{mcp_message, mcp_result, taken};
pub use memory_export::memory_export;
pub use mutate::Mutator;
pub use nostr_key::{nostr_key, read_key};
pub use otlp_answer::{answered, otlp_answer};
pub use pack_scenario::{is_of_a_pack, pack_scenario};
pub use policy_suite::policy_suite;
pub use policy_text::{fits, policy_text};
pub use proof::proof;
pub use protected_path::{protected_path, reached};
pub use run_bundle::{has_head, run_bundle, ticket};
pub use shell_command::{runs_unasked, shell_command};
pub use tool_arguments::{judged, tool_arguments};
pub use url::url;

/// A target: takes any bytes, panics when a law is broken.
pub type Target = fn(&[u8]);

/// Every target with its name, which is also the folder of its seeds.
pub const TARGETS: &[(&str, Target)] = &[
    ("canonical_json", canonical_json),
    ("log_line", log_line),
    ("checkpoint", checkpoint),
    ("dsse_envelope", dsse_envelope),
    ("device_statement", device_statement),
    ("proof", proof),
    ("bundle", bundle),
    ("run_bundle", run_bundle),
    ("memory_export", memory_export),
    ("policy_text", policy_text),
    ("policy_suite", policy_suite),
    ("guard_config", guard_config),
    ("tool_arguments", tool_arguments),
    ("protected_path", protected_path),
    ("url", url),
    ("nostr_key", nostr_key),
    ("confirmation", confirmation),
    ("approval_answer", approval_answer),
    ("mcp_message", mcp_message),
    ("mcp_result", mcp_result),
    ("pack_scenario", pack_scenario),
    ("otlp_answer", otlp_answer),
    ("shell_command", shell_command),
    ("hook_input", hook_input),
    ("hook_settings", hook_settings),
];
