//! What a harness takes out is out, and only that: for each defence of approvals an attempt that it
//! stops, and that works where it is missing. The contrast runs of probes rest on it.

use lodestar_core::defence::Defence;
use lodestar_core::id::ActionId;
use lodestar_core::ladder::Rung;
use lodestar_core::statement::confirmation::MemoryLedger;
use lodestar_core::statement::{ApprovalDecision, ConfirmationId, Envelope, Nonce, StatementKind};
use lodestar_core::time::Timestamp;
use lodestar_policy::confirmation::{
    ConfirmationKeys, Confirmations, Distrust, Mode, Settled, Uncounted, Unmatched, settle,
};
use lodestar_policy::{
    Approvers, Closing, Counted, NotSpendable, Refusal, Requests, Signed, Standing,
};

use serde_json::json;

use crate::confirmations::quorum::{approver, registry, request};
use crate::confirmations::{
    alices, card, card_of, confirmations, earlier, held, issued, key, later, now, signed,
};
use crate::forging::signed_raw;

/// Everything about approvals that can be taken out.
const ALL: [Defence; 9] = [
    Defence::ApprovalSignatures,
    Defence::StatementKinds,
    Defence::ApprovalTimes,
    Defence::ApprovalBinding,
    Defence::RegisteredRoles,
    Defence::DistinctApprovers,
    Defence::OneDenialEnds,
    Defence::RefusedChangesNothing,
    Defence::ApprovalOnce,
];

fn people() -> Approvers {
    registry(vec![
        approver("alice", &key(1), &["dev"]),
        approver("bob", &key(2), &["ops"]),
    ])
}

fn said(name: &str, seed: u8, nonce: u8, decision: ApprovalDecision) -> Envelope {
    answered(1, name, seed, nonce, decision)
}

fn answered(quorum: u32, name: &str, seed: u8, nonce: u8, decision: ApprovalDecision) -> Envelope {
    let key = key(seed);
    let signed = Signed {
        key: &key,
        at: now(),
        nonce: Nonce::from_bytes([nonce; 16]),
    };
    let answered = request(quorum, &["dev"]).answer(&name.parse().unwrap(), decision, "", signed);
    answered.unwrap()
}

fn honest() -> Envelope {
    said("alice", 1, 1, ApprovalDecision::Grant)
}

fn payload() -> serde_json::Value {
    serde_json::from_slice(honest().unverified_payload()).unwrap()
}

/// A request of which these defences are missing, and who may answer it.
fn lacking(defences: &[Defence], quorum: u32) -> (Requests, Approvers) {
    let mut requests = Requests::default().without(defences);
    assert!(requests.open(request(quorum, &["dev"])));
    (requests, people().without(defences))
}

fn hear(
    (requests, people): &mut (Requests, Approvers),
    statement: &Envelope,
    at: Timestamp,
) -> Result<Counted, Refusal> {
    requests.hear(request(1, &[]).id, statement, people, at)
}

/// It is refused by whoever has the defence, whatever else is missing, and counts where it is missing.
#[track_caller]
fn only_without(defence: Defence, statement: &Envelope, at: Timestamp) {
    let others: Vec<_> = ALL.into_iter().filter(|one| *one != defence).collect();
    // Without signatures, times and kinds are not looked at either.
    let others = others
        .into_iter()
        .filter(|one| *one != Defence::ApprovalSignatures);
    assert!(hear(&mut lacking(&[], 1), statement, at).is_err());
    for other in others {
        let counted = hear(&mut lacking(&[other], 1), statement, at);
        assert!(counted.is_err(), "without {other:?}: {counted:?}");
    }
    let counted = hear(&mut lacking(&[defence], 1), statement, at);
    assert_eq!(counted, Ok(Counted::Grant { missing: 0 }), "{defence:?}");
}

