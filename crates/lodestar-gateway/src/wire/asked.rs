//! What is asked.

use lodestar_core::digest::Digest;
use lodestar_core::id::{AccountId, BattleId, ContenderId, DeviceId, RunId, RunnerId, TermsId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::Envelope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::As;
pub use crate::store::tokens::TokenKind;

/// A device to be known. Its keys come together, now or later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterDevice {
    /// What its owner calls it.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// The key that signs for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<PublicKey>>")]
    pub key: Option<PublicKey>,
    /// The key that signs the logs of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<PublicKey>>")]
    pub log_key: Option<PublicKey>,
}

/// The keys of a device that has none yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetKeys {
    /// The key that signs for the device.
    #[schemars(with = "As<PublicKey>")]
    pub key: PublicKey,
    /// The key that signs the logs of its runs.
    #[schemars(with = "As<PublicKey>")]
    pub log_key: PublicKey,
}

/// A signed statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stated {
    /// The statement.
    #[schemars(with = "As<Envelope>")]
    pub envelope: Envelope,
}

/// What the owner of an account orders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandInOrder {
    /// The order, signed by the account's owner key.
    #[schemars(with = "As<Envelope>")]
    pub envelope: Envelope,
    /// The terms that it registers, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub terms: Option<Value>,
}

/// An agent or a runner to be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// What its owner calls it.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeToken {
    /// What for.
    pub kind: TokenKind,
    /// Whose, if it is a device's; the token that the device had is worth nothing from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<DeviceId>>")]
    pub device: Option<DeviceId>,
}

/// A run that is about to begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRun {
    /// The agent in whose name it is made.
    #[schemars(with = "As<ContenderId>")]
    pub agent: ContenderId,
    /// The runner that makes it.
    #[schemars(with = "As<RunnerId>")]
    pub runner: RunnerId,
    /// What it is to be judged by.
    #[schemars(with = "As<TermsId>")]
    pub terms: TermsId,
    /// SHA-256 of the canonical workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Digest>>")]
    pub workflow_hash: Option<Digest>,
    /// SHA-256 of the task and prompt files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Digest>>")]
    pub lens_hash: Option<Digest>,
}

/// The longest checkpoint that is taken: one takes a few hundred bytes.
pub const MAX_NOTE: usize = 4096;

/// The head of a run's log, while the run goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendCheckpoint {
    /// The signed note, as it stands in the log's folder.
    #[schemars(length(min = 1, max = MAX_NOTE))]
    pub note: String,
}

/// A device's word on a run. The three facts may be sent, and are overwritten by what the service finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Attest {
    /// The attestation.
    #[schemars(with = "As<Envelope>")]
    pub envelope: Envelope,
    /// Overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_trusted: Option<bool>,
    /// Overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_verified: Option<bool>,
    /// Overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_passed: Option<bool>,
}

/// A piece of work that is handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandIn {
    /// What is handed in, by its SHA-256.
    #[schemars(with = "As<Digest>")]
    pub content: Digest,
    /// The run that it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<RunId>>")]
    pub run: Option<RunId>,
    /// The battle that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<BattleId>>")]
    pub battle: Option<BattleId>,
}

/// One more run behind a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRun {
    /// The run.
    #[schemars(with = "As<RunId>")]
    pub run: RunId,
}

/// An account to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAccount {
    /// What it is called.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// The key of its owner, which signs orders.
    #[schemars(with = "As<PublicKey>")]
    pub owner_key: PublicKey,
}

/// The longest reason that is taken.
pub const MAX_REASON: usize = 1024;

/// Why something is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Because {
    /// Why, in words.
    #[schemars(length(min = 1, max = MAX_REASON))]
    pub reason: String,
}

/// Whether all signing is to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetKillSwitch {
    /// Whether it is to stop.
    pub on: bool,
    /// Why, in words.
    #[schemars(length(min = 1, max = MAX_REASON))]
    pub reason: String,
}

/// Whether one device's signing is to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPause {
    /// Whether it is to stop.
    pub on: bool,
    /// Why, in words.
    #[schemars(length(min = 1, max = MAX_REASON))]
    pub reason: String,
}

/// A contest to be held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBattle {
    /// What it is called.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// Who takes part.
    #[schemars(length(min = 1, max = 256))]
    pub participants: Vec<Participant>,
}

/// Who takes part in a battle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Participant {
    /// The account.
    #[schemars(with = "As<AccountId>")]
    pub account: AccountId,
    /// Its agent.
    #[schemars(with = "As<ContenderId>")]
    pub agent: ContenderId,
}
