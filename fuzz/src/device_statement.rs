//! Laws of what devices and owners sign.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use lodestar_core::canonical;
use lodestar_core::digest::sha256;
use lodestar_core::id::{AccountId, ContenderId, DeviceId, RunId, RunnerId};
use lodestar_core::key::PublicKey;
use lodestar_core::name::SessionId;
use lodestar_core::statement::{
    Attestation, ChallengeResponse, DaemonVersion, Envelope, GatewayStatus, Heartbeat, Issued,
    KeyRotation, Nonce, Order, OwnerOrder, RunBundle, RunPredicate, Statement, StatementKind, pae,
};
use lodestar_core::time::Timestamp;
use serde_json::json;

use crate::sample;

/// When the sample's device spoke, in microseconds.
const SPOKEN_AT: i64 = 1_794_744_000_000_000;
const WINDOW: Duration = Duration::from_secs(300);

fn spoken_at() -> Timestamp {
    Timestamp::from_unix_micros(SPOKEN_AT).expect("a moment of our time")
}

fn issued<T: Statement>(subject: T) -> (StatementKind, Vec<u8>) {
    let issued = Issued {
        expires_at: None,
        issued_at: spoken_at(),
        key_id: sample::operator_key().public().key_id(),
        nonce: Nonce::from_bytes([6; 16]),
        subject,
    };
    let payload = canonical::to_vec(&issued).expect("it has a canonical form");
    (T::KIND, payload)
}

/// One payload of every kind that a device or its owner signs, and of every order.
pub fn device_payloads() -> Vec<(StatementKind, Vec<u8>)> {
    let account = AccountId::from_parts(1, [1; 10]);
    let device = DeviceId::from_parts(2, [2; 10]);
    let runner = RunnerId::from_parts(3, [3; 10]);
    let run = RunId::from_parts(4, [4; 10]);
    let key = sample::stranger_key().public();
    let reason = "sold".to_owned();
    let orders = [
        Order::Approve {
            device,
            key,
            log_key: sample::log_key().public(),
        },
        Order::Bind { device, runner },
        Order::Unbind { device, runner },
        Order::Revoke {
            compromised_since: Some(spoken_at()),
            device,
            reason: reason.clone(),
        },
        Order::Pause { device, reason },
        Order::Resume { device },
        Order::RegisterTerms {
            terms: sha256(b"terms"),
        },
    ];
    let orders = orders.map(|order| issued(OwnerOrder { account, order }));
    let attestation = Attestation {
        session: SessionId::new("s1").expect("a name"),
        root: sha256(b"root"),
        predicate: RunPredicate {
            account,
            agent: ContenderId::from_parts(5, [5; 10]),
            bundle: sha256(b"bundle"),
            device,
            issued_at: spoken_at(),
            key_id: sample::operator_key().public().key_id(),
            lens_hash: None,
            nonce: Nonce::from_bytes([6; 16]),
            policy: sha256(b"policy"),
            run,
            run_nonce: Nonce::from_bytes([7; 16]),
            runner,
            size: 12,
            workflow_hash: Some(sha256(b"workflow")),
        },
    };
    let others = [
        issued(ChallengeResponse {
            account,
            challenge: Nonce::from_bytes([8; 16]),
            device,
        }),
        issued(Heartbeat {
            account,
            daemon_version: DaemonVersion::new("0.9.0").expect("a line"),
            device,
            gateway_status: GatewayStatus::error("dns"),
            runners: BTreeSet::from([runner, RunnerId::from_parts(9, [3; 10])]),
        }),
        issued(KeyRotation {
            account,
            device,
            new_key: key,
            new_log_key: sample::log_key().public(),
            old_key: sample::witness_key().public(),
        }),
        issued(RunBundle {
            account,
            bundle: sha256(b"bundle"),
            bytes: 4096,
            device,
            root: sha256(b"root"),
            run,
            size: 12,
        }),
        (
            StatementKind::Attestation,
            canonical::to_vec(&attestation).expect("it has a canonical form"),
        ),
    ];
    others.into_iter().chain(orders).collect()
}

/// An input: the name of a kind, and under it a payload.
fn parts(data: &[u8]) -> Option<(StatementKind, &[u8])> {
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let kind = StatementKind::ALL
        .into_iter()
        .find(|kind| kind.name().as_bytes() == &data[..end])?;
    Some((kind, &data[end + 1..]))
}

