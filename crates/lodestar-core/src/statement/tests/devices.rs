//! The statements of devices and owners: their forms, and that nothing about them can be altered.

use std::collections::BTreeSet;
use std::fmt::Debug;

use serde_json::json;

use super::*;
use crate::id::{AccountId, DeviceId, RunId, RunnerId};

pub(super) fn account() -> AccountId {
    AccountId::from_parts(1, [1; 10])
}

pub(super) fn device() -> DeviceId {
    DeviceId::from_parts(2, [2; 10])
}

pub(super) fn runner(n: u8) -> RunnerId {
    RunnerId::from_parts(u64::from(n), [3; 10])
}

pub(super) fn issued_now<T>(subject: T) -> Issued<T> {
    Issued {
        expires_at: None,
        issued_at: now(),
        key_id: key(1).public().key_id(),
        nonce: Nonce::from_bytes([0xcd; 16]),
        subject,
    }
}

fn challenge_response() -> ChallengeResponse {
    ChallengeResponse {
        account: account(),
        challenge: Nonce::from_bytes([7; 16]),
        device: device(),
    }
}

fn heartbeat() -> Heartbeat {
    Heartbeat {
        account: account(),
        daemon_version: DaemonVersion::new("0.9.0").unwrap(),
        device: device(),
        gateway_status: GatewayStatus::connected(),
        runners: BTreeSet::from([runner(2), runner(1)]),
    }
}

fn orders() -> Vec<OwnerOrder> {
    let (device, runner) = (device(), runner(1));
    let reason = "sold".to_owned();
    let orders = [
        Order::Approve {
            device,
            key: key(2).public(),
            log_key: key(3).public(),
        },
        Order::Bind { device, runner },
        Order::Unbind { device, runner },
        Order::Revoke {
            compromised_since: Some(now()),
            device,
            reason: reason.clone(),
        },
        Order::Pause { device, reason },
        Order::Resume { device },
        Order::RegisterTerms {
            terms: sha256(b"terms"),
        },
    ];
    let order = |order| OwnerOrder {
        account: account(),
        order,
    };
    orders.map(order).into()
}

fn key_rotation() -> KeyRotation {
    KeyRotation {
        account: account(),
        device: device(),
        new_key: key(4).public(),
        new_log_key: key(5).public(),
        old_key: key(2).public(),
    }
}

fn run_bundle() -> RunBundle {
    RunBundle {
        account: account(),
        bundle: sha256(b"bundle"),
        bytes: 1234,
        device: device(),
        root: sha256(b"root"),
        run: RunId::from_parts(5, [5; 10]),
        size: 42,
    }
}

/// Every value in a payload, by the path to it; containers too.
fn paths(value: &Value) -> Vec<String> {
    let inner = |(name, value): (String, &Value)| {
        let below = paths(value)
            .into_iter()
            .map(move |path| format!("/{name}{path}"));
        below.collect::<Vec<_>>()
    };
    let mut all = vec![String::new()];
    match value {
        Value::Object(fields) => {
            all.extend(
                fields
                    .iter()
                    .flat_map(|(name, value)| inner((name.clone(), value))),
            );
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            all.extend(items.flat_map(|(at, value)| inner((at.to_string(), value))));
        }
        _ => {}
    }
    all
}

/// The value, changed to another of the same kind where there is one.
fn altered(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.clone();
            let last = text.pop();
            text.push(if last == Some('0') { '1' } else { '0' });
            json!(text)
        }
        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
        Value::Array(_) => json!([]),
        _ => json!({}),
    }
}

