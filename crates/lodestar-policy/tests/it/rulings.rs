//! What a ruling leaves in the log, and what a permit says of where it comes from.

use std::sync::Arc;

use lodestar_core::event::EventType;
use lodestar_core::id::RequestId;
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::{ActorId, ProjectId};
use lodestar_core::statement::{ApprovalDecision, Envelope, Nonce};
use lodestar_log::{Event, LogRoot, LogWriter, Reader, WriterOptions};
use lodestar_policy::{
    ApprovalRequest, ArbiterRules, Book, Closing, Desk, Gate, Heard, Held, NotSpendable, Ruling,
    Signed, Standing, StepKind, Trail,
};
use serde_json::json;

use crate::confirmations::quorum::{approver, registry};
use crate::confirmations::{card_of, key, later, now, session};
use crate::world::{Call, gate, policy, reading, requirement, tools, try_gate};

/// A log on disk.
struct Place {
    _scratch: tempfile::TempDir,
    log: LogWriter,
    actor: ActorId,
}

impl Place {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let project = LogRoot::in_folder(scratch.path()).project(&ProjectId::new("web").unwrap());
        let actor = ActorId::new("agent").unwrap();
        let options = WriterOptions::new(Arc::new(SecretKey::from_seed([7; 32])));
        let log = LogWriter::create(&project, &session(), &actor, &json!({}), &options).unwrap();
        // So that no event of a test is the log's first or second.
        for _ in 0..2 {
            let note = EventType::AGENT_NOTE;
            log.append(note, &actor, &[], &json!({"text": ""})).unwrap();
        }
        Self {
            _scratch: scratch,
            log,
            actor,
        }
    }

    fn book(&self) -> Book<'_> {
        Book {
            log: &self.log,
            actor: &self.actor,
        }
    }

    fn rule(&self, gate: &Gate, call: &Call) -> Ruling {
        let facts = call.facts();
        gate.rule(&facts, &[], &self.log, &self.actor, 0).unwrap()
    }

    fn events(&self) -> Vec<Event> {
        self.log.hand_over().unwrap();
        let mut reader = Reader::open(self.log.dir()).unwrap();
        std::iter::from_fn(|| reader.next_event().unwrap()).collect()
    }

    /// The one event of this type.
    fn event(&self, kind: &str) -> Event {
        let mut events = self.events().into_iter().filter(|event| event.kind == kind);
        let found = events.next().unwrap();
        assert!(events.next().is_none());
        found
    }
}

#[test]
fn a_verdict_follows_from_the_proposal_and_from_everything_a_sentinel_saw() {
    let names = ["anomalous-tool-sequence", "untrusted-argument"];
    let rules = ArbiterRules::new(names.map(|name| (name, None))).unwrap();
    let gate = try_gate("permit (principal, action, resource);", rules).unwrap();
    let mut call = Call::new("mail.send", Rung::L3, json!({"to": "ann"}));
    let mut trail = Trail::default();
    trail.step(StepKind::Read);
    trail.step(StepKind::External);
    call.trail = trail;

    let place = Place::new();
    let Ruling::Denied(denied) = place.rule(&gate, &call) else {
        panic!("a write after an external effect after a read is denied")
    };
    let events = place.events();
    let alerts: Vec<_> = events
        .iter()
        .filter(|event| event.kind == "sentinel.alerted@1")
        .collect();
    assert_eq!(alerts.len(), 2);
    assert!(alerts.iter().all(|alert| alert.parents == [0]));
    // It has a say in the verdict, which is what is meant where nothing else is said.
    let saw = alerts[0].inline().unwrap().unwrap();
    assert_eq!(saw["sentinel"], "anomalous-tool-sequence");
    assert!(saw.get("mode").is_none(), "{saw}");
    let judged = place.event("action.judged@1");
    assert_eq!(judged.parents, [0, alerts[0].seq, alerts[1].seq]);
    assert_eq!(denied.seq(), judged.seq);
    assert_eq!(denied.judgement().signals.len(), 2);
}

#[test]
fn a_permit_that_nobody_was_asked_for_names_its_verdict_and_no_request() {
    let place = Place::new();
    let open = gate("permit (principal, action in Action::\"run\", resource);");
    let Ruling::Allowed(permit) = place.rule(&open, &reading(Rung::L2)) else {
        panic!("it is permitted")
    };
    assert_eq!(permit.judged(), place.event("action.judged@1").seq);
    assert_eq!(permit.action(), reading(Rung::L2).facts().action);
    assert_eq!(permit.fingerprint(), reading(Rung::L2).facts().fingerprint);
    assert_eq!(permit.session(), &session());
    assert_eq!(permit.request(), None);
    assert_eq!(permit.taken_at(), None);
    assert!(permit.grants().is_empty());
    // Leave that nobody can take back: what is recorded under it is recorded.
    assert_eq!(permit.spend(|| Some(1)), Ok(Some(1)));
}

