//! What a confirmation counts for among approvers.

use std::collections::BTreeSet;

use lodestar_core::id::RequestId;
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::statement::{
    ApprovalDecision, ConfirmationId, ConfirmationOrigin, Envelope, Nonce,
};
use lodestar_policy::confirmation::Confirmed;
use lodestar_policy::{
    ApprovalRequest, Approver, Approvers, Counted, Hearing, Refusal, Requirement, Signed,
};
use serde_json::json;

use super::{card, card_of, confirmed, enforced, issued, key, later, now, session, signed};

pub(crate) fn request(quorum: u32, roles: &[&str]) -> ApprovalRequest {
    let requirement = Requirement {
        roles: roles.iter().map(ToString::to_string).collect(),
        quorum,
        expires_seconds: 900,
    };
    let (id, place) = (
        RequestId::from_parts(1, [4; 10]),
        ("web".parse().unwrap(), session()),
    );
    let policy = lodestar_core::digest::sha256(b"policy");
    ApprovalRequest::new(id, place, card(), requirement, policy, now()).unwrap()
}

pub(crate) fn approver(name: &str, key: &SecretKey, roles: &[&str]) -> Approver {
    Approver {
        actor: name.parse().unwrap(),
        public_key: key.public(),
        roles: roles.iter().map(ToString::to_string).collect(),
        clearance: Rung::L4,
        scope: lodestar_core::scope::Scope::global(),
        revoked_at: None,
    }
}

pub(crate) fn registry(approvers: Vec<Approver>) -> Approvers {
    Approvers::new(approvers).unwrap()
}

/// Alice with a key of her own for approvals, and Bob.
fn both() -> Approvers {
    registry(vec![
        approver("alice", &key(11), &["dev"]),
        approver("bob", &key(12), &["dev"]),
    ])
}

fn by_alice() -> Confirmed {
    confirmed(enforced(&signed(&issued(&card())), &card(), now()))
}

fn by_host(operator: &str, id: u8) -> Confirmed {
    let mut issued = issued(&card());
    issued.key_id = key(2).public().key_id();
    issued.subject.origin = ConfirmationOrigin::OperatorContractReview;
    issued.subject.operator = operator.parse().unwrap();
    issued.subject.id = ConfirmationId::from_bytes([id; 16]);
    let sent = Envelope::sign(&issued, &key(2)).unwrap().to_json();
    confirmed(enforced(&sent, &card(), now()))
}

fn approval(request: &ApprovalRequest, name: &str, key: &SecretKey) -> Envelope {
    let signed = Signed {
        key,
        at: now(),
        nonce: Nonce::from_bytes([key.seed()[0]; 16]),
    };
    let actor = name.parse().unwrap();
    request
        .answer(&actor, ApprovalDecision::Grant, "", signed)
        .unwrap()
}

#[test]
fn a_confirmation_is_one_approval_by_its_operator() {
    let mut hearing = Hearing::new(request(1, &["dev"]));
    let counted = hearing.confirm(&by_alice(), &both(), now()).unwrap();
    assert_eq!(counted, Counted::Grant { missing: 0 });
    assert_eq!(hearing.granted_by(now()).len(), 1);
    assert_eq!(hearing.grants(now()), [by_alice().statement()]);
    let again = hearing.confirm(&by_alice(), &both(), now());
    assert_eq!(again, Err(Refusal::Closed));
}

#[test]
fn it_is_never_alone_enough_for_a_quorum_above_one() {
    let asked = request(2, &["dev"]);
    let mut hearing = Hearing::new(asked.clone());
    let one = hearing.confirm(&by_alice(), &both(), now()).unwrap();
    assert_eq!(one, Counted::Grant { missing: 1 });
    assert_eq!(
        hearing.confirm(&by_alice(), &both(), now()),
        Err(Refusal::Repeated)
    );
    // Two confirmations, and one host that could have made both of them up.
    let two = hearing.confirm(&by_host("bob", 5), &both(), now()).unwrap();
    assert_eq!(two, Counted::Grant { missing: 1 });
    let approved = hearing.hear(&approval(&asked, "bob", &key(12)), &both(), now());
    assert_eq!(approved.unwrap(), Counted::Grant { missing: 0 });
}

