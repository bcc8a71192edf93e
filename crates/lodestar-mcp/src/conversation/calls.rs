//! Calls of tools, through the session.

use std::borrow::Cow;
use std::sync::Arc;

use lodestar_core::defence::Defence;
use lodestar_guard::{CallOptions, GuardError, Reply};
use lodestar_kernel::record::Rejection;
use lodestar_kernel::tool::Progress;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::others::refused;
use super::{Conversation, INVALID_PARAMS, Opened, Request};
use crate::answer::{self, ForAgent, Refusal};
use crate::beside::Beside;
use crate::members::Members;
use crate::pins::APPEARED;
use crate::streams::Outbox;
use crate::wire;

/// What an agent asks to be called.
struct Wanted<'a> {
    name: Cow<'a, str>,
    arguments: Value,
    token: Option<&'a RawValue>,
}

fn wanted(params: Option<&RawValue>) -> Result<Wanted<'_>, String> {
    let members =
        Members::of_some(params).map_err(|problem| format!("the parameters: {problem}"))?;
    let name = members.text("name").ok_or("`name` is missing or no text")?;
    let arguments = match members.get("arguments").map(RawValue::get) {
        None | Some("null") => Value::Object(Map::new()),
        Some(raw) => serde_json::from_str(raw)
            .map_err(|problem| format!("`arguments` cannot be read: {problem}"))?,
    };
    Ok(Wanted {
        name,
        arguments,
        token: token(&members),
    })
}

/// The arguments as the agent wrote them.
fn unparsed(params: Option<&RawValue>) -> Option<Box<str>> {
    let members = Members::of_some(params).ok()?;
    Some(members.get("arguments")?.get().into())
}

/// The token under which the agent wants to hear how far a request is.
pub(super) fn token<'a>(members: &Members<'a>) -> Option<&'a RawValue> {
    let meta = Members::of(members.get("_meta")?).ok()?;
    let token = meta.get("progressToken")?;
    wire::Id::read(token).map(|_| token)
}

impl Conversation {
    pub(super) async fn call_tool(self: &Arc<Self>, request: Request) {
        let wanted = match wanted(request.params.as_deref()) {
            Ok(wanted) => wanted,
            Err(why) => return request.fail(INVALID_PARAMS, &why).await,
        };
        let opened = match self.ready().await {
            Ok(opened) => opened,
            Err(why) => return request.answer(&not_ready(&wanted.name, &why)).await,
        };
        let Ok(_room) = self.room.acquire().await else {
            return;
        };
        let unparsed = match self.settings.without.contains(&Defence::ParsedOnce) {
            true => unparsed(request.params.as_deref()),
            false => None,
        };
        let options = request.options_with(wanted.token, unparsed);
        let (tool, replied) = match opened.catalogue.route(&wanted.name) {
            Some(route) => match route.refusal() {
                Some(reason) => {
                    let why = Rejection::DefinitionDrift { reason };
                    (
                        route.ledger.as_str(),
                        opened.session.refuse(&route.ledger, why),
                    )
                }
                None => {
                    let call = opened
                        .session
                        .call_with(&route.ledger, wanted.arguments, options);
                    (route.ledger.as_str(), call.await)
                }
            },
            None => (&*wanted.name, unknown(opened, &wanted.name)),
        };
        self.give(&request, opened, tool, replied).await;
    }

    /// Gives the agent what came of a call.
    async fn give(
        &self,
        request: &Request,
        opened: &Opened,
        tool: &str,
        replied: Result<Reply, GuardError>,
    ) {
        // Who cancelled does not wait for an answer.
        if replied.is_ok() && request.stop.is_stopped() {
            return;
        }
        // For a harness that takes [`Defence::RefusalsAreResults`] out: a refusal is an error of the protocol.
        let is_error = self.lacks(Defence::RefusalsAreResults)
            && replied.as_ref().is_ok_and(|reply| !reply.ran());
        let given = match replied {
            Ok(reply) => answer::for_agent(opened.session.id(), tool, reply, self.forged()).await,
            Err(problem) => Err(problem),
        };
        let (answer, forged) = match given {
            Ok(given) => given,
            Err(problem) => {
                let why = problem.to_string();
                return request.answer(&cannot_go_on(tool, &why)).await;
            }
        };
        if forged > 0 {
            self.note_forgery(opened, tool, forged);
        }
        match answer {
            ForAgent::Result(result) if is_error => request.error(&refused(&result)).await,
            ForAgent::Result(result) => request.answer(&result).await,
            ForAgent::Error(error) => request.error(&error).await,
        }
    }
}

/// A tool that is not in the catalogue.
fn unknown(opened: &Opened, name: &str) -> Result<Reply, GuardError> {
    let why = match opened.catalogue.has_appeared(name) {
        true => Rejection::DefinitionDrift {
            reason: format!("{APPEARED}; somebody has to look at it with `lodestar tools review`"),
        },
        false => Rejection::ToolNotAdvertised,
    };
    opened.session.refuse(name, why)
}

pub(super) fn not_ready(tool: &str, why: &str) -> String {
    answer::refusal(&Refusal {
        kind: "proxy_not_ready",
        text: &format!(
            "Not run (proxy_not_ready): {why}. Call again in a moment, or tell the user."
        ),
        reason: why,
        tool,
        session: None,
        action: None,
        seq: None,
        request: None,
    })
}

fn cannot_go_on(tool: &str, why: &str) -> String {
    answer::refusal(&Refusal {
        kind: "halted",
        text: &format!("Not run (halted): {why}. Stop here and tell the user."),
        reason: why,
        tool,
        session: None,
        action: None,
        seq: None,
        request: None,
    })
}

impl Request {
    /// How its call is made: what stops it, who wants to know how far it is, and what goes with it.
    pub(super) fn options(&self, token: Option<&RawValue>) -> CallOptions {
        self.options_with(token, None)
    }

    fn options_with(&self, token: Option<&RawValue>, unparsed: Option<Box<str>>) -> CallOptions {
        let beside = Beside {
            rounds: self.rounds,
            level: self.level,
            unparsed,
            ..Beside::default()
        };
        let progress = token.map(|token| -> Arc<dyn Progress> {
            Arc::new(ToAgent {
                token: token.get().into(),
                back: self.back.clone(),
            })
        });
        CallOptions {
            stop: self.stop.clone(),
            progress,
            beside: Some(Arc::new(beside)),
            ..CallOptions::default()
        }
    }
}

/// Tells the agent how far its request is, under its own token.
#[derive(Debug)]
struct ToAgent {
    token: Box<str>,
    back: Outbox,
}

impl Progress for ToAgent {
    fn made(&self, so_far: &str) {
        let Ok(raw) = serde_json::from_str::<&RawValue>(so_far) else {
            return;
        };
        let members = Members::of(raw).unwrap_or_default();
        let params = members.write_with(&[("progressToken", &self.token)]);
        let params = match answer::stripped(&params) {
            Err(_) => return,
            Ok(Some((clean, _))) => clean,
            Ok(None) => match RawValue::from_string(params) {
                Ok(params) => params,
                Err(_) => return,
            },
        };
        let mut message = Vec::new();
        wire::notification(&mut message, "notifications/progress", Some(&params));
        // Of progress, the newest counts: what finds no room is no loss.
        self.back.offer(message);
    }
}
