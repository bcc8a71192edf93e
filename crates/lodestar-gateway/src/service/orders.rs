//! What an owner's key orders. A token hands it in; it is the signature that counts.

use lodestar_core::canonical;
use lodestar_core::device::{DeviceActor, DeviceEvent, DeviceLevel};
use lodestar_core::digest::Digest;
use lodestar_core::event::EventType;
use lodestar_core::id::{DeviceId, RunnerId, TermsId};
use lodestar_core::statement::{Envelope, KeyRotation, Nonce, Order, OwnerOrder};
use lodestar_core::time::Timestamp;
use lodestar_replay::terms::{Terms, TermsError};
use serde_json::{Value, json};

use super::desk::{Desk, Stop, new_id};
use super::devices::{challenge, compare, not_gone, owned, same_key};
use super::known::Identity;
use super::ladder::{Because, moved, not_moved, step};
use super::statement::refusal_of;
use super::{Service, grading};
use crate::code::{Code, Refusal};
use crate::store::bindings::{self, Binding};
use crate::store::devices::Device;
use crate::store::keys::{self, DeviceKeys};
use crate::store::orders::{self, OrderRow};
use crate::store::terms::{self, TermsRow};
use crate::store::{devices, runners};
use crate::wire;

/// What has to be known of an order while it is carried out.
struct Handed {
    caller: Identity,
    /// The order, by the digest of what was signed.
    digest: Digest,
    nonce: Nonce,
    kind: &'static str,
}

impl Handed {
    /// Keeps the order, so that it is never obeyed again.
    fn keep(&self, desk: &mut Desk<'_>) -> Result<(), Stop> {
        let kept = orders::add(
            desk.sql,
            &OrderRow {
                digest: self.digest,
                account: self.caller.account,
                kind: self.kind.to_owned(),
                nonce: self.nonce,
                received_at: desk.now,
            },
        )?;
        match kept {
            true => Ok(()),
            false => Err(Code::NonceReused.into()),
        }
    }

    fn because(&self, facts: Value) -> Because<'static> {
        Because {
            actor: DeviceActor::Owner,
            cause: "ordered by the owner",
            order: Some(self.digest),
            facts,
        }
    }
}

impl Service {
    /// Carries out what an owner ordered.
    pub async fn order(
        &self,
        caller: Identity,
        asked: wire::HandInOrder,
    ) -> Result<wire::Ordered, Refusal> {
        let owner = self.owner_key(&caller).await?;
        let (now, window) = (self.now(), self.settings().issued_at_window);
        let order = asked.envelope.verify_undated::<OwnerOrder>(&[owner]);
        let order = order.and_then(|order| order.within(now, window));
        let order = order.map_err(|problem| refusal_of(problem, None))?;
        compare(&[("account", order.subject().account == caller.account)])?;
        let handed = Handed {
            caller,
            digest: asked.envelope.payload_digest(),
            nonce: order.issued().nonce,
            kind: order.subject().order.name(),
        };
        match (order.subject().order.clone(), asked.terms) {
            (Order::RegisterTerms { terms }, Some(document)) => {
                self.register_terms(handed, terms, document).await
            }
            (Order::RegisterTerms { .. }, None) => Err(Code::TermsMissing.into()),
            (_, Some(_)) => {
                let why = "`terms` come with orders that register them, and only with those";
                Err(Refusal::saying(Code::InvalidBody, why).at("terms"))
            }
            (order, None) => self.dispose(handed, order).await,
        }
    }

