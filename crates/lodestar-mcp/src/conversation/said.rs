//! What servers say on their own account: what may reach the agent, and what it is asked.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::value::RawValue;

use super::{Conversation, METHOD_NOT_FOUND};
use crate::agent_tool::Favour;
use crate::answer;
use crate::beside::Beside;
use crate::peer::{Peer, Said};
use crate::server::Server;
use crate::wire;

/// Notifications that an agent gets as they come.
const PASSED_ON: [&str; 4] = [
    "notifications/message",
    "notifications/resources/updated",
    "notifications/resources/list_changed",
    "notifications/prompts/list_changed",
];

impl Conversation {
    pub(super) async fn heard(self: &Arc<Self>, server: &Arc<Server>, peer: &Peer, said: Said) {
        match said {
            Said::Noise(noise) => self.note_noise(server, &noise),
            Said::Notification { method, params } => {
                if &*method == "notifications/cancelled" {
                    self.server_cancelled(server, params.as_deref());
                }
                if &*method == "notifications/tools/list_changed" && self.opened.get().is_some() {
                    self.tools_announced.store(true, Ordering::Relaxed);
                }
                if PASSED_ON.contains(&&*method) {
                    self.pass_on(&method, params.as_deref()).await;
                }
            }
            Said::Request { id, method, params } => match &*method {
                "ping" => {
                    let nothing = RawValue::from_string("{}".to_owned());
                    if let Ok(nothing) = nothing {
                        peer.answer(&id, &crate::peer::Answered::Result(nothing))
                            .await;
                    }
                }
                "roots/list" if self.agent_can("roots") => {
                    // The agent may take its time; the server's other words do not wait for it.
                    let (conversation, peer) = (Arc::clone(self), peer.clone());
                    tokio::spawn(async move { conversation.ask_roots(&peer, &id, params).await });
                }
                other => match Favour::of(other) {
                    Some(favour) => self.asked_for(server, peer, favour, id, params).await,
                    None => {
                        let why = "this is not offered to servers here";
                        peer.decline(&id, METHOD_NOT_FOUND, why).await;
                    }
                },
            },
        }
    }

    async fn ask_roots(&self, peer: &Peer, id: &str, params: Option<Box<RawValue>>) {
        let asked = async {
            let beside = Beside::default();
            let asking = self.ask_agent("roots/list", params.as_deref(), None, &beside);
            asking.await?.answer().await
        };
        match tokio::time::timeout(self.patience(), asked).await {
            Ok(Some(answered)) => peer.answer(id, &answered).await,
            Ok(None) | Err(_) => {
                peer.decline(id, METHOD_NOT_FOUND, "the agent does not answer")
                    .await;
            }
        }
    }

    async fn pass_on(&self, method: &str, params: Option<&RawValue>) {
        let Ok(clean) = params.map_or(Ok(None), |params| answer::stripped(params.get())) else {
            return;
        };
        let params = clean.as_ref().map(|(clean, _)| &**clean).or(params);
        if self.tell_listeners(method, params) {
            return;
        }
        let mut message = Vec::new();
        wire::notification(&mut message, method, params);
        let _ = self.agent.put(message).await;
    }

    pub(super) fn agent_can(&self, capability: &str) -> bool {
        let capabilities = self.capabilities.get();
        capabilities.is_some_and(|all| all.get(capability).is_some_and(|one| !one.is_null()))
    }

    fn patience(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.settings.config.limits.call_deadline_ms)
    }
}
