//! Agents without a handshake: their first request says who they are, and so does every other.

use std::sync::{Arc, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Conversation, Era, METHOD_NOT_FOUND, Request};
use crate::in_headers::Annotated;
use crate::inline::{self, SERVER, SUBSCRIPTION, Sender};
use crate::members::Members;
use crate::streams::Outbox;
use crate::wire;

/// A request that listens to what changes.
#[derive(Debug)]
pub(super) struct Listener {
    /// The request's id, as it was written.
    id: Box<str>,
    filter: Value,
    back: Outbox,
}

impl Conversation {
    /// A request that says itself who asks.
    pub(super) async fn serve_inline(self: &Arc<Self>, request: Request) {
        let sender = match Sender::of(request.params.as_deref()) {
            Ok(sender) => sender,
            Err(problem) => return request.error(&problem.error().1.to_string()).await,
        };
        self.meet(&sender).await;
        match &*request.method {
            "server/discover" => request.answer(&self.discovered()).await,
            "subscriptions/listen" => self.listen(&request).await,
            // Of the handshake's time.
            "initialize"
            | "ping"
            | "logging/setLevel"
            | "resources/subscribe"
            | "resources/unsubscribe" => {
                let why = format!("`{}` is not part of this revision", request.method);
                request.fail(METHOD_NOT_FOUND, &why).await;
            }
            "tools/call" | "prompts/get" | "resources/read" => self.in_rounds(request).await,
            _ => self.serve(request).await,
        }
    }

    /// What a tool wants repeated in the headers of its calls.
    pub(crate) async fn annotated(self: &Arc<Self>, sender: &Sender, tool: &str) -> Vec<Annotated> {
        self.meet(sender).await;
        let opened = self.ready().await.ok();
        let route = opened.and_then(|opened| opened.catalogue.route(tool));
        route.map_or_else(Vec::new, |route| route.annotated.clone())
    }

    /// The first request introduces the agent; servers are heard out before it is answered.
    async fn meet(self: &Arc<Self>, sender: &Sender) {
        let _ = self.era.set(Era::Inline);
        if self.capabilities.set(sender.capabilities.clone()).is_ok() {
            self.introduce(&sender.capabilities, &sender.client, Era::Inline);
            let conversation = Arc::clone(self);
            tokio::spawn(async move {
                for server in &conversation.servers {
                    server.settled().await;
                }
                conversation.open().await;
            });
        }
        for server in &self.servers {
            server.settled().await;
        }
    }

    /// What all servers together can, as this revision says it.
    fn discovered(&self) -> String {
        let hello: Value = serde_json::from_str(&self.hello(inline::INLINE)).unwrap_or_default();
        let mut found = json!({
            "resultType": "complete",
            "supportedVersions": inline::supported(),
            "capabilities": hello["capabilities"],
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {SERVER: hello["serverInfo"]},
        });
        if let Some(instructions) = hello.get("instructions") {
            found["instructions"] = instructions.clone();
        }
        found.to_string()
    }

    /// Listens to what changes, until the agent does not want to any more.
    async fn listen(&self, request: &Request) {
        let params = request.params.as_deref().map_or("{}", RawValue::get);
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        let asked = &params["notifications"];
        let mut accepted = json!({});
        for name in [
            "toolsListChanged",
            "promptsListChanged",
            "resourcesListChanged",
        ] {
            if asked[name] == json!(true) {
                accepted[name] = json!(true);
            }
        }
        let known = json!({"notifications": accepted});
        let tagged = tagged(Some(&known.to_string()), &request.id);
        let mut message = Vec::new();
        let method = "notifications/subscriptions/acknowledged";
        wire::notification(&mut message, method, Some(&tagged));
        if request.back.put(message).await.is_err() {
            return;
        }
        let listener = Listener {
            id: request.id.clone(),
            filter: accepted,
            back: request.back.clone(),
        };
        self.listeners().push(listener);
        request.stop.stopped().await;
        self.listeners().retain(|other| other.id != request.id);
    }

    /// Tells whoever listens; says whether agents of this conversation listen at all.
    pub(super) fn tell_listeners(&self, method: &str, params: Option<&RawValue>) -> bool {
        if !matches!(self.era.get(), Some(Era::Inline)) {
            return false;
        }
        let wanted = match method {
            "notifications/tools/list_changed" => "toolsListChanged",
            "notifications/prompts/list_changed" => "promptsListChanged",
            "notifications/resources/list_changed" => "resourcesListChanged",
            "notifications/message" => {
                let mut message = Vec::new();
                wire::notification(&mut message, method, params);
                let members = Members::of_some(params).unwrap_or_default();
                let level = members.text("level").unwrap_or_default();
                self.tell_in_rounds(&level, &message);
                return true;
            }
            _ => return true,
        };
        for listener in &*self.listeners() {
            if listener.filter[wanted] == json!(true) {
                let tagged = tagged(params.map(RawValue::get), &listener.id);
                let mut message = Vec::new();
                wire::notification(&mut message, method, Some(&tagged));
                listener.back.offer(message);
            }
        }
        true
    }

    fn listeners(&self) -> MutexGuard<'_, Vec<Listener>> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Parameters that say to which request they belong.
fn tagged(params: Option<&str>, id: &str) -> Box<RawValue> {
    let params: Option<&RawValue> = params.and_then(|params| serde_json::from_str(params).ok());
    let members = Members::of_some(params).unwrap_or_default();
    let meta = Members::of_some(members.get("_meta")).unwrap_or_default();
    let meta = meta.write_with(&[(SUBSCRIPTION, id)]);
    let params = members.write_with(&[("_meta", &meta)]);
    RawValue::from_string(params).expect("INVARIANT: an object is written")
}
