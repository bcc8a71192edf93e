//! What is answered.

use lodestar_core::device::DeviceLevel;
use lodestar_core::digest::Digest;
use lodestar_core::execution::{ExecutionFact, ExecutionLevel};
use lodestar_core::id::{
    AccountId, AttestationId, BattleId, ContenderId, DeviceId, EvaluationId, RunId, RunnerId,
    SubmissionId, TermsId, TokenId,
};
use lodestar_core::key::PublicKey;
use lodestar_core::name::ActorId;
use lodestar_core::statement::Nonce;
use lodestar_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::code::Code;
use crate::schema::As;
use crate::store::tokens::TokenKind;

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Why.
    pub error: Why,
}

/// Why something is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Why {
    /// For programs.
    pub code: Code,
    /// For people.
    pub message: String,
    /// The field that is to blame, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// That the service is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    /// `ok`, or what is wrong.
    pub status: String,
    /// The service's time, by which statements are dated.
    #[schemars(with = "As<Timestamp>")]
    pub time: Timestamp,
    /// The service's version.
    pub version: String,
}

/// An account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Which.
    #[schemars(with = "As<AccountId>")]
    pub id: AccountId,
    /// What it is called.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// The key of its owner, which signs orders.
    #[schemars(with = "As<PublicKey>")]
    pub owner_key: PublicKey,
    /// When it was opened.
    #[schemars(with = "As<Timestamp>")]
    pub created_at: Timestamp,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "PageOf{T}")]
pub struct Page<T> {
    /// What is on it, in the order of ids.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one: give it as `after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A challenge that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Challenge {
    /// What the answer has to say.
    #[schemars(with = "As<Nonce>")]
    pub nonce: Nonce,
    /// Until when.
    #[schemars(with = "As<Timestamp>")]
    pub expires_at: Timestamp,
}

/// A device that is known now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRegistered {
    /// Which.
    #[schemars(with = "As<DeviceId>")]
    pub device: DeviceId,
    /// The account it belongs to.
    #[schemars(with = "As<AccountId>")]
    pub account: AccountId,
    /// Its token; shown this once.
    pub token: String,
    /// What it has to sign, if it has a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Challenge>,
}

/// What a device has to sign now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Challenged {
    /// The challenge.
    pub challenge: Challenge,
}

/// A device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    /// Which.
    #[schemars(with = "As<DeviceId>")]
    pub id: DeviceId,
    /// What its owner calls it.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// How far it has come.
    #[schemars(with = "As<DeviceLevel>")]
    pub level: DeviceLevel,
    /// Since when.
    #[schemars(with = "As<Timestamp>")]
    pub level_since: Timestamp,
    /// When it was registered.
    #[schemars(with = "As<Timestamp>")]
    pub registered_at: Timestamp,
    /// The key that signs for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<PublicKey>>")]
    pub key: Option<PublicKey>,
    /// The key that signs the logs of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<PublicKey>>")]
    pub log_key: Option<PublicKey>,
    /// When it answered its challenge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub challenge_passed_at: Option<Timestamp>,
    /// When it was last heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub last_heartbeat: Option<Timestamp>,
    /// Since when it was heard of without a gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub continuous_since: Option<Timestamp>,
    /// When it last attested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub last_attested: Option<Timestamp>,
    /// Whether it is paused.
    pub paused: bool,
    /// What it says of its gateway; nothing rests on it.
    pub gateway_status: String,
    /// What it says of its daemon; nothing rests on it.
    pub daemon_version: String,
    /// The runners that it is bound to.
    #[schemars(with = "Vec<As<RunnerId>>")]
    pub runners: Vec<RunnerId>,
}

/// What a device has to obey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Directives {
    /// The platform stopped all signing.
    pub kill_switch: bool,
    /// The device is paused.
    pub paused: bool,
}

/// What came of a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beaten {
    /// How far the device has come.
    #[schemars(with = "As<DeviceLevel>")]
    pub level: DeviceLevel,
    /// What it has to obey.
    pub directives: Directives,
}

