//! What an auditor asks first, answered from what was gathered.
//!
//! An answer says no more than the events show. Where something was redacted that could have shown
//! otherwise, or where a signature is missing, it says that nobody can tell.

use lodestar_core::chain::Truth;
use lodestar_core::chain::transition::{AuthorityKind, State};
use lodestar_core::contract::Reversibility;
use lodestar_core::event::EventType;
use lodestar_core::execution::ExecutionLevel;
use lodestar_core::ladder::Rung;
use lodestar_log::verify::{Remark, SessionReport, SessionState};

use crate::examine::elsewhere::named;
use crate::fold::Fold;
use crate::graded::Graded;
use crate::model::{Action, Answer, Answers, Belief, Events, Standing, Word};
use crate::words;

/// Events that an answer names; there can be more, and then it says how many.
const MOST_EVENTS: usize = 64;

pub(crate) fn answers(fold: &Fold<'_>, verified: &SessionReport, graded: &Graded) -> Answers {
    Answers {
        untrusted_became_trusted: as_far_as_it_goes(became_trusted(fold), fold, verified),
        irreversible_without_approval: as_far_as_it_goes(irreversible(fold), fold, verified),
        log_intact: intact(fold, verified),
        execution_trust: execution(fold, graded),
    }
}

/// The level is a gateway's word, and the answer says so.
fn execution(fold: &Fold<'_>, graded: &Graded) -> Answer {
    let (answer, standing, because) = match graded {
        Graded::NoRun => (
            Word::None,
            Standing::Open,
            "no gateway has attested this run".to_owned(),
        ),
        Graded::Ungraded(ticket) => (
            Word::None,
            Standing::Open,
            format!(
                "it was registered as {}, and nothing that a gateway said of it is kept here",
                ticket.id
            ),
        ),
        Graded::Refused(why) => (
            Word::None,
            Standing::Open,
            format!("what is kept of a gateway's answer does not count: {why}"),
        ),
        Graded::Said(said) => {
            let held = said.facts.iter().filter(|one| one.held).count() as u64;
            let stopped = match said.stopped_by {
                None => "all of the ladder's facts held".to_owned(),
                Some(fact) => format!(
                    "{} of {} facts held, and for `{}` it would have needed that {}",
                    words::number(held),
                    words::number(said.facts.len() as u64),
                    fact.needed_from(),
                    fact.phrase()
                ),
            };
            let standing = match said.level {
                ExecutionLevel::FullyTrusted => Standing::Good,
                _ => Standing::Open,
            };
            let because = format!(
                "so says the gateway at {}, on {} UTC: {stopped}. It is that gateway's word, kept here unchanged; this report did not find it out itself",
                said.gateway,
                words::seconds(said.evaluated_at)
            );
            (Word::Level(said.level), standing, because)
        }
    };
    answer_of(
        "Which execution trust level?",
        (answer, standing),
        because,
        fold.policy.iter().map(|policy| policy.seq).collect(),
    )
}

/// How a belief that was read came to be supported.
#[derive(PartialEq, Eq)]
enum Way {
    /// It did not.
    Never,
    /// Independent direct evidence says the same.
    DirectEvidence,
    /// A person or a rule of the operator said so.
    OnAWord,
    /// Nothing that is recorded.
    Unexplained,
}

fn way(belief: &Belief) -> Way {
    let supported = State::Truth(Truth::Supported);
    let raised = belief.moves.iter().rfind(|one| one.step.to() == supported);
    match raised {
        Some(raised) if raised.authority == AuthorityKind::AutoObservation.to_string() => {
            Way::DirectEvidence
        }
        Some(_) => Way::OnAWord,
        None if belief.axes.truth == Truth::Supported => Way::Unexplained,
        None => Way::Never,
    }
}

