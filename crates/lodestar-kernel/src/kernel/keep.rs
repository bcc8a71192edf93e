//! Keeping what an act writes over, between its verdict and its call.
//!
//! The image is taken when everything else is settled, and made safe together with the clearance. Whether
//! the files are still as they were kept is looked at once more when that is done, right before the call; what
//! remains open is the moment in which the tool itself begins.

use std::path::PathBuf;
use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::id::ClearanceId;
use lodestar_core::ladder::Rung;
use lodestar_log::Receipt;

use super::clear::DURABLE_FROM;
use super::{ClearError, Kernel, Proposed};
use crate::image::{Image, Imaged, Sight, Spelling, Stood, Taken, Unkept, take};
use crate::record::Rejection;
use crate::tool::AtLinks;

/// How often an image is taken again of files that change while it is made safe. Whoever writes without pause
/// does not keep the act from running; what is kept then is what stood there last.
const TRIES: usize = 3;

/// What an act is about to write.
pub(super) struct Writing {
    root: PathBuf,
    paths: Arc<[PathBuf]>,
    at_links: AtLinks,
}

impl Writing {
    /// Keeps what stands there.
    pub(super) async fn take(&self) -> Taken {
        let (root, paths, at_links) = (self.root.clone(), Arc::clone(&self.paths), self.at_links);
        let taking = tokio::task::spawn_blocking(move || take(&root, &paths, at_links));
        taking
            .await
            .unwrap_or_else(|_| Taken::none(&self.root, &self.paths))
    }
}

/// Why an act that cannot be undone does not run. People who agreed to one of L4 were not promised that
/// it can be: it runs, and is said to be irreversible.
pub(super) fn unkept(level: Rung, taken: &Taken) -> Option<Rejection> {
    let (path, because) = taken.first_unkept()?;
    (level == Rung::L3).then(|| Rejection::Irreversible {
        path: path.shown().to_string(),
        because: because.clone(),
    })
}

impl Kernel {
    /// The files that an act of L3 or above writes; nothing where it says of none.
    pub(super) fn writes(&self, proposed: &Proposed) -> Option<Writing> {
        let action = &proposed.proposal.action;
        if action.contract.required_level < DURABLE_FROM {
            return None;
        }
        let paths = proposed.entry.tool().writes(&action.arguments);
        let root = proposed.entry.root().unwrap_or(self.world.root());
        (!paths.is_empty()).then(|| Writing {
            root: root.to_owned(),
            paths: paths.into(),
            at_links: proposed.entry.tool().at_links(),
        })
    }

    /// Records what was kept, waits until that and the clearance before it are safe, and looks whether it is
    /// still what stands there.
    pub(super) async fn keep(
        &self,
        proposed: &Proposed,
        clearance: ClearanceId,
        cleared: &Receipt,
        mut taken: Taken,
    ) -> Result<Sight, ClearError> {
        let action = &proposed.proposal.action;
        for tried in 1.. {
            let Taken { sight, images } = taken;
            let receipt = self
                .record_image(proposed, clearance, cleared, &sight, images)
                .await?;
            self.made_safe(&receipt).await?;
            if tried == TRIES || sight.is_unchanged() {
                return Ok(sight);
            }
            let Some(writing) = self.writes(proposed) else {
                return Ok(sight);
            };
            taken = writing.take().await;
            if let Some(why) = unkept(action.contract.required_level, &taken) {
                return Err(ClearError::Rejected(why));
            }
        }
        unreachable!("the last try returns")
    }

    /// Packing a large image takes a while: not on the caller's thread.
    async fn record_image(
        &self,
        proposed: &Proposed,
        clearance: ClearanceId,
        cleared: &Receipt,
        sight: &Sight,
        images: Vec<Image>,
    ) -> Result<Receipt, ClearError> {
        let imaged = Imaged {
            action: proposed.proposal.action.id,
            clearance,
            root: Spelling::from(sight.root.as_path()),
            images,
        };
        let (log, actor, parent) = (self.log.clone(), self.actor().clone(), cleared.seq());
        let append = move || log.append(EventType::ACTION_IMAGED, &actor, &[parent], &imaged);
        let appended = tokio::task::spawn_blocking(append).await;
        let receipt = appended.map_err(|_| {
            ClearError::Rejected(Rejection::NotRecorded {
                reason: "what it writes over could not be recorded".to_owned(),
            })
        })?;
        Ok(receipt?)
    }
}

impl Taken {
    /// Nothing was kept, because keeping it failed as a whole.
    fn none(root: &std::path::Path, paths: &[PathBuf]) -> Self {
        let images = paths.iter().map(|path| Image {
            path: Spelling::from(path.as_path()),
            stood: Stood::Unkept {
                because: Unkept::Unreadable {
                    problem: "looking at it panicked".to_owned(),
                },
            },
        });
        Self {
            sight: Sight::of_nothing(root),
            images: images.collect(),
        }
    }
}