/// What holds for every kind of statement, tried on this one.
pub(super) fn holds_what_holds_for_all<T: Statement + Clone + PartialEq + Debug>(subject: &T) {
    let issued = issued_now(subject.clone());
    let good = Envelope::sign(&issued, &key(1)).unwrap();
    let signer = || vec![key(9).public(), key(1).public()];
    let verify = |envelope: &Envelope| envelope.verify::<T>(&signer(), now());
    let kind = T::KIND;

    let read = Envelope::from_json(&good.to_json()).unwrap();
    assert_eq!(verify(&read).unwrap().issued(), &issued, "{kind}");
    assert_eq!(read.unverified::<T>().unwrap(), issued, "{kind}");
    let others = good.verify::<T>(&[key(2).public()], now());
    assert_eq!(others, Err(StatementError::Untrusted), "{kind}");

    for other in StatementKind::ALL
        .into_iter()
        .filter(|&other| other != kind)
    {
        let relabelled = envelope(other.payload_type(), &good.payload, &[key(1)]);
        assert!(
            matches!(verify(&relabelled), Err(StatementError::WrongKind { .. })),
            "{kind} as {other}"
        );
        let stolen = Envelope {
            payload_type: kind.payload_type().to_owned(),
            ..relabelled
        };
        let bad = Err(StatementError::BadSignature(key(1).public().key_id()));
        assert_eq!(verify(&stolen), bad, "{other} as {kind}");
    }

    let payload = serde_json::to_value(&issued).unwrap();
    for path in paths(&payload) {
        // Whatever is altered after signing shows.
        let mut changed = payload.clone();
        let value = changed.pointer_mut(&path).unwrap();
        *value = altered(value);
        assert_ne!(changed, payload, "{kind} {path}");
        let tampered = Envelope {
            payload: canonical::to_vec(&changed).unwrap(),
            ..good.clone()
        };
        let bad = Err(StatementError::BadSignature(key(1).public().key_id()));
        assert_eq!(verify(&tampered), bad, "{kind} {path}");

        // Signed anew by the right key, it still has to have the right form.
        let signed = |payload: &Value| {
            let payload = canonical::to_vec(payload).unwrap();
            verify(&envelope(kind.payload_type(), &payload, &[key(1)]))
        };
        let refused = |payload: Value| {
            let verdict = signed(&payload);
            assert!(
                matches!(verdict, Err(StatementError::WrongPayload { .. })),
                "{kind} {path}: {payload}: {verdict:?}"
            );
        };
        for value in [Value::Null, json!(-1), json!(true)] {
            let mut wrong = payload.clone();
            *wrong.pointer_mut(&path).unwrap() = value;
            refused(wrong);
        }
        let mut more = payload.clone();
        if let Some(object) = more.pointer_mut(&path).and_then(Value::as_object_mut) {
            object.insert("more".to_owned(), json!(1));
            refused(more);
        }
        if let Some((parent, name)) = path.rsplit_once('/') {
            let mut less = payload.clone();
            let optional = name == "compromised_since";
            let parent = less.pointer_mut(parent).unwrap();
            if let Some(object) = parent.as_object_mut().filter(|_| !optional) {
                object.remove(name);
                refused(less);
            }
        }
    }
}

#[test]
fn every_kind_refuses_what_is_altered_relabelled_misshapen_or_not_signed() {
    holds_what_holds_for_all(&challenge_response());
    holds_what_holds_for_all(&heartbeat());
    for order in orders() {
        holds_what_holds_for_all(&order);
    }
    holds_what_holds_for_all(&key_rotation());
    holds_what_holds_for_all(&run_bundle());
}

#[test]
fn the_forms_are_the_documented_ones() {
    fn form<T: Statement>(subject: &T) -> Value {
        serde_json::to_value(subject).unwrap()
    }
    let (acc, dev) = (account(), device());
    assert_eq!(
        form(&challenge_response()),
        json!({"account": acc, "challenge": "07".repeat(16), "device": dev})
    );
    assert_eq!(
        form(&heartbeat()),
        json!({"account": acc, "daemon_version": "0.9.0", "device": dev,
            "gateway_status": "connected", "runners": [runner(1), runner(2)]})
    );
    let expected = [
        json!({"kind": "approve", "device": dev, "key": key(2).public(), "log_key": key(3).public()}),
        json!({"kind": "bind", "device": dev, "runner": runner(1)}),
        json!({"kind": "unbind", "device": dev, "runner": runner(1)}),
        json!({"kind": "revoke", "compromised_since": now(), "device": dev, "reason": "sold"}),
        json!({"kind": "pause", "device": dev, "reason": "sold"}),
        json!({"kind": "resume", "device": dev}),
        json!({"kind": "register_terms", "terms": sha256(b"terms")}),
    ];
    for (order, expected) in orders().iter().zip(expected) {
        assert_eq!(expected["kind"], order.order.name());
        let device = expected.get("device").map(|_| dev);
        assert_eq!(order.order.device(), device);
        assert_eq!(form(order), json!({"account": acc, "order": expected}));
    }
    let unknown = json!({"account": acc, "order": {"kind": "promote", "device": dev}});
    assert!(serde_json::from_value::<OwnerOrder>(unknown).is_err());
}

