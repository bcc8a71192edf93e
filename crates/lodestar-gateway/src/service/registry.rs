//! What an account has beside devices: tokens, agents, runners, and the terms it registered.

use std::time::Duration;

use lodestar_core::event::EventType;
use lodestar_core::id::{AccountId, ContenderId, DeviceId, RunnerId, TermsId, TokenId};
use lodestar_core::key::PublicKey;
use serde_json::json;

use super::desk::{Desk, Stop, new_id, random};
use super::known::Identity;
use super::{Service, devices, name, page};
use crate::code::{Code, Refusal};
use crate::store::agents::{self, Agent};
use crate::store::runners::{self, Runner};
use crate::store::tokens::{self, Token, TokenKind};
use crate::store::{accounts, terms};
use crate::token::TokenText;
use crate::wire;

/// How long a token to enrol is good for: as long as somebody sits before both machines.
const ENROL: Duration = Duration::from_secs(60 * 60);

/// Makes a token; its text is in the answer and nowhere else.
pub(super) fn make_token(
    desk: &mut Desk<'_>,
    account: AccountId,
    kind: TokenKind,
    device: Option<DeviceId>,
) -> Result<wire::TokenMade, Stop> {
    let text = TokenText::from_bytes(random()?);
    let id = new_id!(TokenId, desk.now);
    let expires_at = match kind {
        TokenKind::Enrol => desk.now.checked_add(ENROL),
        TokenKind::Owner | TokenKind::Device => None,
    };
    let token = Token {
        id,
        account,
        kind,
        device,
        hash: text.hash(),
        created_at: desk.now,
        expires_at,
        used_at: None,
        revoked_at: None,
    };
    if !tokens::add(desk.sql, &token)? {
        return Err(Code::Internal.into());
    }
    let payload = json!({
        "token": id,
        "account": account,
        "kind": kind,
        "device": device,
        "expires_at": expires_at,
    });
    desk.record(EventType::GATEWAY_TOKEN_ISSUED, &payload)?;
    Ok(wire::TokenMade {
        id,
        token: text.expose().to_owned(),
        expires_at,
    })
}

impl Service {
    /// Who a token speaks for, if it speaks for anybody.
    pub async fn identify(
        &self,
        hash: lodestar_core::digest::Digest,
    ) -> Result<Option<Identity>, Refusal> {
        let now = self.now();
        let token = match self.known.token(hash) {
            Some(token) => Some(token),
            None => self.ask(move |desk| Ok(desk.look_up(hash)?)).await?,
        };
        let token = token.filter(|token| token.is_open(now));
        Ok(token.as_ref().map(Identity::from))
    }

