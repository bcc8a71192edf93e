//! Steps, and what is looked at in the end: each is exactly one thing.

use lodestar_core::event::EventType;
use lodestar_core::statement::ApprovalDecision;
use toml::Spanned;

use super::{Check, MAX_STEPS};
use crate::pack::scenario::{Act, End, Setting, Step};
use crate::pack::written::{EndTable, LogState, StepTable};

impl Check<'_> {
    pub(super) fn step(&mut self, written: &Spanned<StepTable>, setting: &Setting) -> Option<Step> {
        let (at, step) = (written.span().start, written.get_ref());
        let answer = |person: &String, decision| Act::Answer {
            person: person.clone(),
            decision,
        };
        let acts = [
            step.call.as_ref().map(|tool| Act::Call {
                tool: tool.clone(),
                arguments: step.arguments.clone(),
            }),
            step.read.clone().map(Act::Read),
            step.prompt.clone().map(|name| Act::Prompt {
                name,
                arguments: step.arguments.clone(),
            }),
            step.obey.map(Act::Obey),
            step.grant
                .as_ref()
                .map(|one| answer(one, ApprovalDecision::Grant)),
            step.deny
                .as_ref()
                .map(|one| answer(one, ApprovalDecision::Deny)),
            step.restart.map(Act::Restart),
        ];
        let mut acts: Vec<Act> = acts.into_iter().flatten().collect();
        let (Some(act), true) = (acts.pop(), acts.is_empty()) else {
            self.wrong(
                at,
                "a step is exactly one of call, read, prompt, obey, grant, deny and restart",
            );
            return None;
        };
        self.values(at, &step.arguments);
        if !step.arguments.is_empty() && !matches!(act, Act::Call { .. } | Act::Prompt { .. }) {
            self.wrong(at, "only what is called has arguments");
        }
        let asks = matches!(
            act,
            Act::Call { .. } | Act::Read(_) | Act::Prompt { .. } | Act::Obey(_)
        );
        let looks = step.needs.is_some()
            || step.needs_text.is_some()
            || step.expect.is_some()
            || step.never_says.is_some();
        if looks && !asks {
            self.wrong(
                at,
                "nothing comes back from this step that could be looked at",
            );
        }
        match &act {
            Act::Answer { person, .. } if !setting.people.contains(person) => {
                self.wrong(at, "this person is not among `project.people`");
            }
            Act::Obey(0) => self.wrong(at, "an agent that obeys nothing is none"),
            Act::Obey(times) => self.most("calls that are obeyed at once", *times, MAX_STEPS),
            _ => {}
        }
        Some(Step {
            act,
            needs: step.needs,
            needs_text: step.needs_text.clone(),
            expect: step.expect,
            never_says: step.never_says.clone(),
        })
    }

    pub(super) fn ends(&mut self, written: &[Spanned<EndTable>], setting: &Setting) -> Vec<End> {
        let found = written.iter().filter_map(|one| self.end(one, setting));
        found.collect()
    }

    fn end(&mut self, written: &Spanned<EndTable>, setting: &Setting) -> Option<End> {
        let (at, end) = (written.span().start, written.get_ref());
        self.values(at, &end.with);
        let stray = (!end.with.is_empty() && end.ran.is_none())
            || (end.truth.is_some() && end.believes.is_none())
            || (end.times.is_some() && end.ran.is_none() && end.events.is_none());
        if stray {
            self.wrong(
                at,
                "`with` goes with `ran`, `truth` with `believes`, `times` with `ran` or `events`",
            );
        }
        let found = match (&end.ran, &end.believes, &end.events, end.log, end.times) {
            (Some(tool), None, None, None, Some(times)) => {
                tool.split_once('.').map(|(server, tool)| End::Ran {
                    server: server.to_owned(),
                    tool: tool.to_owned(),
                    with: end.with.clone(),
                    times,
                })
            }
            (None, Some(words), None, None, None) if !words.is_empty() => {
                end.truth.map(|truth| End::Believes {
                    words: words.clone(),
                    truth,
                })
            }
            (None, None, Some(kind), None, Some(times)) => {
                let known = EventType::parse(format!("{kind}@1").as_bytes());
                known.map(|_| End::Events {
                    kind: format!("{kind}@"),
                    times,
                })
            }
            (None, None, None, Some(LogState::Intact), None) => Some(End::LogIntact),
            _ => None,
        };
        if let Some(End::Ran { server, tool, .. }) = &found
            && !setting.offers(server, tool)
        {
            self.wrong(at, "no server of the scenario has such a tool");
        }
        if found.is_none() {
            self.wrong(
                at,
                "this is one of: `ran = \"server.tool\"` and `times`; `believes = \"words\"` and `truth`; `events = \"type\"` (as in docs/reference/events.md) and `times`; `log = \"intact\"`",
            );
        }
        found
    }
}
