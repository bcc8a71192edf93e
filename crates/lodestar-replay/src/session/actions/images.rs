//! Images of what an act wrote over, held against what they must be. What stood in a file nobody can derive; but
//! an image comes between clearance and end, holds what its digests say, and leaves nothing out of an act of L3.

use lodestar_core::id::ClearanceId;
use lodestar_core::ladder::Rung;
use lodestar_kernel::image::{Imaged, Stood};
use lodestar_kernel::record::Finished;

use super::Actions;
use super::notes::Notes;

const WHAT: &str = "an image of what an act wrote over";

impl Actions {
    pub(super) fn imaged(&mut self, imaged: Option<Imaged>, notes: &mut Notes<'_>) {
        let Some(imaged) = imaged else { return };
        let Some(action) = self.action(imaged.action, notes.parents) else {
            return notes.differ(WHAT, "that no such action was proposed");
        };
        if !action.cleared {
            notes.differ(WHAT, "that the action was never cleared");
        }
        if action.ended {
            notes.differ(WHAT, "that the action had ended before");
        }
        action.imaged = Some(imaged.images.len());
        let level = action.proposal.as_ref();
        let level = level.map(|proposal| proposal.action.contract.required_level);
        if imaged.clearance != ClearanceId::of_action(imaged.action) {
            notes.differ(WHAT, "that it names another clearance");
        }
        if level.is_some_and(|level| level < Rung::L3) {
            notes.differ(WHAT, "that the act stands below L3");
        }
        for image in &imaged.images {
            match &image.stood {
                Stood::File {
                    bytes,
                    sha256,
                    content,
                    ..
                } => {
                    let held = content.bytes(sha256);
                    if held.is_none_or(|held| held.len() as u64 != *bytes) {
                        let path = image.path.shown();
                        notes.differ(WHAT, format!("that `{path}` held something else"));
                    }
                }
                Stood::Unkept { .. } if level == Some(Rung::L3) => {
                    let path = image.path.shown();
                    notes.differ(
                        WHAT,
                        format!("that `{path}` was not kept, so it did not run"),
                    );
                }
                _ => {}
            }
        }
    }

    /// What an act left stands beside what it found, path by path.
    pub(super) fn left(&mut self, finished: Option<&Finished>, notes: &mut Notes<'_>) {
        let Some(finished) = finished.filter(|finished| !finished.left.is_empty()) else {
            return;
        };
        let action = self.action(finished.outcome.action, notes.parents);
        match action.map(|action| (action.imaged, action.image_redacted)) {
            Some((_, true)) => notes.cannot_tell(),
            Some((Some(paths), _)) if paths == finished.left.len() => {}
            Some(_) => notes.differ("what an act left", "that its image has other paths"),
            // That there is no such action is said with its end.
            None => {}
        }
    }
}