#[test]
fn each_check_of_an_answer_is_one_defence() {
    let approval = StatementKind::Approval.payload_type();
    let forged = signed_raw(approval, &payload(), &[&key(66)]);
    let forged = Envelope::from_json(&forged).unwrap();
    only_without(Defence::ApprovalSignatures, &forged, now());

    let review = StatementKind::ToolReview.payload_type();
    let other_kind = signed_raw(review, &payload(), &[&key(1)]);
    let other_kind = Envelope::from_json(&other_kind).unwrap();
    only_without(Defence::StatementKinds, &other_kind, now());

    only_without(Defence::ApprovalTimes, &honest(), earlier(3600));

    let bob = said("bob", 2, 2, ApprovalDecision::Grant);
    only_without(Defence::RegisteredRoles, &bob, now());

    let mut elsewhere = payload();
    assert!(elsewhere["subject"]["card"].is_string(), "{elsewhere}");
    elsewhere["subject"]["card"] = "11".repeat(32).into();
    let elsewhere = signed_raw(approval, &elsewhere, &[&key(1)]);
    let elsewhere = Envelope::from_json(&elsewhere).unwrap();
    only_without(Defence::ApprovalBinding, &elsewhere, now());
}

#[test]
fn one_person_is_a_quorum_only_where_nobody_asks_whether_they_are_two() {
    let twice = |defences: &[Defence]| {
        let mut world = lacking(defences, 2);
        for nonce in [6, 7] {
            let yes = answered(2, "alice", 1, nonce, ApprovalDecision::Grant);
            let _ = hear(&mut world, &yes, now());
        }
        world.0.standing(request(1, &[]).id)
    };
    assert_eq!(twice(&[]), Some(Standing::Open));
    assert_eq!(
        twice(&[Defence::DistinctApprovers]),
        Some(Standing::Granted)
    );
}

#[test]
fn a_no_ends_a_request_unless_it_is_only_heard() {
    let after_no = |defences: &[Defence]| {
        let mut world = lacking(defences, 1);
        let no = said("alice", 1, 3, ApprovalDecision::Deny);
        let heard = hear(&mut world, &no, now());
        assert!(matches!(heard, Ok(Counted::Deny(_))), "{heard:?}");
        hear(&mut world, &honest(), now())
    };
    assert_eq!(after_no(&[]), Err(Refusal::Closed));
    let counted = after_no(&[Defence::OneDenialEnds]);
    assert_eq!(counted, Ok(Counted::Grant { missing: 0 }));
}

#[test]
fn what_is_refused_ends_a_request_only_where_that_is_taken_out() {
    let after_nonsense = |defences: &[Defence]| {
        let mut world = lacking(defences, 1);
        let bob = said("bob", 2, 2, ApprovalDecision::Grant);
        assert!(hear(&mut world, &bob, now()).is_err());
        world.0.standing(request(1, &[]).id)
    };
    assert_eq!(after_nonsense(&[]), Some(Standing::Open));
    assert_eq!(
        after_nonsense(&[Defence::RefusedChangesNothing]),
        Some(Standing::Over(Closing::Denied))
    );
}

#[test]
fn a_grant_is_spent_once_unless_nothing_is_ever_spent() {
    let spent_twice = |defences: &[Defence]| {
        let mut world = lacking(defences, 1);
        hear(&mut world, &honest(), now()).unwrap();
        let asked = request(1, &["dev"]);
        let (id, act) = (asked.id, asked.card.action.fingerprint);
        let grants = [honest().digest()];
        world.0.spend(id, act, &grants, later(1)).unwrap();
        world.0.spend(id, act, &grants, later(2))
    };
    assert_eq!(spent_twice(&[]), Err(NotSpendable::Over(Closing::Spent)));
    assert_eq!(spent_twice(&[Defence::ApprovalOnce]), Ok(()));
}

#[test]
fn requests_that_are_open_already_lack_what_is_taken_out_after() {
    let mut requests = Requests::default();
    assert!(requests.open(request(1, &["dev"])));
    let requests = requests.without(&[Defence::RegisteredRoles]);
    let bob = said("bob", 2, 2, ApprovalDecision::Grant);
    let counted = hear(&mut (requests, people()), &bob, now());
    assert_eq!(counted, Ok(Counted::Grant { missing: 0 }));
}