fn became_trusted(fold: &Fold<'_>) -> Answer {
    let read = || fold.beliefs.iter().filter(|belief| belief.was_read());
    let all = read().count() as u64;
    let of = |way_of: Way| read().filter(move |belief| way(belief) == way_of);
    let moved = |belief: &Belief| {
        let here = belief.moves.iter().filter(|one| one.session.is_none());
        here.map(|one| one.seq).collect::<Vec<_>>()
    };
    let unexplained: Vec<u64> = of(Way::Unexplained).map(|belief| belief.seq).collect();
    let mut on_a_word: Vec<u64> = of(Way::OnAWord).flat_map(moved).collect();
    let words_of = of(Way::OnAWord).count() + fold.promoted_elsewhere.len();
    on_a_word.extend(fold.promoted_elsewhere.iter().map(|(seq, _)| *seq));
    let confirmed: Vec<u64> = of(Way::DirectEvidence).flat_map(moved).collect();
    // A promotion is more than one move, and what was supported once need not be now.
    let supported = of(Way::DirectEvidence).filter(|one| one.axes.truth == Truth::Supported);
    let supported = supported.count() as u64;
    let mut lost = lost(fold, |kind| {
        kind.starts_with("belief.") || kind.starts_with("observation.")
    });
    lost.extend(&fold.ungrounded);
    lost.sort_unstable();
    lost.dedup();
    let lost_elsewhere: Vec<_> = fold.lost_elsewhere.iter().map(|(s, n)| (s, *n)).collect();
    let (answer, standing, because, events) = if !unexplained.is_empty() {
        let because = format!(
            "{} that had only been read: supported, and nothing says why",
            words::count(unexplained.len() as u64, "claim")
        );
        (Word::Yes, Standing::Bad, because, unexplained)
    } else if words_of > 0 {
        let because = format!(
            "{} that had only been read {} promoted on somebody's word: a person's signed statement, or a rule of the operator",
            words::count(words_of as u64, "claim"),
            if words_of == 1 { "was" } else { "were" }
        );
        (Word::Yes, Standing::Open, because, on_a_word)
    } else if !lost.is_empty() {
        let because = format!(
            "what {} said of beliefs, or of what they rest on, was redacted or cannot be read",
            words::count(lost.len() as u64, "event")
        );
        (Word::CannotTell, Standing::Open, because, lost)
    } else if all > 0 && !lost_elsewhere.is_empty() {
        let because = format!(
            "what another session did to beliefs of this one was redacted or cannot be read: {}",
            named(&lost_elsewhere)
        );
        let shown = read().map(|belief| belief.seq).collect();
        (Word::CannotTell, Standing::Open, because, shown)
    } else {
        let because = match (all, supported) {
            (0, _) => "nothing was read that anything is believed of".to_owned(),
            (all, 0) => format!(
                "{} out of what was read, none of them supported",
                words::count(all, "claim")
            ),
            (all, some) => format!(
                "{} out of what was read; {} of them are supported, by independent direct evidence",
                words::count(all, "claim"),
                words::number(some)
            ),
        };
        let shown: Vec<u64> = match confirmed.is_empty() {
            true => read().map(|belief| belief.seq).collect(),
            false => confirmed,
        };
        (Word::No, Standing::Good, because, shown)
    };
    answer_of(
        "Did untrusted input become trusted?",
        (answer, standing),
        because,
        events,
    )
}

/// Whether nobody can take it back, as its contract says, or whether it reaches beyond the project. What is
/// prohibited counts where it may have run in spite of that.
fn needs_a_person(action: &Action) -> bool {
    action.reversibility == Reversibility::Irreversible
        || action.level == Rung::L4
        || action.level > Rung::L4 && action.may_have_run()
}

fn irreversible(fold: &Fold<'_>) -> Answer {
    let ran = || {
        let all = fold.actions.iter().filter(|one| needs_a_person(one));
        all.filter(|one| one.may_have_run())
    };
    let approved = |action: &&Action| {
        let cleared = action.cleared.as_ref();
        cleared.is_some_and(|one| one.request.is_some() && !one.grants.is_empty())
    };
    let unapproved: Vec<u64> = ran()
        .filter(|one| !approved(one))
        .map(|one| one.seq)
        .collect();
    let lost = lost(fold, |kind| {
        kind.starts_with("action.") || kind.starts_with("approval.")
    });
    let (answer, standing, because, events) = if !unapproved.is_empty() {
        let because = format!(
            "{} that cannot be taken back, or that others see, ran without anybody's approval",
            words::count(unapproved.len() as u64, "action")
        );
        (Word::Yes, Standing::Bad, because, unapproved)
    } else if !lost.is_empty() {
        let because = format!(
            "what {} said of actions was redacted or cannot be read",
            words::count(lost.len() as u64, "event")
        );
        (Word::CannotTell, Standing::Open, because, lost)
    } else {
        let with: Vec<u64> = ran()
            .filter_map(|one| Some(one.cleared.as_ref()?.seq))
            .collect();
        let waiting = fold.actions.iter().filter(|one| needs_a_person(one));
        let waiting: Vec<u64> = waiting
            .filter(|one| !one.may_have_run())
            .map(|one| one.seq)
            .collect();
        let because = match (with.len() as u64, waiting.len() as u64) {
            (0, 0) => {
                "no action was proposed that cannot be taken back or that others see".to_owned()
            }
            (0, n) => format!(
                "{} that cannot be taken back, or that others see, {} proposed, and none ran",
                words::count(n, "action"),
                if n == 1 { "was" } else { "were" }
            ),
            (ran, n) => format!(
                "{} of that kind ran, each with a signed approval of exactly that act; {} did not run",
                words::number(ran),
                words::number(n)
            ),
        };
        let mut events = with;
        events.extend(waiting);
        events.sort_unstable();
        (Word::No, Standing::Good, because, events)
    };
    answer_of(
        "Did anything irreversible run without approval?",
        (answer, standing),
        because,
        events,
    )
}

