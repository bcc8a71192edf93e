//! Sessions that are runs: what is registered before, and whether a session kept to it.

use std::sync::Arc;
use std::time::Duration;

use lodestar_core::chain::{Security, Truth};
use lodestar_core::digest::sha256;
use lodestar_core::id::RunId;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{Envelope, Nonce};
use lodestar_core::time::Timestamp;
use lodestar_firewall::Finding;
use lodestar_guard::{Holds, Resolver, Resolving};
use lodestar_kernel::opening::{Opening, RunTicket};
use lodestar_log::{Clock, Reader};
use lodestar_policy::ApprovalRequest;
use lodestar_replay::Patience;
use lodestar_replay::terms::{
    CLOCK_WINDOW, Judgement, Moments, Reason, Terms, TermsError, TermsPolicy, judge,
};
use serde_json::{Value, json};

use crate::governed::{GRADES, Project, count, log_key, operator, redact, three};
use crate::people::{GRANT, key, random, said, send};
use crate::world::{World, measure, promote, read};

const POLICY: &str = r#"@id("run-most")
permit (principal, action in Action::"run", resource) when { context.level <= 3 };
"#;

/// Whose signature puts the policy into force.
const SIGNER: u8 = 40;

fn ticket() -> RunTicket {
    RunTicket {
        id: RunId::from_parts(1_700_000_000_000, [3; 10]),
        nonce: Nonce::from_bytes([5; 16]),
    }
}

fn signature(text: &str, signer: u8, expires_at: Option<Timestamp>) -> Envelope {
    let nonce = Nonce::from_bytes(random());
    let at = Clock::system().now();
    lodestar_policy::sign(text.as_bytes(), &key(signer), nonce, at, expires_at).unwrap()
}

/// Person 1 may approve; the policy is signed, or there is none.
fn config(policy: bool) -> String {
    let person = key(1).public();
    let people = format!(
        "[[approvals.authorized_keys]]\nactor_id = \"person-1\"\npublic_key = \"{person}\"\n"
    );
    let config = format!("approval_timeout_ms = 2000\n{GRADES}\n{people}");
    if !policy {
        return config;
    }
    let config = config.replace("auto_approve_ceiling = 3\n", "");
    let signer = key(SIGNER).public();
    format!("{config}[policy]\nfile = \"policy.cedar\"\nkeys = [\"{signer}\"]\n")
}

struct Grants;

impl Resolver for Grants {
    fn resolve<'a>(&'a self, request: &'a ApprovalRequest) -> Resolving<'a> {
        Box::pin(async move { vec![Envelope::from_json(&said(request, 1, GRANT)).unwrap()] })
    }
}

/// A run: its project, its session, what its owner registered, and when it was given out.
struct Run {
    project: Project,
    session: SessionId,
    terms: Terms,
    since: Timestamp,
}

impl Run {
    /// Something is read, written, and sent with somebody's leave; one call is refused.
    async fn honest(policy: bool) -> Self {
        let project = Project::new();
        let since = Clock::system().now();
        let signed = signature(POLICY, SIGNER, None);
        if policy {
            std::fs::write(project.root.join("policy.cedar"), POLICY).unwrap();
            std::fs::write(project.root.join("policy.cedar.sig"), signed.to_json()).unwrap();
        }
        let setup = project.setup(&config(policy), &three()).run(ticket());
        let setup = setup.holds(Holds::Ask(Arc::new(Grants)));
        let session = setup.open().await.unwrap();
        for (tool, arguments, runs) in [
            ("box.read", json!({"path": "a.md"}), true),
            ("box.write", json!({"path": "a.md", "text": "x"}), true),
            ("box.send", send(), true),
            ("box.write", json!({"path": ".lodestar/x"}), false),
        ] {
            let reply = session.call(tool, arguments).await.unwrap();
            assert_eq!(reply.ran(), runs, "{tool}");
        }
        session.close("done").await.unwrap();
        let id = session.id().clone();
        let signed = policy.then(|| (signed, vec![key(SIGNER).public()]));
        let terms = Terms::of_opening(&opening(&project, &id), signed, Vec::new()).unwrap();
        Self {
            project,
            session: id,
            terms,
            since,
        }
    }

    fn moments(&self) -> Moments {
        Moments {
            registered_at: self.since,
            received_at: Clock::system().now(),
        }
    }

    fn judged(&self) -> Judgement {
        self.judged_by(&self.terms, self.moments())
    }

