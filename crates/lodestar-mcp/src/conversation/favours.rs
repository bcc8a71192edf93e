//! What servers ask of the agent: an action of theirs, through the session, and off unless the operator
//! grades it.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use futures_util::future::join_all;
use lodestar_core::name::ToolName;
use lodestar_core::scope::Scope;
use lodestar_guard::{CallOptions, Outcome, Reply, Setup};
use lodestar_kernel::stop::Stop;
use lodestar_kernel::tool::{Progress, Verbatim};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::calls::token;
use super::{Conversation, INVALID_PARAMS, METHOD_NOT_FOUND, REFUSED};
use crate::agent_tool::{AgentTool, FAVOURS, Favour};
use crate::answer;
use crate::beside::Beside;
use crate::catalogue::ledger_name;
use crate::members::{Members, quoted};
use crate::peer::{Answered, Peer};
use crate::server::Server;
use crate::tool::Wanted;
use crate::wire::{Id, IdKey};

/// Most that one server may ask for at the same time: on its own account, and for each call.
const AT_ONCE: usize = 8;

/// What servers asked for, by server and their id, and how each is stopped.
pub(super) type Served = HashMap<(String, IdKey), Stop>;

impl Conversation {
    /// Whether a server may ask for something at all.
    pub(super) fn is_granted(&self, server: &Server, favour: &Favour) -> bool {
        let ledger = ledger_name(server, favour.name);
        let grades = &self.settings.config.tool_defaults;
        grades.contains_key(&ledger) && self.agent_can(favour.capability)
    }

    /// Puts what servers may ask for into a session that is about to be opened.
    pub(super) fn with_favours(self: &Arc<Self>, mut setup: Setup, scope: &Scope) -> Setup {
        for server in &self.servers {
            for favour in &FAVOURS {
                let ledger = ledger_name(server, favour.name);
                let name = ToolName::new(&ledger);
                setup = match name {
                    Ok(name) if self.is_granted(server, favour) => setup.tool(AgentTool::new(
                        name,
                        favour,
                        server,
                        Arc::downgrade(self),
                        scope,
                    )),
                    _ => setup.absent(ledger),
                };
            }
        }
        setup
    }

    /// A server asks for something. The agent may take its time; the server's other words do not wait.
    pub(super) async fn asked_for(
        self: &Arc<Self>,
        server: &Arc<Server>,
        peer: &Peer,
        favour: &'static Favour,
        id: Box<str>,
        params: Option<Box<RawValue>>,
    ) {
        if !self.is_granted(server, favour) {
            let why = "this is not offered to servers here";
            return peer.decline(&id, METHOD_NOT_FOUND, why).await;
        }
        let Some(serving) = self.serving(server, &id) else {
            let why = "too much is asked at once, or twice under one id";
            return peer.decline(&id, REFUSED, why).await;
        };
        let (conversation, server, peer) = (Arc::clone(self), Arc::clone(server), peer.clone());
        tokio::spawn(async move {
            let stop = serving.stop.clone();
            let (params, beside) = (params.as_deref(), Beside::default());
            let answered = conversation
                .favour(&server, &peer, favour, params, beside, stop.clone())
                .await;
            drop(serving);
            // Who cancelled does not wait for an answer.
            if stop.is_stopped() {
                return;
            }
            match answered {
                Ok(answered) => peer.answer(&id, &answered).await,
                Err((code, why)) => peer.decline(&id, code, &why).await,
            }
        });
    }

    /// Does what a server asks for, if the gate lets it.
    pub(crate) async fn favour(
        &self,
        server: &Server,
        peer: &Peer,
        favour: &Favour,
        params: Option<&RawValue>,
        beside: Beside,
        stop: Stop,
    ) -> Result<Answered, (i64, String)> {
        let opened = self.ready().await.map_err(|why| (REFUSED, why))?;
        let clean = params.map_or(Ok(None), |params| answer::stripped(params.get()));
        let clean = clean.map_err(|unclear| (INVALID_PARAMS, unclear.to_string()))?;
        let params = clean.as_ref().map(|(clean, _)| &**clean).or(params);
        let members =
            Members::of_some(params).map_err(|problem| (INVALID_PARAMS, problem.to_string()))?;
        let progress = token(&members).map(|token| -> Arc<dyn Progress> {
            Arc::new(ToServer {
                token: token.get().into(),
                peer: peer.clone(),
            })
        });
        let arguments = params.map_or(Ok(Value::Object(Map::new())), |params| {
            serde_json::from_str(params.get())
        });
        let mut arguments: Value =
            arguments.map_err(|problem| (INVALID_PARAMS, problem.to_string()))?;
        if let Some(members) = arguments.as_object_mut() {
            members.remove("_meta");
        }
        let options = CallOptions {
            stop,
            progress,
            beside: Some(Arc::new(beside)),
            ..CallOptions::default()
        };
        let ledger = ledger_name(server, favour.name);
        let replied = opened.session.call_with(&ledger, arguments, options).await;
        let replied = replied.map_err(|problem| (REFUSED, problem.to_string()))?;
        answer_to_server(replied)
    }

    /// Everything that a server wants to know before it answers, as an object.
    pub(crate) async fn provide(
        &self,
        server: &Server,
        peer: &Peer,
        wanted: &Wanted<'_>,
        rounds: Option<u64>,
        stop: &Stop,
    ) -> Result<String, String> {
        let requests: Vec<_> = wanted.requests.iter().collect();
        let mut answers = Vec::new();
        for some in requests.chunks(AT_ONCE) {
            answers.extend(self.provide_some(server, peer, some, rounds, stop).await?);
        }
        Ok(format!("{{{}}}", answers.join(",")))
    }