/// The payload as the owner's own word, whatever it says, unless it is longer than any may be.
fn signed(kind: StatementKind, payload: &[u8]) -> Option<Envelope> {
    let key = sample::operator_key();
    let signature = key.sign(&pae(kind.payload_type(), payload));
    let envelope = json!({
        "payload": BASE64.encode(payload),
        "payloadType": kind.payload_type(),
        "signatures": [{"keyid": key.public().key_id(), "sig": BASE64.encode(signature)}],
    });
    Envelope::from_json(envelope.to_string().as_bytes()).ok()
}

/// Whether a statement of this moment is one: made no further from it than the window, and not over.
fn is_now(issued_at: Timestamp, expires_at: Option<Timestamp>) -> bool {
    let away = (issued_at.unix_micros() - SPOKEN_AT).unsigned_abs();
    u128::from(away) <= WINDOW.as_micros() && expires_at.is_none_or(|end| end > spoken_at())
}

/// What is read of a statement, written again, if it is one of this kind; what its date makes of it.
fn statement<T: Statement>(envelope: &Envelope, keys: &[PublicKey]) -> Option<Vec<u8>> {
    let undated = envelope.verify_undated::<T>(keys).ok()?;
    let issued = undated.issued();
    let (issued_at, expires_at) = (issued.issued_at, issued.expires_at);
    let read = envelope.unverified::<T>().expect("it was read already");
    let written = canonical::to_vec(issued).expect("it has a canonical form");
    assert_eq!(canonical::to_vec(&read).as_ref(), Ok(&written));
    assert_eq!(issued.key_id, undated.key().key_id());
    let now = undated.within(spoken_at(), WINDOW);
    assert_eq!(now.is_ok(), is_now(issued_at, expires_at));
    Some(written)
}

fn attestation(envelope: &Envelope, keys: &[PublicKey]) -> Option<Vec<u8>> {
    let ever = Duration::from_secs(u64::from(u32::MAX) * 100);
    let verified = envelope.verify_attestation(keys, spoken_at(), ever).ok()?;
    let read = envelope.unverified_attestation();
    assert_eq!(read.as_ref(), Ok(verified.attestation()));
    assert_eq!(verified.predicate().key_id, verified.key().key_id());
    let now = envelope.verify_attestation(keys, spoken_at(), WINDOW);
    assert_eq!(now.is_ok(), is_now(verified.predicate().issued_at, None));
    Some(canonical::to_vec(verified.attestation()).expect("it has a canonical form"))
}

fn rotation(envelope: &Envelope, keys: &[PublicKey]) -> Option<Vec<u8>> {
    // One signature is never enough for it, whoever the keys are said to be.
    for old in [sample::witness_key(), sample::stranger_key()] {
        for owner in keys {
            assert!(KeyRotation::verify_undated(envelope, owner, &old.public()).is_err());
        }
    }
    statement::<KeyRotation>(envelope, keys)
}

type Reader = fn(&Envelope, &[PublicKey]) -> Option<Vec<u8>>;

const READERS: [(StatementKind, Reader); 6] = [
    (
        StatementKind::ChallengeResponse,
        statement::<ChallengeResponse>,
    ),
    (StatementKind::Heartbeat, statement::<Heartbeat>),
    (StatementKind::OwnerOrder, statement::<OwnerOrder>),
    (StatementKind::KeyRotation, rotation),
    (StatementKind::RunBundle, statement::<RunBundle>),
    (StatementKind::Attestation, attestation),
];

/// Whether the payload is a statement of the kind that the input names.
pub fn stated(data: &[u8]) -> bool {
    let Some((kind, payload)) = parts(data) else {
        return false;
    };
    let keys = [sample::operator_key().public()];
    let reader = READERS.iter().find(|(known, _)| *known == kind);
    let envelope = signed(kind, payload);
    reader
        .zip(envelope)
        .is_some_and(|((_, read), envelope)| read(&envelope, &keys).is_some())
}

/// Whatever somebody signed, it is taken for nothing but its own kind, by nobody else's key, and only if
/// what was read of it says all that was signed and nothing more.
pub fn device_statement(data: &[u8]) {
    let Some((kind, payload)) = parts(data) else {
        return;
    };
    let Some(envelope) = signed(kind, payload) else {
        return;
    };
    let (right, wrong) = (
        sample::operator_key().public(),
        sample::stranger_key().public(),
    );
    for (other, read) in READERS {
        assert_eq!(read(&envelope, &[wrong]), None);
        let Some(written) = read(&envelope, &[wrong, right]) else {
            continue;
        };
        assert_eq!(other, kind, "taken for another kind");
        assert_eq!(written, payload, "not what was signed");
    }
}