    /// Carries out an order about a device.
    async fn dispose(&self, handed: Handed, order: Order) -> Result<wire::Ordered, Refusal> {
        if let Order::Revoke { reason, .. } | Order::Pause { reason, .. } = &order {
            super::check_reason(reason, Code::StatementMismatch)?;
        }
        self.ask(move |desk| {
            desk.act_for(&handed.caller)?;
            let Some(id) = order.device() else {
                return Err(Code::Internal.into());
            };
            let mut device = owned(desk, handed.caller.account, id)?;
            let is_late = is_late_doubt(desk, &order, &device)?;
            if !is_late {
                not_gone(&device)?;
            }
            handed.keep(desk)?;
            let mut done = wire::Ordered {
                order: handed.digest,
                level: None,
                terms: None,
                evaluated: 0,
            };
            match order {
                Order::Approve { key, log_key, .. } => {
                    compare(&[
                        ("key", device.key == Some(key)),
                        ("log_key", device.log_key == Some(log_key)),
                    ])?;
                    let facts = json!({
                        "statement": handed.digest,
                        "key": key.key_id(),
                        "log_key": log_key.key_id(),
                    });
                    let because = handed.because(facts);
                    step(desk, &mut device, DeviceEvent::Approve, because)?;
                }
                Order::Bind { runner, .. } => {
                    bind(desk, &handed, id, runner)?;
                }
                Order::Unbind { runner, .. } => {
                    unbind(desk, &handed, id, runner)?;
                }
                Order::Revoke {
                    compromised_since,
                    reason,
                    ..
                } => {
                    let facts = json!({
                        "statement": handed.digest,
                        "compromised_since": compromised_since,
                        "reason": reason,
                    });
                    if is_late {
                        let payload = json!({
                            "account": handed.caller.account,
                            "device": id,
                            "statement": handed.digest,
                            "compromised_since": compromised_since,
                            "reason": reason,
                        });
                        desk.record(EventType::DEVICE_REVOKED, &payload)?;
                    } else {
                        let because = handed.because(facts);
                        step(desk, &mut device, DeviceEvent::Revoke, because)?;
                    }
                    if let Some(since) = compromised_since {
                        devices::set_compromised_since(desk.sql, id, since)?;
                        device.compromised_since = Some(since);
                        done.evaluated = grading::doubt(desk, &device, since)?;
                    }
                }
                Order::Pause { reason, .. } => pause(desk, &handed, id, Some(reason))?,
                Order::Resume { .. } => pause(desk, &handed, id, None)?,
                Order::RegisterTerms { .. } => return Err(Code::Internal.into()),
            }
            done.level = Some(device.level);
            Ok(done)
        })
        .await
    }

    /// Registers terms that an order names by their digest. They never change, so once is as good as twice.
    async fn register_terms(
        &self,
        handed: Handed,
        digest: Digest,
        document: Value,
    ) -> Result<wire::Ordered, Refusal> {
        let now = self.now();
        // Policies are parsed and checked against their schema: that takes a while.
        let read = tokio::task::spawn_blocking(move || read_terms(&document, now));
        let read = read.await.map_err(|_| Refusal::of(Code::Internal))?;
        let (found, policy, document) = read?;
        compare(&[("terms", found == digest)])?;
        let account = handed.caller.account;
        let done = self
            .ask(move |desk| {
                desk.act_for(&handed.caller)?;
                let there = terms::by_digest(desk.sql, account, digest)?;
                let id = match there {
                    Some(there) => there.id,
                    None => add_terms(desk, &handed, digest, policy, document)?,
                };
                Ok(wire::Ordered {
                    order: handed.digest,
                    level: None,
                    terms: Some(id),
                    evaluated: 0,
                })
            })
            .await?;
        if let Some(id) = done.terms {
            self.known.remember_policy(account, id, policy);
        }
        Ok(done)
    }

