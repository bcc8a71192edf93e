//! What the log says of confirmations.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::contract::ArgumentRole;
use lodestar_core::id::{ActionId, RequestId};
use lodestar_core::name::{ActorId, SessionId, ToolName};
use lodestar_core::statement::ConfirmationId;
use lodestar_core::statement::confirmation::Consumption;
use lodestar_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::weigh::Before;
use super::{ConfirmationKeys, Confirmed, Evidence, HeldAct, Matching, Mode, Unmatched};
use crate::approval::{ApprovalRequest, Approvers, Counted, Refusal, Requests, Unreadable};

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
            Err(_) => Self::Unreadable(Unreadable::of(sent)),
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
    /// the log says; everything else is checked again, and is to be as it says.
    pub fn again(&self, act: &HeldAct, keys: &ConfirmationKeys) -> Result<Confirmed, Uncounted> {
        let matching = weigh(&self.evidence, act, keys, self.heard_at)?;
        match matching.is_of(self.id, &self.operator, self.action) {
            true => Ok(Confirmed::spent(matching)),
            false => Err(Uncounted::OtherRecord),
        }
    }

    /// As it stands in a ledger of this session.
    pub fn consumption(&self, session: &SessionId) -> Consumption {
        Consumption {
            id: self.id,
            statement: self.evidence.details().digest(),
            operator: self.operator.clone(),
            session: session.clone(),
            action: self.action,
            at: self.heard_at,
        }
    }
}

/// Why a confirmation that a log says was spent does not count again.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Uncounted {
    /// The log does not say that it was.
    #[error("the confirmation was never spent")]
    NeverSpent,
    /// It was counted for an earlier answer.
    #[error("the confirmation was counted before")]
    CountedBefore,
    /// It was spent and counted at two moments, which are one.
    #[error("the confirmation was spent at another time than it was counted at")]
    OtherTime,
    /// The record names another confirmation, operator or action.
    #[error(
        "the confirmation is another, by somebody else or for another action than the log says"
    )]
    OtherRecord,
    /// There is no such request, or its act has no form in which it can be compared.
    #[error("there is no request that it could have been counted for")]
    NoRequest,
    /// It does not match the act.
    #[error("{0}")]
    Unmatched(Unmatched),
}

/// The confirmations that a log says were spent: for whoever counts again what was counted live. What
/// was spent once stays spent.
#[derive(Debug, Clone, Default)]
pub struct SpentBefore {
    consumed: BTreeMap<ConfirmationId, Consumed>,
    counted: BTreeSet<ConfirmationId>,
}

impl SpentBefore {
    /// Takes in `confirmation.consumed@1`. False, and nothing is changed, where this one was spent
    /// before.
    pub fn take_in(&mut self, consumed: Consumed) -> bool {
        match self.consumed.entry(consumed.id) {
            Entry::Occupied(_) => false,
            Entry::Vacant(first) => {
                first.insert(consumed);
                true
            }
        }
    }

    /// All that were spent, whether they were counted or not.
    pub fn spent(&self) -> impl Iterator<Item = &Consumed> {
        self.consumed.values()
    }

    /// Counts a spent confirmation again for the request that the log says it was counted for; each
    /// once, whatever came of it.
    pub fn count(
        &mut self,
        id: ConfirmationId,
        request: RequestId,
        requests: &mut Requests,
        under: &Under<'_>,
        at: Timestamp,
    ) -> Result<Result<Counted, Refusal>, Uncounted> {
        let consumed = self.consumed.get(&id).ok_or(Uncounted::NeverSpent)?;
        if !self.counted.insert(id) {
            return Err(Uncounted::CountedBefore);
        }
        if consumed.heard_at != at {
            return Err(Uncounted::OtherTime);
        }
        let asked = requests.get(request).ok_or(Uncounted::NoRequest)?;
        let confirmed = consumed.again(&under.act(asked.request())?, under.keys)?;
        Ok(requests.confirm(request, &confirmed, under.approvers, at))
    }
}

/// The roles of a tool's arguments; none where there is no such tool.
pub type RolesOf<'a> = Box<dyn Fn(&ToolName) -> Option<&'a BTreeMap<String, ArgumentRole>> + 'a>;

/// What was in force when confirmations were counted.
pub struct Under<'a> {
    /// Which keys may sign confirmations.
    pub keys: &'a ConfirmationKeys,
    /// Whose word counts.
    pub approvers: &'a Approvers,
    /// The roles of a tool's arguments.
    pub roles: RolesOf<'a>,
}

impl Under<'_> {
    /// The act that a request asks for.
    pub fn act(&self, request: &ApprovalRequest) -> Result<HeldAct, Uncounted> {
        let card = &request.card;
        let roles = (self.roles)(&card.action.tool).ok_or(Uncounted::NoRequest)?;
        HeldAct::on_card(card, roles, &request.session).map_err(|_| Uncounted::NoRequest)
    }
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

impl Refused {
    /// Why it counts for nothing, found out once more; none where it would count. That it was spent
    /// before is what a ledger said, and is believed of evidence that is to be trusted.
    pub fn again(&self, act: &HeldAct, keys: &ConfirmationKeys) -> Option<Unmatched> {
        let evidence = match &self.sent {
            Sent::Evidence(evidence) => evidence.clone(),
            Sent::Unreadable(unreadable) => {
                let why = Evidence::read(&unreadable.sent()?).err()?;
                return Some(Unmatched::Untrusted { why });
            }
        };
        let before = match self.reason {
            Unmatched::Consumed => Before::Spent,
            _ => Before::Unspent,
        };
        match evidence.trusted(keys, self.heard_at) {
            Err(why) => Some(Unmatched::Untrusted { why }),
            Ok(trusted) => trusted.weigh(act, before, self.heard_at).err(),
        }
    }
}

impl WouldMatch {
    /// Whether it would have counted indeed, found out once more.
    pub fn again(&self, act: &HeldAct, keys: &ConfirmationKeys) -> Result<(), Uncounted> {
        let matching = weigh(&self.evidence, act, keys, self.heard_at)?;
        match matching.is_of(self.id, &self.operator, self.action) {
            true => Ok(()),
            false => Err(Uncounted::OtherRecord),
        }
    }
}

/// Everything but whether it was spent.
fn weigh(
    evidence: &Evidence,
    act: &HeldAct,
    keys: &ConfirmationKeys,
    at: Timestamp,
) -> Result<Matching, Uncounted> {
    let trusted = evidence.trusted(keys, at);
    let trusted = trusted.map_err(|why| Uncounted::Unmatched(Unmatched::Untrusted { why }))?;
    let matching = trusted.weigh(act, Before::Unspent, at);
    matching.map_err(Uncounted::Unmatched)
}