/// What came of a challenge's answer, or of a rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// How far the device has come.
    #[schemars(with = "As<DeviceLevel>")]
    pub level: DeviceLevel,
    /// What it has to sign now, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<Challenge>,
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ordered {
    /// The order, by the digest of its envelope.
    #[schemars(with = "As<Digest>")]
    pub order: Digest,
    /// How far the device has come that it was about, if it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<DeviceLevel>>")]
    pub level: Option<DeviceLevel>,
    /// The terms that it registered, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<TermsId>>")]
    pub terms: Option<TermsId>,
    /// How many runs were evaluated again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub evaluated: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Which.
    #[schemars(with = "As<ContenderId>")]
    pub id: ContenderId,
    /// What its owner calls it.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// When it was made known.
    #[schemars(with = "As<Timestamp>")]
    pub created_at: Timestamp,
}

/// A runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    /// Which.
    #[schemars(with = "As<RunnerId>")]
    pub id: RunnerId,
    /// What its owner calls it.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// When it was made known.
    #[schemars(with = "As<Timestamp>")]
    pub created_at: Timestamp,
    /// When a device that it is bound to last said that it is alive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub last_heartbeat: Option<Timestamp>,
}

/// A token, without what makes it one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Token {
    /// Which.
    #[schemars(with = "As<TokenId>")]
    pub id: TokenId,
    /// What it is for.
    pub kind: TokenKind,
    /// Whose, if it is a device's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<DeviceId>>")]
    pub device: Option<DeviceId>,
    /// When it was made.
    #[schemars(with = "As<Timestamp>")]
    pub created_at: Timestamp,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub expires_at: Option<Timestamp>,
    /// When it was used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub used_at: Option<Timestamp>,
    /// When it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub revoked_at: Option<Timestamp>,
}

/// A token that was taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenRevoked {
    /// Which.
    #[schemars(with = "As<TokenId>")]
    pub id: TokenId,
    /// When.
    #[schemars(with = "As<Timestamp>")]
    pub revoked_at: Timestamp,
}

/// A token that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenMade {
    /// Which.
    #[schemars(with = "As<TokenId>")]
    pub id: TokenId,
    /// The token itself; shown this once.
    pub token: String,
    /// Until when it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub expires_at: Option<Timestamp>,
}

/// Terms that runs are judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TermsEntry {
    /// Which.
    #[schemars(with = "As<TermsId>")]
    pub id: TermsId,
    /// By their digest.
    #[schemars(with = "As<Digest>")]
    pub digest: Digest,
    /// When they were registered.
    #[schemars(with = "As<Timestamp>")]
    pub registered_at: Timestamp,
}

/// Terms, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TermsWhole {
    /// Which.
    #[schemars(with = "As<TermsId>")]
    pub id: TermsId,
    /// By their digest.
    #[schemars(with = "As<Digest>")]
    pub digest: Digest,
    /// When they were registered.
    #[schemars(with = "As<Timestamp>")]
    pub registered_at: Timestamp,
    /// What they say.
    pub document: Value,
}

/// A run that may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunRegistered {
    /// Which.
    #[schemars(with = "As<RunId>")]
    pub run: RunId,
    /// What its log's opening has to say.
    #[schemars(with = "As<Nonce>")]
    pub nonce: Nonce,
    /// When it was registered.
    #[schemars(with = "As<Timestamp>")]
    pub registered_at: Timestamp,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Which.
    #[schemars(with = "As<RunId>")]
    pub id: RunId,
    /// The device that registered it.
    #[schemars(with = "As<DeviceId>")]
    pub device: DeviceId,
    /// The runner that made it.
    #[schemars(with = "As<RunnerId>")]
    pub runner: RunnerId,
    /// The agent in whose name.
    #[schemars(with = "As<ContenderId>")]
    pub agent: ContenderId,
    /// What it is judged by.
    #[schemars(with = "As<TermsId>")]
    pub terms: TermsId,
    /// The policy of those terms, by digest.
    #[schemars(with = "As<Digest>")]
    pub policy: Digest,
    /// What its log's opening has to say.
    #[schemars(with = "As<Nonce>")]
    pub nonce: Nonce,
    /// SHA-256 of the canonical workflow file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Digest>>")]
    pub workflow_hash: Option<Digest>,
    /// SHA-256 of the task and prompt files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Digest>>")]
    pub lens_hash: Option<Digest>,
    /// When it was registered.
    #[schemars(with = "As<Timestamp>")]
    pub registered_at: Timestamp,
    /// What the service made of it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Evaluation>,
}

