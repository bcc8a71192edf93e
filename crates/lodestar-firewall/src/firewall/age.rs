//! Freshness by the clock: it really happens, as events.

use lodestar_core::chain::Freshness;
use lodestar_core::chain::transition::{AuthorityKind, Axis};
use lodestar_core::name::ProjectId;
use lodestar_core::time::Timestamp;

use super::{Firewall, FirewallError, enact, only_genuine, transact};
use crate::event::{Cause, Change, FirewallEvent, Moved, Recorder};
use crate::judge::{self, Grounds};
use crate::row::keys::Keyring;
use crate::row::{EXPIRED_AFTER, STALE_AFTER, StoredBelief};
use crate::store::Writing;

/// Beliefs that grow old in one event: few enough for one line of the log.
const BATCH: usize = 512;

/// Rows that are looked at in one go. Whoever plants more than this in a store that is shared keeps
/// the others from growing old; their age still counts in every context.
const MAX_LOOKED_AT: usize = 1 << 16;

impl Firewall {
    /// Lets every belief of a project grow old whose time has come, and says how many did.
    pub fn age(
        &mut self,
        project: &ProjectId,
        recorder: &mut dyn Recorder,
    ) -> Result<u64, FirewallError> {
        let now = self.now();
        let Self { store, keys, .. } = self;
        let mut aged = 0;
        // Rows that are not genuine, or another project's, must not keep the others from their turn.
        let mut passed_over = 0;
        loop {
            let limit = BATCH + passed_over;
            let (moved, left) = transact(store, |tx| {
                let (changes, left) = due(tx, keys, project, now, limit)?;
                let moved = changes.len();
                if moved > 0 {
                    let event = FirewallEvent::Moved(Moved { changes });
                    enact(tx, keys, recorder, &event)?;
                }
                Ok((moved, left))
            })?;
            aged += moved as u64;
            if moved + left < limit || limit > MAX_LOOKED_AT {
                return Ok(aged);
            }
            passed_over = left;
        }
    }
}

fn due(
    tx: &mut dyn Writing,
    keys: &Keyring,
    project: &ProjectId,
    now: Timestamp,
    limit: usize,
) -> Result<(Vec<Change>, usize), FirewallError> {
    let rows = tx.due(now, limit)?;
    let all = rows.len();
    let mut genuine = only_genuine(keys, rows)?;
    genuine.retain(|belief| belief.adopted.log.project == *project);
    let left = all - genuine.len();
    let mut changes = Vec::with_capacity(genuine.len());
    for belief in genuine {
        changes.push(grown_old(&belief, now)?);
    }
    Ok((changes, left))
}

/// One step, or two for what was due twice.
fn grown_old(belief: &StoredBelief, now: Timestamp) -> Result<Change, FirewallError> {
    let mut axes = belief.record.axes;
    let mut due = belief.due_at;
    let mut moves = Vec::new();
    while let Some(moment) = due.filter(|moment| *moment <= now) {
        let to = match axes.freshness {
            Freshness::Fresh => Freshness::Stale,
            Freshness::Stale | Freshness::Expired => Freshness::Expired,
        };
        let step = judge::between(axes.on(Axis::Freshness), to.into());
        axes = judge::permit(axes, step, AuthorityKind::System, Grounds::Clock).map_err(
            |refused| FirewallError::Move {
                belief: belief.record.id,
                refused,
            },
        )?;
        moves.push(step);
        due = match to {
            Freshness::Stale => moment.checked_add(EXPIRED_AFTER - STALE_AFTER),
            Freshness::Fresh | Freshness::Expired => None,
        };
    }
    Ok(Change {
        belief: belief.record.id,
        revision: belief.revision + 1,
        moves,
        authority: AuthorityKind::System,
        cause: Cause::Clock,
        at: now,
        evidence: Vec::new(),
    })
}
