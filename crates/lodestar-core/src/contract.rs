//! Contract: what an action may reach, on a typed form that policy, approvers and reports read.
//!
//! The operator grades tools; a tool's own minimum is a floor under every field. A contract can be
//! made stricter, never laxer, and what "stricter" means is settled here for each field, once:
//! what the action *can do* counts as wider or graver, what it is *given* as less.

pub mod arguments;
mod precondition;
mod reference;

pub use precondition::{
    Check, CheckKind, Operand, OperandError, Precondition, PreconditionError, Preconditions,
};
pub use reference::reference_page;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::canonical::{self, CanonicalError};
use crate::digest::{Digest, sha256};
use crate::ladder::Rung;
use crate::name::words;
use crate::scope::Scope;
use crate::sensitivity::DataSensitivity;

words! {
    /// How far the effects go.
    #[derive(PartialOrd, Ord)]
    pub enum BlastRadius: "blast radius" {
        /// The call itself.
        SelfOnly = "self",
        /// The session.
        Session = "session",
        /// The project.
        Project = "project",
        /// Beyond the project: shared or public.
        External = "external",
    }
}

words! {
    /// Whether the effects can be undone.
    #[derive(PartialOrd, Ord)]
    pub enum Reversibility: "reversibility" {
        /// They can.
        Reversible = "reversible",
        /// Something else can make up for them.
        Compensable = "compensable",
        /// They cannot.
        Irreversible = "irreversible",
    }
}

words! {
    /// In what confinement the tool runs, from tight to loose.
    #[derive(PartialOrd, Ord)]
    pub enum Sandbox: "sandbox" {
        /// It reads.
        Read = "read",
        /// It writes where nothing else looks.
        WriteIsolated = "write-isolated",
        /// It writes in the project.
        WriteLocal = "write-local",
        /// It runs commands.
        ControlledShell = "controlled-shell",
        /// It reaches the network.
        ControlledNetwork = "controlled-network",
    }
}

words! {
    /// What the tool is given to use.
    #[derive(PartialOrd, Ord)]
    pub enum Permission: "permission" {
        /// Files, to read.
        ReadFiles = "read_files",
        /// Files, to write.
        WriteFiles = "write_files",
        /// Other programs.
        RunPrograms = "run_programs",
        /// The network.
        Network = "network",
        /// Credentials.
        Credentials = "credentials",
        /// Publishing.
        Publish = "publish",
        /// Deploying.
        Deploy = "deploy",
        /// Pushing to a remote.
        Push = "push",
        /// Signing.
        Sign = "sign",
        /// Paying.
        Pay = "pay",
    }
}

words! {
    /// What an argument is to its tool: which of its values name a place, a person or a secret.
    pub enum ArgumentRole: "argument role" {
        /// A file or folder.
        Path = "path",
        /// A word of a command, or a list of them.
        Argv = "argv",
        /// Where something goes: an address, a host, a URL, a remote.
        Destination = "destination",
        /// Whose it is or in whose name: a person, an account.
        Identity = "identity",
        /// What is written, sent or said; never judged for what it mentions.
        Payload = "payload",
        /// Anything else.
        Other = "other",
    }
}

/// What an action may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// The rung it stands on. Higher is stricter.
    pub required_level: Rung,
    /// How far its effects go. Farther is stricter.
    pub blast_radius: BlastRadius,
    /// Whether they can be undone. Less so is stricter.
    pub reversibility: Reversibility,
    /// Where its effects can land. Wider is stricter: who may approve, and which rules permit, is
    /// decided by whether *their* scope contains this one.
    pub scope: Scope,
    /// What data it handles. More sensitive is stricter.
    pub data_sensitivity: DataSensitivity,
    /// What has to hold in the world. More is stricter.
    pub preconditions: Preconditions,
    /// In what confinement it runs. Tighter is stricter.
    pub sandbox: Sandbox,
    /// What it is given to use. Less is stricter.
    pub permissions: BTreeSet<Permission>,
}

impl Contract {
    /// What a tool that nobody graded gets: L4, and the strictest of every other field.
    ///
    /// Not L5: a human may still look at it and agree. The scope comes from the session, since an
    /// approver answers for a scope and nobody has to answer for all of them.
    pub fn ungraded(scope: Scope) -> Self {
        Self {
            required_level: Rung::L4,
            blast_radius: BlastRadius::External,
            reversibility: Reversibility::Irreversible,
            scope,
            data_sensitivity: DataSensitivity::Secret,
            preconditions: Preconditions::default(),
            sandbox: Sandbox::Read,
            permissions: BTreeSet::new(),
        }
    }

    /// This contract, raised to the minimum wherever the minimum is stricter, field by field.
    ///
    /// The least contract that is [at least as strict](Self::is_as_strict_as) as both; so it does
    /// not matter in which order, or how often, floors are applied.
    #[must_use]
    pub fn floor(self, minimum: &Self) -> Self {
        Self {
            required_level: self.required_level.max(minimum.required_level),
            blast_radius: self.blast_radius.max(minimum.blast_radius),
            reversibility: self.reversibility.max(minimum.reversibility),
            scope: self.scope.join(&minimum.scope),
            data_sensitivity: self.data_sensitivity.max(minimum.data_sensitivity),
            preconditions: self.preconditions.union(&minimum.preconditions),
            sandbox: self.sandbox.min(minimum.sandbox),
            permissions: self
                .permissions
                .intersection(&minimum.permissions)
                .copied()
                .collect(),
        }
    }

    /// Whether no field is laxer than that of the other: a partial order.
    pub fn is_as_strict_as(&self, other: &Self) -> bool {
        self.required_level >= other.required_level
            && self.blast_radius >= other.blast_radius
            && self.reversibility >= other.reversibility
            && self.scope.contains(&other.scope)
            && self.data_sensitivity >= other.data_sensitivity
            && self.preconditions.include(&other.preconditions)
            && self.sandbox <= other.sandbox
            && self.permissions.is_subset(&other.permissions)
    }

    /// SHA-256 over its canonical JSON.
    pub fn digest(&self) -> Result<Digest, CanonicalError> {
        canonical::to_vec(self).map(|bytes| sha256(&bytes))
    }

    /// The same contract with its digest, for what needs it often.
    pub fn digested(self) -> Result<DigestedContract, CanonicalError> {
        let digest = self.digest()?;
        Ok(DigestedContract {
            contract: self,
            digest,
        })
    }
}

/// A contract and its digest, which belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestedContract {
    contract: Contract,
    digest: Digest,
}

impl DigestedContract {
    /// The contract.
    pub fn contract(&self) -> &Contract {
        &self.contract
    }

    /// Its digest.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

#[cfg(test)]
pub(crate) mod tests;
