//! Which events a report rests on, and how sensitive each is.

use std::collections::{BTreeSet, HashMap};

use lodestar_core::chain::DecisionOrigin;
use lodestar_core::sensitivity::Sensitivity;

use super::{Report, Wary};

impl Report {
    /// Every event of the session that the report cites, and its first.
    pub fn cited(&self) -> BTreeSet<u64> {
        let mut cited = BTreeSet::from([0]);
        let session = &self.session;
        cited.extend(session.policy.iter().map(|one| one.seq));
        cited.extend(session.calibration.iter().map(|one| one.seq));
        let said = session
            .tasks
            .iter()
            .chain(&session.halted)
            .chain(&session.closed);
        cited.extend(said.map(|one| one.seq));
        for answer in self.answers.all() {
            cited.extend(&answer.events);
        }
        for action in &self.actions {
            cited.insert(action.seq);
            cited.extend(action.arguments.iter().flat_map(|one| &one.read_in));
            cited.extend(action.judged.iter().map(|one| one.seq));
            cited.extend(action.cleared.iter().map(|one| one.seq));
            cited.extend(action.image.iter().map(|one| one.seq));
            cited.extend(action.rejected.iter().map(|one| one.seq));
            if let Some(ended) = &action.ended {
                cited.insert(ended.seq);
                cited.extend(ended.returned);
            }
        }
        for request in &self.requests {
            cited.insert(request.seq);
            cited.extend(request.answers.iter().map(|one| one.seq));
            cited.extend(request.closed.iter().map(|one| one.seq));
        }
        cited.extend(self.refused_calls.iter().map(|one| one.seq));
        cited.extend(self.forged.iter().map(|one| one.seq));
        for belief in &self.beliefs.list {
            cited.insert(belief.seq);
            cited.extend(&belief.sources);
            let here = belief.moves.iter().filter(|one| one.session.is_none());
            cited.extend(here.map(|one| one.seq));
        }
        for decision in &self.decisions {
            cited.insert(decision.seq);
            cited.extend(&decision.actions);
            cited.extend(decision.rests_on.iter().filter_map(|one| one.adopted));
        }
        for hostile in &self.hostile {
            cited.insert(hostile.seq);
            for wary in &hostile.because {
                if let Wary::FedCalls { events } | Wary::SetApart { events } = wary {
                    cited.extend(events);
                }
            }
        }
        for alert in &self.alerts {
            cited.insert(alert.seq);
            cited.extend(alert.proposed);
        }
        for drift in &self.drift {
            cited.insert(drift.seq);
            cited.extend(&drift.refused);
        }
        cited.extend(self.servers.iter().map(|one| one.seq));
        cited.extend(self.calibrations.iter().map(|one| one.seq));
        for one in &self.integrity.redactions {
            cited.insert(one.seq);
            cited.extend(&one.events);
        }
        cited.extend(self.limits.iter().flat_map(|one| &one.events));
        cited
    }

    /// Cited events that say something of the session as a whole.
    fn of_the_session(&self) -> impl Iterator<Item = u64> {
        let session = &self.session;
        let said = session.tasks.iter().chain(&session.halted);
        let said = said.chain(&session.closed).map(|one| one.seq);
        let declared = self.decisions.iter();
        let declared = declared.filter(|one| one.origin == DecisionOrigin::Declared);
        std::iter::once(0)
            .chain(said)
            .chain(declared.map(|one| one.seq))
            .chain(self.drift.iter().map(|one| one.seq))
            .chain(self.servers.iter().map(|one| one.seq))
            .chain(self.calibrations.iter().map(|one| one.seq))
            .chain(self.integrity.redactions.iter().map(|one| one.seq))
    }

    /// How sensitive events are that a report says something of. Of any other nobody knows.
    pub fn levels(&self) -> HashMap<u64, Sensitivity> {
        let mut levels: HashMap<u64, Sensitivity> = HashMap::new();
        let mut note = |seq: u64, level: Sensitivity| {
            let known = levels.entry(seq).or_insert(level);
            *known = known.stricter(level);
        };
        let mut of_action = HashMap::new();
        for action in &self.actions {
            let level = action.sensitivity;
            of_action.insert(action.seq, level);
            let ended = action.ended.as_ref();
            let told = [
                Some(action.seq),
                action.judged.as_ref().map(|one| one.seq),
                action.cleared.as_ref().map(|one| one.seq),
                action.image.as_ref().map(|one| one.seq),
                ended.map(|one| one.seq),
                ended.and_then(|one| one.returned),
                action.rejected.as_ref().map(|one| one.seq),
            ];
            told.into_iter().flatten().for_each(|seq| note(seq, level));
        }
        for request in &self.requests {
            // Of a request whose action is not there nobody knows what it shows.
            let level = request.proposed.and_then(|seq| of_action.get(&seq));
            let level = level.copied().unwrap_or(Sensitivity::Secret);
            note(request.seq, level);
            request.answers.iter().for_each(|one| note(one.seq, level));
            request.closed.iter().for_each(|one| note(one.seq, level));
        }
        for belief in &self.beliefs.list {
            note(belief.seq, belief.sensitivity);
            let here = belief.moves.iter().filter(|one| one.session.is_none());
            here.for_each(|one| note(one.seq, belief.sensitivity));
        }
        let refused = self.refused_calls.iter();
        refused.for_each(|one| note(one.seq, one.sensitivity));
        let forged = self.forged.iter();
        forged.for_each(|one| note(one.seq, one.sensitivity));
        let alerts = self.alerts.iter();
        alerts.for_each(|one| note(one.seq, one.sensitivity));
        for seq in self.of_the_session() {
            note(seq, self.session.sensitivity);
        }
        levels
    }
}
