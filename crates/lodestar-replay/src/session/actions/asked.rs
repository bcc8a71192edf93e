//! Requests, derived again.

use lodestar_core::ladder::Verdict;
use lodestar_kernel::HeldWorld;
use lodestar_policy::{ApprovalRequest, explain};

use super::notes::Notes;
use super::{Actions, Ruled};

impl Actions {
    pub(super) fn requested(&mut self, request: Option<ApprovalRequest>, notes: &mut Notes<'_>) {
        let Some(request) = request else { return };
        // One whose proposal was redacted is named by this.
        self.action(request.card.action.id, notes.parents);
        if let Err(derived) = self.check_request(&request, notes) {
            notes.differ("a request", derived);
        }
        self.words.requested(request, notes);
    }

    /// A request asks for exactly what the verdict says it needs, for as long as that says, and its card
    /// shows what was proposed.
    fn check_request(
        &self,
        request: &ApprovalRequest,
        notes: &mut Notes<'_>,
    ) -> Result<(), String> {
        let (card, no) = (&request.card, |derived: &str| Err(derived.to_owned()));
        let action = self.proposed_as.get(&card.action.id);
        let action = action.and_then(|place| self.actions.get(place));
        let action = action.ok_or("that no such action was proposed")?;
        if let Some(proposal) = &action.proposal {
            if proposal.action != card.action {
                return no("that its card shows another action than was proposed");
            }
            if proposal.provenance != card.provenance {
                return no("that its card shows values from elsewhere than they came from");
            }
        }
        if (&request.project, &request.session) != (&self.place.project, &self.place.session) {
            return no("that it is of another session");
        }
        if request.requirement.expires_from(request.created_at) != request.expires_at {
            return no("that it expires at another time");
        }
        let (_, ruled) = action.judged.as_ref().ok_or("that there was no verdict")?;
        let Ruled::Known(judgement) = ruled else {
            notes.cannot_tell();
            return Ok(());
        };
        if judgement.verdict != Verdict::Hold {
            return no("that the action was not held");
        }
        if judgement.requirement.as_ref() != Some(&request.requirement) {
            return no("that the verdict asks for other approvals");
        }
        if explain(judgement) != card.why {
            return no("that its card gives another reason than the verdict");
        }
        if judgement.policy != request.policy {
            return no("that it names another policy");
        }
        let world = HeldWorld::shown_on(card);
        let world = world.ok_or("that its card shows what nobody measures")?;
        let tool = self.tools.get(&card.action.tool);
        let tool = tool.ok_or("that there is no such tool")?;
        let Some(proposal) = &action.proposal else {
            notes.cannot_tell();
            return Ok(());
        };
        let is_of_it = world.check_of(proposal, tool, judgement.policy);
        is_of_it.map_err(|derived| derived.to_string())
    }
}