/// A held act, and the request that asks for it.
struct Asked {
    place: Place,
    gate: Gate,
    desk: Desk,
    held: Option<Held>,
    request: ApprovalRequest,
}

impl Asked {
    fn new() -> Self {
        let place = Place::new();
        let gate = gate("");
        let held = Self::judged(&place, &gate);
        let card = card_of(Rung::L4, json!({"path": "a", "content": "text"}));
        let judgement = held.judgement();
        let request = ApprovalRequest::new(
            RequestId::from_parts(1, [1; 10]),
            ("web".parse().unwrap(), session()),
            card,
            judgement.requirement.clone().unwrap(),
            judgement.policy,
            now(),
        );
        let mut asked = Self {
            place,
            gate,
            desk: Desk::default(),
            held: Some(held),
            request: request.unwrap(),
        };
        let (held, request) = (asked.held.as_ref().unwrap(), asked.request.clone());
        let opened = asked.desk.open(held, request, asked.place.book()).unwrap();
        assert_eq!(asked.desk.recorded(asked.request.id), Some(opened.seq()));
        asked
    }

    fn judged(place: &Place, gate: &Gate) -> Held {
        let card = card_of(Rung::L4, json!({"path": "a", "content": "text"}));
        let mut call = reading(Rung::L4);
        call.tool = card.action.tool.clone();
        call.arguments = card.action.arguments.clone();
        call.contract = card.action.contract.clone();
        let mut facts = call.facts();
        facts.fingerprint = card.action.fingerprint;
        let ruled = gate.rule(&facts, &[], &place.log, &place.actor, 0);
        match ruled.unwrap() {
            Ruling::Held(held) => held,
            other => panic!("not held: {other:?}"),
        }
    }

    fn said(&self, decision: ApprovalDecision, nonce: u8) -> Envelope {
        let key = key(1);
        let signed = Signed {
            key: &key,
            at: now(),
            nonce: Nonce::from_bytes([nonce; 16]),
        };
        let alice = "alice".parse().unwrap();
        self.request.answer(&alice, decision, "", signed).unwrap()
    }

    fn hear(&mut self, sent: &[u8]) -> Heard {
        let approvers = registry(vec![approver("alice", &key(1), &["owner"])]);
        let (id, book) = (self.request.id, self.place.book());
        self.desk.hear(id, sent, &approvers, now(), book).unwrap()
    }

    fn granted() -> Self {
        let mut asked = Self::new();
        let yes = asked.said(ApprovalDecision::Grant, 1);
        assert_eq!(asked.hear(&yes.to_json()), Heard::Granted);
        asked
    }

    fn take(&mut self) -> lodestar_policy::Permit {
        let held = self.held.take().unwrap();
        let taken = self.desk.take(self.request.id, held, later(5));
        taken.expect("enough people said yes")
    }

    fn standing(&mut self) -> Option<Standing> {
        self.desk.requests().standing(self.request.id)
    }
}

#[test]
fn a_granted_permit_names_the_hold_the_request_and_the_grants() {
    let mut asked = Asked::granted();
    let held = asked.held.as_ref().unwrap();
    let judged = asked.place.event("action.judged@1");
    assert_eq!(held.seq(), judged.seq);
    let requested = asked.place.event("approval.requested@1");
    assert_eq!(requested.parents, [judged.seq]);
    let granted = asked.place.event("approval.granted@1");
    assert_eq!(granted.parents, [requested.seq]);
    let permit = asked.take();
    assert_eq!(permit.judged(), judged.seq);
    assert_eq!(permit.request(), Some(asked.request.id));
    assert_eq!(permit.taken_at(), Some(later(5)));
    let statement = asked.said(ApprovalDecision::Grant, 1).digest();
    assert_eq!(permit.grants(), [statement]);
}

#[test]
fn a_permit_that_goes_unspent_leaves_the_grants_as_good_as_before() {
    let mut asked = Asked::granted();
    let permit = asked.take();
    // While it is there, nobody else gets one.
    let again = Asked::judged(&asked.place, &asked.gate);
    let (held, why) = asked
        .desk
        .take(asked.request.id, again, later(5))
        .expect_err("the grants are taken");
    assert_eq!(why, NotSpendable::Taken);
    // The record was refused, so nothing ran.
    assert_eq!(permit.spend(|| None::<()>), Ok(None));
    drop(permit);
    assert_eq!(asked.standing(), Some(Standing::Granted));
    let second = asked.desk.take(asked.request.id, *held, later(5)).unwrap();
    assert_eq!(second.spend(|| Some(())), Ok(Some(())));
    drop(second);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::Spent)));
}