#[test]
fn runners_are_listed_in_order_and_once() {
    let verify = |runners: Value| {
        let mut payload = serde_json::to_value(issued_now(heartbeat())).unwrap();
        payload["subject"]["runners"] = runners;
        let payload = canonical::to_vec(&payload).unwrap();
        let kind = StatementKind::Heartbeat.payload_type();
        envelope(kind, &payload, &[key(1)]).verify::<Heartbeat>(&trusted(), now())
    };
    assert!(verify(json!([])).is_ok());
    assert!(verify(json!([runner(1), runner(2)])).is_ok());
    for wrong in [
        json!([runner(2), runner(1)]),
        json!([runner(1), runner(1)]),
        json!([device()]),
    ] {
        let verdict = verify(wrong);
        assert!(matches!(verdict, Err(StatementError::WrongPayload { .. })));
    }
}

#[test]
fn a_gateway_status_is_one_short_line() {
    for good in [
        "",
        "connected",
        "error: dns",
        &"é".repeat(32),
        "`$(x)' OR 1=1",
    ] {
        let status = GatewayStatus::new(good).unwrap();
        assert_eq!(status.as_str(), good);
        assert_eq!(status.to_string(), good);
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json, json!(good));
        assert_eq!(
            serde_json::from_value::<GatewayStatus>(json).unwrap(),
            status
        );
    }
    let long = "é".repeat(33);
    assert!(matches!(
        GatewayStatus::new(long.as_str()),
        Err(LineError::TooLong {
            length: 33,
            most: 32,
            ..
        })
    ));
    for control in ["a\nb", "\u{1b}[31m", "a\0", "\u{7f}", "\u{85}", "tab\t"] {
        let refused = control.parse::<GatewayStatus>().unwrap_err();
        assert!(matches!(refused, LineError::Control { .. }), "{control:?}");
        assert!(refused.to_string().is_ascii());
        assert!(serde_json::from_value::<GatewayStatus>(json!(control)).is_err());
    }
    assert_eq!(GatewayStatus::default().as_str(), "disconnected");
    assert_eq!(GatewayStatus::connected().as_str(), "connected");
    assert_eq!(GatewayStatus::degraded().as_str(), "degraded");
    assert_eq!(GatewayStatus::error("dns").as_str(), "error: dns");
    let cut = GatewayStatus::error(&"a\n".repeat(100));
    assert_eq!(cut.as_str(), "error: a?a?a?a?a?a?a?a?a?a?a?a?a");
    assert_eq!(cut.as_str().chars().count(), GatewayStatus::MAX_CHARS);
    assert!(DaemonVersion::new("0.9.0+abc").is_ok());
    assert!(DaemonVersion::new("x".repeat(65)).is_err());
}

#[test]
fn a_device_speaks_of_this_moment_give_or_take_the_window() {
    let window = Duration::from_secs(300);
    let signed = Envelope::sign(&issued_now(heartbeat()), &key(1)).unwrap();
    let at = |micros: i64| {
        let now = Timestamp::from_unix_micros(now().unix_micros() + micros).unwrap();
        let undated = signed.verify_undated::<Heartbeat>(&trusted()).unwrap();
        undated.within(now, window).map(|_| ())
    };
    let edge = 300_000_000;
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(edge), Ok(()));
    assert_eq!(at(edge + 1), Err(StatementError::TooOld(now())));
    assert_eq!(at(-edge), Ok(()));
    assert_eq!(at(-edge - 1), Err(StatementError::NotYetIssued(now())));

    let mut short = issued_now(heartbeat());
    short.expires_at = now().checked_add(Duration::from_secs(10));
    let signed = Envelope::sign(&short, &key(1)).unwrap();
    let undated = signed.verify_undated::<Heartbeat>(&trusted()).unwrap();
    let end = short.expires_at.unwrap();
    assert_eq!(
        undated.within(end, window),
        Err(StatementError::Expired(end))
    );
}