    fn judged_by(&self, terms: &Terms, moments: Moments) -> Judgement {
        let log = self.project.log();
        let patience = Patience::of(Duration::from_secs(60));
        judge(&log, &self.session, terms, &ticket(), moments, patience).unwrap()
    }

    fn codes(&self) -> Vec<&'static str> {
        self.judged().reasons.iter().map(Reason::code).collect()
    }

    /// Writes the log anew after a change, without mending any hash: whoever judges does not look at those.
    fn rewrite(&self, change: impl FnOnce(&mut Vec<Value>)) {
        self.project.will_be_edited();
        let path = self.project.log().session(&self.session).events_path();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let mut lines: Vec<Value> = lines.collect();
        change(&mut lines);
        let lines = (0_u64..).zip(lines).map(|(seq, mut line)| {
            line["head"]["seq"] = json!(seq);
            String::from_utf8(lodestar_core::canonical::to_vec(&line).unwrap()).unwrap() + "\n"
        });
        std::fs::write(&path, lines.collect::<String>()).unwrap();
    }

    fn edit_opening(&self, change: impl FnOnce(&mut Value)) {
        self.rewrite(|lines| change(&mut lines[0]["payload"]));
    }
}

fn opening(project: &Project, session: &SessionId) -> Opening {
    let events = project.events(session);
    serde_json::from_value(events[0].1.clone()).unwrap()
}

fn of_kind(lines: &[Value], kind: &str, nth: usize) -> usize {
    let places = (0..).zip(lines);
    let mut places = places.filter(|(_, line)| line["head"]["type"] == kind);
    places.nth(nth).unwrap().0
}

#[tokio::test]
async fn a_run_that_kept_to_its_terms_passes_with_a_signed_policy_and_with_a_preset() {
    for policy in [true, false] {
        let run = Run::honest(policy).await;
        let judgement = run.judged();
        assert!(judgement.passed(), "{:?}", judgement.reasons);
        assert_eq!(judgement.verdicts, 4);
        assert_eq!((judgement.answers, judgement.clearances), (1, 3));
        assert!(judgement.events > 15);
        assert!(opening(&run.project, &run.session).run == Some(ticket()));
        // More tools may be registered than a run has.
        let mut more = run.terms.clone();
        let mut other = more.tools[0].clone();
        other.shape.name = "box.other".parse().unwrap();
        more.tools.push(other);
        assert!(run.judged_by(&more, run.moments()).passed());
    }
}

