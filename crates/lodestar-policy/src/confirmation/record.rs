//! What the log says of confirmations.

use std::collections::BTreeMap;

use lodestar_core::contract::ArgumentRole;
use lodestar_core::digest::sha256;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::name::{ActorId, Excerpt, ToolName};
use lodestar_core::statement::ConfirmationId;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};

use super::weigh::Before;
use super::{ConfirmationKeys, Confirmed, Evidence, HeldAct, Mode, Unmatched};
use crate::approval::{Approvers, Counted, Refusal, Requests, Unreadable};

/// What is done with an envelope of evidence. There is no third.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// What somebody decided is written down.
    RecordDecision,
    /// The envelope is spent on one action.
    ConsumeEnvelope,
}

/// `confirmation.recorded@1`: evidence as it arrived, confirmed or declined. Nobody has looked at it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// What is done.
    pub operation: Operation,
    /// What came.
    #[serde(flatten)]
    pub sent: Sent,
    /// When.
    pub heard_at: Timestamp,
}

/// What came: evidence, or something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sent {
    /// Evidence, whole.
    Evidence(Evidence),
    /// No evidence.
    Unreadable(Unreadable),
}

impl Sent {
    pub(super) fn of(sent: &[u8]) -> Self {
        match Evidence::read(sent) {
            Ok(evidence) => Self::Evidence(evidence),
            Err(_) => Self::Unreadable(Unreadable {
                begins: Excerpt::of(&String::from_utf8_lossy(sent)).to_string(),
                bytes: sent.len() as u64,
                digest: sha256(sent),
            }),
        }
    }
}

impl Recorded {
    /// What a channel brought at this moment.
    pub fn new(sent: &[u8], heard_at: Timestamp) -> Self {
        Self {
            operation: Operation::RecordDecision,
            sent: Sent::of(sent),
            heard_at,
        }
    }
}

/// `confirmation.matched@1`: what would have counted, were it not for the mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WouldMatch {
    /// The evidence, whole.
    pub evidence: Evidence,
    /// Which confirmation.
    pub id: ConfirmationId,
    /// Whose word.
    pub operator: ActorId,
    /// The action that is held.
    pub action: ActionId,
    /// Why it grants nothing.
    pub mode: Mode,
    /// When it was looked at.
    pub heard_at: Timestamp,
}

/// `confirmation.consumed@1`: the evidence that was spent, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consumed {
    /// What is done.
    pub operation: Operation,
    /// The evidence, whole.
    pub evidence: Evidence,
    /// Which confirmation.
    pub id: ConfirmationId,
    /// Whose word.
    pub operator: ActorId,
    /// The action it was spent on.
    pub action: ActionId,
    /// When it was looked at.
    pub heard_at: Timestamp,
}

impl Consumed {
    /// The token once more, for whoever derives a session from its log. That it was spent once is what
    /// the log says; everything else is checked again.
    pub fn again(&self, act: &HeldAct, keys: &ConfirmationKeys) -> Result<Confirmed, Unmatched> {
        let trusted = self.evidence.trusted(keys, self.heard_at);
        let trusted = trusted.map_err(|why| Unmatched::Untrusted { why })?;
        let matching = trusted.weigh(act, Before::Unspent, self.heard_at)?;
        Ok(Confirmed::spent(matching))
    }
}

/// The confirmations that a log says were spent: for whoever counts again what was counted live.
#[derive(Debug, Clone, Default)]
pub struct SpentBefore {
    consumed: BTreeMap<ConfirmationId, Consumed>,
}

impl SpentBefore {
    /// Takes in `confirmation.consumed@1`. False where this one was spent before.
    pub fn take_in(&mut self, consumed: Consumed) -> bool {
        self.consumed.insert(consumed.id, consumed).is_none()
    }

    /// Counts a spent confirmation again for the request that the log says it was counted for. None
    /// where it was never spent, or not on this act.
    pub fn count(
        &mut self,
        id: ConfirmationId,
        request: RequestId,
        requests: &mut Requests,
        under: &Under<'_>,
        at: Timestamp,
    ) -> Option<Result<Counted, Refusal>> {
        // Once: a second answer by the same confirmation has nothing to stand on.
        let consumed = self.consumed.remove(&id)?;
        let asked = requests.get(request)?.request();
        let roles = (under.roles)(&asked.card.action.tool)?;
        let act = HeldAct::on_card(&asked.card, roles, &asked.session).ok()?;
        let confirmed = consumed.again(&act, under.keys).ok()?;
        Some(requests.confirm(request, &confirmed, under.approvers, at))
    }
}

/// What was in force when confirmations were counted.
pub struct Under<'a> {
    /// Which keys may sign confirmations.
    pub keys: &'a ConfirmationKeys,
    /// Whose word counts.
    pub approvers: &'a Approvers,
    /// The roles of a tool's arguments.
    pub roles: &'a dyn Fn(&ToolName) -> Option<&'a BTreeMap<String, ArgumentRole>>,
}

/// `confirmation.refused@1`: evidence that counts for nothing, and the first check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// What came.
    #[serde(flatten)]
    pub sent: Sent,
    /// The action that is held.
    pub action: ActionId,
    /// The first check that failed.
    pub reason: Unmatched,
    /// When it was looked at.
    pub heard_at: Timestamp,
}