#[test]
fn a_no_that_comes_before_the_clearance_revokes_the_permit() {
    let mut asked = Asked::granted();
    let permit = asked.take();
    let no = asked.said(ApprovalDecision::Deny, 2);
    assert!(matches!(asked.hear(&no.to_json()), Heard::Denied(_)));
    let mut recorded = false;
    let spent = permit.spend(|| {
        recorded = true;
        Some(())
    });
    assert!(spent.is_err());
    assert!(!recorded);
    // What is rejected all the same does not bring the request back.
    permit.spend_in_vain(|| ());
    drop(permit);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::Denied)));
    let hearing = asked.desk.requests().get(asked.request.id).unwrap();
    assert_eq!(hearing.denial().unwrap().approver.as_str(), "alice");
}

#[test]
fn a_world_that_moved_uses_the_grants_up_and_the_log_says_so_once() {
    let mut asked = Asked::granted();
    let permit = asked.take();
    permit.spend_in_vain(|| ());
    drop(permit);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::WorldMoved)));
    let id = asked.request.id;
    for _ in 0..2 {
        let book = asked.place.book();
        asked.desk.close(id, Closing::WorldMoved, book).unwrap();
    }
    let consumed = asked.place.event("approval.consumed@1");
    assert_eq!(consumed.parents, [asked.desk.recorded(id).unwrap()]);
}

#[test]
fn a_request_that_is_closed_revokes_the_permit_that_is_on_its_way() {
    let mut asked = Asked::granted();
    let permit = asked.take();
    let (id, book) = (asked.request.id, asked.place.book());
    asked.desk.close(id, Closing::Abandoned, book).unwrap();
    assert!(permit.spend(|| Some(())).is_err());
    drop(permit);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::Abandoned)));
    assert_eq!(
        asked.place.event("approval.expired@1").parents,
        [asked.desk.recorded(id).unwrap()]
    );
}

#[test]
fn what_is_spent_stays_spent_whoever_closes_it_or_says_no_after() {
    let mut asked = Asked::granted();
    let permit = asked.take();
    assert_eq!(permit.spend(|| Some(())), Ok(Some(())));
    // The permit is still in somebody's hand.
    let (id, book) = (asked.request.id, asked.place.book());
    asked.desk.close(id, Closing::Abandoned, book).unwrap();
    let no = asked.said(ApprovalDecision::Deny, 2);
    assert!(matches!(asked.hear(&no.to_json()), Heard::Refused(_)));
    drop(permit);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::Spent)));
    // Nobody can say afterwards that it was spent in vain.
    let book = asked.place.book();
    asked.desk.close(id, Closing::WorldMoved, book).unwrap();
    let kinds: Vec<_> = asked.place.events().into_iter().map(|e| e.kind).collect();
    assert!(
        !kinds.contains(&"approval.expired@1".to_owned()),
        "{kinds:?}"
    );
    assert!(
        !kinds.contains(&"approval.consumed@1".to_owned()),
        "{kinds:?}"
    );
    assert!(
        !kinds.contains(&"approval.denied@1".to_owned()),
        "{kinds:?}"
    );
}

#[test]
fn a_sweep_ends_what_is_overdue_and_not_what_is_on_its_way() {
    let late = later(601);
    let mut asked = Asked::new();
    let sweep = |asked: &mut Asked, at| asked.desk.sweep(at, asked.place.book()).unwrap();
    assert!(sweep(&mut asked, later(599)).is_empty());
    assert_eq!(sweep(&mut asked, late), [asked.request.id]);
    assert_eq!(asked.standing(), Some(Standing::Over(Closing::Expired)));
    assert!(sweep(&mut asked, late).is_empty());

    let mut asked = Asked::granted();
    let permit = asked.take();
    assert!(sweep(&mut asked, late).is_empty());
    assert_eq!(permit.spend(|| Some(())), Ok(Some(())));
}

