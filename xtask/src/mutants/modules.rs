//! What is under test: the parts that decide, file by file.

use crate::shell::{Failure, because};

/// A part of the system that gets a score of its own.
#[derive(Debug)]
pub(super) struct Module {
    /// As `--module` takes it.
    pub(super) name: &'static str,
    /// Of the workspace; a `*` stands for every file of a folder but its tests.
    files: &'static [&'static str],
}

/// Packages whose tests are to catch the mutants of the modules, all of them libraries.
pub(super) const PACKAGES: &[&str] = &[
    "lodestar-core",
    "lodestar-log",
    "lodestar-policy",
    "lodestar-firewall",
];

/// Leaves defences out for a harness: whoever mutates it shows nothing about a defence.
const SEAM: &str = "crates/lodestar-policy/src/gate/taken_out.rs";

/// The modules.
pub(super) const MODULES: &[Module] = &[
    Module {
        name: "gate",
        files: &[
            "crates/lodestar-policy/src/gate.rs",
            "crates/lodestar-policy/src/gate/*",
            "crates/lodestar-policy/src/ruling.rs",
            "crates/lodestar-policy/src/arbiter.rs",
            "crates/lodestar-policy/src/arbiter/*",
            "crates/lodestar-policy/src/trail.rs",
            "crates/lodestar-policy/src/reads.rs",
            "crates/lodestar-core/src/ladder.rs",
        ],
    },
    Module {
        name: "firewall",
        files: &[
            "crates/lodestar-core/src/chain/belief/gate.rs",
            "crates/lodestar-core/src/chain/belief/rigour.rs",
            "crates/lodestar-core/src/chain/transition.rs",
            "crates/lodestar-core/src/chain/transition/*",
            "crates/lodestar-firewall/src/judge.rs",
            "crates/lodestar-firewall/src/rule.rs",
            "crates/lodestar-firewall/src/reflect.rs",
            "crates/lodestar-firewall/src/firewall/adopt.rs",
            "crates/lodestar-firewall/src/firewall/moves.rs",
            "crates/lodestar-firewall/src/firewall/people.rs",
            "crates/lodestar-firewall/src/firewall/link.rs",
            "crates/lodestar-firewall/src/firewall/age.rs",
            "crates/lodestar-firewall/src/firewall/context.rs",
        ],
    },
    Module {
        name: "fingerprint",
        files: &[
            "crates/lodestar-core/src/fingerprint.rs",
            "crates/lodestar-core/src/fingerprint/*",
        ],
    },
    Module {
        name: "approval",
        files: &[
            "crates/lodestar-policy/src/approval/hear.rs",
            "crates/lodestar-policy/src/approval/approvers.rs",
            "crates/lodestar-policy/src/approval/answer.rs",
            "crates/lodestar-policy/src/approval/requests.rs",
            "crates/lodestar-policy/src/approval/desk.rs",
            "crates/lodestar-policy/src/confirmation/weigh.rs",
            "crates/lodestar-policy/src/confirmation/settle.rs",
            "crates/lodestar-policy/src/confirmation/act.rs",
            "crates/lodestar-policy/src/confirmation/keys.rs",
            "crates/lodestar-policy/src/confirmation/unbound.rs",
            "crates/lodestar-core/src/statement/verify.rs",
            "crates/lodestar-core/src/statement/envelope.rs",
            "crates/lodestar-core/src/statement/confirmation.rs",
            "crates/lodestar-core/src/statement/confirmation/ledger.rs",
        ],
    },
    Module {
        name: "devices",
        files: &[
            "crates/lodestar-core/src/device.rs",
            "crates/lodestar-core/src/device/health.rs",
            "crates/lodestar-core/src/device/standing.rs",
            "crates/lodestar-core/src/device/table.rs",
            "crates/lodestar-core/src/execution.rs",
            "crates/lodestar-core/src/execution/facts.rs",
            "crates/lodestar-core/src/statement/attestation.rs",
            "crates/lodestar-core/src/statement/heartbeat.rs",
            "crates/lodestar-core/src/statement/owner_order.rs",
        ],
    },
    Module {
        name: "log",
        files: &[
            "crates/lodestar-log/src/chain.rs",
            "crates/lodestar-log/src/scan.rs",
            "crates/lodestar-log/src/trust.rs",
            "crates/lodestar-log/src/verify.rs",
            "crates/lodestar-log/src/verify/*",
            "crates/lodestar-log/src/ledger.rs",
            "crates/lodestar-core/src/merkle/proof.rs",
        ],
    },
];

/// The module of that name.
pub(super) fn named(name: &str) -> Result<&'static Module, Failure> {
    MODULES.iter().find(|m| m.name == name).ok_or_else(|| {
        let names: Vec<_> = MODULES.iter().map(|module| module.name).collect();
        because(format!(
            "there is no module `{name}`; the modules are {}",
            names.join(", ")
        ))
    })
}

impl Module {
    /// The files among those of the workspace.
    pub(super) fn files<'a>(&self, all: &'a [String]) -> Result<Vec<&'a str>, Failure> {
        let mut found = Vec::new();
        for pattern in self.files {
            let before = found.len();
            let fits = |path: &str| match pattern.strip_suffix('*') {
                Some(folder) => path
                    .strip_prefix(folder)
                    .is_some_and(|rest| rest.ends_with(".rs") && !rest.contains("tests")),
                None => path == *pattern,
            };
            found.extend(
                all.iter()
                    .map(String::as_str)
                    .filter(|path| *path != SEAM && fits(path)),
            );
            if found.len() == before {
                return Err(because(format!(
                    "`{pattern}` of the module `{}` names no file",
                    self.name
                )));
            }
        }
        Ok(found)
    }
}
