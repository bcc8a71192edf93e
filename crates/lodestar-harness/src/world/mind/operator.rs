//! The word of the operator: what they say is so, and what they order about a belief.

use lodestar_core::chain::Predicate;
use lodestar_core::chain::transition::AxisMove;
use lodestar_core::id::BeliefId;
use lodestar_core::statement::{Assertion, Envelope, Issued, Promotion, Statement};
use lodestar_core::time::Timestamp;
use lodestar_firewall::claim_digest;
use serde_json::Value;

use super::{Mind, first};
use crate::probe::Outcome;
use crate::world::PROJECT;
use crate::world::people::nonce;

impl Mind {
    /// The operator says, signed at this moment, that something is so.
    pub fn assert_at(
        &mut self,
        issued_at: Timestamp,
        subject: &str,
        relation: &str,
        object: Value,
    ) -> Outcome<BeliefId> {
        let assertion = Assertion {
            predicate: Predicate {
                subject: subject.to_owned(),
                relation: relation.to_owned(),
                object,
            },
            project: PROJECT.to_owned(),
            scope: self.scope.clone(),
            statement: "I looked".to_owned(),
        };
        let envelope = self.signed(assertion, issued_at)?;
        let observation = self.observation("operator/assert", "")?;
        self.record(&observation)?;
        let project = self.log.project();
        let recorder = &mut self.recorder;
        let outcome = self
            .firewall
            .assert(project, &envelope, &observation, recorder)?;
        first(&outcome)
    }

    /// The operator moves a belief, signed now.
    pub fn order(&mut self, belief: BeliefId, moves: Vec<AxisMove>) -> Outcome {
        let found = self.belief(belief)?;
        let order = Promotion {
            belief,
            claim: claim_digest(&found.claim),
            moves,
            project: PROJECT.to_owned(),
            reason: "looked at".to_owned(),
            revision: found.revision,
        };
        let envelope = self.signed(order, self.now())?;
        let project = self.log.project();
        let recorder = &mut self.recorder;
        self.firewall.follow_order(project, &envelope, recorder)?;
        Ok(())
    }

    fn signed<T: Statement>(&self, subject: T, issued_at: Timestamp) -> Outcome<Envelope> {
        let key = &self.operator.key;
        let issued = Issued {
            expires_at: None,
            issued_at,
            key_id: key.public().key_id(),
            nonce: nonce()?,
            subject,
        };
        Ok(Envelope::sign(&issued, key)?)
    }
}