#[tokio::test]
async fn terms_are_read_as_they_were_written_and_in_no_other_way() {
    let run = Run::honest(true).await;
    let document = run.terms.document().unwrap();
    let read = Terms::parse(&document).unwrap();
    assert_eq!(read, run.terms);
    assert_eq!(read.digest().unwrap(), sha256(&document));
    let policy = read.check(run.since).unwrap();
    assert_eq!(policy.digest(), read.policy.digest().unwrap());
    // However it is spelt, it is the same document.
    let value: Value = serde_json::from_slice(&document).unwrap();
    let spelt = Terms::parse(format!("{value:#}\n").as_bytes()).unwrap();
    assert_eq!(spelt.digest().unwrap(), sha256(&document));

    type Change = fn(&mut Value);
    let changes: [(&str, Change); 9] = [
        ("a member", |terms| terms["note"] = json!("x")),
        ("of the policy", |terms| terms["policy"]["note"] = json!(1)),
        ("of a tool", |terms| terms["tools"][0]["note"] = json!(1)),
        ("of a contract", |terms| {
            terms["tools"][0]["contract"]["note"] = json!(1);
        }),
        ("of the default", |terms| {
            terms["approvals_default"]["note"] = json!(1);
        }),
        ("of an agent", |terms| terms["agents"][0]["note"] = json!(1)),
        ("no operators", |terms| {
            terms.as_object_mut().unwrap().remove("operators");
        }),
        ("no roles", |terms| {
            let person = terms["approvers"][0].as_object_mut().unwrap();
            assert!(person.remove("roles").is_some());
        }),
        ("another format", |terms| {
            terms["format"] = json!("lodestar.terms/2");
        }),
    ];
    for (what, change) in changes {
        let mut changed = value.clone();
        change(&mut changed);
        let refused = Terms::parse(changed.to_string().as_bytes());
        assert!(refused.is_err(), "{what}");
    }
    let text = String::from_utf8(document).unwrap();
    let twice = text.replacen('{', r#"{"operators":[],"#, 1);
    assert!(matches!(
        Terms::parse(twice.as_bytes()),
        Err(TermsError::Json(_))
    ));
    let long = vec![b' '; lodestar_replay::terms::MAX_TERMS_LEN + 1];
    assert!(matches!(Terms::parse(&long), Err(TermsError::TooLong(_))));
}

#[tokio::test]
async fn terms_rest_on_a_policy_that_their_own_keys_signed_or_on_a_preset() {
    let run = Run::honest(true).await;
    let opening = opening(&run.project, &run.session);
    let unsigned = Terms::of_opening(&opening, None, Vec::new());
    assert!(matches!(unsigned, Err(TermsError::Unsigned)));
    let with = |signature: Envelope, key: u8, text: &str| {
        let mut terms = run.terms.clone();
        terms.policy = TermsPolicy::Signed {
            text: text.to_owned(),
            signature,
            keys: vec![crate::people::key(key).public()],
        };
        terms
    };
    let now = Clock::system().now();
    let good = with(signature(POLICY, SIGNER, None), SIGNER, POLICY);
    assert!(good.check(now).is_ok());
    let other_text = format!("{POLICY}\n// changed\n");
    for bad in [
        with(signature(POLICY, 41, None), SIGNER, POLICY),
        with(signature(POLICY, SIGNER, None), 41, POLICY),
        with(signature(POLICY, SIGNER, None), SIGNER, &other_text),
        with(signature(POLICY, SIGNER, Some(now)), SIGNER, POLICY),
        with(signature("permit", SIGNER, None), SIGNER, "permit"),
    ] {
        assert!(matches!(bad.check(now), Err(TermsError::Policy(_))));
        let moments = Moments {
            registered_at: now,
            received_at: now,
        };
        let reasons = run.judged_by(&bad, moments).reasons;
        assert!(matches!(reasons[..], [Reason::NotInForce { .. }]));
    }
    let unfit = r#"forbid (principal, action == Action::"run:no.such", resource);"#;
    let unfit = with(signature(unfit, SIGNER, None), SIGNER, unfit);
    assert!(matches!(unfit.check(now), Err(TermsError::Gate(_))));
    let mut nobody = good.clone();
    nobody.agents.clear();
    assert!(matches!(nobody.check(now), Err(TermsError::NoAgent)));
    let mut twice = good;
    twice.tools.push(twice.tools[0].clone());
    assert!(matches!(twice.check(now), Err(TermsError::SameTool(_))));
    // A text that only says that it is a preset is none.
    let mut forged = opening.clone();
    forged.policy.signature = lodestar_policy::SignatureState::Preset;
    let forged = Terms::of_opening(&forged, None, Vec::new());
    assert!(matches!(forged, Err(TermsError::Unsigned)));
}

#[tokio::test]
async fn whatever_a_log_says_of_policy_keys_and_grades_has_to_be_what_was_registered() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 20] = [
        ("no_ticket", |opened| {
            opened.as_object_mut().unwrap().remove("run");
        }),
        ("other_run", |opened| {
            let other = RunId::from_parts(1_700_000_000_001, [3; 10]);
            opened["run"]["id"] = json!(other);
        }),
        ("other_nonce", |opened| {
            opened["run"]["nonce"] = json!(Nonce::from_bytes([6; 16]));
        }),
        ("defences_off", |opened| {
            opened["defences_off"] = json!(["provenance"]);
        }),
        ("defences_off", |opened| {
            opened["defences_off"] = json!(["unheard_of"]);
        }),
        ("other_policy", |opened| {
            let lax = r#"permit (principal, action, resource);"#;
            opened["policy"]["text"] = json!(lax);
            opened["policy"]["digest"] = json!(sha256(lax.as_bytes()));
        }),
        ("other_policy", |opened| {
            opened["policy"]["text"] = json!(format!("{POLICY}// more"));
        }),
        ("other_policy", |opened| {
            opened["policy"]["digest"] = json!(sha256(b"another"));
        }),
        ("other_policy_signature", |opened| {
            opened["policy"]["signature"] = json!({"state": "unsigned"});
        }),
        ("other_policy_signature", |opened| {
            opened["policy"]["signature"] = json!({"state": "preset"});
        }),
        ("other_policy_signature", |opened| {
            let other = key(9).public().key_id();
            opened["policy"]["signature"] = json!({"state": "signed", "key": other});
        }),
        ("other_approvers", |opened| {
            opened["approvers"][0]["public_key"] = json!(key(9).public());
        }),
        ("other_approvers", |opened| {
            let more = json!({"actor": "eve", "public_key": key(9).public()});
            opened["approvers"].as_array_mut().unwrap().push(more);
        }),
        ("other_confirmations", |opened| {
            opened["confirmations"]["mode"] = json!("enforce");
        }),
        ("other_approvals_default", |opened| {
            opened["approvals_default"]["expires_seconds"] = json!(1_000_000);
        }),
        ("other_arbiters", |opened| {
            opened["arbiters"] = json!({"untrusted-argument": "warning"});
        }),
        ("other_agent", |opened| {
            opened["agent"]["device_trust"] = json!("trusted");
        }),
        ("other_tool", |opened| {
            let contract = &mut opened["tools"][1]["contract"];
            assert_eq!(contract["required_level"], "L4");
            contract["required_level"] = json!("L2");
        }),
        ("other_tool", |opened| {
            opened["tools"][0]["definition"] = json!(sha256(b"another"));
        }),
        ("other_tool", |opened| {
            let mut other = opened["tools"][0].clone();
            other["name"] = json!("box.other");
            opened["tools"].as_array_mut().unwrap().push(other);
        }),
    ];
    let run = Run::honest(true).await;
    let path = run.project.log().session(&run.session).events_path();
    let honest = std::fs::read(&path).unwrap();
    for (code, change) in changes {
        std::fs::write(&path, &honest).unwrap();
        run.edit_opening(change);
        let judgement = run.judged();
        let codes: Vec<_> = judgement.reasons.iter().map(Reason::code).collect();
        assert!(codes.contains(&code), "{code}: {codes:?}");
        assert!(!judgement.passed());
        let found = judgement.reasons.iter().find(|one| one.code() == code);
        assert_eq!(found.unwrap().seq(), Some(0));
        // What nobody registered is not evaluated.
        let is_foreign = ["other_policy", "other_tool"].contains(&code);
        assert_eq!(judgement.events == 0, is_foreign, "{code}");
    }
}

