//! Operator confirmations: what they match, what they never do.

mod matching;
mod matrix;
pub(crate) mod quorum;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lodestar_core::chain::Action;
use lodestar_core::contract::ArgumentRole;
use lodestar_core::digest::sha256;
use lodestar_core::fingerprint::{FingerprintFields, NormalPath};
use lodestar_core::id::{ActionId, DecisionId};
use lodestar_core::key::SecretKey;
use lodestar_core::ladder::Rung;
use lodestar_core::name::SessionId;
use lodestar_core::statement::confirmation::MemoryLedger;
use lodestar_core::statement::{
    Confirmation, ConfirmationDecision, ConfirmationId, ConfirmationOrigin, Envelope, Issued, Nonce,
};
use lodestar_core::time::Timestamp;
use lodestar_policy::Card;
use lodestar_policy::confirmation::{
    ConfirmationKey, ConfirmationKeys, Confirmations, Confirmed, HeldAct, Mode, Settled, Unmatched,
    settle,
};
use serde_json::{Value, json};

use crate::world::contract;

pub(crate) fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

/// The operator's own key, which may sign what they saw in a dialog.
pub(crate) fn alices() -> SecretKey {
    key(1)
}

pub(crate) fn now() -> Timestamp {
    "2026-11-16T09:00:00.000000Z".parse().unwrap()
}

pub(crate) fn later(seconds: u64) -> Timestamp {
    now().checked_add(Duration::from_secs(seconds)).unwrap()
}

pub(crate) fn earlier(seconds: i64) -> Timestamp {
    Timestamp::from_unix_micros(now().unix_micros() - seconds * 1_000_000).unwrap()
}

pub(crate) fn session() -> SessionId {
    SessionId::new("s-1").unwrap()
}

pub(crate) fn card_of(level: Rung, arguments: Value) -> Card {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let contract = contract(level);
    let paths = lodestar_core::contract::arguments::paths(&arguments, &roles(), None).unwrap();
    let fields = FingerprintFields::under(
        &contract,
        "files".parse().unwrap(),
        "fs.write".parse().unwrap(),
        sha256(b"definition"),
        arguments.clone(),
        paths.clone(),
    )
    .unwrap();
    Card {
        action: Action {
            id: ActionId::from_parts(1, [1; 10]),
            decision: DecisionId::from_parts(1, [2; 10]),
            server: fields.server.clone(),
            tool: fields.tool.clone(),
            arguments,
            contract,
            fingerprint: fields.fingerprint().unwrap(),
            proposed_at: now(),
        },
        definition: fields.tool_definition,
        paths,
        provenance: Vec::new(),
        measured: Vec::new(),
        going_out: Vec::new(),
        why: String::new(),
    }
}

pub(crate) fn card() -> Card {
    card_of(Rung::L4, json!({"path": "a/b", "content": "text", "n": 1}))
}

pub(crate) fn roles() -> BTreeMap<String, ArgumentRole> {
    BTreeMap::from([("path".to_owned(), ArgumentRole::Path)])
}

pub(crate) fn held(card: &Card) -> HeldAct {
    HeldAct::on_card(card, &roles(), &session()).unwrap()
}

/// What matches the card: confirmed now, for the usual thirty seconds.
pub(crate) fn issued(card: &Card) -> Issued<Confirmation> {
    let act = (&card.fields().unwrap()).into();
    Issued {
        expires_at: Some(later(30)),
        issued_at: now(),
        key_id: alices().public().key_id(),
        nonce: Nonce::from_bytes([3; 16]),
        subject: Confirmation {
            act,
            decision: ConfirmationDecision::Confirm,
            id: ConfirmationId::from_bytes([9; 16]),
            operator: "alice".parse().unwrap(),
            origin: ConfirmationOrigin::RuntimeUiConfirm,
            session: session(),
        },
    }
}

pub(crate) fn signed(issued: &Issued<Confirmation>) -> Vec<u8> {
    Envelope::sign(issued, &alices()).unwrap().to_json()
}

/// Alice's own key for dialogs, a host's for both operators' reviews.
pub(crate) fn confirmations(mode: Mode) -> Confirmations {
    let of = |key: SecretKey, origin, operators: &[&str]| ConfirmationKey {
        public_key: key.public(),
        origins: BTreeSet::from([origin]),
        operators: operators.iter().map(|name| name.parse().unwrap()).collect(),
        revoked_at: None,
    };
    let keys = vec![
        of(alices(), ConfirmationOrigin::RuntimeUiConfirm, &["alice"]),
        of(
            key(2),
            ConfirmationOrigin::OperatorContractReview,
            &["alice", "bob"],
        ),
    ];
    Confirmations {
        mode,
        keys: ConfirmationKeys::new(keys).unwrap(),
    }
}

pub(crate) fn enforced(sent: &[u8], card: &Card, at: Timestamp) -> Settled {
    let mut ledger = MemoryLedger::default();
    let confirmations = confirmations(Mode::Enforce);
    settle(Some(sent), &held(card), &confirmations, &mut ledger, at).unwrap()
}

pub(crate) fn confirmed(settled: Settled) -> Confirmed {
    match settled {
        Settled::Confirmed(confirmed, _) => *confirmed,
        other => panic!("not confirmed: {other:?}"),
    }
}

pub(crate) fn reason(settled: Settled) -> Unmatched {
    match settled {
        Settled::Refused(refused) => refused.reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Why this does not match the card, now.
pub(crate) fn refusal(issued: &Issued<Confirmation>) -> Unmatched {
    reason(enforced(&signed(issued), &card(), now()))
}

pub(crate) fn path(text: &str) -> NormalPath {
    NormalPath::new(text).unwrap()
}