#[test]
fn the_same_person_twice_is_one_person() {
    let asked = request(2, &["dev"]);
    let mut hearing = Hearing::new(asked.clone());
    hearing.confirm(&by_alice(), &both(), now()).unwrap();
    let own = hearing
        .hear(&approval(&asked, "alice", &key(11)), &both(), now())
        .unwrap();
    assert_eq!(own, Counted::Grant { missing: 1 });
    let other = hearing
        .hear(&approval(&asked, "bob", &key(12)), &both(), now())
        .unwrap();
    assert_eq!(other, Counted::Grant { missing: 0 });
}

#[test]
fn only_registered_approvers_count_with_role_clearance_and_scope() {
    let refused = |approvers: Vec<Approver>| {
        let mut hearing = Hearing::new(request(1, &["release"]));
        let refused = hearing.confirm(&by_alice(), &registry(approvers), now());
        assert!(hearing.grants(now()).is_empty());
        refused.unwrap_err()
    };
    let alice = || approver("alice", &key(11), &["release"]);
    let who = || "alice".parse().unwrap();
    let bob = approver("bob", &key(12), &["release"]);
    assert_eq!(
        refused(vec![bob]),
        Refusal::NotAnApprover { operator: who() }
    );
    let mut revoked = alice();
    revoked.revoked_at = Some(now());
    assert_eq!(
        refused(vec![revoked]),
        Refusal::NotAnApprover { operator: who() }
    );
    let mut dev = alice();
    dev.roles = BTreeSet::from(["dev".to_owned()]);
    assert_eq!(refused(vec![dev]), Refusal::NoRole { approver: who() });
    let mut low = alice();
    low.clearance = Rung::L3;
    assert_eq!(refused(vec![low]), Refusal::NoClearance { approver: who() });
    let mut elsewhere = alice();
    elsewhere.scope = "organization:acme/project:other".parse().unwrap();
    assert_eq!(
        refused(vec![elsewhere]),
        Refusal::OtherScope { approver: who() }
    );
    // The confirmation's key is registered, for somebody else.
    let mallory = approver("mallory", &key(1), &["release"]);
    assert_eq!(
        refused(vec![alice(), mallory]),
        Refusal::NotAnApprover { operator: who() }
    );
}

#[test]
fn of_a_person_with_several_keys_the_least_counts_unless_their_own_key_signed() {
    let plain = approver("alice", &key(11), &["dev"]);
    let hardware = approver("alice", &key(12), &["dev", "release"]);
    let two = || registry(vec![plain.clone(), hardware.clone()]);
    let mut hearing = Hearing::new(request(1, &["release"]));
    let refused = hearing.confirm(&by_host("alice", 6), &two(), now());
    assert!(
        matches!(refused, Err(Refusal::NoRole { .. })),
        "{refused:?}"
    );
    let own = approver("alice", &key(1), &["release"]);
    let counted = hearing.confirm(&by_alice(), &registry(vec![plain, own]), now());
    assert_eq!(counted.unwrap(), Counted::Grant { missing: 0 });
}

#[test]
fn another_request_is_not_opened_by_it() {
    let mut other = request(1, &[]);
    other.session = "s-2".parse().unwrap();
    let refused = Hearing::new(other).confirm(&by_alice(), &both(), now());
    assert_eq!(refused, Err(Refusal::OtherSession));
    let mut other = request(1, &[]);
    other.card = card_of(Rung::L4, json!({"path": "other"}));
    let refused = Hearing::new(other).confirm(&by_alice(), &both(), now());
    assert_eq!(refused, Err(Refusal::OtherFingerprint));
    let late = Hearing::new(request(1, &[])).confirm(&by_alice(), &both(), later(900));
    assert_eq!(late, Err(Refusal::RequestExpired { at: later(900) }));
}

#[test]
fn it_counts_for_as_long_as_it_lasts_and_its_keys_count() {
    let lasts = by_alice().until();
    let mut hearing = Hearing::new(request(1, &["dev"]));
    hearing.confirm(&by_alice(), &both(), now()).unwrap();
    assert_eq!(hearing.missing(now()), 0);
    assert_eq!(hearing.missing(lasts), 1);
    assert!(hearing.granted_by(lasts).is_empty());
    assert!(hearing.grants(lasts).is_empty());

    let mut alice = approver("alice", &key(11), &["dev"]);
    alice.revoked_at = Some(later(1));
    let mut hearing = Hearing::new(request(1, &["dev"]));
    let counted = hearing.confirm(&by_alice(), &registry(vec![alice]), now());
    assert_eq!(counted.unwrap(), Counted::Grant { missing: 0 });
    assert_eq!(hearing.missing(later(1)), 1);
}