#[tokio::test]
async fn an_opening_that_is_none_passes_for_nothing() {
    let run = Run::honest(false).await;
    run.edit_opening(|opened| *opened = json!({"purpose": "nothing", "run": ticket()}));
    assert_eq!(run.codes(), ["not_governed"]);
    let run = Run::honest(false).await;
    run.edit_opening(|opened| opened["approvers"] = json!("everybody"));
    assert_eq!(run.codes(), ["unreadable"]);
    let run = Run::honest(false).await;
    run.rewrite(|lines| lines[0]["head"]["type"] = json!("agent.note@1"));
    assert_eq!(run.codes(), ["not_governed"]);
    let run = Run::honest(false).await;
    run.rewrite(|lines| lines.clear());
    assert_eq!(run.codes(), ["not_governed"]);
}

#[tokio::test]
async fn what_was_executed_without_leave_does_not_pass() {
    // The approval of what was sent is taken out of the log, or is another's.
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let granted = of_kind(lines, "approval.granted@1", 0);
        lines[granted]["head"]["type"] = json!("agent.note@1");
    });
    assert!(run.codes().contains(&"differs"));
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let granted = of_kind(lines, "approval.granted@1", 0);
        let mut other: Value = lines[granted]["payload"]["statement"].clone();
        let signature = other["signatures"][0]["sig"].as_str().unwrap();
        let turned: String = signature.chars().rev().collect();
        other["signatures"][0]["sig"] = json!(turned);
        lines[granted]["payload"]["statement"] = other;
    });
    assert!(!run.judged().passed());
    // The verdict is said to have been another.
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let held = of_kind(lines, "action.judged@1", 2);
        assert_eq!(lines[held]["payload"]["verdict"], "hold");
        lines[held]["payload"]["verdict"] = json!("allow");
    });
    assert!(run.codes().contains(&"differs"));
    // What was refused is said to have been cleared.
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let (cleared, rejected) = (
            of_kind(lines, "action.cleared@1", 0),
            of_kind(lines, "action.rejected@1", 0),
        );
        let proposed = of_kind(lines, "action.proposed@1", 3) as u64;
        let judged = of_kind(lines, "action.judged@1", 3) as u64;
        let action = lines[proposed as usize]["payload"]["id"].clone();
        let mut forged = lines[cleared].clone();
        forged["head"]["time"] = lines[rejected]["head"]["time"].clone();
        forged["head"]["parents"] = json!([proposed, judged]);
        forged["payload"] = json!({"action": action});
        lines[rejected] = forged;
    });
    let reasons = run.judged().reasons;
    let is_denied = |reason: &Reason| matches!(reason, Reason::Differs { derived, .. } if derived.contains("denied"));
    assert!(reasons.iter().any(is_denied), "{reasons:?}");
}

