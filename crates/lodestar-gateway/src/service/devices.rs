//! Devices: how they come to be known, and what is heard of them. What follows for their level is in `ladder`.

use lodestar_core::defence::Defence;
use lodestar_core::device::{DeviceActor, DeviceLevel, StrikeKind};
use lodestar_core::event::EventType;
use lodestar_core::id::{AccountId, DeviceId};
use lodestar_core::key::PublicKey;
use lodestar_core::statement::{ChallengeResponse, Envelope, Heartbeat, Issued, Nonce, Verified};
use serde_json::json;

use super::desk::{Desk, Stop, new_id, random};
use super::known::{Identity, Keys};
use super::ladder::settle;
use super::statement::refusal_of;
use super::{Service, registry};
use crate::code::{Code, Refusal};
use crate::store::challenges::{self, Challenge};
use crate::store::devices::{self, Device, HeartbeatSeen, NewDevice};
use crate::store::keys::{self, DeviceKeys};
use crate::store::strikes::{self, Strike};
use crate::store::tokens::TokenKind;
use crate::store::{StoreError, accounts, bindings, nonces, runners, tokens};
use crate::wire;

/// Runners that one heartbeat may tell of.
const RUNNERS: usize = 64;

/// A device of whoever asks.
pub(super) fn owned(desk: &mut Desk<'_>, account: AccountId, id: DeviceId) -> Result<Device, Stop> {
    let found = devices::get(desk.sql, id)?;
    let device = found.filter(|device| device.account == account);
    device.ok_or_else(|| Code::DeviceUnknown.into())
}

/// Whether a device may still do anything here.
pub(super) fn not_gone(device: &Device) -> Result<(), Refusal> {
    match device.level {
        DeviceLevel::Revoked => Err(Code::DeviceRevoked.into()),
        DeviceLevel::Blocked => Err(Code::DeviceBlocked.into()),
        _ => Ok(()),
    }
}

/// Whether a device stands so that runs and attestations are taken of it.
fn stands_well(device: &Device) -> Result<(), Refusal> {
    not_gone(device)?;
    match device.level {
        level if level.may_attest() => Ok(()),
        DeviceLevel::Unhealthy => Err(Code::DeviceUnhealthy.into()),
        _ => Err(Code::DeviceNotApproved.into()),
    }
}

/// Whether runs and attestations are taken of a device now.
pub(super) fn may_attest(desk: &mut Desk<'_>, device: &Device) -> Result<(), Stop> {
    if !desk.lacks(Defence::AttestingLevels) {
        stands_well(device)?;
    }
    if desk.kill_switch()? {
        return Err(Code::KillSwitch.into());
    }
    match device.paused {
        true => Err(Code::DevicePaused.into()),
        false => Ok(()),
    }
}

/// Notes a device's nonce, once.
pub(super) fn spend(desk: &mut Desk<'_>, device: DeviceId, nonce: Nonce) -> Result<(), Stop> {
    let is_new = nonces::spend(desk.sql, device, nonce, desk.now)?;
    if !is_new && !desk.lacks(Defence::NoncesOnce) {
        return Err(Code::NonceReused.into());
    }
    desk.memory.nonces += 1;
    Ok(())
}

/// Opens a challenge for a device.
pub(super) fn challenge(
    desk: &mut Desk<'_>,
    account: AccountId,
    device: DeviceId,
) -> Result<wire::Challenge, Stop> {
    let nonce = Nonce::from_bytes(random()?);
    let expires_at = desk.settings.challenge_expires(desk.now);
    let opened = challenges::open(
        desk.sql,
        &Challenge {
            device,
            nonce,
            issued_at: desk.now,
            expires_at,
            passed_at: None,
        },
    )?;
    if !opened {
        return Err(Code::Internal.into());
    }
    // The nonce itself is no secret of the log's: whoever answers has to have the key.
    let payload = json!({"account": account, "device": device, "expires_at": expires_at});
    desk.record(EventType::DEVICE_CHALLENGED, &payload)?;
    Ok(wire::Challenge { nonce, expires_at })
}

