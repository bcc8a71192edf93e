//! The forgery matrix of resolutions: 0 grants, and each forgery has its own reason.
//!
//! Everything here is tried on a request that one more word would open, so that whatever counts by
//! mistake is a grant. By default every field alone and in pairs, and a fixed sample of changed bytes;
//! all of them with `LODESTAR_MATRIX=full`.

mod acts;
mod clocks;
mod envelopes;
mod fields;
mod people;

use std::collections::BTreeMap;

use lodestar_core::ladder::Rung;
use lodestar_core::statement::{
    Approval, ApprovalDecision, Envelope, Issued, Nonce, StatementKind,
};
use lodestar_core::time::Timestamp;
use lodestar_policy::{
    ApprovalRequest, Approvers, Counted, Denial, Refusal, Requests, Signed, Standing,
};
use serde_json::Value;

use crate::confirmations::quorum::{approver, registry, request};
use crate::confirmations::{earlier, key, later, now};

const APPROVAL: &str = StatementKind::Approval.payload_type();

/// The nonce of a statement that was heard.
const SEEN: [u8; 16] = [6; 16];

/// How often something was tried, by what it was.
#[derive(Debug, Default)]
struct Counts(BTreeMap<String, u32>);

impl Counts {
    fn note(&mut self, kind: impl Into<String>) {
        *self.0.entry(kind.into()).or_default() += 1;
    }

    fn print(&self, what: &str) {
        let total: u32 = self.0.values().sum();
        println!("{what}: 0 grants among {total} forgeries {:?}", self.0);
    }
}

/// Alice and Fred may approve; everybody else lacks something.
fn approvers() -> Approvers {
    let mut low = approver("carl", &key(3), &["dev"]);
    low.clearance = Rung::L3;
    let mut elsewhere = approver("dora", &key(4), &["dev"]);
    elsewhere.scope = "organization:acme/project:other".parse().unwrap();
    let mut gone = approver("erik", &key(5), &["dev"]);
    gone.revoked_at = Some(earlier(60));
    registry(vec![
        approver("alice", &key(1), &["dev"]),
        approver("bob", &key(2), &["ops"]),
        low,
        elsewhere,
        gone,
        approver("fred", &key(6), &["dev"]),
    ])
}

/// What two people are asked for.
fn asked() -> ApprovalRequest {
    request(2, &["dev"])
}

fn said(request: &ApprovalRequest, name: &str, seed: u8, nonce: [u8; 16]) -> Envelope {
    let (key, nonce) = (key(seed), Nonce::from_bytes(nonce));
    let signed = Signed {
        key: &key,
        at: now(),
        nonce,
    };
    let grant = ApprovalDecision::Grant;
    let said = request.answer(&name.parse().unwrap(), grant, "looked at it", signed);
    said.unwrap()
}

/// Alice's genuine word, which would open the request.
fn honest() -> Vec<u8> {
    said(&asked(), "alice", 1, [1; 16]).to_json()
}

/// What it says.
fn payload(envelope: &[u8]) -> Value {
    let envelope = Envelope::from_json(envelope).unwrap();
    serde_json::from_slice(envelope.unverified_payload()).unwrap()
}

fn issued() -> Issued<Approval> {
    serde_json::from_value(payload(&honest())).unwrap()
}

/// The request, to which Fred has said yes.
fn half_open() -> Requests {
    let mut requests = Requests::default();
    let asked = asked();
    let fred = said(&asked, "fred", 6, SEEN);
    assert!(requests.open(asked.clone()));
    let counted = requests.hear(asked.id, &fred, &approvers(), now());
    assert_eq!(counted, Ok(Counted::Grant { missing: 1 }));
    requests
}

/// What a session makes of bytes that came in.
fn hear(requests: &mut Requests, sent: &[u8], at: Timestamp) -> Result<Counted, Refusal> {
    let statement = Envelope::from_json(sent).map_err(|problem| Refusal::Malformed {
        problem: problem.to_string(),
    })?;
    requests.hear(asked().id, &statement, &approvers(), at)
}

/// Why it does not count. The request is as open as before, and the genuine word opens it.
#[track_caller]
fn refused(half_open: &Requests, sent: &[u8], at: Timestamp) -> Refusal {
    let mut requests = half_open.clone();
    let id = asked().id;
    let refusal = hear(&mut requests, sent, at).expect_err("it is forged");
    assert_eq!(requests.standing(id), Some(Standing::Open), "{refusal}");
    assert_eq!(requests.get(id).unwrap().missing(now()), 1, "{refusal}");
    refusal
}

fn name_of(refusal: &Refusal) -> String {
    let value = serde_json::to_value(refusal).unwrap();
    value["refused"].as_str().unwrap().to_owned()
}

#[test]
fn the_genuine_word_opens_the_request_that_the_forgeries_are_tried_on() {
    let mut requests = half_open();
    let counted = hear(&mut requests, &honest(), now());
    assert_eq!(counted, Ok(Counted::Grant { missing: 0 }));
    assert_eq!(requests.standing(asked().id), Some(Standing::Granted));
}