fn intact(fold: &Fold<'_>, verified: &SessionReport) -> Answer {
    let (events, proven) = (verified.events, verified.proven);
    let mut late = Vec::new();
    let mut taken_out = 0;
    for remark in &verified.remarks {
        match remark {
            Remark::SignedLate { from, to, .. } => late.push((*from, *to)),
            Remark::Redacted { events, .. } => taken_out += events,
            _ => {}
        }
    }
    let mut because = format!(
        "{} are as they were written: chain, payloads, ledger and the signed checkpoint agree, and replay derives the same again",
        words::count(proven, "event")
    );
    if taken_out > 0 {
        let taken_out = words::count(taken_out, "payload");
        because.push_str(&format!("; signed redactions took {taken_out} out"));
    }
    let mut shown = vec![proven.saturating_sub(1)];
    let mut word = (Word::Yes, Standing::Good);
    if !fold.is_closed(verified) {
        because.push_str(match verified.state {
            SessionState::Live => NOT_OVER,
            SessionState::Open | SessionState::Closed => NOT_CLOSED,
        });
        word = (Word::CannotTell, Standing::Open);
    }
    if proven < events {
        because.push_str(&format!(
            "; of the last {} nobody can tell yet: no checkpoint covers them",
            words::count(events - proven, "event")
        ));
        shown = vec![proven, events - 1];
        word = (Word::CannotTell, Standing::Open);
    }
    for (from, to) in late {
        because.push_str(&format!(
            "; #{from} to #{to} were signed only when the session was taken up again, and until then anybody could have changed them"
        ));
        shown.extend([from, to]);
        word = (Word::CannotTell, Standing::Open);
    }
    shown.sort_unstable();
    shown.dedup();
    answer_of("Is the log intact?", word, because, shown)
}

// What stands behind the last checkpoint of a session that was not closed could be taken away by whoever can
// write its files, and nothing would show it: no record says how much there was.
const NOT_OVER: &str = "; the session goes on, and only its closing says how much it came to: whether more was written and taken away, nobody can tell yet";
const NOT_CLOSED: &str =
    "; the session was not closed, so that nobody can tell whether more was written and taken away";

/// An answer that says no says it of what the log holds; of a session that was not closed, that may not be all.
fn as_far_as_it_goes(mut answer: Answer, fold: &Fold<'_>, verified: &SessionReport) -> Answer {
    if answer.answer == Word::No && !fold.is_closed(verified) {
        answer.standing = Standing::Open;
        answer
            .because
            .push_str("; as far as the log goes, for the session was not closed");
    }
    answer
}

/// Events of types that an answer would have needed, and that were redacted or that nobody here can read.
fn lost(fold: &Fold<'_>, needed: impl Fn(&str) -> bool) -> Events {
    let gone = fold.redacted.iter().map(|one| (one.seq, one.kind));
    let odd = fold.odd.iter().map(|one| (one.seq, one.kind));
    gone.chain(odd)
        .filter(|(_, kind)| kind.map(EventType::name).is_none_or(&needed))
        .map(|(seq, _)| seq)
        .collect()
}

fn answer_of(
    question: &'static str,
    (answer, standing): (Word, Standing),
    mut because: String,
    mut events: Events,
) -> Answer {
    events.sort_unstable();
    events.dedup();
    if events.len() > MOST_EVENTS {
        because.push_str(&format!(
            " (the first {MOST_EVENTS} of {} events are named)",
            words::number(events.len() as u64)
        ));
        events.truncate(MOST_EVENTS);
    }
    Answer {
        question,
        answer,
        standing,
        because,
        events,
    }
}

#[cfg(test)]
mod tests {
    use lodestar_core::name::{ProjectId, SessionId};
    use lodestar_core::sensitivity::Sensitivity;
    use lodestar_log::LogRoot;

    use super::*;
    use crate::fold::Odd;

    #[test]
    fn what_cannot_be_read_is_not_taken_for_an_answer() {
        let project = ProjectId::new("p").expect("a name");
        let session = SessionId::new("s").expect("a name");
        let dir = LogRoot::at("nowhere").project(&project).session(&session);
        let mut fold = Fold::new(&dir, 3, Sensitivity::Internal);
        assert_eq!(became_trusted(&fold).answer, Word::No);
        for (seq, kind) in [(1, EventType::BELIEF_MOVED), (2, EventType::ACTION_CLEARED)] {
            let kind = Some(kind);
            fold.odd.push(Odd { seq, kind });
        }
        let (believed, ran) = (became_trusted(&fold), irreversible(&fold));
        assert_eq!(
            (believed.answer, ran.answer),
            (Word::CannotTell, Word::CannotTell)
        );
        assert_eq!((believed.events, ran.events), (vec![1], vec![2]));
    }
}
