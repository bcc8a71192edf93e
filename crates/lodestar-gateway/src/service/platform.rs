//! What whoever runs the service does: no token opens this.

use lodestar_core::device::{DeviceActor, DeviceEvent};
use lodestar_core::event::EventType;
use lodestar_core::id::{AccountId, BattleId, DeviceId};
use serde_json::json;

use super::desk::new_id;
use super::devices::not_gone;
use super::ladder::{Because, step};
use super::{Service, check_reason, registry};
use crate::code::{Code, Refusal};
use crate::store::accounts::{self, Account};
use crate::store::battles::{self, Battle, Participation};
use crate::store::tokens::TokenKind;
use crate::store::{agents, devices};
use crate::wire;

impl Service {
    /// Opens an account.
    pub async fn open_account(
        &self,
        asked: wire::OpenAccount,
    ) -> Result<wire::AccountOpened, Refusal> {
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            let account = Account {
                id: new_id!(AccountId, desk.now),
                name: asked.name.to_string(),
                owner_key: asked.owner_key,
                created_at: desk.now,
            };
            if !accounts::add(desk.sql, &account)? {
                return Err(Code::AccountNameTaken.into());
            }
            let payload = json!({
                "account": account.id,
                "name": account.name,
                "owner_key": account.owner_key.key_id(),
            });
            desk.record(EventType::GATEWAY_ACCOUNT_OPENED, &payload)?;
            let made = registry::make_token(desk, account.id, TokenKind::Owner, None)?;
            Ok(wire::AccountOpened {
                account: account.id,
                token: made.token,
            })
        })
        .await
    }

    /// Makes another owner's token, for an owner who lost theirs.
    pub async fn reissue(&self, account: AccountId) -> Result<wire::TokenMade, Refusal> {
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            accounts::get(desk.sql, account)?.ok_or(Code::AccountUnknown)?;
            registry::make_token(desk, account, TokenKind::Owner, None)
        })
        .await
    }

    /// Blocks a device, for good.
    pub async fn block(
        &self,
        id: DeviceId,
        asked: wire::Because,
    ) -> Result<wire::Levelled, Refusal> {
        check_reason(&asked.reason, Code::InvalidBody)?;
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            let found = devices::get(desk.sql, id)?;
            let mut device = found.ok_or(Code::DeviceUnknown)?;
            let because = Because {
                actor: DeviceActor::Platform,
                cause: &asked.reason,
                order: None,
                facts: json!({"reason": asked.reason}),
            };
            step(desk, &mut device, DeviceEvent::Block, because)?;
            Ok(wire::Levelled {
                level: device.level,
            })
        })
        .await
    }

    /// Stops one device's signing, or lets it go on.
    pub async fn pause(
        &self,
        id: DeviceId,
        asked: wire::SetPause,
    ) -> Result<wire::Directives, Refusal> {
        check_reason(&asked.reason, Code::InvalidBody)?;
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            let found = devices::get(desk.sql, id)?;
            let device = found.ok_or(Code::DeviceUnknown)?;
            not_gone(&device)?;
            devices::set_paused(desk.sql, id, asked.on)?;
            let kind = match asked.on {
                true => EventType::DEVICE_PAUSED,
                false => EventType::DEVICE_RESUMED,
            };
            let payload = json!({
                "account": device.account,
                "actor": "platform",
                "device": id,
                "reason": asked.reason,
            });
            desk.record(kind, &payload)?;
            Ok(wire::Directives {
                kill_switch: desk.kill_switch()?,
                paused: asked.on,
            })
        })
        .await
    }

    /// Stops all signing, or lets it go on.
    pub async fn set_kill_switch(
        &self,
        asked: wire::SetKillSwitch,
    ) -> Result<wire::KillSwitch, Refusal> {
        check_reason(&asked.reason, Code::InvalidBody)?;
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            desk.set_kill_switch(asked.on, &asked.reason)?;
            let kind = match asked.on {
                true => EventType::GATEWAY_KILL_SWITCH_SET,
                false => EventType::GATEWAY_KILL_SWITCH_LIFTED,
            };
            desk.record(kind, &json!({"reason": asked.reason}))?;
            Ok(wire::KillSwitch {
                on: asked.on,
                since: Some(desk.now),
                reason: asked.reason,
            })
        })
        .await
    }

    /// How the kill switch stands.
    pub async fn kill_switch(&self) -> Result<wire::KillSwitch, Refusal> {
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            let control = crate::store::control::get(desk.sql)?;
            Ok(wire::KillSwitch {
                on: control.kill_switch,
                since: control.since,
                reason: control.reason,
            })
        })
        .await
    }

    /// Holds a contest.
    pub async fn hold_battle(&self, asked: wire::HoldBattle) -> Result<wire::BattleHeld, Refusal> {
        self.ask(move |desk| {
            desk.sql.act_as_server()?;
            let battle = Battle {
                id: new_id!(BattleId, desk.now),
                name: asked.name.to_string(),
                created_at: desk.now,
            };
            if !battles::add(desk.sql, &battle)? {
                return Err(Code::NameTaken.into());
            }
            let payload = json!({"battle": battle.id, "name": battle.name});
            desk.record(EventType::SUBMISSION_BATTLE_OPENED, &payload)?;
            for one in &asked.participants {
                let agent = agents::get(desk.sql, one.agent)?;
                agent
                    .filter(|agent| agent.account == one.account)
                    .ok_or(Code::AgentUnknown)?;
                let part = Participation {
                    battle: battle.id,
                    account: one.account,
                    agent: one.agent,
                    at: desk.now,
                };
                if !battles::join(desk.sql, &part)? {
                    return Err(Code::AlreadyInBattle.into());
                }
                let payload = json!({
                    "battle": battle.id, "account": one.account, "agent": one.agent,
                });
                desk.record(EventType::SUBMISSION_JOINED, &payload)?;
            }
            Ok(wire::BattleHeld { battle: battle.id })
        })
        .await
    }
}