#[test]
fn a_hold_waits_for_people_unless_a_harness_has_taken_that_out() {
    use lodestar_core::defence::Defence;
    let taken = |defences: &[Defence], ran_out: bool| {
        let mut asked = Asked::new();
        asked.desk = std::mem::take(&mut asked.desk).without(defences);
        let id = asked.request.id;
        let opens = ran_out && asked.desk.ran_out(id);
        let held = asked.held.take().unwrap();
        // What another request waited for opens nothing here.
        let other = RequestId::from_parts(1, [9; 10]);
        asked.desk.ran_out(other);
        (opens, asked.desk.take(id, held, now()).is_ok())
    };
    assert_eq!(taken(&[], false), (false, false));
    assert_eq!(taken(&[], true), (false, false));
    assert_eq!(taken(&[Defence::HoldsWait], false), (false, true));
    assert_eq!(taken(&[Defence::ApprovalTimeout], false), (false, false));
    assert_eq!(taken(&[Defence::ApprovalTimeout], true), (true, true));
}

#[test]
fn a_desk_that_is_taken_up_again_knows_its_requests_and_their_records() {
    let mut asked = Asked::granted();
    let (id, recorded) = (
        asked.request.id,
        asked.desk.recorded(asked.request.id).unwrap(),
    );
    let requests = asked.desk.requests().clone();
    asked.desk = Desk::restored(requests, [(id, recorded)].into());
    assert_eq!(asked.desk.recorded(id), Some(recorded));
    assert_eq!(asked.desk.recorded(RequestId::from_parts(1, [9; 10])), None);
    assert_eq!(asked.standing(), Some(Standing::Granted));
    assert_eq!(asked.take().spend(|| Some(())), Ok(Some(())));
}

#[test]
fn a_tool_may_be_asked_for_where_some_policy_permits_to_ask() {
    let may = |source: &str, tool: &str| gate(source).may_ask(&tool.parse().unwrap());
    let asks = "permit (principal, action in Action::\"ask\", resource == Tool::\"fs.read\");";
    assert!(may(asks, "fs.read"));
    assert!(!may(asks, "mail.send"));
    assert!(!may(
        "permit (principal, action in Action::\"run\", resource);",
        "fs.read"
    ));
    let forbids = "forbid (principal, action in Action::\"ask\", resource);";
    assert!(!may(forbids, "fs.read"));
    assert!(!may(asks, "no.such"));
}

#[test]
fn an_agent_is_judged_by_its_own_device_whoever_asked_first() {
    let trusted = "permit (principal, action in Action::\"run\", resource)\n\
                   when { principal.device_trust == \"verified\" && context has args };";
    let gate = gate(trusted);
    let verdict = |trust: &str| {
        let mut call = reading(Rung::L2);
        call.agent.device_trust = trust.to_owned();
        call.judge(&gate).verdict
    };
    use lodestar_core::ladder::Verdict;
    for (trust, expected) in [
        ("none", Verdict::Deny),
        ("verified", Verdict::Allow),
        ("none", Verdict::Deny),
        ("verified", Verdict::Allow),
    ] {
        assert_eq!(verdict(trust), expected, "{trust}");
    }
}

#[test]
fn a_gate_needs_a_requirement_that_can_be_met() {
    for wrong in [requirement(0, 600), requirement(1, 0)] {
        let gate = Gate::new(policy(""), tools(), ArbiterRules::none(), wrong);
        assert!(gate.is_err());
    }
    let least = Gate::new(policy(""), tools(), ArbiterRules::none(), requirement(1, 1));
    assert_eq!(least.unwrap().default_requirement(), &requirement(1, 1));
}

#[test]
fn rules_of_arbiters_say_who_looks_and_whether_a_verdict_can_change() {
    use lodestar_policy::{Arbiter, Mode};
    let mut rules = ArbiterRules::none();
    assert!(!rules.arbitrate());
    rules
        .set("untrusted-argument", None, Mode::Observe)
        .unwrap();
    assert!(rules.has(Arbiter::UntrustedArgument));
    assert!(!rules.has(Arbiter::CalibrationFlag));
    assert!(!rules.arbitrate());
    rules
        .set("calibration-flag", None, Mode::Arbitrate)
        .unwrap();
    assert!(rules.arbitrate());
}

#[test]
fn a_forbid_for_one_agent_says_nothing_of_another_ones_mistyped_call() {
    let source = "permit (principal, action, resource);\n\
                  @id(\"only\") forbid (principal == Agent::\"coder\", action == Action::\"run:fs.read\", resource)\n\
                  when { context.args.path == \"secret\" };";
    let gate = gate(source);
    let errors = |actor: &str| {
        let mut call = Call::new("fs.read", Rung::L2, json!({"path": 7}));
        call.agent.actor = ActorId::new(actor).unwrap();
        let judged = call.judge(&gate);
        let named = judged.errors.iter().filter(|error| error.policy.is_some());
        named.count()
    };
    assert!(errors("coder") > 0);
    assert_eq!(errors("other"), 0);
}

