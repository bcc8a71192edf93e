//! How a device comes to be known, and that it is there: challenges and heartbeats.

use std::time::Duration;

use lodestar_core::device::DeviceLevel;
use lodestar_core::statement::{ChallengeResponse, Envelope};
use lodestar_core::time::Timestamp;
use lodestar_gateway::code::Code;
use serde_json::Value;

use super::{play, refused};
use crate::probe::{Outcome, Probe, hold, probe, settle};
use crate::stage::Stage;
use crate::world::fleet::{Account, Machine, fresh_key, fresh_nonce, signed};

pub(super) fn probes() -> Vec<Probe> {
    vec![
        probe! {
            name: "forged-challenge-stays-pending",
            pack: CORE,
            section: Devices,
            scenario: "Somebody has the token of a machine that waits for approval, and not its key. They answer its \
                       challenge with a key of their own, with another machine's answer, with an answer whose \
                       signature belongs to another statement; and whoever has the key answers a challenge that was \
                       never asked, in another account's name, and too late. After each, the owner approves the \
                       machine in good faith.",
            asserts: "No answer counts, no approval goes through, and the machine stays pending; then the genuine answer \
                      is taken, and the approval after it.",
            does_not_claim: "That whoever answers is the machine that the owner means: the key may have been somebody \
                             else's from the beginning, unless the owner compared it.",
            class: "ASI03 AML.T0073",
            defence: ChallengeSignatures,
            deadline_s: 60,
            run: forged_challenge,
        },
        probe! {
            name: "heartbeat-replay-refused",
            pack: CORE,
            section: Devices,
            scenario: "Heartbeats of a machine are recorded on their way. The machine is switched off, and somebody with \
                       its token sends them again: at once, minutes later, after the nonces of its time were forgotten, \
                       and in another machine's name.",
            asserts: "Every repetition is refused and the machine is heard of no later than it was; a new heartbeat is \
                      taken, and another machine may use the same nonce.",
            does_not_claim: "That a heartbeat shows more than that somebody has the key: whoever has it can beat for a \
                             machine that is switched off.",
            class: "ASI03 AML.T0073",
            defence: NoncesOnce,
            deadline_s: 60,
            run: replayed_heartbeat,
        },
    ]
}

fn forged_challenge(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let account = fleet.account("owner").await?;
        let stranger = fleet.account("stranger").await?;
        let machine = account.enrolled("machine").await?;
        let other = account.enrolled("other").await?;
        let (now, key) = (machine.now(), fresh_key()?);
        let genuine = machine.response();
        let with = |change: fn(&mut ChallengeResponse, &Machine, &Account)| {
            let mut response = machine.response();
            change(&mut response, &other, &stranger);
            machine.says(response)
        };
        let late = Timestamp::from_unix_micros(now.unix_micros() - 310_000_000)?;
        let forged = [
            (
                "an answer with another key",
                Code::SignatureInvalid,
                signed(genuine.clone(), &key, now, fresh_nonce()?)?,
            ),
            (
                "another machine's answer",
                Code::SignatureInvalid,
                other.says(other.response())?,
            ),
            (
                "an answer with the signature of another statement",
                Code::SignatureInvalid,
                transplanted(
                    &machine.says(genuine.clone())?,
                    &machine.says(other.response())?,
                )?,
            ),
            (
                "an answer to the challenge of another machine",
                Code::ChallengeWrong,
                with(|response, other, _| response.challenge = other.challenge)?,
            ),
            (
                "an answer in the name of another account",
                Code::StatementMismatch,
                with(|response, _, stranger| response.account = stranger.id)?,
            ),
            (
                "an answer that tells of another machine",
                Code::StatementMismatch,
                with(|response, other, _| response.device = other.id)?,
            ),
            (
                "an answer of five minutes ago",
                Code::ClockSkew,
                machine.says_at(genuine.clone(), late, fresh_nonce()?)?,
            ),
        ];
        for (what, code, envelope) in forged {
            let answered = machine.client.answer_challenge(machine.id, &envelope).await;
            let approved = account.order(Account::approval(&machine)).await;
            let shown = account.device(machine.id).await?;
            hold(shown.level == DeviceLevel::Pending, || {
                format!("after {what} the device is {}", shown.level)
            })?;
            hold(shown.challenge_passed_at.is_none(), || {
                format!("{what} passes the challenge")
            })?;
            refused(answered, code, what)?;
            refused(approved, Code::ChallengeNotPassed, "an approval")?;
        }
        let answer = machine.says(genuine)?;
        machine.client.answer_challenge(machine.id, &answer).await?;
        let again = machine.client.answer_challenge(machine.id, &answer).await;
        refused(again, Code::NonceReused, "the genuine answer, again")?;
        let approved = account.order(Account::approval(&machine)).await?;
        settle(approved.level == Some(DeviceLevel::Approved), || {
            format!("the genuine answer leads to {:?}", approved.level)
        })
    })
}