impl Service {
    /// Makes a device known. Whoever has a token to enrol spends it.
    pub async fn register_device(
        &self,
        caller: Identity,
        asked: wire::RegisterDevice,
    ) -> Result<wire::DeviceRegistered, Refusal> {
        let pair = match (asked.key, asked.log_key) {
            (Some(key), Some(log_key)) => Some((key, log_key)),
            (None, None) => None,
            _ => {
                let why = "`key` and `log_key` come together";
                return Err(Refusal::saying(Code::InvalidBody, why));
            }
        };
        let name = asked.name.to_string();
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let device = new_id!(DeviceId, desk.now);
            let added = devices::add(
                desk.sql,
                &NewDevice {
                    id: device,
                    account: caller.account,
                    name: name.clone(),
                    registered_at: desk.now,
                },
            )?;
            if !added {
                return Err(Code::DeviceNameTaken.into());
            }
            if caller.kind == TokenKind::Enrol {
                desk.known.forget_token(caller.hash);
                if !tokens::spend(desk.sql, caller.token, desk.now)? {
                    return Err(Code::TokenInvalid.into());
                }
            }
            let payload = json!({
                "account": caller.account,
                "device": device,
                "name": name,
                "from": null,
                "to": DeviceLevel::Pending,
                "actor": DeviceActor::Owner,
                "key": pair.map(|(key, _)| key.key_id()),
                "log_key": pair.map(|(_, key)| key.key_id()),
                "token": caller.token,
            });
            desk.record(EventType::DEVICE_REGISTERED, &payload)?;
            let challenge = match pair {
                None => None,
                Some((key, log_key)) => {
                    set_keys(desk, caller.account, device, key, log_key)?;
                    Some(challenge(desk, caller.account, device)?)
                }
            };
            let (kind, whose) = (TokenKind::Device, Some(device));
            let made = registry::make_token(desk, caller.account, kind, whose)?;
            Ok(wire::DeviceRegistered {
                device,
                account: caller.account,
                token: made.token,
                challenge,
            })
        })
        .await
    }

    /// Gives a device its first keys.
    pub async fn set_keys(
        &self,
        caller: Identity,
        id: DeviceId,
        asked: wire::SetKeys,
    ) -> Result<wire::Challenged, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let device = owned(desk, caller.account, id)?;
            not_gone(&device)?;
            if device.key.is_some() {
                return Err(Code::DeviceHasKey.into());
            }
            if device.level != DeviceLevel::Pending {
                return Err(Code::DeviceNotPending.into());
            }
            set_keys(desk, caller.account, id, asked.key, asked.log_key)?;
            let payload = json!({
                "account": caller.account,
                "device": id,
                "key": asked.key.key_id(),
                "log_key": asked.log_key.key_id(),
            });
            desk.record(EventType::DEVICE_KEYED, &payload)?;
            let challenge = challenge(desk, caller.account, id)?;
            Ok(wire::Challenged { challenge })
        })
        .await
    }

    /// Opens a new challenge, in the place of the one before.
    pub async fn challenge(
        &self,
        caller: Identity,
        id: DeviceId,
    ) -> Result<wire::Challenged, Refusal> {
        is_own(&caller, id)?;
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let device = owned(desk, caller.account, id)?;
            not_gone(&device)?;
            if device.key.is_none() {
                return Err(Code::DeviceWithoutKey.into());
            }
            // Behind a rotation a device that is offline or unhealthy has one open too.
            let waits = device.challenge_passed_at.is_none();
            if device.level != DeviceLevel::Pending && !waits {
                return Err(Code::DeviceNotPending.into());
            }
            let challenge = challenge(desk, caller.account, id)?;
            Ok(wire::Challenged { challenge })
        })
        .await
    }

    /// Takes a device's answer to its challenge.
    pub async fn answer_challenge(
        &self,
        caller: Identity,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Standing, Refusal> {
        is_own(&caller, id)?;
        let (answer, key) = self.answered(&caller, id, envelope).await?;
        let subject = &answer.subject;
        let same = [
            ("account", subject.account == caller.account),
            ("device", subject.device == id),
        ];
        compare(&same)?;
        let digest = envelope.digest();
        let (said, nonce) = (subject.challenge, answer.nonce);
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let mut device = owned(desk, caller.account, id)?;
            not_gone(&device)?;
            same_key(&device, key)?;
            spend(desk, id, nonce)?;
            let open = challenges::current(desk.sql, id)?;
            let open = open.filter(|open| open.passed_at.is_none());
            let open = open.ok_or(Code::NoChallenge)?;
            if open.nonce != said {
                return Err(Code::ChallengeWrong.into());
            }
            if !challenges::pass(desk.sql, id, said, desk.now)? {
                return Err(Code::ChallengeExpired.into());
            }
            device.challenge_passed_at = Some(desk.now);
            let payload = json!({
                "account": caller.account,
                "device": id,
                "statement": digest,
                "key": key.key_id(),
            });
            desk.record(EventType::DEVICE_CHALLENGE_PASSED, &payload)?;
            settle(desk, &mut device)?;
            Ok(wire::Standing {
                level: device.level,
                challenge: None,
            })
        })
        .await
    }

    /// A device's answer to a challenge, if its key signed it; and that key.
    async fn answered(
        &self,
        caller: &Identity,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<(Issued<ChallengeResponse>, PublicKey), Refusal> {
        if self.lacks(Defence::ChallengeSignatures) {
            let answer = envelope.unverified();
            let answer = answer.map_err(|problem| refusal_of(problem, None))?;
            return Ok((answer, self.device_key(caller, id).await?));
        }
        let answer: Verified<ChallengeResponse> = self.heard(caller, id, envelope).await?;
        Ok((answer.issued().clone(), *answer.key()))
    }

    /// Takes a heartbeat.
    pub async fn heartbeat(
        &self,
        caller: Identity,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<wire::Beaten, Refusal> {
        is_own(&caller, id)?;
        let beat: Verified<Heartbeat> = self.heard(&caller, id, envelope).await?;
        let subject = beat.subject();
        let same = [
            ("account", subject.account == caller.account),
            ("device", subject.device == id),
        ];
        compare(&same)?;
        if subject.runners.len() > RUNNERS {
            let why = format!("a heartbeat tells of at most {RUNNERS} runners");
            return Err(Refusal::saying(Code::StatementMismatch, why).at("runners"));
        }
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let mut device = owned(desk, caller.account, id)?;
            not_gone(&device)?;
            same_key(&device, *beat.key())?;
            spend(desk, id, beat.issued().nonce)?;
            settle(desk, &mut device)?;
            note_beat(desk, &mut device, beat.subject())?;
            settle(desk, &mut device)?;
            Ok(wire::Beaten {
                level: device.level,
                directives: directives(desk, &device)?,
            })
        })
        .await
    }

    /// What a device has to obey.
    pub async fn directives(
        &self,
        caller: Identity,
        id: DeviceId,
    ) -> Result<wire::Directives, Refusal> {
        is_own(&caller, id)?;
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let device = owned(desk, caller.account, id)?;
            not_gone(&device)?;
            Ok(directives(desk, &device)?)
        })
        .await
    }

    /// One device.
    pub async fn device(&self, caller: Identity, id: DeviceId) -> Result<wire::Device, Refusal> {
        is_own(&caller, id)?;
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let mut device = owned(desk, caller.account, id)?;
            settle(desk, &mut device)?;
            shown(desk, device)
        })
        .await
    }

    /// The account's devices.
    pub async fn devices(
        &self,
        caller: Identity,
        after: Option<DeviceId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Device>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = devices::list(desk.sql, caller.account, after, limit + 1)?;
            let mut items = Vec::with_capacity(found.len());
            for mut device in found {
                settle(desk, &mut device)?;
                items.push(shown(desk, device)?);
            }
            Ok(super::page(items, limit, |device| device.id.to_string()))
        })
        .await
    }

    /// What a device says, if it is signed by its key and said now.
    pub(super) async fn heard<T: lodestar_core::statement::Statement>(
        &self,
        caller: &Identity,
        id: DeviceId,
        envelope: &Envelope,
    ) -> Result<Verified<T>, Refusal> {
        let key = self.device_key(caller, id).await?;
        let (now, window) = (self.now(), self.settings().issued_at_window);
        let heard = envelope.verify_undated::<T>(&[key]);
        let heard = heard.and_then(|heard| heard.within(now, window));
        heard.map_err(|problem| refusal_of(problem, Some(id)))
    }

    /// The key of a device of whoever asks.
    pub(super) async fn device_key(
        &self,
        caller: &Identity,
        id: DeviceId,
    ) -> Result<PublicKey, Refusal> {
        let keys = match self.known.keys(id) {
            Some(keys) => keys,
            None => {
                let caller = caller.clone();
                self.ask(move |desk| {
                    desk.act_for(&caller)?;
                    let device = owned(desk, caller.account, id)?;
                    let keys = Keys {
                        account: device.account,
                        key: device.key,
                    };
                    desk.known.remember_keys(id, keys);
                    Ok(keys)
                })
                .await?
            }
        };
        if keys.account != caller.account {
            return Err(Code::DeviceUnknown.into());
        }
        keys.key.ok_or_else(|| Code::DeviceWithoutKey.into())
    }
}

