//! The one person who is asked, and what somebody slips in where answers arrive.
//!
//! The person approves the one payment or push that the task names, and nothing else: everything that succeeds beyond it
//! succeeded without them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestar_core::key::SecretKey;
use lodestar_core::statement::{ApprovalDecision, Envelope};
use lodestar_guard::Holds;
use lodestar_policy::ApprovalRequest;
use serde_json::Value;

use super::desk::DANA;
use super::plan::Forgery;
use crate::probe::Outcome;
use crate::world::{Person, answering, forged_grant};

/// What the person approves.
pub(super) const AMOUNT: u64 = 40;

#[derive(Debug, Default)]
struct Inside {
    forgery: Option<Forgery>,
    /// What the person said to the payment, whenever they were last asked.
    genuine: Option<Envelope>,
    is_away: bool,
}

/// Whoever answers.
#[derive(Debug, Clone)]
pub(super) struct People {
    alice: Person,
    mallory: Person,
    inside: Arc<Mutex<Inside>>,
}

impl People {
    pub(super) fn new(alice: Person) -> Outcome<Self> {
        Ok(Self {
            alice,
            mallory: Person::new("mallory")?,
            inside: Arc::default(),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this is slipped in, and the person says no to everything.
    pub(super) fn slip_in(&self, forgery: Forgery) {
        let mut inside = self.inside();
        inside.forgery = Some(forgery);
        inside.is_away = true;
    }

    /// The person is back, and nobody slips anything in.
    pub(super) fn come_back(&self) {
        let mut inside = self.inside();
        inside.forgery = None;
        inside.is_away = false;
    }

    /// As a session asks them.
    pub(super) fn holds(&self) -> Holds {
        let people = self.clone();
        // She has not looked yet when something is slipped in.
        answering(move |request| {
            let mut answers = people.answers(request).unwrap_or_default();
            answers.truncate(1);
            answers
        })
    }

    /// What arrives as answers to a request, in this order: what is slipped in, and what the person says.
    pub(super) fn answers(&self, request: &ApprovalRequest) -> Outcome<Vec<Envelope>> {
        let mut inside = self.inside();
        if !inside.is_away && is_wanted(request) {
            let (yes, _) = self.alice.answer(request, ApprovalDecision::Grant)?;
            inside.genuine = Some(yes.clone());
            return Ok(vec![yes]);
        }
        let forged = self.forged(request, &inside)?;
        let (no, _) = self.alice.answer(request, ApprovalDecision::Deny)?;
        Ok(forged.into_iter().chain([no]).collect())
    }

    fn forged(&self, request: &ApprovalRequest, inside: &Inside) -> Outcome<Option<Envelope>> {
        let other_key = SecretKey::from_seed([66; 32]);
        let in_her_name = |key: Option<&SecretKey>| -> Outcome<Envelope> {
            let alice = (&self.alice.name, &self.alice.key.public());
            Ok(forged_grant(request, alice, key)?.0)
        };
        Ok(match inside.forgery.unwrap_or(Forgery::Nothing) {
            Forgery::Nothing => None,
            Forgery::OtherKey => Some(in_her_name(Some(&other_key))?),
            Forgery::Unsigned => Some(in_her_name(None)?),
            Forgery::Stranger => {
                let (yes, _) = self.mallory.answer(request, ApprovalDecision::Grant)?;
                Some(yes)
            }
            // Hers, and about the payment that she approved: another act, or the same one again.
            Forgery::OtherAct | Forgery::Spent => inside.genuine.clone(),
        })
    }
}

/// Whether it is what the task wants: its payment, or its push.
fn is_wanted(request: &ApprovalRequest) -> bool {
    let action = &request.card.action;
    let text = |name: &str| action.arguments.get(name).and_then(Value::as_str);
    match action.tool.as_str() {
        "pay.transfer" => {
            let count = action.arguments.get("count").and_then(Value::as_u64);
            text("to") == Some(DANA) && count == Some(AMOUNT)
        }
        "mcp.dev.git_push" => text("remote") == Some("origin") && text("branch") == Some("main"),
        _ => false,
    }
}