#[test]
fn a_request_asks_again_for_the_same_act_under_the_same_policy_of_as_many() {
    let mut asked = Asked::new();
    let asking = |asked: &mut Asked, at| {
        let held = asked.held.take().unwrap();
        let found = asked.desk.asking_for(&held, at);
        asked.held = Some(held);
        found
    };
    let id = asked.request.id;
    assert_eq!(asking(&mut asked, later(5)), Some(id));
    assert_eq!(asking(&mut asked, later(600)), None);
    let request = asked.request.clone();
    let (act, needed) = (request.card.action.fingerprint, &request.requirement);
    let requests = asked.desk.requests();
    let other = lodestar_core::digest::sha256(b"another policy");
    assert_eq!(requests.asking_for(act, other, needed, now()), None);
    let of_two = requirement(2, 600);
    assert_eq!(
        requests.asking_for(act, request.policy, &of_two, now()),
        None
    );
    let found = requests.asking_for(act, request.policy, needed, now());
    assert_eq!(found, Some(id));
}

#[test]
fn a_no_is_found_for_the_same_act_until_a_yes_would_have_been_too_late() {
    let mut asked = Asked::new();
    let denied = |asked: &mut Asked, at| {
        let held = asked.held.take().unwrap();
        let found = asked.desk.denied_for(&held, at);
        asked.held = Some(held);
        found
    };
    assert_eq!(denied(&mut asked, later(5)), None);
    let no = asked.said(ApprovalDecision::Deny, 1);
    asked.hear(&no.to_json());
    let id = asked.request.id;
    assert_eq!(denied(&mut asked, later(5)), Some(id));
    assert_eq!(denied(&mut asked, later(600)), None);
    let request = asked.request.clone();
    let (act, needed) = (request.card.action.fingerprint, &request.requirement);
    let requests = asked.desk.requests();
    let other = lodestar_core::digest::sha256(b"another policy");
    assert_eq!(requests.denied_for(act, other, needed, now()), None);
    let of_two = requirement(2, 600);
    let found = requests.denied_for(act, request.policy, &of_two, now());
    assert_eq!(found, None);
    // What ended otherwise was not denied.
    let mut asked = Asked::granted();
    assert_eq!(asked.take().spend(|| Some(())), Ok(Some(())));
    assert_eq!(
        asked
            .desk
            .requests()
            .denied_for(act, request.policy, needed, now()),
        None
    );
}

#[test]
fn what_came_instead_of_a_statement_is_kept_so_that_anybody_can_look_again() {
    use lodestar_policy::{Answer, Refusal};
    let mut asked = Asked::new();
    let heard = asked.hear(b"{\"payload\": \"yes!\"");
    assert!(matches!(heard, Heard::Refused(Refusal::Malformed { .. })));
    let refused = asked.place.event("approval.refused@1");
    assert_eq!(
        refused.parents,
        [asked.desk.recorded(asked.request.id).unwrap()]
    );
    let answer: Answer = serde_json::from_value(refused.inline().unwrap().unwrap()).unwrap();
    let unreadable = answer.unreadable.clone().unwrap();
    assert_eq!(unreadable.sent().unwrap(), b"{\"payload\": \"yes!\"");
    assert_eq!(answer.malformed(), answer.reason);
    // Whoever says something else of it than what it is has nothing to show.
    let mut other = answer.clone();
    other.unreadable.as_mut().unwrap().bytes += 1;
    assert_eq!(other.malformed(), None);
    assert_eq!(other.unreadable.unwrap().sent(), None);
    // And a statement that can be read is not malformed.
    let readable = asked.said(ApprovalDecision::Grant, 1).to_json();
    let mut other = answer;
    other.unreadable = Some(lodestar_policy::Unreadable::of(&readable));
    assert_eq!(other.malformed(), None);
}

#[test]
fn a_registry_is_written_down_and_read_back_and_each_key_stands_there_once() {
    use lodestar_policy::{Approver, Approvers};
    let all = vec![
        approver("alice", &key(1), &["owner"]),
        approver("bob", &key(2), &[]),
    ];
    let people = registry(all.clone());
    assert_eq!(people.approvers(), all);
    assert_eq!(Vec::<Approver>::from(people.clone()), all);
    let written = serde_json::to_value(&people).unwrap();
    assert_eq!(
        serde_json::from_value::<Approvers>(written).unwrap(),
        people
    );
    let twice = vec![all[0].clone(), approver("carl", &key(1), &[])];
    assert!(Approvers::new(twice).is_err());
}
