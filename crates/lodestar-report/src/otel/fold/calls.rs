//! What happens to calls: proposed, held, answered, cleared, over.

use lodestar_core::id::{ObservationId, RequestId};
use lodestar_core::sensitivity::Sensitivity;
use lodestar_kernel::record::{Proposal, Rejected};
use lodestar_log::Event;
use opentelemetry::KeyValue;

use super::super::action::{ActionSpan, End, rejected};
use super::super::attributes::text;
use super::super::hold::{HoldSpan, answer};
use super::super::ids::Role;
use super::super::names;
use super::{Fold, Owner, Unprojectable};

impl Fold {
    pub(super) fn proposed(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let proposal: Option<Proposal> = self.read(event)?;
        let Some((ids, root)) = &mut self.open else {
            return Ok(());
        };
        root.counts.actions += 1;
        let server = proposal.as_ref().map(|it| it.action.server.as_str());
        let action = ActionSpan::open(
            event,
            proposal.as_ref(),
            self.results.opening(),
            server.and_then(|server| self.servers.get(server)),
            ids.span(Role::Action, &event.leaf_hash),
            self.ceiling,
        );
        self.by_id.extend(action.id.map(|id| (id, event.seq)));
        let returns = action.id.map(ObservationId::of_action);
        self.by_observation
            .extend(returns.map(|id| (id, event.seq)));
        self.owners.insert(event.seq, Owner::Action(event.seq));
        self.actions.insert(event.seq, action);
        Ok(())
    }

    pub(super) fn cleared(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let request = payload.as_ref().and_then(|it| it["request"].as_str());
        let request = request.map(str::to_owned);
        let hold = request.as_ref().and_then(|it| it.parse().ok());
        let hold = hold.and_then(|id: RequestId| self.requests.get(&id).copied());
        let opened_by = hold.and_then(|seq| Some(self.holds.get(&seq)?.span));
        // Clearing and spending are one.
        self.close_hold(hold, "spent", event);
        let Some((ids, _)) = &self.open else {
            return Ok(());
        };
        let span = ids.span(Role::Execution, &event.leaf_hash);
        self.with_action(event, |action| {
            action.cleared(event, request, (span, opened_by));
        });
        Ok(())
    }

    pub(super) fn finished(&mut self, end: End, event: &Event) -> Result<(), Unprojectable> {
        let (payload, ceiling) = (self.payload(event)?, self.ceiling);
        if let Some((_, root)) = &mut self.open {
            let failed = payload.as_ref().map(|it| it["result"] == "failure");
            match end {
                End::Failed => root.counts.failed += 1,
                End::Completed => root.counts.failed += u64::from(failed.unwrap_or_default()),
                End::Unknown => root.counts.unknown += 1,
                End::Rejected => root.counts.rejected += 1,
            }
        }
        let of = self.action_of(event);
        self.with_action(event, |action| {
            action.finished(end, event, payload, ceiling)
        });
        if let Some(seq) = of {
            self.over(seq);
        }
        Ok(())
    }

    pub(super) fn rejected(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let spent: Option<Rejected> = self.read(event)?;
        if let Some(request) = spent.and_then(|it| it.spent_in_vain()) {
            self.close_hold(self.requests.get(&request).copied(), "world_moved", event);
        }
        if self.action_of(event).is_some() {
            return self.finished(End::Rejected, event);
        }
        // It did not become an action.
        let payload = self.payload(event)?;
        let ceiling = self.ceiling;
        if let Some((_, root)) = &mut self.open {
            root.counts.rejected += 1;
            let tool = payload.as_ref().and_then(|it| it["tool"].as_str());
            let mut said: Vec<KeyValue> = Vec::new();
            said.extend(tool.map(|tool| text(names::GEN_AI_TOOL_NAME, tool)));
            // What was called may hold anything.
            let level = Sensitivity::Secret;
            said.extend(
                payload
                    .map(|it| rejected(it, level, event, ceiling))
                    .unwrap_or_default(),
            );
            root.note("lodestar.rejected", event, said);
        }
        Ok(())
    }

    pub(super) fn requested(&mut self, event: &Event) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let asks = self.action_of(event).and_then(|seq| self.actions.get(&seq));
        let (Some((ids, _)), Some(action)) = (&self.open, asks) else {
            return Ok(());
        };
        let span = ids.span(Role::Hold, &event.leaf_hash);
        let hold = HoldSpan::open(event, payload, (span, action.span), &action.tool);
        self.requests.extend(hold.request.map(|id| (id, event.seq)));
        self.owners.insert(event.seq, Owner::Hold(event.seq));
        self.holds.insert(event.seq, hold);
        Ok(())
    }

    pub(super) fn answered(
        &mut self,
        name: &'static str,
        event: &Event,
    ) -> Result<(), Unprojectable> {
        let payload = self.payload(event)?;
        let hold = self.hold_of(event).and_then(|seq| self.holds.get_mut(&seq));
        match hold {
            Some(hold) => hold.answered(name, event, payload),
            None => {
                let said = payload.map(answer).unwrap_or_default();
                self.note_root(name, event, said);
            }
        }
        Ok(())
    }
}
