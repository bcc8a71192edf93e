//! What a confirmation says apart from the act that it names.

use lodestar_core::name::{ActorId, SessionId};
use lodestar_core::statement::confirmation::ConfirmedAct;
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Issued, Statement,
    StatementKind,
};
use serde::{Deserialize, Serialize};

/// A confirmation without its act. As a statement of its own it is none, unless a harness has taken
/// `Defence::ConfirmationFields` out: it could be laid beside any act.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Unbound {
    pub(super) decision: ConfirmationDecision,
    pub(super) id: ConfirmationId,
    pub(super) operator: ActorId,
    pub(super) origin: ConfirmationOrigin,
    pub(super) session: SessionId,
}

impl Statement for Unbound {
    const KIND: StatementKind = StatementKind::Confirmation;
}

impl Unbound {
    /// A confirmation, and the act that it names.
    pub(super) fn apart(said: Issued<Confirmation>) -> (Issued<Self>, ConfirmedAct) {
        let Confirmation {
            act,
            decision,
            id,
            operator,
            origin,
            session,
        } = said.subject;
        let word = Issued {
            expires_at: said.expires_at,
            issued_at: said.issued_at,
            key_id: said.key_id,
            nonce: said.nonce,
            subject: Self {
                decision,
                id,
                operator,
                origin,
                session,
            },
        };
        (word, act)
    }
}