#[tokio::test]
async fn what_a_proposal_says_of_itself_beside_the_opening_is_found() {
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let proposed = of_kind(lines, "action.proposed@1", 0);
        let agent = json!({"actor": "agent", "device_trust": "trusted", "execution": "library"});
        lines[proposed]["payload"]["agent"] = agent;
    });
    let reasons = run.judged().reasons;
    let is_it = |reason: &Reason| matches!(reason, Reason::Differs { recorded, .. } if recorded == "another agent");
    assert!(reasons.iter().any(is_it), "{reasons:?}");
    // A result of what was never cleared: the clearance is something else now.
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let cleared = of_kind(lines, "action.cleared@1", 0);
        lines[cleared]["head"]["type"] = json!("agent.note@1");
    });
    let reasons = run.judged().reasons;
    let is_it = |reason: &Reason| matches!(reason, Reason::Differs { recorded, .. } if recorded == "what a call returned");
    assert!(reasons.iter().any(is_it), "{reasons:?}");
}

#[tokio::test]
async fn a_log_of_another_time_does_not_pass() {
    let run = Run::honest(true).await;
    let now = Clock::system().now();
    let at = |seconds: i64| {
        Timestamp::from_unix_micros(now.unix_micros() + seconds * 1_000_000).unwrap()
    };
    let window = CLOCK_WINDOW.as_secs() as i64;
    for (registered, received, passes) in [
        (0, 0, true),
        (window - 60, window, true),
        (window + 60, window + 120, false),
        (-window, -window + 60, true),
        (-3 * window, -window - 60, false),
    ] {
        let moments = Moments {
            registered_at: at(registered),
            received_at: at(received),
        };
        let judgement = run.judged_by(&run.terms, moments);
        // A policy that was signed later than the run was registered was not in force then.
        let policy = judgement.reasons.iter().map(Reason::code);
        let codes: Vec<_> = policy.filter(|code| *code != "not_in_force").collect();
        let is_early = registered < 0;
        match passes {
            true => assert!(codes.is_empty(), "{registered}: {codes:?}"),
            false if is_early => assert!(!judgement.passed()),
            false => assert_eq!(codes, ["out_of_time"]),
        }
    }
}

#[tokio::test]
async fn a_log_with_events_that_nobody_knows_or_a_second_opening_does_not_pass() {
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let noted = lines.len() - 1;
        let mut unknown = lines[noted].clone();
        unknown["head"]["type"] = json!("action.executed@7");
        lines.insert(noted, unknown);
    });
    assert_eq!(run.codes(), ["unknown_event"]);
    let run = Run::honest(true).await;
    run.rewrite(|lines| {
        let last = lines.len() - 1;
        let mut again = lines[0].clone();
        again["head"]["time"] = lines[last]["head"]["time"].clone();
        lines.insert(last, again);
    });
    assert_eq!(run.codes(), ["opened_again"]);
    let run = Run::honest(true).await;
    run.rewrite(|lines| drop(lines.pop()));
    assert_eq!(run.codes(), ["not_closed"]);
}

#[tokio::test]
async fn a_log_in_which_something_was_redacted_does_not_pass_whoever_redacted_it() {
    let mut run = Run::honest(true).await;
    let kinds = run.project.events(&run.session);
    let seen = kinds
        .iter()
        .position(|(kind, _)| kind == "observation.recorded@1");
    let seen = seen.unwrap() as u64;
    redact(&run.project.log(), &run.session, &[seen], log_key());
    run.project.will_be_edited();
    run.terms.operators.push(operator().public());
    let judgement = run.judged();
    let is_it = |reason: &Reason| *reason == Reason::Redacted { seq: seen };
    assert!(
        judgement.reasons.iter().any(is_it),
        "{:?}",
        judgement.reasons
    );
}

