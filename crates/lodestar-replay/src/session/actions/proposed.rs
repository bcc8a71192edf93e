//! A proposal, held against its tool.

use lodestar_core::contract::{Contract, arguments};
use lodestar_core::digest::Digest;
use lodestar_core::fingerprint::FingerprintFields;
use lodestar_core::ladder::Rung;
use lodestar_kernel::opening::Opening;
use lodestar_kernel::record::Proposal;
use lodestar_kernel::registry::ToolRecord;

use super::notes::Notes;

pub(super) fn check(
    proposal: &Proposal,
    tool: &ToolRecord,
    opening: &Opening,
    notes: &mut Notes<'_>,
) {
    let action = &proposal.action;
    if proposal.agent != opening.agent {
        notes.differ("another agent", "the one that the session was opened for");
    }
    let mut contract: Contract = tool.contract.clone();
    if proposal.reaches.is_some() {
        contract.required_level = Rung::L5;
    }
    if action.contract != contract || action.server != tool.shape.server {
        notes.differ(
            format!("a contract at {}", action.contract.required_level),
            format!("one at {} from the tool's grade", contract.required_level),
        );
    }
    if proposal.definition != tool.definition {
        notes.differ(
            format!("definition {}", proposal.definition),
            format!("{}", tool.definition),
        );
    }
    let root = tool.root.as_ref().or(opening.root.as_ref());
    let paths = arguments::paths(&action.arguments, &tool.shape.roles, root);
    if paths.as_ref() != Ok(&proposal.paths) {
        notes.differ("other paths than", "those in the arguments");
    }
    let fingerprint: Option<Digest> = FingerprintFields::under(
        &contract,
        action.server.clone(),
        action.tool.clone(),
        tool.definition,
        action.arguments.clone(),
        proposal.paths.clone(),
    )
    .and_then(|fields| fields.fingerprint())
    .ok()
    .map(|fingerprint| *fingerprint.digest());
    if fingerprint != Some(*action.fingerprint.digest()) {
        let derived = fingerprint.map_or_else(|| "none".to_owned(), |one| one.to_string());
        notes.differ(format!("fingerprint {}", action.fingerprint), derived);
    }
}