/// What is made of a confirmation where these defences are missing.
fn settled(defences: &[Defence], sent: &[u8], at: Timestamp) -> Settled {
    let confirmations = confirmations(Mode::Enforce);
    let confirmations = Confirmations {
        keys: confirmations.keys.without(defences),
        ..confirmations
    };
    let mut ledger = MemoryLedger::default();
    settle(Some(sent), &held(&card()), &confirmations, &mut ledger, at).unwrap()
}

#[test]
fn each_check_of_a_confirmation_is_one_defence() {
    let kind = StatementKind::Confirmation.payload_type();
    let said = serde_json::to_value(issued(&card())).unwrap();
    let forged = signed_raw(kind, &said, &[&key(66)]);
    let other = card_of(Rung::L4, json!({"path": "a/b", "content": "other"}));
    let elsewhere = signed(&issued(&other));
    let honest = signed(&issued(&card()));
    for (defence, sent, at) in [
        (Defence::ConfirmationEvidence, forged, now()),
        (Defence::ConfirmationFields, elsewhere, now()),
        (Defence::ConfirmationTimes, honest, later(31)),
    ] {
        for other in [
            Defence::ConfirmationEvidence,
            Defence::ConfirmationFields,
            Defence::ConfirmationTimes,
        ] {
            let settled = settled(&[other], &sent, at);
            let is_confirmed = matches!(settled, Settled::Confirmed(..));
            assert_eq!(is_confirmed, other == defence, "{defence:?} {other:?}");
        }
        let refused = settled(&[], &sent, at);
        assert!(matches!(refused, Settled::Refused(_)), "{defence:?}");
    }
    // A key that nobody knows is nobody's, whatever is taken out.
    let mut unknown = said;
    unknown["key_id"] = serde_json::to_value(key(66).public().key_id()).unwrap();
    let unknown = signed_raw(kind, &unknown, &[&key(66)]);
    let refused = settled(&[Defence::ConfirmationEvidence], &unknown, now());
    assert!(matches!(refused, Settled::Refused(_)), "{refused:?}");
}

#[test]
fn what_names_an_act_and_is_wrong_otherwise_is_malformed_and_not_unbound() {
    let kind = StatementKind::Confirmation.payload_type();
    let mut said = serde_json::to_value(issued(&card())).unwrap();
    let why =
        |said: &serde_json::Value| match settled(&[], &signed_raw(kind, said, &[&alices()]), now())
        {
            Settled::Refused(refused) => match refused.reason {
                Unmatched::Untrusted { why } => why,
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
    said["subject"]["decision"] = "perhaps".into();
    assert!(matches!(why(&said), Distrust::Malformed { .. }));
    for nothing in [json!(null), json!({})] {
        said["subject"]["act"] = nothing;
        assert_eq!(why(&said), Distrust::Unbound);
    }
}

#[test]
fn keys_of_confirmations_are_written_down_and_read_back() {
    let keys = confirmations(Mode::Enforce).keys;
    let written = serde_json::to_value(&keys).unwrap();
    assert_eq!(written.as_array().unwrap().len(), 2);
    let read: ConfirmationKeys = serde_json::from_value(written).unwrap();
    assert_eq!(read.keys(), keys.keys());
    assert_eq!(Vec::from(keys.clone()), keys.keys());
}

#[test]
fn a_record_that_names_another_confirmation_operator_or_action_counts_for_nothing() {
    let sent = signed(&issued(&card()));
    let Settled::Confirmed(_, consumed) = settled(&[], &sent, now()) else {
        panic!("it matches")
    };
    let keys = confirmations(Mode::Enforce).keys;
    let act = held(&card());
    assert!(consumed.again(&act, &keys).is_ok());
    let mut other_id = consumed.clone();
    other_id.id = ConfirmationId::from_bytes([8; 16]);
    let mut other_operator = consumed.clone();
    other_operator.operator = "bob".parse().unwrap();
    let mut other_action = consumed;
    other_action.action = ActionId::from_parts(1, [9; 10]);
    for record in [other_id, other_operator, other_action] {
        let again = record.again(&act, &keys).map(drop);
        assert_eq!(again, Err(Uncounted::OtherRecord), "{record:?}");
    }
}