/// A device's token speaks for that device.
pub(super) fn is_own(caller: &Identity, id: DeviceId) -> Result<(), Refusal> {
    match caller.device {
        Some(own) if own != id => Err(Code::OtherDevice.into()),
        _ => Ok(()),
    }
}

/// The first field that is not the same.
pub(super) fn compare(fields: &[(&'static str, bool)]) -> Result<(), Refusal> {
    match fields.iter().find(|(_, same)| !same) {
        Some((field, _)) => Err(Refusal::differs(field)),
        None => Ok(()),
    }
}

/// Whether a statement was verified with the key that the device has by now.
pub(super) fn same_key(device: &Device, key: PublicKey) -> Result<(), Refusal> {
    match device.key == Some(key) {
        true => Ok(()),
        false => Err(Code::SignatureInvalid.into()),
    }
}

fn set_keys(
    desk: &mut Desk<'_>,
    account: AccountId,
    device: DeviceId,
    key: PublicKey,
    log_key: PublicKey,
) -> Result<(), Stop> {
    let owner = accounts::get(desk.sql, account)?.ok_or(Code::AccountUnknown)?;
    if key == log_key || [key, log_key].contains(&owner.owner_key) {
        let why = "`key`, `log_key` and the owner's key are three: each purpose has its own";
        return Err(Refusal::saying(Code::KeyInUse, why).into());
    }
    desk.known.forget_keys(device);
    let keys = DeviceKeys {
        device,
        key,
        log_key,
        at: desk.now,
        order: None,
    };
    Ok(keys::set_key(desk.sql, &keys)?)
}

fn note_beat(desk: &mut Desk<'_>, device: &mut Device, said: &Heartbeat) -> Result<(), Stop> {
    let beat = device.standing().beat(desk.settings, desk.now);
    if beat.gap.is_some() {
        let strike = Strike {
            device: device.id,
            kind: StrikeKind::Gap,
            at: desk.now,
        };
        strikes::add(desk.sql, strike)?;
    }
    let seen = HeartbeatSeen {
        device: device.id,
        at: beat.standing.last_heartbeat.unwrap_or(desk.now),
        continuous_since: beat.standing.continuous_since,
        gateway_status: said.gateway_status.as_str(),
        daemon_version: said.daemon_version.as_str(),
    };
    devices::note_heartbeat(desk.sql, &seen)?;
    device.last_heartbeat = Some(seen.at);
    device.continuous_since = seen.continuous_since;
    for runner in &said.runners {
        // One that is not bound to this device is nobody's to vouch for.
        runners::note_heartbeat(desk.sql, device.id, *runner, desk.now)?;
    }
    Ok(())
}

fn directives(desk: &mut Desk<'_>, device: &Device) -> Result<wire::Directives, StoreError> {
    Ok(wire::Directives {
        kill_switch: desk.kill_switch()?,
        paused: device.paused,
    })
}

fn shown(desk: &mut Desk<'_>, device: Device) -> Result<wire::Device, Stop> {
    let bound = bindings::of_device(desk.sql, device.id)?;
    let active = bound.iter().filter(|binding| binding.unbound_at.is_none());
    Ok(wire::Device {
        id: device.id,
        name: super::name(&device.name)?,
        level: device.level,
        level_since: device.level_since,
        registered_at: device.registered_at,
        key: device.key,
        log_key: device.log_key,
        challenge_passed_at: device.challenge_passed_at,
        last_heartbeat: device.last_heartbeat,
        continuous_since: device.continuous_since,
        last_attested: device.last_attested,
        paused: device.paused,
        gateway_status: device.gateway_status,
        daemon_version: device.daemon_version,
        runners: active.map(|binding| binding.runner).collect(),
    })
}
