//! What leaves this machine: announcements and notices past the operator's ceiling.
//!
//! An [`Outward`] is the only thing that is sent, and there is no way to one but past a [`Limit`].

use lodestar_core::contract::{BlastRadius, Contract, Reversibility};
use lodestar_core::digest::Digest;
use lodestar_core::id::RequestId;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ProjectId, ServerIdentity, SessionId, ToolName};
use lodestar_core::sensitivity::{DataSensitivity, Sensitivity};
use lodestar_core::time::Timestamp;
use lodestar_policy::Requirement;
use serde::{Deserialize, Serialize};

use crate::channel::{Announcement, Notice};

/// What people elsewhere are told of an open request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "shown", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "it is made to be written or read, and no more"
)]
pub enum Told {
    /// All of it.
    Whole(Announcement),
    /// It is more sensitive than may leave: whoever answers looks at it where it was asked.
    Withheld(Withheld),
}

/// A request without anything of what it is about: no argument, path, measurement, or where a value
/// came from, and no digest of them either, since what few words are digested can be guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Withheld {
    /// The project whose session waits.
    pub project: ProjectId,
    /// The session.
    pub session: SessionId,
    /// The request.
    pub id: RequestId,
    /// Whose tool.
    pub server: ServerIdentity,
    /// Which tool.
    pub tool: ToolName,
    /// The rung that it stands on.
    pub required_level: Rung,
    /// How far its effects go.
    pub blast_radius: BlastRadius,
    /// Whether they can be undone.
    pub reversibility: Reversibility,
    /// What data it handles.
    pub data_sensitivity: DataSensitivity,
    /// How sensitive the card is, which is more than may leave.
    pub sensitivity: Sensitivity,
    /// The policy in force, by digest.
    pub policy: Digest,
    /// What the answer needs.
    pub requirement: Requirement,
    /// When it was asked.
    pub created_at: Timestamp,
    /// From when on nobody's word opens it.
    pub expires_at: Timestamp,
    /// Who has said yes so far.
    pub granted_by: Vec<ActorId>,
    /// How many people are missing still.
    pub missing: u32,
}

/// What people elsewhere are told of something that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldNotice {
    /// The session.
    pub session: SessionId,
    /// When.
    pub at: Timestamp,
    /// In words, inert; nothing where it is withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// How sensitive things are in a session, and what of them may leave.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// The most sensitive that may leave.
    pub ceiling: Sensitivity,
    /// How sensitive everything in the session is at least.
    pub session: Sensitivity,
}

impl Limit {
    /// How sensitive a card about an action under this contract is.
    fn level_of(self, contract: &Contract) -> Sensitivity {
        self.session.under(contract.data_sensitivity)
    }

    /// What may be told of a request.
    pub fn told(self, announcement: &Announcement) -> Told {
        let request = &announcement.request;
        let action = &request.card.action;
        let contract = &action.contract;
        let sensitivity = self.level_of(contract);
        if sensitivity <= self.ceiling {
            return Told::Whole(announcement.clone());
        }
        Told::Withheld(Withheld {
            project: announcement.project.clone(),
            session: request.session.clone(),
            id: request.id,
            server: action.server.clone(),
            tool: action.tool.clone(),
            required_level: contract.required_level,
            blast_radius: contract.blast_radius,
            reversibility: contract.reversibility,
            data_sensitivity: contract.data_sensitivity,
            sensitivity,
            policy: request.policy,
            requirement: request.requirement.clone(),
            created_at: request.created_at,
            expires_at: request.expires_at,
            granted_by: announcement.granted_by.clone(),
            missing: announcement.missing,
        })
    }

    /// What may be told of something that ran. A notice does not say how sensitive it is, so it counts
    /// as secret.
    pub fn told_notice(self, notice: &Notice) -> ToldNotice {
        let may_leave = self.ceiling == Sensitivity::Secret;
        ToldNotice {
            session: notice.session.clone(),
            at: notice.at,
            what: may_leave.then(|| notice.what.clone()),
        }
    }
}

/// Text that may leave.
#[derive(Debug, Clone)]
pub(super) struct Outward(Vec<u8>);

impl Outward {
    pub(super) fn request(
        announcement: &Announcement,
        limit: Limit,
    ) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(&limit.told(announcement)).map(Self)
    }

    pub(super) fn notice(notice: &Notice, limit: Limit) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(&limit.told_notice(notice)).map(Self)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.clone()
    }
}
