//! What was redacted of what was believed: changes that rest on it do not follow any more, and nobody forged
//! them.

use std::collections::{BTreeMap, BTreeSet};

use lodestar_core::event::EventType;
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_log::{Payload, ProjectLog, Reader, RedactedRecord, SessionDir, Trust};

use crate::follow::ReplayError;

/// Events that adopted or changed beliefs, and of which nobody can tell any more which.
#[derive(Default)]
pub(super) struct Lost {
    /// The first of the session that is derived.
    first: Option<u64>,
    there: BTreeMap<SessionId, BTreeSet<u64>>,
    /// Whether an operator answers for what other sessions lack, once somebody asked.
    is_lawful: Option<bool>,
}

impl Lost {
    pub(super) fn here(&mut self, seq: u64) {
        self.first = self.first.or(Some(seq));
    }

    pub(super) fn there(&mut self, session: &SessionId, seq: u64) {
        let lost = self.there.entry(session.clone()).or_default();
        lost.insert(seq);
    }

    /// Whether something was lost before this event of the session itself. That its redactions are lawful is
    /// known from its verification.
    pub(super) fn before(&self, seq: u64) -> bool {
        self.first.is_some_and(|first| first < seq)
    }

    /// Whether another session lacks something that an operator took out. Those are not verified here, so
    /// that their gaps count only with a statement that answers for them.
    pub(super) fn elsewhere(
        &mut self,
        log: &ProjectLog,
        operators: &[PublicKey],
    ) -> Result<bool, ReplayError> {
        if let Some(known) = self.is_lawful {
            return Ok(known);
        }
        let mut found = false;
        for (session, lost) in &self.there {
            let answered = answered_for(&log.session(session), operators)?;
            found |= lost.iter().any(|seq| answered.contains(seq));
        }
        self.is_lawful = Some(found);
        Ok(found)
    }
}

/// The events of a session that signed redactions of these operators name, as they stand there.
fn answered_for(dir: &SessionDir, operators: &[PublicKey]) -> Result<BTreeSet<u64>, ReplayError> {
    let trust = Trust {
        operators: operators.to_vec(),
        ..Trust::default()
    };
    let mut leaves = BTreeMap::new();
    let mut named = Vec::new();
    for event in Reader::open(dir)?.map_while(Result::ok) {
        match &event.payload {
            Payload::Redacted { .. } => {
                leaves.insert(event.seq, event.leaf_hash);
            }
            Payload::Present(payload)
                if EventType::parse(event.kind.as_bytes()) == Some(EventType::LOG_REDACTED) =>
            {
                if let Ok(verified) = RedactedRecord::check(payload, dir, &trust, event.time) {
                    named.extend(verified.subject().events.clone());
                }
            }
            Payload::Present(_) => {}
        }
    }
    let answered = named.iter();
    let answered = answered.filter(|one| leaves.get(&one.seq) == Some(&one.leaf_hash));
    Ok(answered.map(|one| one.seq).collect())
}