/// What the service made of a run, and why not more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluation {
    /// Which.
    #[schemars(with = "As<EvaluationId>")]
    pub id: EvaluationId,
    /// How far the run is proved.
    #[schemars(with = "As<ExecutionLevel>")]
    pub level: ExecutionLevel,
    /// The facts that held.
    #[schemars(with = "Vec<As<ExecutionFact>>")]
    pub facts: Vec<ExecutionFact>,
    /// The first that did not, if one did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<ExecutionFact>>")]
    pub stopped_by: Option<ExecutionFact>,
    /// What it was made for: a submission, an attestation or a revocation.
    pub cause: String,
    /// When.
    #[schemars(with = "As<Timestamp>")]
    pub at: Timestamp,
}

/// A checkpoint that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointReceived {
    /// How many events it covers.
    pub size: u64,
    /// The root over them.
    #[schemars(with = "As<Digest>")]
    pub root: Digest,
    /// When it came, by the service's time.
    #[schemars(with = "As<Timestamp>")]
    pub received_at: Timestamp,
}

/// A bundle that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleReceived {
    /// SHA-256 of its bytes.
    #[schemars(with = "As<Digest>")]
    pub bundle: Digest,
    /// How many there are.
    pub bytes: u64,
    /// When it came, by the service's time.
    #[schemars(with = "As<Timestamp>")]
    pub received_at: Timestamp,
}

/// What came of an attestation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attested {
    /// Which.
    #[schemars(with = "As<AttestationId>")]
    pub attestation: AttestationId,
    /// How far the run is proved.
    #[schemars(with = "As<ExecutionLevel>")]
    pub level: ExecutionLevel,
    /// What the service made of the run.
    pub evaluation: Evaluation,
    /// What the service found itself, whatever was sent.
    pub found: Found,
}

/// What the service found itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// The device was trusted when its word arrived.
    pub device_trusted: bool,
    /// The run's log is whole, and the one that was attested.
    pub gateway_verified: bool,
    /// The run kept to its terms.
    pub policy_passed: bool,
    /// Why one of them does not hold, where there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A piece of work that was handed in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    /// Which.
    #[schemars(with = "As<SubmissionId>")]
    pub id: SubmissionId,
    /// What was handed in, by its SHA-256.
    #[schemars(with = "As<Digest>")]
    pub content: Digest,
    /// The battle that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<BattleId>>")]
    pub battle: Option<BattleId>,
    /// The runs that it came from.
    #[schemars(with = "Vec<As<RunId>>")]
    pub runs: Vec<RunId>,
    /// How far the best of them is proved.
    #[schemars(with = "As<ExecutionLevel>")]
    pub level: ExecutionLevel,
    /// What it earned, as far as its level still covers it.
    pub effects: Vec<String>,
    /// When it was handed in.
    #[schemars(with = "As<Timestamp>")]
    pub created_at: Timestamp,
}

/// Where everybody stands in a battle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standings {
    /// The battle.
    #[schemars(with = "As<BattleId>")]
    pub battle: BattleId,
    /// What it is called.
    #[schemars(with = "As<ActorId>")]
    pub name: ActorId,
    /// Who takes part, the first first.
    pub places: Vec<Place>,
}

/// One place in a battle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The agent.
    #[schemars(with = "As<ContenderId>")]
    pub agent: ContenderId,
    /// What its owner handed in, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<SubmissionId>>")]
    pub submission: Option<SubmissionId>,
    /// What the submission earned, as far as its level still covers it.
    pub effects: Vec<String>,
    /// Whether it wins over others that earned as much otherwise.
    pub tie_break: bool,
}

/// An account that was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccountOpened {
    /// Which.
    #[schemars(with = "As<AccountId>")]
    pub account: AccountId,
    /// Its owner's token; shown this once.
    pub token: String,
}

/// How far a device has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Levelled {
    /// How far.
    #[schemars(with = "As<DeviceLevel>")]
    pub level: DeviceLevel,
}

/// A battle that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BattleHeld {
    /// Which.
    #[schemars(with = "As<BattleId>")]
    pub battle: BattleId,
}

/// How the kill switch stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KillSwitch {
    /// Whether all signing is stopped.
    pub on: bool,
    /// Since when it stands so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<As<Timestamp>>")]
    pub since: Option<Timestamp>,
    /// Why.
    pub reason: String,
}