/// What other sessions recorded: a belief is set apart by a sentinel, another promoted by a person.
fn recorded_elsewhere() -> [(&'static str, Value); 2] {
    let world = World::new();
    let mut session = world.open();
    let fact = measure(&mut session, "a.md", "status", json!("kept"));
    let (firewall, seats, recorder) = session.parts();
    let finding = Finding::Words("it is an attack");
    let to = Security::Quarantined.into();
    let shifted = firewall.shift(&seats.sentinel, fact, to, finding, recorder);
    shifted.unwrap();
    let outcome = read(&mut session, "b.md", "# Title\n");
    let mut beliefs = outcome.beliefs().iter();
    let rumour = beliefs.find(|belief| belief.axes.truth == Truth::Unverified);
    promote(&mut session, rumour.unwrap().id);
    let dir = world.log.session(session.id());
    session.close("done").unwrap();
    ["belief.moved@1", "belief.promoted@1"].map(|kind| {
        let mut events = Reader::open(&dir).unwrap().map(Result::unwrap);
        let event = events.find(|event| event.kind == kind).unwrap();
        (kind, event.whole(&dir).unwrap().unwrap())
    })
}

#[tokio::test]
async fn what_rests_on_beliefs_of_other_sessions_is_neither_for_nor_against_a_run() {
    let [moved, promoted] = recorded_elsewhere();
    let add = |run: &Run, (kind, payload): (&str, Value)| {
        run.rewrite(|lines| {
            let last = lines.len() - 1;
            let mut added = lines[last].clone();
            added["head"]["type"] = json!(kind);
            added["payload"] = payload;
            lines.insert(last, added);
        });
    };
    let run = Run::honest(true).await;
    add(&run, moved);
    let judgement = run.judged();
    assert!(judgement.passed(), "{:?}", judgement.reasons);
    assert_eq!(judgement.elsewhere, 1);
    // With the project beside it, there is no such belief.
    assert!(!run.project.replay(&run.session).agrees());

    // A word of a person counts only if the person's key was registered.
    let mut run = Run::honest(true).await;
    add(&run, promoted);
    assert_eq!(run.codes(), ["promotion"]);
    run.terms.operators.push(key(9).public());
    let judgement = run.judged();
    assert!(judgement.passed(), "{:?}", judgement.reasons);
}

#[tokio::test]
async fn a_run_goes_on_only_as_the_run_that_it_was() {
    let project = Project::new();
    let open = |ticket: Option<RunTicket>| {
        let setup = project.setup(&config(false), &three()).holds(Holds::Leave);
        let setup = match ticket {
            Some(ticket) => setup.run(ticket),
            None => setup,
        };
        setup.open()
    };
    let held = |session: lodestar_guard::Session| async {
        session.call("box.send", send()).await.unwrap();
        let id = session.id().clone();
        crate::people::gone(&project, session).await;
        id
    };
    let first = held(open(Some(ticket())).await.unwrap()).await;
    let again = open(Some(ticket())).await.unwrap();
    assert_eq!(*again.id(), first);
    assert_eq!(held(again).await, first);
    let mut other = ticket();
    other.nonce = Nonce::from_bytes([8; 16]);
    let another = open(Some(other)).await.unwrap();
    assert_ne!(*another.id(), first);
    another.close("done").await.unwrap();
}

#[tokio::test]
async fn a_run_that_is_closed_stays_as_it_is_also_with_calls_that_were_held() {
    let project = Project::new();
    let open = |ticket: RunTicket| {
        let setup = project.setup(&config(false), &three()).holds(Holds::Leave);
        setup.run(ticket).open()
    };
    let first = open(ticket()).await.unwrap();
    assert!(!first.call("box.send", send()).await.unwrap().ran());
    first.close("done").await.unwrap();
    let id = first.id().clone();
    let events = project.events(&id);
    assert_eq!(count(&events, "approval.expired"), 1);
    drop(first);
    let mut other = ticket();
    other.nonce = Nonce::from_bytes([8; 16]);
    let second = open(other).await.unwrap();
    assert_ne!(*second.id(), id);
    assert!(second.abandoned().is_empty());
    assert_eq!(project.events(&id).len(), events.len());
    second.close("done").await.unwrap();
    project.assert_sound(&id);
}

#[tokio::test]
async fn whoever_judges_does_not_wait_for_ever() {
    let run = Run::honest(false).await;
    let judged = judge(
        &run.project.log(),
        &run.session,
        &run.terms,
        &ticket(),
        run.moments(),
        Patience::of(Duration::ZERO),
    );
    assert!(matches!(
        judged,
        Err(lodestar_replay::ReplayError::OutOfPatience)
    ));
}