    /// The account of whoever asks.
    pub async fn account(&self, caller: Identity) -> Result<wire::Account, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = accounts::get(desk.sql, caller.account)?;
            let account = found.ok_or(Code::AccountUnknown)?;
            Ok(wire::Account {
                id: account.id,
                name: name(&account.name)?,
                owner_key: account.owner_key,
                created_at: account.created_at,
            })
        })
        .await
    }

    /// The key of an account's owner.
    pub(super) async fn owner_key(&self, caller: &Identity) -> Result<PublicKey, Refusal> {
        if let Some(key) = self.known.owner(caller.account) {
            return Ok(key);
        }
        let caller = caller.clone();
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = accounts::get(desk.sql, caller.account)?;
            let account = found.ok_or(Code::AccountUnknown)?;
            desk.known.remember_owner(account.id, account.owner_key);
            Ok(account.owner_key)
        })
        .await
    }

    /// Makes a token. One for a device takes the place of those that the device had.
    pub async fn make_token(
        &self,
        caller: Identity,
        asked: wire::MakeToken,
    ) -> Result<wire::TokenMade, Refusal> {
        if (asked.kind == TokenKind::Device) != asked.device.is_some() {
            let why = "`device` goes with tokens of devices, and only with them";
            return Err(Refusal::saying(Code::InvalidBody, why).at("device"));
        }
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            if let Some(device) = asked.device {
                let device = devices::owned(desk, caller.account, device)?;
                devices::not_gone(&device)?;
                desk.known.forget_tokens_of(caller.account);
                tokens::revoke_of_device(desk.sql, device.id, desk.now)?;
            }
            make_token(desk, caller.account, asked.kind, asked.device)
        })
        .await
    }

    /// The account's tokens.
    pub async fn tokens(
        &self,
        caller: Identity,
        after: Option<TokenId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Token>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = tokens::list(desk.sql, caller.account, after, limit + 1)?;
            let items = found.into_iter().map(|token| wire::Token {
                id: token.id,
                kind: token.kind,
                device: token.device,
                created_at: token.created_at,
                expires_at: token.expires_at,
                used_at: token.used_at,
                revoked_at: token.revoked_at,
            });
            Ok(page(items.collect(), limit, |token| token.id.to_string()))
        })
        .await
    }

    /// Takes a token back; that of whoever asks, if they want to.
    pub async fn revoke_token(
        &self,
        caller: Identity,
        id: TokenId,
    ) -> Result<wire::TokenRevoked, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            desk.known.forget_tokens_of(caller.account);
            if !tokens::revoke(desk.sql, caller.account, id, desk.now)? {
                return Err(Code::TokenUnknown.into());
            }
            let payload = json!({"token": id, "account": caller.account, "by": caller.token});
            desk.record(EventType::GATEWAY_TOKEN_REVOKED, &payload)?;
            Ok(wire::TokenRevoked {
                id,
                revoked_at: desk.now,
            })
        })
        .await
    }

    /// Makes an agent known.
    pub async fn register_agent(
        &self,
        caller: Identity,
        asked: wire::Named,
    ) -> Result<wire::Agent, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let agent = Agent {
                id: new_id!(ContenderId, desk.now),
                account: caller.account,
                name: asked.name.to_string(),
                created_at: desk.now,
            };
            if !agents::add(desk.sql, &agent)? {
                return Err(Code::NameTaken.into());
            }
            let payload = json!({"account": caller.account, "agent": agent.id, "name": agent.name});
            desk.record(EventType::RUN_AGENT_REGISTERED, &payload)?;
            agent_shown(agent)
        })
        .await
    }

    /// The account's agents.
    pub async fn agents(
        &self,
        caller: Identity,
        after: Option<ContenderId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Agent>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = agents::list(desk.sql, caller.account, after, limit + 1)?;
            let items = found
                .into_iter()
                .map(agent_shown)
                .collect::<Result<_, _>>()?;
            Ok(page(items, limit, |agent| agent.id.to_string()))
        })
        .await
    }

    /// Makes a runner known.
    pub async fn register_runner(
        &self,
        caller: Identity,
        asked: wire::Named,
    ) -> Result<wire::Runner, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let runner = Runner {
                id: new_id!(RunnerId, desk.now),
                account: caller.account,
                name: asked.name.to_string(),
                created_at: desk.now,
                last_heartbeat: None,
            };
            if !runners::add(desk.sql, &runner)? {
                return Err(Code::NameTaken.into());
            }
            let payload =
                json!({"account": caller.account, "runner": runner.id, "name": runner.name});
            desk.record(EventType::RUN_RUNNER_REGISTERED, &payload)?;
            runner_shown(runner)
        })
        .await
    }

    /// The account's runners.
    pub async fn runners(
        &self,
        caller: Identity,
        after: Option<RunnerId>,
        limit: usize,
    ) -> Result<wire::Page<wire::Runner>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = runners::list(desk.sql, caller.account, after, limit + 1)?;
            let items = found
                .into_iter()
                .map(runner_shown)
                .collect::<Result<_, _>>()?;
            Ok(page(items, limit, |runner| runner.id.to_string()))
        })
        .await
    }

    /// The terms that the account registered, without what they say.
    pub async fn all_terms(
        &self,
        caller: Identity,
        after: Option<TermsId>,
        limit: usize,
    ) -> Result<wire::Page<wire::TermsEntry>, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = terms::list(desk.sql, caller.account, after, limit + 1)?;
            let items = found.into_iter().map(|terms| wire::TermsEntry {
                id: terms.id,
                digest: terms.digest,
                registered_at: terms.registered_at,
            });
            Ok(page(items.collect(), limit, |terms| terms.id.to_string()))
        })
        .await
    }

    /// Terms, whole.
    pub async fn terms(&self, caller: Identity, id: TermsId) -> Result<wire::TermsWhole, Refusal> {
        let found = self.terms_row(caller, id).await?;
        let document = serde_json::from_str(&found.document);
        Ok(wire::TermsWhole {
            id: found.id,
            digest: found.digest,
            registered_at: found.registered_at,
            document: document.map_err(|_| Refusal::of(Code::Internal))?,
        })
    }

    pub(super) async fn terms_row(
        &self,
        caller: Identity,
        id: TermsId,
    ) -> Result<terms::TermsRow, Refusal> {
        self.ask(move |desk| {
            desk.act_for(&caller)?;
            let found = terms::get(desk.sql, id)?;
            let found = found.filter(|terms| terms.account == caller.account);
            found.ok_or_else(|| Code::TermsUnknown.into())
        })
        .await
    }
}

fn agent_shown(agent: Agent) -> Result<wire::Agent, Stop> {
    Ok(wire::Agent {
        id: agent.id,
        name: name(&agent.name)?,
        created_at: agent.created_at,
    })
}

fn runner_shown(runner: Runner) -> Result<wire::Runner, Stop> {
    Ok(wire::Runner {
        id: runner.id,
        name: name(&runner.name)?,
        created_at: runner.created_at,
        last_heartbeat: runner.last_heartbeat,
    })
}