    /// Some of it, as members of an object. It is asked for together, so that an agent that is asked in rounds
    /// needs one. Where one comes to nothing the others are stopped, and each is heard out: it is on record.
    async fn provide_some(
        &self,
        server: &Server,
        peer: &Peer,
        requests: &[(&str, &RawValue)],
        rounds: Option<u64>,
        stop: &Stop,
    ) -> Result<Vec<String>, String> {
        let names = requests.iter().map(|(name, _)| (*name).to_owned());
        let expected = rounds.map(|rounds| self.expect(rounds, names.collect()));
        let expected = expected.as_ref();
        let problem = OnceLock::new();
        let first = &problem;
        let answers = requests.iter().map(|&(name, request)| {
            let beside = Beside {
                rounds,
                question: Some(name.to_owned()),
                ..Beside::default()
            };
            async move {
                let answered = self.provided(server, peer, request, beside, stop).await;
                let answered = answered.map_err(|why| {
                    let _ = first.set(why);
                    stop.stop();
                });
                if let Some(expected) = expected {
                    expected.is_over(name);
                }
                let answered = answered.ok()?;
                Some(format!("{}:{}", quoted(name), answered.get()))
            }
        });
        let answers = join_all(answers).await;
        match problem.into_inner() {
            Some(why) => Err(why),
            None => Ok(answers.into_iter().flatten().collect()),
        }
    }

    /// One thing that a server wants to know before it answers.
    async fn provided(
        &self,
        server: &Server,
        peer: &Peer,
        request: &RawValue,
        beside: Beside,
        stop: &Stop,
    ) -> Result<Box<RawValue>, String> {
        let members = Members::of(request).map_err(|problem| problem.to_string())?;
        let method = members.text("method").unwrap_or_default();
        let params = members.get("params");
        let answered = match Favour::of(&method) {
            Some(favour) if self.is_granted(server, favour) => self
                .favour(server, peer, favour, params, beside, stop.clone())
                .await
                .map_err(|(_, why)| format!("the server wants `{method}`: {why}"))?,
            None if method == "roots/list" && self.agent_can("roots") => {
                let asking = self.ask_agent(&method, params, None, &beside);
                let answered = match asking.await {
                    Some(mut asking) => tokio::select! {
                        answered = asking.answer() => answered,
                        () = stop.stopped() => None,
                    },
                    None => None,
                };
                answered.ok_or("the agent does not answer")?
            }
            _ => {
                let shown = lodestar_core::name::Excerpt::of(&method);
                return Err(format!(
                    "the server wants `{shown}` of the agent, which is not offered to it here"
                ));
            }
        };
        match answered {
            Answered::Result(result) => Ok(result),
            Answered::Error(error) => {
                let shown = lodestar_core::name::Excerpt::of(error.get());
                Err(format!(
                    "the agent answers `{method}` with an error: {shown}"
                ))
            }
        }
    }

    fn serving(self: &Arc<Self>, server: &Server, id: &str) -> Option<Serving> {
        let raw: &RawValue = serde_json::from_str(id).ok()?;
        let name = server.name().as_str();
        let key = (name.to_owned(), Id::read(raw)?.key());
        let mut served = self.served();
        let theirs = served.keys().filter(|(other, _)| other == name).count();
        if theirs >= AT_ONCE || served.contains_key(&key) {
            return None;
        }
        let stop = Stop::new();
        served.insert(key.clone(), stop.clone());
        Some(Serving {
            conversation: Arc::clone(self),
            key,
            stop,
        })
    }

    /// A server does not wait any more for what it asked.
    pub(super) fn server_cancelled(&self, server: &Server, params: Option<&RawValue>) {
        let members = Members::of_some(params).unwrap_or_default();
        if let Some(id) = members.get("requestId").and_then(Id::read)
            && let Some(stop) = self
                .served()
                .get(&(server.name().as_str().to_owned(), id.key()))
        {
            stop.stop();
        }
    }

    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that a server asked for, on its way.
struct Serving {
    conversation: Arc<Conversation>,
    key: (String, IdKey),
    stop: Stop,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.conversation.served().remove(&self.key);
    }
}

/// A server is told what came of it, but of a refusal only that it was one: the rest is not its business.
fn answer_to_server(reply: Reply) -> Result<Answered, (i64, String)> {
    let raw = |text: Box<str>| RawValue::from_string(text.into());
    let unreadable = |_| (REFUSED, "the agent's answer cannot be passed on".to_owned());
    match reply.outcome {
        Outcome::Returned(output) => match output.verbatim {
            Some(Verbatim::Result(text)) => raw(text).map(Answered::Result).map_err(unreadable),
            Some(Verbatim::Error(text)) => raw(text).map(Answered::Error).map_err(unreadable),
            None => Err((REFUSED, "the agent did not answer".to_owned())),
        },
        Outcome::Failed(_) => Err((REFUSED, "the agent did not answer".to_owned())),
        Outcome::Refused(why) => Err((REFUSED, format!("it was not allowed ({})", why.kind()))),
    }
}

/// Tells a server how far the agent is, under its own token.
#[derive(Debug)]
struct ToServer {
    token: Box<str>,
    peer: Peer,
}

impl Progress for ToServer {
    fn made(&self, so_far: &str) {
        let Ok(raw) = serde_json::from_str::<&RawValue>(so_far) else {
            return;
        };
        let members = Members::of(raw).unwrap_or_default();
        let params = members.write_with(&[("progressToken", &self.token)]);
        if let Ok(params) = RawValue::from_string(params) {
            self.peer
                .tell_if_room("notifications/progress", Some(&params));
        }
    }
}