    /// Replaces a device's keys, by the word of owner, old key and new key together.
    pub async fn rotate(
        &self,
        caller: Identity,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Standing, Refusal> {
        let owner = self.owner_key(&caller).await?;
        let old = self.device_key(&caller, id).await?;
        let (now, window) = (self.now(), self.settings().issued_at_window);
        let said = KeyRotation::verify_undated(envelope, &owner, &old);
        let said = said.and_then(|said| said.within(now, window));
        let said = said.map_err(|problem| refusal_of(problem, None))?;
        let subject = said.subject().clone();
        compare(&[
            ("account", subject.account == caller.account),
            ("device", subject.device == id),
            ("old_key", subject.old_key == old),
        ])?;
        if [subject.new_key, owner].contains(&subject.new_log_key) {
            return Err(Refusal::of(Code::KeyInUse).at("new_log_key"));
        }
        let handed = Handed {
            caller,
            digest: envelope.payload_digest(),
            nonce: said.issued().nonce,
            kind: "rotate_key",
        };
        self.ask(move |desk| {
            let account = handed.caller.account;
            desk.act_for(&handed.caller)?;
            let mut device = owned(desk, account, id)?;
            not_gone(&device)?;
            same_key(&device, old)?;
            let before = keys::history(desk.sql, id)?;
            if before.iter().any(|keys| keys.key == subject.new_key) {
                return Err(Refusal::of(Code::KeyInUse).at("new_key").into());
            }
            handed.keep(desk)?;
            let event = DeviceEvent::RotateKey;
            let after = device.standing().apply(event, DeviceActor::Owner, desk.now);
            let after = after.map_err(not_moved)?;
            // The store moves the device with its keys: the two are one.
            desk.known.forget_keys(id);
            let new = DeviceKeys {
                device: id,
                key: subject.new_key,
                log_key: subject.new_log_key,
                at: desk.now,
                order: Some(handed.digest),
            };
            keys::set_key(desk.sql, &new)?;
            let facts = json!({
                "statement": handed.digest,
                "old_key": old.key_id(),
                "new_key": subject.new_key.key_id(),
                "new_log_key": subject.new_log_key.key_id(),
            });
            moved(desk, &mut device, event, after, handed.because(facts))?;
            let challenge = match device.challenge_passed_at {
                Some(_) => None,
                None => Some(challenge(desk, account, id)?),
            };
            Ok(wire::Standing {
                level: device.level,
                challenge,
            })
        })
        .await
    }
}

fn bind(
    desk: &mut Desk<'_>,
    handed: &Handed,
    device: DeviceId,
    runner: RunnerId,
) -> Result<(), Stop> {
    let account = handed.caller.account;
    let found = runners::get(desk.sql, runner)?;
    found
        .filter(|runner| runner.account == account)
        .ok_or(Code::RunnerUnknown)?;
    let binding = Binding {
        account,
        device,
        runner,
        bound_at: desk.now,
        unbound_at: None,
        order: handed.digest,
    };
    if !bindings::bind(desk.sql, &binding)? {
        return Err(Code::AlreadyBound.into());
    }
    let payload = json!({
        "account": account, "device": device, "runner": runner, "statement": handed.digest,
    });
    Ok(desk.record(EventType::DEVICE_BOUND, &payload)?)
}

/// Whether an order says of a device that was revoked before since when it was somebody else's, which can be said
/// once. Nobody knows that of a time to come.
fn is_late_doubt(desk: &Desk<'_>, order: &Order, device: &Device) -> Result<bool, Refusal> {
    let Order::Revoke {
        compromised_since: Some(since),
        ..
    } = order
    else {
        return Ok(false);
    };
    if *since > desk.now {
        let why = "nobody knows what a device is compromised by in time to come";
        return Err(Refusal::saying(Code::StatementMismatch, why).at("compromised_since"));
    }
    Ok(device.level == DeviceLevel::Revoked && device.compromised_since.is_none())
}

fn unbind(
    desk: &mut Desk<'_>,
    handed: &Handed,
    device: DeviceId,
    runner: RunnerId,
) -> Result<(), Stop> {
    if !bindings::unbind(desk.sql, device, runner, desk.now)? {
        return Err(Code::NotBound.into());
    }
    let payload = json!({
        "account": handed.caller.account,
        "device": device,
        "runner": runner,
        "statement": handed.digest,
    });
    Ok(desk.record(EventType::DEVICE_UNBOUND, &payload)?)
}

/// Pauses a device for a reason, or without one lets it go on.
fn pause(
    desk: &mut Desk<'_>,
    handed: &Handed,
    device: DeviceId,
    reason: Option<String>,
) -> Result<(), Stop> {
    devices::set_paused(desk.sql, device, reason.is_some())?;
    let kind = match reason {
        Some(_) => EventType::DEVICE_PAUSED,
        None => EventType::DEVICE_RESUMED,
    };
    let mut payload = json!({
        "account": handed.caller.account,
        "device": device,
        "statement": handed.digest,
    });
    if let Some(reason) = reason {
        payload["reason"] = reason.into();
    }
    Ok(desk.record(kind, &payload)?)
}

fn add_terms(
    desk: &mut Desk<'_>,
    handed: &Handed,
    digest: Digest,
    policy: Digest,
    document: String,
) -> Result<TermsId, Stop> {
    let account = handed.caller.account;
    handed.keep(desk)?;
    let row = TermsRow {
        id: new_id!(TermsId, desk.now),
        account,
        digest,
        document,
        registered_at: desk.now,
        order: handed.digest,
    };
    if !terms::add(desk.sql, &row)? {
        return Err(Code::Internal.into());
    }
    let payload = json!({
        "account": account,
        "terms": row.id,
        "digest": digest,
        "policy": policy,
        "statement": handed.digest,
    });
    desk.record(EventType::RUN_TERMS_REGISTERED, &payload)?;
    Ok(row.id)
}

/// Terms by their digest, their policy by its digest, and the document.
fn read_terms(document: &Value, now: Timestamp) -> Result<(Digest, Digest, String), Refusal> {
    let malformed = |why: String| Refusal::saying(Code::TermsMalformed, why);
    let bytes = canonical::to_vec(document).map_err(|problem| malformed(problem.to_string()))?;
    let terms = Terms::parse(&bytes).map_err(not_terms)?;
    let policy = terms.check(now).map_err(not_terms)?;
    let digest = terms
        .digest()
        .map_err(|problem| malformed(problem.to_string()))?;
    let document = String::from_utf8(bytes).map_err(|problem| malformed(problem.to_string()))?;
    Ok((digest, policy.digest(), document))
}

fn not_terms(problem: TermsError) -> Refusal {
    let code = match &problem {
        TermsError::Unsigned | TermsError::Policy(_) => Code::PolicyUnsigned,
        _ => Code::TermsMalformed,
    };
    Refusal::saying(code, problem.to_string())
}
