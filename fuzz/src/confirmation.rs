//! Laws of operator confirmations.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::chain::Action;
use lodestar_core::contract::{ArgumentRole, Contract};
use lodestar_core::digest::sha256;
use lodestar_core::fingerprint::{FingerprintField, FingerprintFields, NormalPath};
use lodestar_core::id::{ActionId, DecisionId};
use lodestar_core::name::SessionId;
use lodestar_core::scope::Scope;
use lodestar_core::statement::confirmation::MemoryLedger;
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Issued, Nonce,
    StatementKind, pae,
};
use lodestar_core::time::Timestamp;
use lodestar_policy::Card;
use lodestar_policy::confirmation::{
    ConfirmationKey, ConfirmationKeys, Confirmations, Evidence, HeldAct, Mode, Recorded, Refused,
    Settled, settle,
};
use serde_json::{Map, json};

use crate::sample;

/// When the sample's operator confirmed, in microseconds.
const CONFIRMED_AT: i64 = 1_794_744_000_000_000;
const LIFE: i64 = 30_000_000;

fn at(micros: i64) -> Timestamp {
    Timestamp::from_unix_micros(CONFIRMED_AT + micros).expect("a moment of our time")
}

fn session() -> SessionId {
    SessionId::new("s1").expect("a name")
}

fn card() -> Card {
    let contract = Contract::ungraded(Scope::global());
    let arguments = Map::from_iter([("path".to_owned(), json!("notes/a.md"))]);
    let paths = vec![NormalPath::new("notes/a.md").expect("a path")];
    let fields = FingerprintFields::under(
        &contract,
        "files".parse().expect("a name"),
        "fs.write".parse().expect("a name"),
        sha256(b"definition"),
        arguments.clone(),
        paths.clone(),
    )
    .expect("it has a canonical form");
    Card {
        action: Action {
            id: ActionId::from_parts(1, [1; 10]),
            decision: DecisionId::from_parts(1, [2; 10]),
            server: fields.server.clone(),
            tool: fields.tool.clone(),
            arguments,
            contract,
            fingerprint: fields.fingerprint().expect("it has a canonical form"),
            proposed_at: at(0),
        },
        definition: fields.tool_definition,
        paths,
        provenance: Vec::new(),
        measured: Vec::new(),
        going_out: Vec::new(),
        why: String::new(),
    }
}

fn confirmations() -> Confirmations {
    let key = ConfirmationKey {
        public_key: sample::operator_key().public(),
        origins: BTreeSet::from([ConfirmationOrigin::RuntimeUiConfirm]),
        operators: BTreeSet::from(["alice".parse().expect("a name")]),
        revoked_at: None,
    };
    Confirmations {
        mode: Mode::Enforce,
        keys: ConfirmationKeys::new(vec![key]).expect("one key"),
    }
}

/// The one confirmation that the sample's operator signed.
pub fn confirmed(decision: ConfirmationDecision) -> Evidence {
    let confirmation = Confirmation {
        act: (&card().fields().expect("it has a canonical form")).into(),
        decision,
        id: ConfirmationId::from_bytes([5; 16]),
        operator: "alice".parse().expect("a name"),
        origin: ConfirmationOrigin::RuntimeUiConfirm,
        session: session(),
    };
    let nonce = Nonce::from_bytes([6; 16]);
    Evidence::sign(
        confirmation,
        &sample::operator_key(),
        nonce,
        at(0),
        at(LIFE),
    )
    .expect("it can be signed")
}

/// The payload of an envelope as the operator's own word, whatever it says.
fn signed_again(evidence: &Evidence) -> Vec<u8> {
    let key = sample::operator_key();
    let kind = StatementKind::Confirmation.payload_type();
    let payload = evidence.details().unverified_payload();
    let signature = key.sign(&pae(kind, payload));
    let envelope = json!({
        "payload": BASE64.encode(payload),
        "payloadType": kind,
        "signatures": [{"keyid": key.public().key_id(), "sig": BASE64.encode(signature)}],
    });
    envelope.to_string().into_bytes()
}

/// Whatever is sent, it is recorded and read back as it was. It matches the held act only if the
/// operator signed this very confirmation; and if they had signed whatever is sent, only if it says
/// yes to this very act in this session.
pub fn confirmation(data: &[u8]) {
    let recorded = Recorded::new(data, at(0));
    let written = serde_json::to_vec(&recorded).expect("records can be written");
    let read: Recorded = serde_json::from_slice(&written).expect("records can be read");
    assert_eq!(read, recorded);
    let Ok(evidence) = Evidence::read(data) else {
        assert_eq!(settled(data), None);
        return;
    };
    if let Some(payload) = settled(data) {
        let signed = confirmed(ConfirmationDecision::Confirm);
        let honest = signed.details().unverified_payload();
        assert_eq!(payload, honest, "nobody signed this");
    }
    if let Some(payload) = settled(&signed_again(&evidence)) {
        let said: Issued<Confirmation> = serde_json::from_slice(&payload).expect("a confirmation");
        let said = said.subject;
        let fields = said.act.fields().expect("paths with a normal form");
        let differ = card().fields().expect("fields").differences(&fields);
        // A path may be spelt otherwise, and nothing else.
        assert!(differ.is_empty() || differ == [FingerprintField::Arguments]);
        assert_eq!(said.act.arguments.len(), 1);
        assert_eq!(said.decision, ConfirmationDecision::Confirm);
        assert_eq!(said.session, session());
    }
}

/// What becomes of it: the payload of what matched, which matches once.
fn settled(data: &[u8]) -> Option<Vec<u8>> {
    let roles = BTreeMap::from([("path".to_owned(), ArgumentRole::Path)]);
    let act = HeldAct::on_card(&card(), &roles, &session()).expect("it has a canonical form");
    let mut ledger = MemoryLedger::default();
    let mut settled = || settle(Some(data), &act, &confirmations(), &mut ledger, at(1));
    match settled().expect("memory answers") {
        Settled::Confirmed(_, consumed) => {
            let again = settled().expect("memory answers");
            assert!(matches!(again, Settled::Refused(_)), "spent twice");
            Some(consumed.evidence.details().unverified_payload().to_vec())
        }
        Settled::Refused(refused) => {
            let written = serde_json::to_vec(&refused).expect("records can be written");
            let read: Refused = serde_json::from_slice(&written).expect("records can be read");
            assert_eq!(read, *refused);
            None
        }
        Settled::Missing | Settled::WouldMatch(_) => panic!("something was sent, in earnest"),
    }
}
