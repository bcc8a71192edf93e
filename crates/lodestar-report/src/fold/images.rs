//! What was kept of what acts write over, and what was undone with it.

use lodestar_core::name::ToolName;
use lodestar_kernel::image::Imaged;
use lodestar_kernel::native::fs::{RESTORE, Restoration};
use lodestar_log::Event;
use serde_json::{Map, Value};

use super::Fold;
use crate::model::{CanUndo, ImageKept, Undoes};

impl Fold<'_> {
    pub(super) fn imaged(&mut self, event: &Event) {
        let seq = event.seq;
        let Some(imaged) = self.read::<Imaged>(event) else {
            let cleared = event.parents.first();
            let action = cleared
                .and_then(|cleared| self.cleared_of.get(cleared))
                .copied();
            if let Some(action) = action.and_then(|at| self.actions.get_mut(at)) {
                action.image = Some(ImageKept {
                    seq,
                    paths: None,
                    undo: CanUndo::Redacted,
                    problem: None,
                });
            }
            return;
        };
        let Some(sensitivity) = self.action(imaged.action).map(|one| one.sensitivity) else {
            return;
        };
        let unkept = imaged.unkept().next();
        let problem = unkept.map(|(path, because)| format!("{}: {because}", path.shown()));
        let kept = ImageKept {
            seq,
            paths: Some(imaged.images.len() as u64),
            undo: match problem {
                None => CanUndo::Yes,
                Some(_) => CanUndo::No,
            },
            problem: problem.map(|problem| self.reason(&problem, sensitivity)),
        };
        if let Some(action) = self.action(imaged.action) {
            action.image = Some(kept);
        }
    }
}

/// The act that a call puts back.
pub(super) fn undoes(tool: &ToolName, arguments: &Map<String, Value>) -> Option<Undoes> {
    if tool.as_str() != RESTORE {
        return None;
    }
    let asked = Restoration::of(arguments).ok()?;
    Some(Undoes {
        action: asked.action,
        session: asked.session.as_str().to_owned(),
    })
}