/// A statement under the signature of another, by the same key.
fn transplanted(statement: &Envelope, other: &Envelope) -> Outcome<Envelope> {
    let mut written: Value = serde_json::from_slice(&statement.to_json())?;
    let other: Value = serde_json::from_slice(&other.to_json())?;
    written["signatures"] = other["signatures"].clone();
    Ok(Envelope::from_json(&serde_json::to_vec(&written)?)?)
}

fn replayed_heartbeat(stage: &Stage) -> Outcome {
    play(stage, |fleet| async move {
        let account = fleet.account("owner").await?;
        let machine = account.approved("machine").await?;
        let other = account.approved("other").await?;
        let nonce = fresh_nonce()?;
        let beat = machine.says_at(machine.heartbeat(&[])?, machine.now(), nonce)?;
        machine.client.heartbeat(machine.id, &beat).await?;
        let heard = account.device(machine.id).await?.last_heartbeat;
        settle(heard.is_some(), || "the first heartbeat is not noted")?;
        // At once, within its time, past it, and when its nonce is long forgotten.
        let waits = [
            (0, Code::NonceReused),
            (200, Code::NonceReused),
            (150, Code::ClockSkew),
            (700, Code::ClockSkew),
        ];
        for (seconds, code) in waits {
            account.wait(Duration::from_secs(seconds));
            // Others go on meanwhile, and what is old is forgotten.
            other.beat(&[]).await?;
            let again = machine.client.heartbeat(machine.id, &beat).await;
            let shown = account.device(machine.id).await?;
            hold(shown.last_heartbeat == heard, || {
                format!("a repeated heartbeat counts: {:?}", shown.last_heartbeat)
            })?;
            refused(again, code, "a repeated heartbeat")?;
        }
        let elsewhere = machine.client.heartbeat(other.id, &beat).await;
        refused(
            elsewhere,
            Code::OtherDevice,
            "a heartbeat for another device",
        )?;
        let others = other.client.heartbeat(other.id, &beat).await;
        refused(
            others,
            Code::SignatureInvalid,
            "a heartbeat of another device",
        )?;
        spent(&machine, &other).await
    })
}

/// A nonce is spent by the device that used it, whatever it signs with it; and by nobody else.
async fn spent(machine: &Machine, other: &Machine) -> Outcome {
    let nonce = fresh_nonce()?;
    let beat = |machine: &Machine| machine.says_at(machine.heartbeat(&[])?, machine.now(), nonce);
    machine
        .client
        .heartbeat(machine.id, &beat(machine)?)
        .await?;
    let again = machine.client.heartbeat(machine.id, &beat(machine)?).await;
    refused(
        again,
        Code::NonceReused,
        "another heartbeat with the same nonce",
    )?;
    other.client.heartbeat(other.id, &beat(other)?).await?;
    Ok(())
}
